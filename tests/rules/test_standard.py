"""The compiled rules against protovalidate, which reads the same descriptors on its own."""

from __future__ import annotations

from typing import Any

import protovalidate
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.breaking import breaks, broken
from tests.strategies import messages
from turnwire import rules, v1
from turnwire.rules import own, schema
from turnwire.rules.compiler import path_key

STORED = [
    v1.SessionProperties, v1.Turn, v1.UserPut, v1.AssistantPut, v1.PartPut, v1.PartDelta, v1.MessageSummary, v1.Removal,
    v1.Revert, v1.PromptContext, v1.PromptRecord, v1.Entry, v1.PromptMessage, v1.PromptItem, v1.Mutation, v1.Usage,
    v1.ApiFailure, v1.JsonSchemaFormat, v1.FilePart, v1.ToolPart, v1.RetryPart,
]  # fmt: skip
EVERY = [
    schema_class
    for file in schema.own_files()
    for name in file.message_types_by_name
    if (schema_class := getattr(v1, name, None)) is not None
]
VALIDATOR = protovalidate.Validator()
SLOW = settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
QUICK = settings(SLOW, max_examples=8)


def by_protovalidate(message: Any) -> set[tuple[str, str]]:
    """(path, rule) of what protovalidate finds. Only classes of the private pool may ever reach its Validator."""
    private = schema.message_class(message.DESCRIPTOR.full_name).FromString(message.SerializeToString())
    return {(path(each.proto.field), each.proto.rule_id) for each in VALIDATOR.collect_violations(private)}


def path(field: Any) -> str:
    text = ""
    for element in field.elements:
        text += f".{element.field_name}" if text else element.field_name
        if element.subscript is not None:
            key = element.subscript.value
            text += f"[{path_key(key)}]"
    return text


def as_standard(message: Any) -> set[tuple[str, str]]:
    """(path, rule) of the standard rules that the compiled check finds, under protovalidate's ids."""
    found: set[tuple[str, str]] = set()
    for place, rule, text in rules.check(message):
        if rule == rules.UNKNOWN:
            rule = "enum.defined_only" if text == own.ENUM_UNKNOWN.text else "required"
        if not rule.startswith("turnwire."):
            found.add((place, rule))
    return found


@pytest.mark.parametrize("message_type", EVERY, ids=lambda cls: cls.__name__)
def test_valid_messages_break_no_rule(message_type: type[Any]) -> None:
    @QUICK
    @given(messages(message_type))
    def holds(message: Any) -> None:
        assert rules.check(message) == []
        assert by_protovalidate(message) == set()

    holds()


@pytest.mark.parametrize("message_type", STORED, ids=lambda cls: cls.__name__)
def test_one_broken_rule_is_found_by_both(message_type: type[Any]) -> None:
    @SLOW
    @given(broken(message_type))
    def same(case: Any) -> None:
        assert [(each.path, each.rule) for each in rules.check(case.message)] == [(case.path, case.rule)]
        assert as_standard(case.message) == by_protovalidate(case.message)

    same()


@pytest.mark.parametrize("message_type", STORED, ids=lambda cls: cls.__name__)
def test_many_broken_rules_are_found_by_both(message_type: type[Any]) -> None:
    @SLOW
    @given(st.data())
    def same(data: st.DataObject) -> None:
        message = data.draw(messages(message_type))
        for _ in range(4):
            places = list(breaks(message))
            if places:
                data.draw(st.sampled_from(places)).apply()
        assert as_standard(message) == by_protovalidate(message)

    same()


def test_an_empty_message_of_every_type() -> None:
    for message_type in EVERY:
        assert as_standard(message_type()) == by_protovalidate(message_type()), message_type
