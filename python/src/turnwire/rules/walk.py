"""Walks the references of a message: the fields whose value is the id of something else (option ``ref``).

Like the rules, the walk is compiled once per message type, and never enters a type without references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message

from turnwire.rules import own, schema
from turnwire.rules.compiler import path_key

# Adds the references of a message to a list; takes the path of the message with its closing dot, or "".
_Walk = Callable[[Any, str, list["Reference"]], None]

_walks: dict[str, _Walk | None] = {}


class Reference(NamedTuple):
    """One id in a message: ``path`` of the field, ``kind`` (a number of ``RefKind``), whether it is ``foreign`` (of
    another session), and its ``value``, which is never empty."""

    path: str
    kind: int
    foreign: bool
    value: str


def references(message: Message) -> Iterator[Reference]:
    """Return every reference in a message and all that is inside it, in the order of the fields."""
    found: list[Reference] = []
    walk = _walk(message.DESCRIPTOR.full_name)
    if walk is not None:
        walk(message, "", found)
    return iter(found)


def _walk(full_name: str) -> _Walk | None:
    if full_name not in _walks:
        _walks[full_name] = lambda message, prefix, found: _later(full_name, message, prefix, found)
        _walks[full_name] = _compile(schema.message(full_name))
    return _walks[full_name]


def _later(full_name: str, message: Any, prefix: str, found: list[Reference]) -> None:
    walk = _walks[full_name]
    if walk is not None:
        walk(message, prefix, found)


def _compile(message: Descriptor) -> _Walk | None:
    oneofs = [oneof for oneof in message.oneofs if own.is_real(oneof)]
    members = {field.name for oneof in oneofs for field in oneof.fields}
    steps = [_field(field) for field in message.fields if field.name not in members]
    steps += [_oneof(oneof) for oneof in oneofs]
    useful = [step for step in steps if step is not None]
    if not useful:
        return None

    def walk(message: Any, prefix: str, found: list[Reference]) -> None:
        for step in useful:
            step(message, prefix, found)

    return walk


def _field(field: FieldDescriptor) -> _Walk | None:
    name = field.name
    if field.message_type is None:
        return _values(field)
    is_map = field.message_type.GetOptions().map_entry
    inner = field.message_type.fields_by_name["value"].message_type if is_map else field.message_type
    walk = _walk(inner.full_name) if inner is not None else None
    if walk is None:
        return None

    def one(message: Any, prefix: str, found: list[Reference]) -> None:
        if message.HasField(name):
            walk(getattr(message, name), f"{prefix}{name}.", found)

    def each(message: Any, prefix: str, found: list[Reference]) -> None:
        for index, item in enumerate(getattr(message, name)):
            walk(item, f"{prefix}{name}[{index}].", found)

    def pairs(message: Any, prefix: str, found: list[Reference]) -> None:
        for key, item in getattr(message, name).items():
            walk(item, f"{prefix}{name}[{path_key(key)}].", found)

    return pairs if is_map else each if field.is_repeated else one


def _values(field: FieldDescriptor) -> _Walk | None:
    """The walk of a field that is an id, or a list of ids; ``None`` if it is neither."""
    ref = schema.option(field, "turnwire.v1.ref")
    if ref is None:
        return None
    name, kind, foreign = field.name, int(ref.kind), bool(ref.foreign)

    def one(message: Any, prefix: str, found: list[Reference]) -> None:
        value = getattr(message, name)
        if value:
            found.append(Reference(prefix + name, kind, foreign, value))

    def each(message: Any, prefix: str, found: list[Reference]) -> None:
        for index, value in enumerate(getattr(message, name)):
            if value:
                found.append(Reference(f"{prefix}{name}[{index}]", kind, foreign, value))

    return each if field.is_repeated else one


def _oneof(oneof: OneofDescriptor) -> _Walk | None:
    walks = {field.name: walk for field in oneof.fields if (walk := _field(field)) is not None}
    name = oneof.name
    if not walks:
        return None

    def member(message: Any, prefix: str, found: list[Reference]) -> None:
        walk = walks.get(message.WhichOneof(name))
        if walk is not None:
            walk(message, prefix, found)

    return member
