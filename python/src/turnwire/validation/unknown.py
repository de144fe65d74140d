"""What a message holds that this build's schema does not know, and where it may come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

import turnwire
from turnwire.rules.compiler import path_key
from turnwire.rules.schema import PACKAGE

#: Field numbers of an entry's envelope begin here; see ``entry.proto``.
_ENVELOPE: Final = 300
#: No schema of Turnwire has come near such numbers, and those of a torn varint mostly lie behind them.
_UNLIKELY: Final = 10_000


class UnknownField(NamedTuple):
    """A field by the path of the message that has it and its number; ``message`` is that message's class."""

    path: str
    number: int
    message: type[Message]


def any_in(message: Message) -> bool:
    """Whether a message, or one inside it, has fields that the schema does not know."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() != message.ByteSize()


def fields(message: Message, path: str = "") -> Iterator[UnknownField]:
    """The unknown fields of a message and of all that is inside it, each number of a message once."""
    found = UnknownFieldSet(message)
    for number in dict.fromkeys(found[at].field_number for at in range(len(found))):
        yield UnknownField(path, number, type(message))
    lead = f"{path}." if path else ""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key, item in value.items():
                    yield from fields(item, f"{lead}{field.name}[{path_key(key)}]")
        else:
            items: list[tuple[str, Any]] = (
                [(f"[{index}]", item) for index, item in enumerate(value)] if field.is_repeated else [("", value)]
            )
            for index, item in items:
                yield from fields(item, f"{lead}{field.name}{index}")


def origin(message: type[Message], number: int) -> str:
    """Where a field that the schema does not know may come from, in one sentence for people."""
    descriptor = message.DESCRIPTOR
    name = f"field {number} of {descriptor.name}"
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    if any(each.start <= number < each.end for each in proto.reserved_range):
        return f"{name} was removed from {PACKAGE}; an earlier version has written it"
    if number >= _UNLIKELY:
        return f"{name} is a number that no schema of Turnwire uses, which hints at damage"
    later = f"a schema of {PACKAGE} later than that of version {turnwire.__version__}"
    if descriptor.full_name == f"{PACKAGE}.Entry":
        what = "an addition to the envelope" if number >= _ENVELOPE else "a payload"
        return f"{name} is {what} of {later}"
    return f"{name} comes from {later}"
