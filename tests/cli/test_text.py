"""Texts for a terminal: nothing stored can drive it, and what is said in short is right."""

from __future__ import annotations

import json
import unicodedata

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from turnwire.cli import text


@given(st.text())
def test_no_control_character_is_left(content: str) -> None:
    shown = text.visible(content)
    assert {char for char in shown if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}
    assert not any(
        unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI") for char in shown
    )
    assert not {char for char in text.one_line(content) if unicodedata.category(char) == "Cc"}


def test_what_is_visible_stays() -> None:
    plain = "naïve 日本 👩‍👩‍👧 שלום\n\ttabs"
    assert text.visible(plain) == plain
    assert text.visible("\x1b[31mred\x1b[0m\x00\r\x7f\x9b2J\u202e") == "␛[31mred␛[0m␀␍␡\\u{9b}2J\\u{202e}"
    assert text.one_line("a\nb\tc") == "a␊b␉c"


@given(st.text())
def test_json_means_the_same_and_is_safe(content: str) -> None:
    document = text.safe_json(json.dumps({"text": content}, ensure_ascii=False))
    assert json.loads(document) == {"text": content}
    assert not any(unicodedata.category(char) == "Cc" for char in document)


def test_json_escapes_what_terminals_act_on() -> None:
    assert text.safe_json('"\x7f\x9b\u202e\U000e0041é😀"') == '"\\u007f\\u009b\\u202e\\udb40\\udc41é😀"'


def test_cut() -> None:
    assert text.cut("abcdef", 6) == "abcdef"
    assert text.cut("abcdefg", 6) == "abcde…"
    assert text.cut("a\nb", 6) == "a␊b"


@pytest.mark.parametrize(
    ("nanos", "told"),
    [
        (0, "0 ms"),
        (49_000_000, "49 ms"),
        (50_000_000, "0.1 s"),
        (59_940_000_000, "59.9 s"),
        (60_000_000_000, "1 min 0 s"),
        (3_725_000_000_000, "1 h 2 min"),
        (-1, ""),
    ],
)
def test_span(nanos: int, told: str) -> None:
    start = Timestamp(seconds=10, nanos=5)
    end = Timestamp(seconds=10 + (5 + nanos) // 10**9, nanos=(5 + nanos) % 10**9)
    assert text.span(start, end) == told


def test_moments_at_the_ends_of_the_calendar() -> None:
    for seconds, year in ((-62_135_596_800, "0001"), (253_402_300_799, "9999")):
        shown = text.moment(Timestamp(seconds=seconds))
        assert (shown[:4], len(shown)) == (year, 19)


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB")]
)
def test_size(count: int, told: str) -> None:
    assert text.size(count) == told


def test_plural() -> None:
    assert [text.plural(1, "entry"), text.plural(2, "entry"), text.plural(1000, "file")] == [
        "1 entry",
        "2 entries",
        "1,000 files",
    ]
