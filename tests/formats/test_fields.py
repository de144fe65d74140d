"""Foreign values as legal values of fields (C47, C49, C50, C52)."""

from __future__ import annotations

import pytest

from turnwire.formats.fields import Fields, milliseconds
from turnwire.formats.jsonlit import Json, Node


class Told(Fields):
    """Fields that keep their notes."""

    __slots__ = ("notes",)

    def __init__(self) -> None:
        super().__init__(lambda pointer, reason: self.notes.append(f"{pointer}: {reason}"))
        self.notes: list[str] = []


@pytest.fixture
def fields() -> Told:
    return Told()


@pytest.mark.parametrize(
    ("value", "taken", "note"),
    [
        (None, None, None),
        ("", "", None),
        ("né\x00\U0001f600", "né\x00\U0001f600", None),
        ("a\ud83db\udc00", "a\ufffdb\ufffd", "/t: 2 lone surrogates became U+FFFD"),
        (b"1", None, "/t: not a text"),
        (True, None, "/t: not a text"),
        ("x" * 11, "x" * 10, "/t: longer than 10 characters, cut"),
    ],
)
def test_texts(fields: Told, value: Json, taken: str | None, note: str | None) -> None:
    assert fields.text(value, "/t", 10) == taken
    assert fields.notes == ([note] if note else [])


def test_names_must_not_be_empty(fields: Told) -> None:
    assert [fields.name(value, "/n", "unknown") for value in ("build", "", None)] == ["build", "unknown", "unknown"]
    assert fields.notes == ['/n: missing or empty, "unknown" stands for it'] * 2


@pytest.mark.parametrize(
    ("value", "taken", "noted"),
    [
        (None, None, False),
        (b"0", 0, False),
        (b"653247040368672768", 653247040368672768, False),
        (b"9223372036854775807", 9223372036854775807, False),
        (b"9223372036854775808", None, True),
        (b"-0", 0, False),
        (b"1.0", 1, False),
        (b"1e3", 1000, False),
        (b"-423", None, True),
        (b"1.5", None, True),
        (b"1e400", None, True),
        (b"1e999999999999999999999", None, True),
        (b"NaN", None, True),
        (b"-Infinity", None, True),
        ("5", None, True),
        (False, None, True),
        ([], None, True),
    ],
)
def test_counts(fields: Told, value: Json, taken: int | None, noted: bool) -> None:
    assert fields.count(value, "/n") == taken
    assert fields.notes == (["/n: not an integer from 0 to 9223372036854775807"] if noted else [])


@pytest.mark.parametrize(
    ("value", "taken", "noted"),
    [
        (None, None, False),
        (b"0", 0.0, False),
        (b"0.0", 0.0, False),
        (b"0.007788", 0.007788, False),
        (b"-0.01", None, True),
        (b"NaN", None, True),
        (b"Infinity", None, True),
        (b"1e999", None, True),
        ("1", None, True),
        (True, None, True),
    ],
)
def test_costs(fields: Told, value: Json, taken: float | None, noted: bool) -> None:
    assert fields.cost(value, "/c") == taken
    assert fields.notes == (["/c: not a finite number from 0 on"] if noted else [])


@pytest.mark.parametrize(
    ("value", "seconds", "nanos", "back"),
    [
        (b"1796034337188", 1796034337, 188_000_000, b"1796034337188"),
        (b"0", 0, 0, b"0"),
        (b"-1", -1, 999_000_000, b"-1"),
        (b"1.5", 0, 1_500_000, b"1"),
        (b"-1.5", -1, 998_500_000, b"-2"),
        (b"1e3", 1, 0, b"1000"),
        (b"253402300799999", 253402300799, 999_000_000, b"253402300799999"),
    ],
)
def test_times(fields: Told, value: Json, seconds: int, nanos: int, back: bytes) -> None:
    time = fields.time(value, "/t")
    assert time is not None
    assert (time.seconds, time.nanos, milliseconds(time)) == (seconds, nanos, back)
    assert fields.notes == []


@pytest.mark.parametrize("value", [b"253402300800000", b"-62135596800001", b"NaN", b"1e300", "1", True, {}])
def test_what_is_no_time(fields: Told, value: Json) -> None:
    assert fields.time(value, "/t") is None
    assert fields.notes == ["/t: not a time in milliseconds since the epoch"]


def test_flags(fields: Told) -> None:
    assert [fields.flag(value, "/f") for value in (True, False, None, b"1")] == [True, False, None, None]
    assert fields.notes == ["/f: not true or false"]


def test_documents(fields: Told) -> None:
    assert fields.document(Node.parse('{ "a": 1.0 }'), "/d") == '{"a":1.0}'
    assert fields.document(Node.parse("[1]"), "/d", obj=True) == ""
    assert fields.document(Node.parse("null"), "/d", obj=True) == ""
    assert fields.document(Node.parse("null"), "/d") == "null"
    assert fields.document(Node.parse('{"a": NaN}'), "/d") == ""
    assert fields.notes == [
        "/d: not an object",
        "/d: no legal JSON document: NaN, Infinity, or more than 128 levels deep",
    ]
