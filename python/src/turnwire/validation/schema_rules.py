"""The rules of the schema layer, read off the shipped descriptors: whatever rule stands in a proto is listed here.

Only what each rule id means in general is written down here, by id. If the descriptors lack one of these ids, they were
stripped of their rules, and nothing that is checked by them would mean anything: `StrippedSchema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from turnwire.jsontext import DEPTH, SHAPE, SYNTAX
from turnwire.rules import own, schema, standard
from turnwire.rules.schema import StrippedSchema
from turnwire.rules.standard import FieldRules
from turnwire.validation.rule import ERROR, SCHEMA, Rule

_TIMESTAMP: Final = "google.protobuf.Timestamp"

#: What is wrong where a rule is broken, and why it is a rule.
_MEANINGS: Final = {
    "required": ("what must be set is not", "Readers rely on it: there is no value that could stand in for it."),
    "string.min_len": ("a text is too short", "An empty name or address names nothing."),
    "string.max_len": ("a text is too long", "Counted in characters (code points)."),
    "string.max_bytes": ("a text has too many bytes", "Counted in bytes of UTF-8, since it is a key of a store."),
    "string.pattern": ("a text does not have its form", "Mostly ids: 1 to 128 characters of A-Z a-z 0-9 . _ : -."),
    "bytes.len": ("bytes of another length", "A SHA-256 has 32 bytes."),
    "int32.gte": ("a number is too small", "Counts and revisions are never negative."),
    "int32.gte_lte": ("a number is out of its range", "Both ends are allowed."),
    "int64.gte": ("a number is too small", "Counts, offsets and revisions are never negative."),
    "double.gte": ("a number is too small", "A price is never negative."),
    "double.finite": ("a number is not finite", "NaN and infinity cannot be added up, and JSON cannot carry them."),
    "enum.not_in": ("an enum has a value that means nothing", "What is left unspecified says nothing."),
    "repeated.min_items": ("a list is too short", "An empty list would ask for nothing."),
    "repeated.max_items": ("a list is too long", "Lists are bounded, so that no one of them takes the memory of all."),
    "map.max_pairs": ("a map has too many pairs", "Maps are bounded, so that no one of them takes the memory of all."),
    SYNTAX: ("a text is no JSON", "JSON is kept byte for byte, as one RFC 8259 document. NaN and Infinity are none."),
    DEPTH: ("JSON is nested too deeply", "At most 128 levels, so that every reader can take it."),
    SHAPE: ("JSON is no object", "Members are looked up and added by name."),
    own.STORED_ONLY: ("what a hook writes has an id", "Ids are of the history, which a hook never writes."),
    own.HELD_BY: ("a part in a message of the wrong role", "Each kind of part has roles whose messages may hold it."),
    own.TIMESTAMP: ("a time outside the calendar", "Years 0001 to 9999, with 0 to 999,999,999 nanoseconds."),
    own.CALL_ID: ("two tool parts of one message have one call id", "A result finds its call by this id alone."),
    own.UNKNOWN: (
        "one of several must be set, and none is",
        "Nothing says what it is. Who writes (`turnwire.validate`, an append) breaks this rule, too, with an enum's "
        "number that the schema does not know (protovalidate's `enum.defined_only`); in what was written that is the "
        "note `storage.unknown_enum`, since a later schema may have it.",
    ),
}


def schema_rules() -> list[Rule]:
    """All rules that stand in the schema, by id. Raises `StrippedSchema` if the descriptors have lost theirs."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file in schema.own_files():
        for message in file.message_types_by_name.values():
            for rule, where, right in _message(message):
                found.setdefault(rule, []).append((where, right))
    lost = sorted(_MEANINGS.keys() - found.keys())
    if lost:
        raise StrippedSchema(f"the shipped descriptors lack rules of the schema: {', '.join(lost)}")
    return [Rule(id, SCHEMA, ERROR, *_MEANINGS[id], tuple(found[id])) for id in sorted(found)]


def _message(message: Descriptor) -> Iterator[tuple[str, str, str]]:
    for field in message.fields:
        name = f"{message.name}.{field.name}"
        yield from _field(field, name)
    for oneof in filter(own.is_real, message.oneofs):
        if standard.oneof_required(oneof):
            yield own.UNKNOWN, f"{message.name}.{oneof.name}", own.ONEOF_UNSET.text


def _field(field: FieldDescriptor, name: str) -> Iterator[tuple[str, str, str]]:
    rules = standard.field_rules(field)
    yield from _clauses(rules, name)
    if rules.items is not None:
        yield from _clauses(rules.items, f"{name}[]")
    if rules.keys is not None:
        yield from _clauses(rules.keys, f"{name}, keys")
    is_object = own.json_object(field)
    if is_object is not None:
        yield SYNTAX, name, "must be one JSON document of RFC 8259, or empty"
        yield DEPTH, name, "must nest at most 128 levels deep"
        if is_object:
            yield SHAPE, name, "must be an object"
    if own.stored_only(field):
        yield own.ID_MISSING.rule, name, own.ID_MISSING.text
        yield own.ID_TRANSIENT.rule, name, own.ID_TRANSIENT.text
    if own.held_by(field):
        yield own.HELD_BY, name, own.wrong_holder(own.held_by(field)).text
    if field.full_name == own.CALL_ID_FIELD:
        yield own.CALL_ID, name, own.SAME_CALL.text
    if field.message_type is not None and field.message_type.full_name == _TIMESTAMP:
        yield own.TIMESTAMP, name, own.WRONG_TIME.text


def _clauses(rules: FieldRules, name: str) -> Iterator[tuple[str, str, str]]:
    if rules.required:
        yield standard.REQUIRED.rule, name, standard.REQUIRED.text
    for clause in rules.clauses:
        # A number that the schema does not know may be a later schema's; it is the storage layer's to tell.
        if clause.rule.rule != "enum.defined_only":
            yield clause.rule.rule, name, clause.rule.text
