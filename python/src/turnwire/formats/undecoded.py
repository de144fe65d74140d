"""Bytes that are no UTF-8, on their way from a source into the extras.

A text that was decoded here holds each such byte as two surrogates that are no pair: a high one that says that a byte
follows, and U+DC00 plus the byte. Nothing else can look like that, since an escaped pair in a JSON text becomes one
character, and so does a pair that stands in the text itself. Lone surrogates that stand in a text as they are (three
bytes, which is no UTF-8 either) become escapes in JSON, and stay lone surrogates in other texts.

Before a value is mapped, `cleaned` takes the bytes out: U+FFFD stands for each run of them, as it does wherever UTF-8
is decoded, and the literal that held them is kept beside, in base64.
"""

from __future__ import annotations

import codecs
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Final

from turnwire.formats.jsonlit import Node

#: Before the first byte of a run that becomes one U+FFFD, and before the others of it.
_FIRST: Final = "\udbff"
_NEXT: Final = "\udbfe"
_RUN: Final = re.compile("\udbff[\udc00-\udcff](?:\udbfe[\udc00-\udcff])*")
_BYTE: Final = re.compile("[\udbfe\udbff]([\udc00-\udcff])")
_LOW: Final = 0xDC00
_SURROGATE_BYTES: Final = 3
#: How deep a literal is looked for; below, the value there is kept whole.
_DEEPEST: Final = 100


def decode(data: bytes, *, json: bool = False) -> str:
    """Text from bytes; ``json``: lone surrogates among them become escapes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors=_AS_ESCAPES if json else _AS_THEY_ARE)


def has_bytes(text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether a text that is not yet cleaned holds bytes that are no UTF-8."""
    return text.find(_FIRST, start, len(text) if end is None else end) >= 0


def shown(text: str) -> str:
    """A text with U+FFFD for each run of bytes that are no UTF-8."""
    return _RUN.sub("\N{REPLACEMENT CHARACTER}", text) if has_bytes(text) else text


def cleaned(node: Node) -> tuple[Node, dict[str, str]]:
    """A value with U+FFFD for what is no UTF-8, and the literals that held it: their bytes in base64, by pointer."""
    if not has_bytes(node.text, node.start, node.end):
        return node, {}
    found: dict[str, str] = {}
    _find(node, "", found, 0)
    return Node.parse(shown(node.raw)), found


def _find(node: Node, pointer: str, found: dict[str, str], depth: int) -> None:
    if not has_bytes(node.text, node.start, node.end):
        return
    members = node.members() if depth < _DEEPEST else {}
    items = list(node.items()) if depth < _DEEPEST else []
    if (members and not any(map(has_bytes, members))) or items:
        inside = members.items() if members else ((str(index), item) for index, item in enumerate(items))
        for step, each in inside:
            _find(each, f"{pointer}/{step.replace('~', '~0').replace('/', '~1')}", found, depth + 1)
    else:
        found[pointer] = b64encode(_original(node.raw)).decode()


def _original(text: str) -> bytes:
    """The bytes that a text was decoded from."""
    pieces: list[bytes] = []
    at = 0
    for match in _BYTE.finditer(text):
        pieces += (text[at : match.start()].encode(), bytes((ord(match[1]) - _LOW,)))
        at = match.end()
    return b"".join((*pieces, text[at:].encode()))


def _handler(lone: Callable[[int], str]) -> Callable[[UnicodeError], tuple[str, int]]:
    def handle(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        data, start = error.object, error.start
        high = _surrogate(data, start)
        if high is None:
            marks = (_FIRST, *(_NEXT for _ in range(start + 1, error.end)))
            return "".join(m + chr(_LOW + b) for m, b in zip(marks, data[start : error.end], strict=True)), error.end
        low = _surrogate(data, start + _SURROGATE_BYTES)
        if low is not None and high < _LOW <= low:
            return chr(0x10000 + ((high & 0x3FF) << 10 | low & 0x3FF)), start + 2 * _SURROGATE_BYTES
        return lone(high), start + _SURROGATE_BYTES

    return handle


def _surrogate(data: bytes, start: int) -> int | None:
    """The surrogate whose three bytes begin at ``start``."""
    try:
        text = data[start : start + _SURROGATE_BYTES].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return ord(text) if len(text) == 1 and "\ud800" <= text <= "\udfff" else None


_AS_ESCAPES: Final = "turnwire.undecoded.escapes"
_AS_THEY_ARE: Final = "turnwire.undecoded.as_they_are"
codecs.register_error(_AS_ESCAPES, _handler(lambda code: f"\\u{code:04x}"))
codecs.register_error(_AS_THEY_ARE, _handler(chr))
