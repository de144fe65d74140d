"""Chains of deltas, and what they make of a part; without an engine."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import reasoning, text, tool
from turnwire import v1
from turnwire.log import deltas
from turnwire.store.base import EntryRow


def rows(*previous: int) -> dict[int, EntryRow]:
    """Entries 1, 2, … with the revision of the delta before each."""
    return {at: EntryRow(at, 0, 15, b"", before) for at, before in enumerate(previous, start=1)}


def chain(entries: dict[int, EntryRow], last: int, revision: int) -> list[int]:
    return [row.revision for row in deltas.chain(entries.__getitem__, last, revision)]


def test_a_chain_goes_back_to_the_first_delta_of_its_part() -> None:
    """Entries 1, 3, 5 on one part, 2 and 4 on another."""
    entries = rows(0, 0, 1, 2, 3)
    assert chain(entries, 5, 5) == [1, 3, 5]
    assert chain(entries, 4, 9) == [2, 4]
    assert chain(entries, 5, 4) == [1, 3]
    assert chain(entries, 5, 0) == []
    assert chain(entries, 0, 9) == []


def test_each_target_gets_its_own() -> None:
    part = tool("p", raw_input="a")
    found = [
        v1.PartDelta(part_id="p", offset=1, raw_input="b"),
        v1.PartDelta(part_id="p", offset=0, output="x"),
        v1.PartDelta(part_id="p", offset=2, raw_input="c"),
        v1.PartDelta(part_id="p", offset=1, output="y"),
    ]
    deltas.apply(part, found)
    assert (part.tool.raw_input, part.tool.output) == ("abc", "xy")


@given(st.text(), st.lists(st.text(min_size=1)))
def test_texts_are_put_together_in_order(start: str, pieces: list[str]) -> None:
    for part in (text("p", start), reasoning("p", start)):
        deltas.apply(part, [v1.PartDelta(part_id="p", text=piece) for piece in pieces])
        made = part.text.text if part.HasField("text") else part.reasoning.text
        assert made == start + "".join(pieces)


def test_no_deltas_change_nothing() -> None:
    part = tool("p")
    deltas.apply(part, [])
    assert part == tool("p")
