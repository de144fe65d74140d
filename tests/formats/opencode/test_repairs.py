"""Values that no field can hold: repaired, told, and back in the export as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.opencode.test_corpora import assert_backward
from tests.formats.samples import (
    assistant,
    document,
    exact,
    exported,
    noted,
    only_part,
    take,
    taken,
    text,
    there_and_back,
    tool,
    user,
)
from turnwire import v1
from turnwire.formats import Outcome, Report, history
from turnwire.formats.fields import milliseconds

# Lone surrogates and NUL (C47, C48).

LONE = "abc\ud83d"
WHOLE = "\U0001f600"


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        (text("p1", LONE), "/text"),
        ({"id": "p1", "type": "reasoning", "text": LONE, "time": {"start": 1}}, "/text"),
        (tool("p1", output=LONE), "/state/output"),
        (tool("p1", title=LONE), "/state/title"),
        (tool("p1", status="error", error=LONE), "/state/error"),
        ({"id": "p1", "type": "file", "mime": "a/b", "url": "data:,x", "filename": LONE}, "/filename"),
        ({"id": "p1", "type": "patch", "hash": "h", "files": ["a", LONE]}, "/files/1"),
        (tool("p1", call=LONE), "/callID"),
    ],
    ids=["text", "reasoning", "output", "title", "error", "filename", "patch", "call"],
)
def test_a_lone_surrogate_becomes_a_replacement_character(part: dict[str, Any], pointer: str) -> None:
    report = Report()
    made = only_part(part, report)
    assert "abc\ufffd".encode() in made.SerializeToString()
    assert noted(report) == [
        ("repaired", f"/messages/1/parts/0{pointer}", "1 lone surrogates became U+FFFD"),
    ]
    assert json.loads(made.extra_json) == {"opencode": {pointer: LONE}}
    assert "\\ud83d" in made.extra_json
    exported(document(user("m1", text("p0")), assistant("m2", part, parent="m1")))


@pytest.mark.parametrize("place", ["input", "metadata"])
def test_a_lone_surrogate_in_a_document_stays(place: str) -> None:
    report = Report()
    made = only_part(tool("p1", **{place: {LONE: [LONE, WHOLE]}}), report)
    kept = made.tool.input_json if place == "input" else made.tool.metadata_json
    assert kept == '{"abc\\ud83d":["abc\\ud83d","\\ud83d\\ude00"]}'
    assert noted(report) == []
    assert made.extra_json == ""


def test_whole_pairs_are_not_touched() -> None:
    report = Report()
    assert only_part(text("p1", WHOLE), report).text.text == WHOLE
    assert noted(report) == []


def test_nul_and_what_looks_like_it() -> None:
    kept = only_part(tool("p1", output="PK\x03\x04\x00", title="\\u0000"))
    assert kept.tool.output == "PK\x03\x04\x00"
    assert kept.tool.title == "\\u0000"
    assert kept.extra_json == ""


# Numbers and times (C49 to C52).


def test_nan_and_negative_numbers_stay_out_of_the_totals() -> None:
    report = Report()
    tokens = {"input": -423, "output": 1.5, "reasoning": 1, "cache": {"read": 84160, "write": 0}}
    source = document(user("m1", text("p1")), assistant("m2", parent="m1", cost=float("nan"), tokens=tokens))
    usage = history(take(source, report)).messages[1].usage
    assert not usage.HasField("cost")
    assert (usage.tokens.input, usage.tokens.output, usage.tokens.cache.read) == (0, 0, 84160)
    assert [path for _, path, _ in noted(report)] == [
        "/messages/1/cost",
        "/messages/1/tokens/input",
        "/messages/1/tokens/output",
    ]
    exported(source)


@pytest.mark.parametrize("cost", [-0.01, float("inf"), float("-inf"), "0.1", 1e400])
def test_costs_that_are_none(cost: object) -> None:
    part = {"id": "p1", "type": "step-finish", "reason": "stop", "cost": cost}
    report = Report()
    assert not only_part(part, report).step_finish.HasField("usage")
    assert len(report.notes) == 1
    exported(document(user("m1", text("p0")), assistant("m2", part, parent="m1")))


def test_nan_in_a_document() -> None:
    report = Report()
    made = only_part(tool("p1", metadata={"x": float("nan")}), report)
    assert made.tool.metadata_json == ""
    assert made.tool.input_json == '{"a":1}'
    assert made.extra_json == '{"opencode":{"text":{"/state/metadata":"{\\"x\\":NaN}"}}}'
    assert [path for _, path, _ in noted(report)] == ["/messages/1/parts/0/state/metadata"]


def test_numbers_in_a_document_keep_their_spelling() -> None:
    source = document(user("m1", text("p0")), assistant("m2", tool("p1"), parent="m1")).replace(
        '"a": 1', '"limit": 1, "ratio": 1.0, "id": 653247040368672768, "e": 1E2'
    )
    call = history(take(source)).messages[1].parts[0].tool
    assert call.input_json == '{"limit":1,"ratio":1.0,"id":653247040368672768,"e":1E2}'


def test_a_number_that_is_spelled_otherwise_comes_back() -> None:
    source = document(user("m1", text("p1")), assistant("m2", parent="m1")).replace('"cost": 0', '"cost": 0.0')
    message = history(take(source)).messages[1]
    assert message.usage.cost == 0
    assert message.extra_json == '{"opencode":{"/cost":0.0}}'
    exported(source)


@pytest.mark.parametrize("created", [1000.5, -5, 1e3])
def test_odd_times_are_kept(created: float) -> None:
    source = document(user("m1", text("p1"), at=created))
    message = history(take(source)).messages[0]
    assert message.time.created.ToNanoseconds() == created * 1_000_000
    exported(source)


def test_a_missing_time_is_that_of_what_stands_before() -> None:
    report = Report()
    whole = [user("m1", text("p1"), at=5000), user("m2", text("p2")), assistant("m3", parent="m2")]
    whole[1]["info"]["time"] = {"created": "yesterday"}
    del whole[2]["info"]["time"]
    kept = taken(*whole, report=report)
    assert [message.id for message in kept.messages] == ["m1", "m2", "m3"]
    assert [milliseconds(message.time.created) for message in kept.messages] == [b"5000"] * 3
    exported(document(*whole))


# Depth (C58).


@pytest.mark.parametrize("levels", [34, 51, 120, 128])
def test_a_deep_input_is_kept_up_to_the_limit(levels: int) -> None:
    source = document(user("m1", text("p0")), assistant("m2", tool("p1"), parent="m1"))
    deep = '{"a":' * levels + "1" + "}" * levels
    part = history(take(source.replace('"input": {\n              "a": 1\n            }', f'"input": {deep}'))).messages
    assert part[1].parts[0].tool.input_json == deep
    assert part[1].parts[0].extra_json == ""


@pytest.mark.parametrize("levels", [129, 200, 100_000])
def test_a_deeper_input_is_kept_as_text(levels: int) -> None:
    source = document(user("m1", text("p0")), assistant("m2", tool("p1"), text("p2"), parent="m1"))
    deep = "[" * levels + "]" * levels
    source = source.replace('"input": {\n              "a": 1\n            }', f'"input": {deep}')
    report = Report()
    session = take(source, report)
    assert_backward(session)
    parts = history(session).messages[1].parts
    assert [part.id for part in parts][1:] == ["p2"]
    assert deep in json.loads(parts[0].extra_json)["opencode"]["text"].popitem()[1]
    assert len(report.notes) >= 1
    if levels < 900:
        assert parts[0].tool.input_json == ""
        assert parts[0].tool.output == "done"
        assert exact(there_and_back(source)) == exact(source)
    else:
        assert parts[0].extension.data_json == "null"
        assert deep in there_and_back(source)


# Shapes of other versions (C88, C91, C92).


def test_a_tool_input_that_is_a_string() -> None:
    made = only_part(tool("p1", input='{"a":1}'))
    assert made.tool.input_json == '"{\\"a\\":1}"'
    assert made.extra_json == ""


def test_a_failed_tool_without_anything_else() -> None:
    made = only_part({"id": "p1", "type": "tool", "callID": "c", "tool": "t", "state": {"status": "error"}})
    assert made.tool == v1.ToolPart(call_id="c", name="t", state=v1.ToolState.TOOL_STATE_ERROR)
    assert made.extra_json == ""


def test_a_status_that_is_not_known_is_not_finished() -> None:
    report = Report()
    made = only_part(tool("p1", status="approval requested"), report)
    assert made.tool.state == v1.ToolState.TOOL_STATE_PENDING
    assert json.loads(made.extra_json) == {"opencode": {"/state/status": "approval requested"}}
    assert len(report.notes) == 1


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"id": "p1", "type": "widget", "x": [1.0]}, "opencode/widget"),
        ({"id": "p1", "x": 1}, "opencode/part"),
        ({"id": "p1", "type": 7}, "opencode/part"),
        ({"id": "p1", "type": "\ud83d"}, "opencode/part"),
        ({"id": "p1", "type": "compaction", "auto": True}, "opencode/compaction"),
        ({"id": "p1", "type": "tool", "callID": "c", "tool": "t"}, "opencode/tool"),
        ({"id": "p1", "type": "tool", "callID": "\u00e9" * 300, "tool": "t", "state": {}}, "opencode/tool"),
        ({"id": "p1", "type": "file", "mime": "a/b", "url": ""}, "opencode/file"),
    ],
)
def test_what_fits_no_kind_becomes_an_extension(part: dict[str, Any], kind: str) -> None:
    report = Report()
    made = only_part(part, report)
    assert made.extension.type == kind
    assert json.loads(made.extension.data_json) == part | {"sessionID": "ses_1", "messageID": "m2"}
    assert made.extra_json == ""
    assert report.total(Outcome.REPAIRED, "part") == 1
    exported(document(user("m1", text("p0")), assistant("m2", part, parent="m1")))


def test_an_attachment_that_cannot_be_taken_takes_the_others_along() -> None:
    part = tool("p1", attachments=[{"id": "a", "mime": "x/y", "url": "data:,"}, {"id": "b"}])
    report = Report()
    made = only_part(part, report)
    assert list(made.tool.attachments) == []
    assert len(json.loads(made.extra_json)["opencode"]["/state/attachments"]) == 2
    exported(document(user("m1", text("p0")), assistant("m2", part, parent="m1")))


def test_missing_settings_are_those_of_the_answer() -> None:
    asked = user("m1", text("p1"))
    del asked["info"]["agent"], asked["info"]["model"]
    answer = assistant("m2", text("p2"), parent="m1", mode="plan")
    del answer["info"]["agent"]
    report = Report()
    kept = taken(asked, answer, report=report)
    request = kept.turns[kept.messages[0].turn_id].request
    assert request == v1.TurnRequest(agent="plan", model=v1.ModelRef(provider_id="fake", model_id="m"))
    assert kept.messages[1].run.agent == "plan"
    assert [path for _, path, _ in noted(report)] == ["/messages/0/model", "/messages/0/agent"]
    exported(document(asked, answer))


def test_settings_that_nobody_knows() -> None:
    asked = user("m1", text("p1"), agent="", model=None, tools={"": True, "a": "yes", "b": False})
    kept = taken(asked)
    request = kept.turns[kept.messages[0].turn_id].request
    assert (request.agent, request.model.model_id, dict(request.tools)) == ("unknown", "unknown", {"b": False})
    exported(document(asked))


def test_unknown_members_survive_anywhere() -> None:
    part = text("p1", more={"a": 1.0})
    asked = user("m1", part, more=[1], summary={"diffs": [{"file": "a", "more": 2}], "more": 3})
    asked["more"] = 4
    source = json.loads(document(asked, more=5))
    source["more"] = 6
    kept = history(take(json.dumps(source)))
    assert json.loads(kept.properties.extra_json) == {"opencode": {"/more": 5}, "opencode/file": {"/more": 6}}
    assert json.loads(kept.messages[0].extra_json) == {"opencode": {"/more": [1]}, "opencode/message": {"/more": 4}}
    assert kept.summaries["m1"].extra_json == '{"opencode":{"/more":3}}'
    assert kept.summaries["m1"].diffs[0].extra_json == '{"opencode":{"/more":2}}'
    assert kept.messages[0].parts[0].extra_json == '{"opencode":{"/more":{"a":1.0}}}'
    exported(json.dumps(source))


def test_a_key_that_stands_twice_is_told() -> None:
    report = Report()
    source = document(user("m1", text("p0")), assistant("m2", tool("p1"), parent="m1"))
    made = history(take(source.replace('"output"', '"title": "first", "output"'), report)).messages[1].parts[0]
    assert made.tool.title == "t"
    assert noted(report) == [
        ("repaired", "/messages/1/parts/0/state", "a key stands there more than once, the last one counts")
    ]


def test_a_message_of_another_role_is_refused_and_its_neighbours_stay() -> None:
    report = Report()
    other = user("m2", text("p2"))
    other["info"]["role"] = "system"
    kept = taken(user("m1", text("p1")), other, user("m3", text("p3")), report=report)
    assert [message.id for message in kept.messages] == ["m1", "m3"]
    assert noted(report) == [("refused", "/messages/1", "neither a user's nor an assistant's message")]
