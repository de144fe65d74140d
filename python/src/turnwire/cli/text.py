"""Texts as a terminal may show them: control characters made visible, times, sizes and numbers in short forms."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

# Line breaks and tabs are layout. Everything else below U+0020, DEL and C1 can drive a terminal; the bidirectional
# controls and the invisible tag characters can make a line read other than it is.
_PICTURES: Final = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)} | {0x7F: "\u2421"}
_HIDDEN: Final = [
    *range(0x80, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xE0000, 0xE0080),
]
_VISIBLE: Final = _PICTURES | {code: f"\\u{{{code:x}}}" for code in _HIDDEN}
_ONE_LINE: Final = _VISIBLE | {0x09: "\u2409", 0x0A: "\u240a"}
_IN_JSON: Final = re.compile(f"[\x7f{''.join(map(chr, _HIDDEN))}]")

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def visible(text: str) -> str:
    """Make control characters visible: pictures for those of ASCII, ``\\u{…}`` for others; breaks and tabs stay."""
    return text.translate(_VISIBLE)


def one_line(text: str) -> str:
    """The same, with line breaks and tabs made visible too."""
    return text.translate(_ONE_LINE)


def safe_json(document: str) -> str:
    """Escape in a JSON document what JSON itself lets stand but a terminal would act on; it means the same."""
    return _IN_JSON.sub(_escaped, document)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)


def cut(text: str, width: int) -> str:
    """One line of at most ``width`` characters, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def moment(time: Timestamp, *, seconds: bool = True) -> str:
    """A time as people in this time zone write it, for example ``2026-01-31 14:05:09``."""
    at = _EPOCH + datetime.timedelta(seconds=time.seconds)
    # At the ends of the calendar no other time zone reaches.
    with suppress(OverflowError, OSError, ValueError):
        at = at.astimezone()
    return at.replace(tzinfo=None).isoformat(" ", "seconds" if seconds else "minutes")


def clock(time: Timestamp) -> str:
    """The time of day, for example ``14:05:09``."""
    return moment(time).partition(" ")[2]


def span(start: Timestamp, end: Timestamp) -> str:
    """The time from one moment to another, for example ``0.8 s``, ``3 min 20 s``; empty if it runs backwards."""
    nanos = (end.seconds - start.seconds) * 1_000_000_000 + end.nanos - start.nanos
    if nanos < 0:
        return ""
    if nanos < 60_000_000_000:
        return f"{nanos / 1e9:.1f} s" if nanos >= 50_000_000 else f"{nanos // 1_000_000} ms"
    minutes, rest = divmod(nanos // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(count: int) -> str:
    """A number of bytes, for example ``1.5 MiB``."""
    if count < 1024:
        return plural(count, "byte")
    amount = count / 1024
    for unit in _UNITS:
        if amount < 1024:
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} PiB"


def plural(number: int, noun: str) -> str:
    """A number with its noun, for example ``1 session``, ``2,000 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
