"""What stands at the path of a finding, cut short for people."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from google.protobuf.message import Message

#: The most characters of a value that a finding shows.
SHOWN: Final = 80

_STEP: Final = re.compile(r'\.?(\w+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\[(true|false|-?\d+)\]')


def at(message: Message, path: str) -> str:
    """The value at a path, as `short` shows it; empty for a message, for what is unset, and for what is not there."""
    value: Any = message
    field: Any = None
    place = 0
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            return ""
        place = step.end()
        try:
            if step[1] is not None:
                if not isinstance(value, Message) or step[1] not in value.DESCRIPTOR.fields_by_name:
                    return ""
                field = value.DESCRIPTOR.fields_by_name[step[1]]
                value = getattr(value, step[1])
            elif step[2] is not None:
                value = value[int(step[2])]
            else:
                key = json.loads(step[3] if step[3] is not None else step[4])
                if isinstance(key, str) and key not in value:  # paths cut long keys
                    return short(next(each for each in value if each.startswith(key.removesuffix("…"))))
                # What is wrong with a key shows in the key, and mostly the value is not what is wrong.
                value = value.get(key, key)
        except (IndexError, KeyError, StopIteration, TypeError):
            return ""
    if field is not None and field.enum_type is not None and isinstance(value, int):
        name = field.enum_type.values_by_number.get(value)
        return name.name if name is not None else str(value)
    return short(value)


def short(value: object) -> str:
    """A text in quotes, a number or bytes, cut to `SHOWN` characters; empty for anything else, and for nothing."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        whole = json.dumps(value[: SHOWN + 1], ensure_ascii=False)
        return _cut(whole) if len(whole) > SHOWN or len(value) > SHOWN else whole
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, bytes):
        return _cut(value[: SHOWN + 1].hex()) if value else ""
    return ""


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
