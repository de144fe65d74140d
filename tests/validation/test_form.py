"""Entries that parse, in a form that no server writes."""

from __future__ import annotations

import pytest

from tests.builders import text, turn, user
from tests.engine.test_restore import log
from turnwire import v1
from turnwire.log import raw, wire
from turnwire.validation import SessionCheck

HEADER = v1.User(id="u", turn_id="t").SerializeToString()
PART = wire.part(text("p", "hello").SerializeToString())


def found(payload: bytes, number: int = 12) -> list[tuple[int, str, str]]:
    check = SessionCheck("s")
    properties = wire.field(10, b"")
    for entry in log(properties, turn(), wire.field(number, payload)):
        check.entry(raw.entry(entry))
    found = [(each.revision, each.rule, each.text) for each in check.found.take() if each.rule == "storage.form"]
    check.close()
    return found


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (user("u", text("p")).user.SerializeToString(), ""),
        (wire.field(1, HEADER + PART), ""),
        (wire.field(1, PART + HEADER), "a message whose parts are not at its end"),
        (wire.field(1, HEADER + PART + HEADER + PART), "a message whose parts are not at its end"),
        (wire.field(1, HEADER) + wire.field(1, PART), "a put with 2 messages"),
    ],
)
def test_where_the_parts_are(payload: bytes, told: str) -> None:
    assert found(payload) == ([(3, "storage.form", told)] if told else [])


def test_a_put_of_two_parts() -> None:
    part = wire.field(2, text("p", "hello").SerializeToString())
    assert found(b"\x0a\x01u" + part, 14) == []
    assert found(b"\x0a\x01u" + part + part, 14) == [(3, "storage.form", "a put with 2 parts")]
