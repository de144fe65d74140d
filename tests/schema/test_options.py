"""What the descriptors must say of every field, so that nothing can be added and forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from turnwire import v1
from turnwire.rules import own, schema, standard
from turnwire.rules.compiler import checker

INTEGERS = {
    FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_FIXED32,
    FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED32, FieldDescriptor.TYPE_SFIXED64,
}  # fmt: skip
ID_PATTERN = "must match ^[A-Za-z0-9._:-]+$"


def messages() -> Iterator[Descriptor]:
    for file in schema.own_files():
        yield from file.message_types_by_name.values()


def fields(*types: int) -> list[FieldDescriptor]:
    """Every field of the schema of these types, map entries left out."""
    return [field for message in messages() for field in message.fields if field.type in types]


def rule_ids(field: FieldDescriptor) -> set[str]:
    return {clause.rule.rule for clause in standard.field_rules(field).clauses}


def names(found: list[FieldDescriptor]) -> list[str]:
    return [field.full_name for field in found]


STRINGS = fields(FieldDescriptor.TYPE_STRING)
PARTS = schema.message("turnwire.v1.PromptPart").oneofs_by_name["kind"].fields


def test_the_schema_is_read_whole() -> None:
    assert len(list(messages())) > 100
    assert len(STRINGS) > 100
    assert "turnwire.v1.ToolPart.call_id" in names(STRINGS)


def test_every_rule_of_every_message_can_be_compiled() -> None:
    compiled = [message.full_name for message in messages() if checker(message.full_name) is not None]
    assert "turnwire.v1.Assistant" in compiled
    assert "turnwire.v1.TextFormat" not in compiled


def test_every_id_field_says_what_it_is_an_id_of() -> None:
    id_like = [
        field
        for field in STRINGS
        if field.name.endswith(("_id", "_ids"))
        or (field.name != "id" and any(c.rule.text == ID_PATTERN for c in standard.field_rules(field).clauses))
    ]
    marked = [
        field
        for field in id_like
        if schema.option(field, "turnwire.v1.ref") or schema.option(field, "turnwire.v1.external_id")
    ]
    assert len(id_like) > 40
    assert names(marked) == names(id_like)


def test_no_id_is_both_ours_and_external() -> None:
    ours = {field.full_name for field in STRINGS if schema.option(field, "turnwire.v1.ref")}
    external = {field.full_name for field in STRINGS if schema.option(field, "turnwire.v1.external_id")}
    assert ours & external == set()


def test_only_strings_are_references() -> None:
    others = [field for message in messages() for field in message.fields if field.type != FieldDescriptor.TYPE_STRING]
    assert names([field for field in others if schema.option(field, "turnwire.v1.ref")]) == []


def test_every_reference_names_a_kind_and_sessions_are_foreign() -> None:
    for field in STRINGS:
        ref = schema.option(field, "turnwire.v1.ref")
        if ref is not None:
            assert ref.kind in v1.RefKind.values(), field.full_name
            assert ref.kind != v1.RefKind.REF_KIND_UNSPECIFIED, field.full_name
            assert ref.foreign or ref.kind != v1.RefKind.REF_KIND_SESSION, field.full_name


def test_every_reference_has_the_pattern_of_ids() -> None:
    for field in STRINGS:
        if schema.option(field, "turnwire.v1.ref") and not field.is_repeated:
            assert rule_ids(field) == {"string.max_bytes", "string.pattern"}, field.full_name


def test_every_own_id_has_the_pattern_of_ids() -> None:
    own_ids = [field for field in STRINGS if field.name == "id"]
    without = [field for field in own_ids if rule_ids(field) != {"string.max_bytes", "string.pattern"}]
    # The answer of an append names what it made; it is no place where an id is kept.
    assert names(without) == ["turnwire.v1.AppendResult.id"]


def test_json_fields_are_those_named_so() -> None:
    named = [field for message in messages() for field in message.fields if field.name.endswith("_json")]
    marked = [field for message in messages() for field in message.fields if own.json_object(field) is not None]
    assert names(named) == names(marked)
    assert len(named) > 15
    for field in named:
        assert field.type == FieldDescriptor.TYPE_STRING, field.full_name
        assert not field.has_presence, f"{field.full_name}: an empty text already means none"


def test_foreign_extras_are_objects() -> None:
    extras = [field for field in STRINGS if field.name == "extra_json"]
    assert len(extras) >= 8
    assert [own.json_object(field) for field in extras] == [True] * len(extras)


def test_every_integer_has_a_range_or_a_reason() -> None:
    free = [field for field in fields(*INTEGERS) if not rule_ids(field)]
    assert names([field for field in free if not schema.option(field, "turnwire.v1.unbounded")]) == []
    ranged = [field for field in fields(*INTEGERS) if rule_ids(field)]
    assert names([field for field in ranged if schema.option(field, "turnwire.v1.unbounded")]) == []


def test_integers_are_signed_so_that_every_language_has_them() -> None:
    assert {field.type for field in fields(*INTEGERS)} <= {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64}


def test_every_number_with_a_fraction_is_finite() -> None:
    numbers = fields(FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
    assert names(numbers) == ["turnwire.v1.Usage.cost"]
    assert rule_ids(numbers[0]) == {"double.gte", "double.finite"}


def test_every_enum_field_takes_defined_numbers_only() -> None:
    enums = [field for field in fields(FieldDescriptor.TYPE_ENUM) if not field.full_name.startswith("turnwire.v1.Ref.")]
    assert len(enums) >= 5
    assert names([field for field in enums if "enum.defined_only" not in rule_ids(field)]) == []


def test_the_id_of_a_part_is_the_only_field_that_transient_messages_leave_empty() -> None:
    assert names([field for field in STRINGS if own.stored_only(field)]) == ["turnwire.v1.PromptPart.id"]


def test_every_kind_of_part_says_who_may_hold_it() -> None:
    user = {field.name for field in PARTS if own.ROLE_USER in own.held_by(field)}
    assistant = {field.name for field in PARTS if own.ROLE_ASSISTANT in own.held_by(field)}
    every = {field.name for field in PARTS}
    assert user == {"text", "file", "agent", "subtask", "compaction", "extension"}
    assert assistant == every - {"subtask", "agent", "compaction"}
    assert len(every) == 13
    others = [field for message in messages() for field in message.fields if field not in PARTS]
    assert names([field for field in others if own.held_by(field)]) == []


@pytest.mark.parametrize("name", ["User", "Assistant", "PromptMessage", "MoreParts"])
def test_parts_have_one_number(name: str) -> None:
    field = schema.message(f"turnwire.v1.{name}").fields_by_name["parts"]
    assert field.number == 15
    assert field.is_repeated
    assert field.message_type.full_name == "turnwire.v1.PromptPart"


def test_the_envelope_grows_from_300_and_payloads_stay_low() -> None:
    entry = schema.message("turnwire.v1.Entry")
    payloads = entry.oneofs_by_name["payload"].fields
    envelope = [field for field in entry.fields if field not in payloads]
    first = {"revision": 1, "recorded": 2, "digest": 3, "ignorable": 4}
    assert {field.name: field.number for field in envelope if field.number < 300} == first
    assert all(10 <= field.number < 300 for field in payloads)


def test_entries_are_submitted_under_the_numbers_that_they_are_stored_under() -> None:
    stored = {
        field.name: field.number for field in schema.message("turnwire.v1.Entry").oneofs_by_name["payload"].fields
    }
    given = schema.message("turnwire.v1.EntryInput")
    assert {field.name: field.number for field in given.oneofs_by_name["payload"].fields} == stored
    assert given.fields_by_name["ignorable"].number == 4


def test_every_oneof_of_stored_messages_is_required() -> None:
    optional = [
        oneof.full_name
        for message in messages()
        if not message.file.name.endswith(("_requests.proto", "session_service.proto"))
        for oneof in message.oneofs
        if own.is_real(oneof) and not standard.oneof_required(oneof)
    ]
    assert optional == []
