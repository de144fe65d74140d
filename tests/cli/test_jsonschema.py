"""JSON Schemas of the messages: what is valid is accepted, and what they refuse is wrong."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.cli.support import run
from turnwire import rules, v1
from turnwire.cli import jsonschema as maker

NAMES = [name.rpartition(".")[2] for name in maker.message_names()]
STORED = ["User", "Assistant", "Turn", "PromptPart", "Entry", "SessionProperties", "PromptRecord", "HistoryFrame"]


@cache
def validator(name: str) -> Any:
    found = maker.json_schema(maker.find(name))
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("name", NAMES)
def test_every_message_has_a_schema_with_comments(name: str) -> None:
    found = maker.json_schema(maker.find(name))
    jsonschema.Draft202012Validator.check_schema(found)
    for full, definition in found["$defs"].items():
        if full.startswith("turnwire."):
            assert definition["description"], full
            assert all(field["description"] for field in definition["properties"].values()), full


@pytest.mark.parametrize("name", STORED)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_valid_is_accepted(name: str, data: st.DataObject) -> None:
    message = data.draw(strategies.messages(getattr(v1, name), stored=True))
    assert rules.check(message, stored=True) == []
    validator(name).validate(json_format.MessageToDict(message))


USER = {"id": "m1", "turnId": "t1", "time": {"created": "2026-01-31T14:05:09Z"}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("User", {**USER, "id": "no id"}),
        ("User", {key: value for key, value in USER.items() if key != "turnId"}),
        ("User", {**USER, "time": {}}),
        ("User", {**USER, "colour": "red"}),
        ("User", {**USER, "parts": [{"id": "p"}]}),
        ("User", {**USER, "parts": [{"id": "p", "text": {}, "agent": {"name": "x"}}]}),
        ("ToolPart", {"callId": "c", "name": "n", "state": "TOOL_STATE_UNSPECIFIED"}),
        ("ToolPart", {"callId": "c", "name": "n"}),
        ("Tokens", {"input": "-1"}),
        ("Tokens", {"input": 1}),
        ("Usage", {"cost": -0.5}),
        ("Usage", {"cost": "NaN"}),
        ("Head", {"revision": "0", "digest": "A" * 44, "recorded": "2026-01-31T14:05:09Z"}),
        ("Head", {"revision": "1", "digest": "AAAA", "recorded": "2026-01-31T14:05:09Z"}),
        ("SessionProperties", {"created": "2026-01-31T14:05:09Z", "labels": {"no key": "x"}}),
        ("ListSessionsRequest", {"pageSize": 1001}),
        ("Mutation", {}),
        ("ReplayRequest", {"sessionId": "s", "lastTurns": 1, "range": {}}),
    ],
)
def test_what_breaks_a_rule_is_refused(name: str, value: dict[str, Any]) -> None:
    assert not validator(name).is_valid(value)


def test_what_is_optional_may_be_absent() -> None:
    validator("User").validate(USER)
    validator("ReplayRequest").validate({"sessionId": "s"})
    validator("GetServerInfoRequest").validate({})


def test_rules_are_told() -> None:
    part = maker.json_schema(maker.find("PromptPart"))["$defs"]["turnwire.v1.PromptPart"]
    assert part["properties"]["id"]["description"].endswith("Empty in what a hook writes.")
    assert part["properties"]["subtask"]["description"].endswith("In messages of role user.")
    assert part["properties"]["extraJson"]["contentMediaType"] == "application/json"
    assert len(part["oneOf"]) == 13


def test_names() -> None:
    assert maker.find("Turn") is maker.find("turnwire.v1.Turn")
    for wrong in ("turn", "google.protobuf.Timestamp", "turnwire.v1.Role", ""):
        with pytest.raises(KeyError):
            maker.find(wrong)


def test_the_command_writes_it() -> None:
    assert run("schema", "Head", "--json").lines == [maker.json_schema(maker.find("Head"))]
