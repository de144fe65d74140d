"""Between the protobuf messages of ``turnwire.v1`` and the dataclasses of ``turnwire.models``.

The dataclasses are for people who like them; they never reach a store. They are built only from what official protobuf
has parsed, since their own parser takes truncated bytes for whole ones. Times lose what is below a microsecond.
Needs the extra: turnwire[models].
"""

from __future__ import annotations

import betterproto2
from google.protobuf.message import Message

from turnwire import models, v1


def to_model(message: Message) -> betterproto2.Message:
    """The dataclass of a message: the class of the same name in ``turnwire.models``.

    Raises KeyError for a message of another package.
    """
    model: type[betterproto2.Message] = _named(models, message)
    return model.parse(message.SerializeToString())


def from_model(model: betterproto2.Message) -> Message:
    """The message of a dataclass: the class of the same name in ``turnwire.v1``, unset fields left unset."""
    message: Message = getattr(v1, type(model).__name__)()
    message.ParseFromString(bytes(model))
    return message


def _named(module: object, message: Message) -> type[betterproto2.Message]:
    if message.DESCRIPTOR.file.package != "turnwire.v1":
        raise KeyError(message.DESCRIPTOR.full_name)
    found: type[betterproto2.Message] = getattr(module, message.DESCRIPTOR.name)
    return found
