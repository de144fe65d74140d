"""What a single value may look like in ProtoJSON, by the spec (TW-ENC-016 to TW-ENC-018).

``google.protobuf.json_format`` takes more: base64 with other characters in it, numbers as Python writes them, true as
the number of an enum, a time with an offset of 25 hours. What one language reads and another refuses is no form of
exchange, so such values are refused before it sees them.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DIGITS: Final = 400  # More of them no number has that is in range.
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?"
    r"|(?:[A-Za-z0-9_-]{4})*+(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?"
)
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_FLOATS: Final = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
_INTEGERS: Final = (
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
)


def right(value: Any, field: FieldDescriptor) -> str:
    """What would be right where a value of a field, or an item of it, is not; "" where it may be.

    What ``json_format`` refuses by itself, a number out of range for one, is not looked at. Shows no content.
    """
    if field.message_type is not None:
        is_time = field.message_type.full_name == "google.protobuf.Timestamp"
        return "" if not is_time or _matches(_TIME, value) else "a time as RFC 3339 writes it, with up to 9 digits"
    if field.enum_type is not None:
        if isinstance(value, str):
            return "" if value in field.enum_type.values_by_name else "a name of the enum, or a number"
        is_whole = isinstance(value, float) and value.is_integer()
        return "" if is_whole or _is_int(value) else "a name of the enum, or a whole number"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "" if _matches(_BASE64, value) else "base64 in one alphabet, with padding or without"
    if field.cpp_type in _INTEGERS:
        return "" if not isinstance(value, str) or _is_number(value) else "a number as JSON writes it"
    if field.cpp_type in _FLOATS:
        if isinstance(value, str):
            fits = value in _NOT_FINITE or (_is_number(value) and math.isfinite(float(value)))
            return "" if fits else "a number as JSON writes it, NaN, Infinity or -Infinity"
        return "" if isinstance(value, float) or _is_int(value) else "a number"
    return ""


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: str) -> bool:
    return len(value) <= _DIGITS and _matches(_NUMBER, value)


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
