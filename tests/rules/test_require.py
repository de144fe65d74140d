"""Which exception broken rules raise."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import BadRequest

import turnwire.rules
from turnwire import errors, rules, v1

TOOL = v1.PromptPart(tool=v1.ToolPart(call_id="c1", name="bash", state=v1.ToolState.TOOL_STATE_PENDING))


def test_nothing_is_raised_for_a_valid_message() -> None:
    rules.require(v1.UserTime(created=Timestamp(seconds=1)), "time")


def test_all_violations_with_the_path_in_the_request() -> None:
    with pytest.raises(errors.RuleViolation) as caught:
        rules.require(v1.ModelRef(), "entries[3].turn.request.model")
    assert caught.value.violations == (
        ("entries[3].turn.request.model.provider_id", "string.min_len", "must have at least 1 character"),
        ("entries[3].turn.request.model.model_id", "string.min_len", "must have at least 1 character"),
    )
    assert caught.value.path == "entries[3].turn.request.model.provider_id"
    assert caught.value.metadata["violations"] == "2"


def test_what_is_unknown_comes_first() -> None:
    message = v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[v1.PromptPart(id="a b"), v1.PromptPart()])
    with pytest.raises(errors.UnknownToThisServer) as caught:
        rules.require(message, "mutations[0].append.message", stored=False)
    assert caught.value.path == "mutations[0].append.message.parts[0].kind"
    assert isinstance(caught.value.detail, BadRequest)
    assert [(each.field, each.reason) for each in caught.value.detail.field_violations] == [
        ("mutations[0].append.message.parts[0].id", "string.pattern"),
        ("mutations[0].append.message.parts[0].id", "turnwire.stored_only"),
        ("mutations[0].append.message.parts[0].kind", "turnwire.unknown"),
        ("mutations[0].append.message.parts[1].kind", "turnwire.unknown"),
    ]


def test_an_id_in_what_a_hook_writes() -> None:
    message = v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[v1.PromptPart(id="p1", text=v1.TextPart())])
    with pytest.raises(errors.TransientPartHasId) as caught:
        rules.require(message, stored=False)
    assert caught.value.path == "parts[0].id"


def test_a_missing_id_in_what_is_stored_is_a_rule() -> None:
    with pytest.raises(errors.RuleViolation) as caught:
        rules.require(TOOL, "entries[0].part.part", stored=True)
    assert caught.value.violations == (("entries[0].part.part.id", "required", "must be set in what is stored"),)


def test_a_call_id_twice() -> None:
    with pytest.raises(errors.DuplicateCallId) as caught:
        rules.require(v1.PromptMessage(role=v1.Role.ROLE_ASSISTANT, parts=[TOOL, TOOL]), "m")
    assert caught.value.path == "m.parts[1].tool.call_id"
    with pytest.raises(errors.RuleViolation) as other:
        rules.require(v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[TOOL, TOOL]), "m")
    assert {each.rule for each in other.value.violations} == {"turnwire.held_by", "turnwire.call_id"}


def test_a_message_of_another_schema_is_no_message_of_ours() -> None:
    with pytest.raises(KeyError):
        rules.check(BadRequest())


def test_the_public_names() -> None:
    assert set(rules.__all__) <= set(dir(turnwire.rules))
    assert rules.UNKNOWN == "turnwire.unknown"
