"""Turnwire's own rules of single messages: what protovalidate cannot say. `docs/spec.md` states them.

The options of ``options.proto`` (``json``, ``stored_only``, ``held_by``) mark the fields; this module reads them and
names the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire.rules import schema
from turnwire.rules.standard import Rule

#: A required oneof is unset, or an enum has a number that the schema does not know.
UNKNOWN: Final = "turnwire.unknown"
STORED_ONLY: Final = "turnwire.stored_only"
HELD_BY: Final = "turnwire.held_by"
TIMESTAMP: Final = "turnwire.timestamp"
CALL_ID: Final = "turnwire.call_id"

ONEOF_UNSET: Final = Rule(UNKNOWN, "must have one member set")
ONEOF_UNKNOWN: Final = Rule(UNKNOWN, "must have a member set that this schema knows; a later schema has written it")
ENUM_UNKNOWN: Final = Rule(UNKNOWN, "must be a number that this schema knows")
ID_MISSING: Final = Rule("required", "must be set in what is stored")
ID_TRANSIENT: Final = Rule(STORED_ONLY, "must be empty in what a hook writes")
WRONG_TIME: Final = Rule(TIMESTAMP, "must lie in the years 0001 to 9999, with 0 to 999,999,999 nanoseconds")
SAME_CALL: Final = Rule(CALL_ID, "must be unique in the message")

#: Seconds since 1970 of 0001-01-01T00:00:00Z and of 9999-12-31T23:59:59Z, the limits that timestamp.proto sets.
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799

ROLE_USER: Final = 1
ROLE_ASSISTANT: Final = 2
ROLES: Final = {ROLE_USER: "user", ROLE_ASSISTANT: "assistant"}

#: The field that is unique among the parts of one message.
CALL_ID_FIELD: Final = f"{schema.PACKAGE}.ToolPart.call_id"

_JSON_OBJECT: Final = 2
_TRANSIENT_ROOT: Final = f"{schema.PACKAGE}.Mutation"
_FIXED_ROLES: Final = {f"{schema.PACKAGE}.User": ROLE_USER, f"{schema.PACKAGE}.Assistant": ROLE_ASSISTANT}


def json_object(field: FieldDescriptor) -> bool | None:
    """Tell if a field's JSON must be an object; ``None`` if the field holds no JSON."""
    shape = schema.option(field, "turnwire.v1.json")
    return None if shape is None else shape == _JSON_OBJECT


def stored_only(field: FieldDescriptor) -> bool:
    """Tell if a field is set in stored messages and empty in transient ones."""
    return bool(schema.option(field, "turnwire.v1.stored_only"))


def held_by(field: FieldDescriptor) -> tuple[int, ...]:
    """Return the roles whose messages may hold this kind of part; empty: the field is no kind of part."""
    roles: tuple[int, ...] = schema.option(field, "turnwire.v1.held_by")
    return roles


def wrong_holder(roles: tuple[int, ...]) -> Rule:
    """Return the rule that a kind of part breaks in a message of another role than ``roles``."""
    return Rule(HELD_BY, f"must be in a message of role {' or '.join(ROLES[role] for role in roles)}")


def role_source(message: Descriptor) -> int | str | None:
    """Tell where the role of the parts in a message comes from: a number, the name of a field, or the holder."""
    if message.full_name in _FIXED_ROLES:
        return _FIXED_ROLES[message.full_name]
    field = message.fields_by_name.get("role")
    if field is not None and field.enum_type is not None and "parts" in message.fields_by_name:
        return "role"
    return None


def transient(message: Descriptor) -> bool:
    """Tell if everything inside a message is written by a hook: a mutation, or one of its edits."""
    root = schema.message(_TRANSIENT_ROOT)
    edits = [field.message_type for field in root.fields]
    return message == root or message in edits


def unset_oneof(message: Any) -> Rule:
    """Return the rule that an unset oneof breaks: a member of a later schema is there, or nothing is."""
    return ONEOF_UNKNOWN if len(UnknownFieldSet(message)) else ONEOF_UNSET


def repeated_calls(parts: Any) -> Iterator[int]:
    """Return the indexes of tool parts whose call id an earlier part of the message has too."""
    calls = [(index, part.tool.call_id) for index, part in enumerate(parts) if part.HasField("tool")]
    if len({call for _, call in calls}) == len(calls):
        return iter(())
    return _repeated(calls)


def _repeated(calls: list[tuple[int, str]]) -> Iterator[int]:
    seen: set[str] = set()
    for index, call in calls:
        # An empty call id breaks a rule of its own already.
        if call and call in seen:
            yield index
        seen.add(call)


def is_real(oneof: OneofDescriptor) -> bool:
    """Tell a oneof of the schema from the one that stands for an ``optional`` field."""
    return not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}")
