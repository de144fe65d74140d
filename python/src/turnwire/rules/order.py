"""The order in which broken rules are told, so that every language names the same one first: TW-RUL-023."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from google.protobuf.descriptor import Descriptor

from turnwire.errors import Violation
from turnwire.rules import schema

#: A name, the key of a map that is a text, or an index or other key.
_STEP = re.compile(r'([a-z0-9_]+)|\[("(?:[^"\\]|\\.)*")]|\[([^]]*)]', re.DOTALL)

_Place = tuple[int | str, ...]


def in_order(full_name: str, violations: Iterable[Violation]) -> list[Violation]:
    """Sort the violations of a message: by the numbers of fields from the message on, a field before what is inside it,
    items by index, entries of maps by the bytes of their keys; several rules of one place by their ids."""
    message = schema.message(full_name)
    return sorted(violations, key=lambda each: (_place(message, each.path), each.rule))


def _place(message: Descriptor | None, path: str) -> _Place:
    place: list[int | str] = []
    for name, key, index in _STEP.findall(path):
        if key:
            place.append(json.loads(key))
        elif not name:
            place.append(int(index) if index.isdecimal() else index)
        elif message is not None:
            field = message.fields_by_name.get(name)
            if field is None:  # a oneof without member: the first that it could have
                place.append(min(each.number for each in message.oneofs_by_name[name].fields))
                continue
            place.append(field.number)
            message = field.message_type
            if message is not None and message.GetOptions().map_entry:
                message = message.fields_by_name["value"].message_type
    return tuple(place)
