"""The plain fold by itself: what it makes of entries that no append would write, and that it stays linear."""

from __future__ import annotations

import time

import pytest

from tests.builders import assistant, delta, put, remove, revert, text, turn, user
from turnwire import errors, v1
from turnwire.log.fold import Places, fold


def log(*given: v1.EntryInput | bytes) -> list[v1.Entry]:
    """Entries from 1 on; bytes are those of an entry as a later schema writes it."""
    made = []
    for revision, each in enumerate(given, start=1):
        entry = v1.Entry.FromString(each if isinstance(each, bytes) else each.SerializeToString())
        entry.revision = revision
        made.append(entry)
    return made


LATER = b"\xfa\x01\x03abc"  # field 31


def test_a_payload_that_is_not_known_fails_the_fold() -> None:
    with pytest.raises(errors.UnknownPayload) as caught:
        fold(log(turn(), LATER, user()))
    assert caught.value.metadata["revision"] == "2"
    assert fold(log(turn(), LATER, user()), 1).revision == 1


def test_unless_its_envelope_says_that_it_may_be_skipped() -> None:
    state = fold(log(turn(), LATER + b"\x20\x01", user()))
    assert [message.id for message in state.messages()] == ["u"]
    assert state.revision == 3


def test_a_message_put_together_is_a_copy() -> None:
    entries = log(turn(), user("u", text("p", "a")), delta("p", 1, "b"))
    message = fold(entries).messages()[0].built()
    assert message.parts[0].text.text == "ab"
    assert fold(entries, 2).messages()[0].built().parts[0].text.text == "a"
    assert entries[1].user.user.parts[0].text.text == "a"


def test_a_kind_of_part_that_is_not_known_is_kept() -> None:
    later = v1.PromptPart.FromString(b"\x0a\x01p\x82\x01\x00")  # field 16
    message = fold(log(turn(), user("u", later))).messages()[0].built()
    assert message.parts[0].SerializeToString() == later.SerializeToString()


def test_places() -> None:
    places: Places[str] = Places()
    for id, before in (("b", ""), ("a", "b"), ("d", "ghost"), ("c", "d")):
        places.insert(id, id.upper(), before)
    assert list(places) == ["A", "B", "C", "D"]
    assert places.remove("a") == "A"
    assert places.remove("d") == "D"
    places.insert("d", "D", "")
    assert list(places) == ["B", "C", "D"]
    assert len(places) == 3
    assert places.get("a") is None
    assert places.get("c") == "C"


def test_it_is_linear() -> None:
    """Ten thousand messages, each looked up again: quadratic look-ups would take minutes."""
    count = 10_000
    entries = [turn(), *(user(f"u{at}", text(f"p{at}")) for at in range(count))]
    entries += [put(f"u{at}", text(f"q{at}"), before=f"p{at}") for at in range(count)]
    entries += [delta(f"p{at}", 0, "x") for at in range(count)]
    entries += [remove(f"u{at}") for at in range(0, count, 2)]
    entries += [revert("u5001"), assistant("a")]
    made = log(*entries)
    began = time.perf_counter()
    state = fold(made)
    assert time.perf_counter() - began < 10
    assert [message.id for message in state.messages()] == [*(f"u{at}" for at in range(1, 5001, 2)), "a"]
    assert [part.id for part in state.messages()[0].parts] == ["q1", "p1"]
