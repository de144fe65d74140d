"""What is part of the history, beside the plain way to tell it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnwire.validation.state import MessageRow, PartRow, Span, State, at_end, step

places = st.integers(0, 6).map(lambda at: at_end(step(at)))
slots = st.sampled_from(["", *(at_end(step(9, at)) for at in range(3))])


@given(
    spans=st.lists(st.tuples(places, slots), max_size=12),
    born=st.integers(0, 13),
    part_born=st.integers(0, 13),
    place=places,
    slot=slots.filter(bool),
)
def test_what_final_reverts_took(
    spans: list[tuple[str, str]], born: int, part_born: int, place: str, slot: str
) -> None:
    state = State()
    taken = [Span(start, *position) for start, position in enumerate(spans, 1)]
    for span in taken:
        state.take_out(span)
    message = MessageRow(1, born, place)
    since = [span for span in taken if span.start >= born]
    dead = any(place > span.place or (place == span.place and not span.slot) for span in since)
    assert state.is_live(message) == (not dead)
    part = PartRow("m", born, slot, part_born, part_born, 0)
    since = [span for span in taken if span.start >= part_born]
    alone = any(span.slot and span.place == place and slot >= span.slot for span in since)
    assert state.removed_alone(part, message) == alone
    state.close()
