"""Values of a foreign record as legal values of fields.

Every method takes a value of the tree (None if it is absent or null), returns what the field can hold, and tells the
report through ``note(pointer, reason)`` when that is not what stood there. The original is not lost: see
`turnwire.formats.extras`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal, InvalidOperation

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire.formats.extras import storable
from turnwire.formats.jsonlit import Json, Node, compact, integer

INT32 = 2**31 - 1
INT64 = 2**63 - 1

_LONE = re.compile(r"[\ud800-\udfff]")
# 0001-01-01 to 9999-12-31, the range of a Timestamp.
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999
# Numbers beyond these are in the range of no field, and cost much to make into integers.
_SHORT_DIGITS = 18
_MOST_DIGITS = 40


class Fields:
    """Makes legal values; ``note`` is told what had to be changed."""

    __slots__ = ("note",)

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self.note = note

    def text(self, value: Json, pointer: str, limit: int | None = None) -> str | None:
        """A text of at most ``limit`` characters; lone surrogates become U+FFFD."""
        if value is None:
            return None
        if not isinstance(value, str):
            self.note(pointer, "not a text")
            return None
        if not value.isascii():
            value, lone = _LONE.subn("\N{REPLACEMENT CHARACTER}", value)
            if lone:
                self.note(pointer, f"{lone} lone surrogates became U+FFFD")
        if limit is not None and len(value) > limit:
            self.note(pointer, f"longer than {limit} characters, cut")
            value = value[:limit]
        return value

    def name(self, value: Json, pointer: str, default: str, limit: int = 256) -> str:
        """A text that must not be empty."""
        if value is not None and not isinstance(value, str):
            self.note(pointer, f'not a text, "{default}" stands for it')
            return default
        text = self.text(value, pointer, limit)
        if text:
            return text
        self.note(pointer, f'missing or empty, "{default}" stands for it')
        return default

    def flag(self, value: Json, pointer: str) -> bool | None:
        """True or false."""
        if value is None or isinstance(value, bool):
            return value
        self.note(pointer, "not true or false")
        return None

    def count(self, value: Json, pointer: str, greatest: int = INT64, least: int = 0) -> int | None:
        """An integer from ``least`` to ``greatest``."""
        if value is None:
            return None
        if isinstance(value, bytes):
            number = int(value) if len(value) <= _SHORT_DIGITS and value.isdigit() else _whole(value)
            if number is not None and least <= number <= greatest:
                return number
        self.note(pointer, f"not an integer from {least} to {greatest}")
        return None

    def cost(self, value: Json, pointer: str) -> float | None:
        """A price: finite, not negative."""
        if value is None:
            return None
        if isinstance(value, bytes):
            number = float(value) if value[-1:].isdigit() else -1.0
            if 0 <= number < float("inf"):
                return abs(number)
        self.note(pointer, "not a finite number from 0 on")
        return None

    def time_or(self, value: Json, pointer: str, default: Timestamp, which: str) -> Timestamp:
        """A time that must be there; ``which`` says what stands for it otherwise."""
        why: list[str] = []
        found = Fields(lambda _, reason: why.append(reason)).time(value, pointer)
        if found is not None:
            return found
        self.note(pointer, f"{why[0] if why else 'missing'}, {which} stands for it")
        return default

    def time(self, value: Json, pointer: str) -> Timestamp | None:
        """A time in milliseconds since the epoch."""
        if value is None:
            return None
        if isinstance(value, bytes):
            if len(value) <= _SHORT_DIGITS and value.isdigit():
                milliseconds, nanoseconds = int(value), 0
            else:
                milliseconds, nanoseconds = _moment(value)
            if _FIRST_MS <= milliseconds <= _LAST_MS:
                seconds, rest = divmod(milliseconds, 1000)
                return Timestamp(seconds=seconds, nanos=rest * 1_000_000 + nanoseconds)
        self.note(pointer, "not a time in milliseconds since the epoch")
        return None

    def document(self, node: Node, pointer: str, *, obj: bool = False) -> str:
        """A value as a JSON document; empty if it cannot be one (NaN, too deep) or is not an object as asked."""
        if obj and node.text[node.start] != "{":
            if node.value is not None:
                self.note(pointer, "not an object")
            return ""
        text = compact(node.raw)
        if storable(text):
            return text
        self.note(pointer, "no legal JSON document: NaN, Infinity, or more than 128 levels deep")
        return ""


#: For values that are looked at before the object that they belong to is mapped, and its notes are made.
QUIET = Fields(lambda pointer, reason: None)


def milliseconds(time: Timestamp) -> bytes:
    """A time as whole milliseconds since the epoch."""
    return integer(time.seconds * 1000 + time.nanos // 1_000_000)


def _whole(text: bytes) -> int | None:
    """The integer that a JSON number is equal to, if it is one of a sane size."""
    number = _decimal(text)
    return int(number) if number is not None and number == number.to_integral_value() else None


def _moment(text: bytes) -> tuple[int, int]:
    """Milliseconds and the nanoseconds beyond them; a value out of range for what is no number."""
    number = _decimal(text)
    if number is None:
        return _LAST_MS + 1, 0
    whole = number.to_integral_value(ROUND_FLOOR)
    return int(whole), int((number - whole) * 1_000_000)


def _decimal(text: bytes) -> Decimal | None:
    """The exact value of a JSON number; None for NaN, infinities and what is far too large for any field."""
    if not text[-1:].isdigit():
        return None
    try:
        number = Decimal(text.decode())
    except InvalidOperation:  # an exponent beyond all measure
        return None
    return number if not number or number.adjusted() <= _MOST_DIGITS else None
