"""The canonical bytes of a part: what is stored and hashed of one that was not stored before.

The deterministic serialization of the runtime is that but for two things. Of two keys of a map of which one begins with
the other it writes the longer first, where the spec (TW-DIG-006) and other languages sort by bytes; the headers of a
provider's answer are the one map inside a part. And it leaves the tags of unknown fields as they came, where the spec
has them in their fewest bytes.
"""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from turnwire import v1
from turnwire.log import wire

_BYTES, _END_GROUP = 2, 4

#: How a number ends that has more bytes than it needs; such bytes can mean something else as well.
_LONG_NUMBER: Final = re.compile(rb"[\x80-\xff]\x00")


def may_have_long_tags(data: bytes) -> bool:
    """Whether serialized bytes may hold a tag with more bytes than it needs; what says no is right."""
    return b"\x00" in data and _LONG_NUMBER.search(data) is not None


def has_map(message: v1.PromptPart) -> bool:
    """Whether a part holds a map of several entries, so that the runtime may write it otherwise."""
    return message.HasField("retry") and len(message.retry.failure.api.response_headers) > 1


def part(message: v1.PromptPart) -> bytes:
    """Serialize a part. Raises what serializing raises."""
    data = _written(message) if has_map(message) else message.SerializeToString(deterministic=True)
    return _with_short_tags(data, message.DESCRIPTOR) if may_have_long_tags(data) else data


def _written(message: Message) -> bytes:
    """Serialize a message field by field: ascending by number, maps by the bytes of their keys, unknown fields last."""
    pieces: list[bytes] = []
    rest = type(message)()
    rest.CopyFrom(message)
    for field, value in message.ListFields():
        rest.ClearField(field.name)
        values: Any = value
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key in sorted(values, key=str.encode):
                one: Any = type(message)()
                getattr(one, field.name)[key] = values[key]
                pieces.append(one.SerializeToString())
        elif field.message_type is not None:
            pieces += [wire.field(field.number, _written(each)) for each in (values if field.is_repeated else [values])]
        else:
            one = type(message)()
            if field.is_repeated:
                getattr(one, field.name).extend(values)
            else:
                setattr(one, field.name, values)
            pieces.append(one.SerializeToString())
    pieces.append(rest.SerializeToString())
    return b"".join(pieces)


def _with_short_tags(data: bytes, descriptor: Descriptor) -> bytes:
    """A serialized message with every tag in its fewest bytes, in the messages inside too; the rest as it is."""
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        tag, value = wire.read_varint(data, at)
        at = _end(data, tag, value)
        field = descriptor.fields_by_number.get(tag >> 3)
        pieces.append(wire.varint(tag))
        inner = field.message_type if field is not None and tag & 7 == _BYTES else None
        if inner is None:
            pieces.append(data[value:at])
        else:
            _, content = wire.read_varint(data, value)
            inside = _with_short_tags(data[content:at], inner)
            pieces += [wire.varint(len(inside)), inside]
    return b"".join(pieces)


def _end(data: bytes, tag: int, at: int) -> int:
    """Where the field ends whose value begins there. The bytes are those of a message that was read."""
    match tag & 7:
        case 0:
            return wire.read_varint(data, at)[1]
        case 1:
            return at + 8
        case 2:
            length, at = wire.read_varint(data, at)
            return at + length
        case 3:
            inner, at = wire.read_varint(data, at)
            while inner & 7 != _END_GROUP:
                inner, at = wire.read_varint(data, _end(data, inner, at))
            return at
        case _:
            return at + 4
