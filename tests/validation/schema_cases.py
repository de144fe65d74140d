"""For every rule of the schema layer and every field that bears it, messages that break exactly it.

They are made from the descriptors: the least that a valid message of a type must have, with one field set, and then
one of the ways of `tests.breaking` to break a rule there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from tests.breaking import breaks
from turnwire import v1
from turnwire.rules import own, schema, standard
from turnwire.rules.standard import FieldRules
from turnwire.validation import rules
from turnwire.validation.rule import SCHEMA

#: The rules that stand in the schema.
IDS: Final = sorted(rule.id for rule in rules().values() if rule.layer == SCHEMA)

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_MASK: Final = "google.protobuf.FieldMask"


class Case(NamedTuple):
    """A message that breaks one rule at the field ``where`` when it is checked with these arguments."""

    where: str
    message: Any
    stored: bool | None = None
    role: int = 0


def cases(rule: str) -> Iterator[Case]:
    """Messages that break a rule and no other."""
    if rule == "repeated.max_items":
        yield from _too_long()
        return
    for where in dict.fromkeys(name.removesuffix(", keys").removesuffix("[]") for name, _ in rules()[rule].fields):
        name, _, field = where.partition(".")
        if rule == own.CALL_ID:
            name, field = "Assistant", "parts"
        for stored, role in _contexts(rule):
            for index in range(len(list(_ways(rule, name, field, stored, role)[1]))):
                message, ways = _ways(rule, name, field, stored, role)
                ways[index]()
                yield Case(where, message, stored, role)


def _ways(rule: str, name: str, field: str, stored: bool | None, role: int) -> tuple[Any, list[Any]]:
    """A valid message with a field set, and every way to break a rule at that field."""
    message = valid(name, stored, role, also=field)
    found = [one.apply for one in breaks(message, stored, role) if one.rule == rule and _is_at(one.path, field, rule)]
    return message, found


def _is_at(path: str, field: str, rule: str) -> bool:
    if rule == own.CALL_ID:
        return True
    if rule == own.HELD_BY:
        return "." not in path
    return path == field or (path.startswith(f"{field}[") and "]." not in path)


def _contexts(rule: str) -> list[tuple[bool | None, int]]:
    """What must be known of where the parts of a message are, for a rule to be looked at at all."""
    if rule == own.STORED_ONLY:
        return [(False, 0)]
    if rule == own.HELD_BY:
        return [(None, own.ROLE_USER), (None, own.ROLE_ASSISTANT)]
    return [(True if rule == "required" else None, 0)]


def _too_long() -> Iterator[Case]:
    diff, attachment = v1.FileDiff(), v1.ToolAttachment(file=v1.FilePart(url="x"))
    tool = valid("ToolPart", None, 0)
    tool.attachments.extend([attachment] * 1001)
    yield Case("ToolPart.attachments", tool)
    yield Case("MessageSummary.diffs", v1.MessageSummary(message_id="m", diffs=[diff] * 100_001))
    yield Case("PatchPart.files", v1.PatchPart(files=["x"] * 100_001))


def valid(name: str, stored: bool | None, role: int, *, also: str = "") -> Any:
    """The least that a valid message of a type must have, and a field of it."""
    descriptor = schema.message(f"{schema.PACKAGE}.{name}")
    message = getattr(v1, name)()
    source = own.role_source(descriptor)
    role = source if isinstance(source, int) else own.ROLE_USER if source is not None else role
    oneofs = [oneof for oneof in descriptor.oneofs if own.is_real(oneof)]
    members = {field.name for oneof in oneofs for field in oneof.fields}
    for field in descriptor.fields:
        if field.name not in members and (field.name == also or _is_needed(field, stored)):
            _set(message, field, stored, role)
    for oneof in oneofs:
        fields = [field for field in oneof.fields if not role or role in (own.held_by(field) or {role})]
        wanted = [field for field in fields if field.name == also]
        if wanted or standard.oneof_required(oneof):
            _set(message, (wanted or fields)[0], stored, role)
    return message


def _is_needed(field: FieldDescriptor, stored: bool | None) -> bool:
    found = standard.field_rules(field)
    if own.stored_only(field):
        return bool(stored)
    if field.is_repeated:
        return not standard.holds(found.clauses, ())
    unset_is_right = field.has_presence or found.skip_zero or standard.holds(found.clauses, field.default_value)
    return found.required or not unset_is_right


def _set(message: Any, field: FieldDescriptor, stored: bool | None, role: int) -> None:
    found = standard.field_rules(field)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        getattr(message, field.name)["k"] = _scalar(value, found.items or FieldRules())
    elif field.is_repeated:
        getattr(message, field.name).append(_value(field, found.items or FieldRules(), stored, role))
    elif field.message_type is not None:
        inner: Message = getattr(message, field.name)
        inner.SetInParent()
        inner.CopyFrom(_value(field, found, stored, role))
    else:
        setattr(message, field.name, _scalar(field, found))


def _value(field: FieldDescriptor, found: FieldRules, stored: bool | None, role: int) -> Any:
    if field.message_type is None:
        return _scalar(field, found)
    if field.message_type.full_name == _TIMESTAMP:
        return Timestamp(seconds=1)
    if field.message_type.full_name == f"{schema.PACKAGE}.PromptPart":
        # A tool where one may be, for the sake of its call id.
        kind = "tool" if role == own.ROLE_ASSISTANT else "text"
        return valid("PromptPart", stored, role, also=kind)
    if field.message_type.full_name == _MASK:
        return FieldMask()
    return valid(field.message_type.name, stored, role)


def _scalar(field: FieldDescriptor, found: FieldRules) -> Any:
    candidates: list[Any] = ["x", "{}"]
    if own.json_object(field) is not None:
        candidates = ["{}"]
    elif field.type == FieldDescriptor.TYPE_BYTES:
        candidates = [b"x" * 32]
    elif field.enum_type is not None:
        candidates = sorted(field.enum_type.values_by_number, reverse=True)
    elif field.type == FieldDescriptor.TYPE_BOOL:
        candidates = [True]
    elif field.type != FieldDescriptor.TYPE_STRING:
        candidates = [1, 100]
    return next(each for each in candidates if standard.holds(found.clauses, each))
