"""The canonical bytes of a part: what is stored and hashed of one that was not stored before.

The deterministic serialization of the runtime is that but for maps: of two keys of which one begins with the other it
writes the longer first, where the spec (TW-DIG-006) and other languages sort by bytes. The headers of a provider's
answer are the one map inside a part.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from turnwire import v1
from turnwire.log import wire


def has_map(message: v1.PromptPart) -> bool:
    """Whether a part holds a map of several entries, so that the runtime may write it otherwise."""
    return message.HasField("retry") and len(message.retry.failure.api.response_headers) > 1


def part(message: v1.PromptPart) -> bytes:
    """Serialize a part. Raises what serializing raises."""
    if has_map(message):
        return _written(message)
    return message.SerializeToString(deterministic=True)


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
