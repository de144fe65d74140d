"""JSON texts: whether a text is one document of RFC 8259, how deep it nests, and what is at its top.

Turnwire keeps JSON as the text that came in, byte for byte, so a text is checked once and never written again. What
is legal here is exactly RFC 8259 in UTF-8:

* NaN and Infinity are refused, though Python's own ``json`` takes them; so is a byte order mark;
* escapes of lone surrogates (``"\\ud83d"``) are legal, and so are duplicate keys and numbers of any length;
* arrays and objects nest at most 128 levels deep; a number has depth 0, ``[]`` depth 1.

The check takes time and memory in proportion to the text and never fails with anything but its own answer, however
deep or long the text is. Numbers are not converted, so that a text of a million digits costs no more than its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 128

SYNTAX: Final = "turnwire.json.syntax"
DEPTH: Final = "turnwire.json.depth"
SHAPE: Final = "turnwire.json.shape"


class JsonFault(NamedTuple):
    """Why a text is refused: a rule id (``SYNTAX``, ``DEPTH`` or ``SHAPE``) and a sentence without content of it."""

    rule: str
    text: str


class _NotFinite(ValueError):
    pass


def _refuse(_: str) -> Any:
    raise _NotFinite


def _scanner(**hooks: Any) -> Callable[[str, int], tuple[object, int]]:
    """Python's scanner, written in C: takes a text and where to begin, returns a value and where it ends.

    The hooks keep it from building what nobody looks at: a fraction stays the text that it is, an object becomes the
    number of its keys.
    """
    decoder: Any = json.JSONDecoder(parse_float=str, object_pairs_hook=len, parse_constant=_refuse, **hooks)
    scan: Callable[[str, int], tuple[object, int]] = decoder.scan_once
    return scan


# Integers are quickest without a hook; a text with one of more digits than Python converts is scanned again with one.
_scan = _scanner()
_scan_long = _scanner(parse_int=str)

_SHORT = MAX_DEPTH
_SPACE = " \t\n\r"
# A string, closed or not: an unclosed one must match too, or looking for its end from each quote is quadratic.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_STEPS = [0] * 256
for _code in b"[{":
    _STEPS[_code] = 1
for _code in b"]}":
    _STEPS[_code] = -1


def check(text: str | bytes, *, obj: bool = False) -> JsonFault | None:
    """Check one JSON text; ``obj`` asks for an object at its top. An empty text means that there is none: no fault.

    Example: ``check('{"a": NaN}')`` gives ``JsonFault("turnwire.json.syntax", "must be …")``.
    """
    if not text:
        return None
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            return JsonFault(SYNTAX, f"must be one JSON document in UTF-8: byte {error.start} is not")
    elif not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return JsonFault(SYNTAX, f"must be one JSON document in UTF-8: character {error.start} is not")
    return check_unicode(text, obj)


def check_unicode(text: str, obj: bool) -> JsonFault | None:
    """`check` for a text that is known to be not empty and to be valid Unicode, as every protobuf string is."""
    # The depth must be settled before the scanner runs, because it recurses. A short text, or one of few
    # brackets, need not be looked at.
    if len(text) > _SHORT and text.count("{") + text.count("[") > MAX_DEPTH and depth(text) > MAX_DEPTH:
        return JsonFault(DEPTH, f"must nest at most {MAX_DEPTH} levels deep")
    try:
        # The common case: nothing is wrong, and there is no space around the document.
        if _scan(text, 0)[1] == len(text) and (not obj or text[0] == "{"):
            return None
    except (ValueError, StopIteration):
        pass
    return _explain(text, obj)


def _explain(text: str, obj: bool) -> JsonFault | None:
    """Say what is wrong with a text of right depth; slower, and right for every text."""
    core = text.rstrip(_SPACE)
    start = len(core) - len(core.lstrip(_SPACE))
    try:
        end = _scan_long(core, start)[1]
    except StopIteration as stop:
        return _fault("a value is missing or wrong", stop.value)
    except json.JSONDecodeError as error:
        return _fault(error.msg[0].lower() + error.msg[1:].rstrip(": ").removesuffix(" at"), error.pos)
    except _NotFinite:
        return JsonFault(SYNTAX, "must be one JSON document (RFC 8259): NaN and Infinity are none")
    if end != len(core):
        return _fault("more text follows the document", end)
    if obj and core[start] != "{":
        return JsonFault(SHAPE, "must be a JSON object")
    return None


def depth(text: str) -> int:
    """Tell how many levels of arrays and objects are open at the deepest place of a text, valid JSON or not."""
    brackets = _STRING.sub(b"", text.encode("utf-8", "surrogatepass")).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _fault(what: str, position: int) -> JsonFault:
    return JsonFault(SYNTAX, f"must be one JSON document (RFC 8259): {what} at character {position}")
