"""Keeps a list of every rule and option of the schema, by field: ``python -m tests.schema.rules`` writes it.

All else that tests rules follows the descriptors, so that a rule that is dropped from a field would be missed by
nothing. The list changes by that command alone, and what changed in it is read before it is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message_factory import GetMessageClass

from turnwire.rules import schema

PATH = Path(__file__).with_name("rules.txt")


def current() -> list[str]:
    """The rules and options of messages, oneofs and fields as they are now, one each a line, in order."""
    found: list[str] = []
    for file in schema.own_files():
        for message in file.message_types_by_name.values():
            found += _of_message(message)
    return sorted(found)


def kept() -> list[str]:
    """Those of the list."""
    return PATH.read_text(encoding="utf-8").splitlines()


def _of_message(message: Descriptor) -> Iterator[str]:
    yield from _lines(message, "Message")
    for oneof in message.oneofs:
        yield from _lines(oneof, "Oneof")
    for field in message.fields:
        yield from _lines(field, "Field")
    for nested in message.nested_types:
        yield from _of_message(nested)


def _lines(of: Descriptor | OneofDescriptor | FieldDescriptor, kind: str) -> Iterator[str]:
    # As a message of the pool that has the rules; the default one takes them for unknown fields.
    cls = GetMessageClass(schema.pool().FindMessageTypeByName(f"google.protobuf.{kind}Options"))
    for field, value in cls.FromString(of.GetOptions().SerializeToString()).ListFields():
        name = field.full_name if field.is_extension else field.name
        values = value if field.is_repeated and not isinstance(value, str | bytes) else [value]
        for each in values:
            said = each if not hasattr(each, "DESCRIPTOR") else text_format.MessageToString(each, as_one_line=True)
            yield f"{of.full_name}: {name} {said}".rstrip()


if __name__ == "__main__":
    PATH.write_text("".join(f"{line}\n" for line in current()), encoding="utf-8")
