"""What opencode's sessions become: the fields, by value, on real files that ship with the project."""

from __future__ import annotations

import json

import pytest

from tests.formats.samples import (
    DATA,
    assistant,
    content,
    document,
    exact,
    only_part,
    take,
    taken,
    text,
    there_and_back,
    tool,
    user,
)
from turnwire import v1
from turnwire.formats import history
from turnwire.formats.fields import milliseconds

FILES = sorted(DATA.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_of_the_project_come_back(file) -> None:
    assert exact(there_and_back(content(file))) == exact(content(file))


def test_they_are_all_there_and_small() -> None:
    assert [file.stem for file in FILES] == [
        "compaction",
        "old-diffs",
        "old-variant",
        "revert",
        "surrogates",
        "three-turns",
    ]
    assert max(file.stat().st_size for file in FILES) < 40_000


def test_the_session() -> None:
    session = take(content(DATA / "three-turns.json"))
    properties = session.properties
    assert session.session_id == "ses_dd402e65bffeFToCFt6N3IgihJ"
    assert properties.title == "Demo session title"
    assert properties.directory == "/tmp/demo"
    assert milliseconds(properties.created) == b"1796034337188"
    assert properties.origin == v1.Origin(program="opencode", version="1.18.33")
    assert not properties.labels
    assert not properties.HasField("parent")
    extra = json.loads(properties.extra_json)["opencode"]
    assert sorted(extra) == [
        "/agent",
        "/cost",
        "/model",
        "/path",
        "/permission",
        "/projectID",
        "/slug",
        "/summary",
        "/time/updated",
        "/tokens",
    ]
    assert extra["/slug"] == "witty-cabin"


def test_its_entries_in_order() -> None:
    session = take(content(DATA / "three-turns.json"))
    assert [entry.WhichOneof("payload") for entry in session.entries] == [
        *("turn", "user", "summary", "assistant", "assistant"),
        *("turn", "user", "summary", "assistant", "assistant", "assistant"),
        *("turn", "user", "summary", "assistant"),
    ]


def test_a_turn_and_its_messages() -> None:
    session = take(content(DATA / "three-turns.json"))
    turn, user_put, summary, assistant_put = session.entries[:4]
    assert turn.turn.id.startswith("trn_22bfd1a61001NE77hQ8v3aaM3q_")
    assert milliseconds(turn.turn.created) == b"1796034337377"
    model = v1.ModelRef(provider_id="fake", model_id="fake-model")
    assert turn.turn.request == v1.TurnRequest(agent="build", model=model)
    assert turn.turn.extra_json == ""
    said = user_put.user.user
    assert (said.id, said.turn_id) == ("msg_22bfd1a61001NE77hQ8v3aaM3q", turn.turn.id)
    assert [part.text.text for part in said.parts] == ['"First turn. [[reasontool]]"']
    assert said.extra_json == ""
    assert summary.summary.message_id == said.id
    assert list(summary.summary.diffs) == []
    answer = assistant_put.assistant.assistant
    assert (answer.parent_id, answer.turn_id) == (said.id, turn.turn.id)
    assert answer.run == v1.Run(agent="build", model=model, path=v1.RunPath(cwd="/tmp/demo", root="/tmp/demo"))
    assert answer.usage.cost == 0.007788
    assert answer.usage.tokens == v1.Tokens(
        total=7738, input=7688, output=38, reasoning=12, cache=v1.CacheTokens(read=0, write=0)
    )
    assert answer.result == v1.Result(finish="tool-calls")
    assert milliseconds(answer.time.completed) == b"1796034340022"
    assert answer.extra_json == ""
    assert not assistant_put.assistant.HasField("before_id")


def test_a_tool_call() -> None:
    messages = history(take(content(DATA / "three-turns.json"))).messages
    (part,) = [part for part in messages[1].parts if part.HasField("tool")]
    call = part.tool
    assert (call.name, call.state) == ("bash", v1.ToolState.TOOL_STATE_COMPLETED)
    assert call.input_json == '{"command":"ls -la","description":"Run a command"}'
    assert json.loads(call.metadata_json)["exit"] == 0
    assert call.time.HasField("end")
    assert part.extra_json == ""


def test_a_compaction() -> None:
    messages = history(take(content(DATA / "compaction.json"))).messages
    assert messages[2].parts[0].compaction == v1.CompactionPart(auto=True, overflow=True)
    summary = messages[3]
    assert isinstance(summary, v1.Assistant)
    assert summary.result.kind == v1.ResultKind.RESULT_KIND_SUMMARY
    assert summary.parent_id == messages[2].id
    assert summary.run.agent == "compaction"


def test_a_revert_is_the_last_entry() -> None:
    session = take(content(DATA / "revert.json"))
    revert = session.entries[-1].revert
    assert revert.message_id == "msg_22bfd82cc001rtIvnQRk8nqUII"
    assert revert.snapshot == "2a39ca68f1c9f897c8d65896a27197a6e22d1cc7"
    assert revert.diff.startswith("diff --git a/README.md b/README.md")
    assert revert.extra_json == ""
    assert "/revert" not in session.properties.extra_json


def test_lone_surrogates_of_a_model() -> None:
    part = history(take(content(DATA / "surrogates.json"))).messages[1].parts[1]
    assert "\ufffd" in part.text.text
    assert "\x00" in part.text.text
    assert "\\ud83d" in json.dumps(json.loads(part.extra_json)["opencode"]["/text"])


def test_old_diffs_hold_both_texts() -> None:
    session = take(content(DATA / "old-diffs.json"))
    (summary,) = [entry.summary for entry in session.entries if entry.HasField("summary")]
    (diff,) = summary.diffs
    assert (diff.path, diff.additions, diff.deletions, diff.status) == ("README.md", 1, 1, "modified")
    assert diff.before != diff.after
    assert not diff.HasField("patch")
    assert diff.extra_json == ""


def test_an_old_variant_stands_beside_the_model() -> None:
    session = take(content(DATA / "old-variant.json"))
    turn = session.entries[0].turn
    assert turn.request.variant == "high"
    assert json.loads(turn.extra_json) == {"opencode": {"/variant": "high", "drop": ["/model/variant"]}}


def test_settings_of_a_user_message() -> None:
    """C91: a schema without a retry count among them."""
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    kept = taken(
        user(
            "m1",
            text("p1"),
            model={"providerID": "fake", "modelID": "m", "variant": "high"},
            format={"type": "json_schema", "schema": schema},
            system="",
            tools={"bash": False, "read": True},
        ),
        user("m2", text("p2"), format={"type": "text"}),
        user("m3", text("p3"), format={"type": "json_schema", "schema": {}, "retryCount": 2}),
    )
    turns = [kept.turns[message.turn_id] for message in kept.messages]
    request = turns[0].request
    assert request.variant == "high"
    assert request.HasField("system")
    assert request.system == ""
    assert dict(request.tools) == {"bash": False, "read": True}
    assert request.format.json_schema.schema_json == '{"type":"object","properties":{"b":{},"a":{}}}'
    assert not request.format.json_schema.HasField("retry_count")
    assert turns[1].request.format.WhichOneof("kind") == "text"
    assert not turns[1].request.HasField("system")
    assert turns[2].request.format.json_schema.retry_count == 2
    assert [turn.extra_json for turn in turns] == ["", "", ""]


def test_the_id_of_a_turn_follows_its_settings() -> None:
    def turn_id(**settings) -> str:
        return take(document(user("m1", text("p1"), **settings))).entries[0].turn.id

    assert turn_id() == turn_id()
    assert turn_id() == "trn_m1_" + turn_id().removeprefix("trn_m1_")
    others = [turn_id(), turn_id(agent="plan"), turn_id(system="s"), turn_id(tools={}), turn_id(at=1001)]
    assert len(set(others)) == 5


def test_properties_beyond_the_ordinary() -> None:
    session = take(
        document(
            parentID="ses_0",
            share={"url": "https://share.example/1", "secret": "x"},
            time={"created": 1000, "updated": 2000, "archived": 3000},
        )
    )
    properties = session.properties
    assert properties.parent.session_id == "ses_0"
    assert not properties.parent.HasField("part_id")
    assert properties.share_url == "https://share.example/1"
    assert milliseconds(properties.archived) == b"3000"
    assert json.loads(properties.extra_json) == {"opencode": {"/share/secret": "x", "/time/updated": 2000}}


def test_the_coming_form_of_the_directory_is_taken() -> None:
    session = take(document(directory=None, location={"directory": "/tmp/y", "workspaceID": "wrk_1"}))
    assert session.properties.directory == "/tmp/y"


ERRORS = [
    (
        "APIError",
        {
            "message": "no",
            "statusCode": 429,
            "isRetryable": True,
            "responseHeaders": {"a": "b"},
            "responseBody": "{}",
            "metadata": {"url": "http://localhost/"},
        },
        v1.Failure(
            api=v1.ApiFailure(
                message="no",
                status_code=429,
                retryable=True,
                response_headers={"a": "b"},
                response_body="{}",
                url="http://localhost/",
            )
        ),
    ),
    (
        "ProviderAuthError",
        {"providerID": "p", "message": "no"},
        v1.Failure(auth=v1.AuthFailure(provider_id="p", message="no")),
    ),
    ("MessageOutputLengthError", {}, v1.Failure(output_length=v1.OutputLengthFailure())),
    ("MessageAbortedError", {"message": "stop"}, v1.Failure(aborted=v1.AbortedFailure(message="stop"))),
    (
        "StructuredOutputError",
        {"message": "no", "retries": 0},
        v1.Failure(structured_output=v1.StructuredOutputFailure(message="no", retries=0)),
    ),
    (
        "ContextOverflowError",
        {"message": "much", "responseBody": "b"},
        v1.Failure(context_overflow=v1.ContextOverflowFailure(message="much", response_body="b")),
    ),
    ("ContentFilterError", {"message": "no"}, v1.Failure(content_filter=v1.ContentFilterFailure(message="no"))),
    ("UnknownError", {"message": "?"}, v1.Failure(unknown=v1.UnknownFailure(message="?"))),
    ("NewError", {"message": "?"}, v1.Failure(unknown=v1.UnknownFailure(message="?", name="NewError"))),
]


@pytest.mark.parametrize(("name", "data", "failure"), ERRORS, ids=[name for name, _, _ in ERRORS])
def test_errors(name: str, data: dict, failure: v1.Failure) -> None:
    whole = document(user("m1", text("p1")), assistant("m2", parent="m1", error={"name": name, "data": data}))
    message = history(take(whole)).messages[1]
    assert message.result.failure == failure
    assert message.extra_json == ""
    retry = only_part({"id": "p2", "type": "retry", "attempt": 2, "error": {"name": name, "data": data}})
    assert retry.retry.failure == failure


def test_a_structured_answer_keeps_its_spelling() -> None:
    whole = document(user("m1", text("p1")), assistant("m2", parent="m1", structured=0)).replace(
        '"structured": 0', '"structured": {"b": 1.0, "a": 653247040368672768}'
    )
    result = history(take(whole)).messages[1].result
    assert result.structured_json == '{"b":1.0,"a":653247040368672768}'


PARTS = [
    (
        {"type": "text", "text": "t", "synthetic": False, "ignored": True, "time": {"start": 1}},
        "assistant",
        "text",
    ),
    ({"type": "reasoning", "text": "", "time": {"start": 1, "end": 2}}, "assistant", "reasoning"),
    ({"type": "file", "mime": "", "url": "data:,x", "filename": ""}, "user", "file"),
    ({"type": "subtask", "prompt": "p", "description": "", "agent": "a", "command": "c"}, "user", "subtask"),
    ({"type": "agent", "name": "a", "source": {"value": "@a", "start": 0, "end": 2}}, "user", "agent"),
    ({"type": "step-start"}, "assistant", "step_start"),
    ({"type": "step-finish", "reason": "stop", "cost": 0.5, "snapshot": ""}, "assistant", "step_finish"),
    ({"type": "snapshot", "snapshot": "abc"}, "assistant", "snapshot"),
    ({"type": "patch", "hash": "abc", "files": ["a", "b"]}, "assistant", "patch"),
    (
        {
            "type": "retry",
            "attempt": 1,
            "error": {"name": "APIError", "data": {"message": "", "isRetryable": True}},
            "time": {"created": 5},
        },
        "assistant",
        "retry",
    ),
    ({"type": "compaction", "auto": False, "overflow": False}, "user", "compaction"),
]


@pytest.mark.parametrize(("part", "role", "kind"), PARTS, ids=[kind for _, _, kind in PARTS])
def test_a_part_needs_no_extras(part: dict, role: str, kind: str) -> None:
    made = only_part({"id": "p1"} | part, role=role)
    assert made.WhichOneof("kind") == kind
    assert made.id == "p1"
    assert made.extra_json == ""


SOURCES = [
    {"type": "file", "path": "a.py", "text": {"value": "@a", "start": 0, "end": 2}},
    {
        "type": "symbol",
        "path": "a.py",
        "name": "f",
        "kind": 12,
        "range": {"start": {"line": 0, "character": 1}, "end": {"line": 2, "character": 3}},
        "text": {"value": "@f", "start": 0, "end": 2},
    },
    {"type": "resource", "clientName": "c", "uri": "x:y", "text": {"value": "@r", "start": 0, "end": 2}},
]


@pytest.mark.parametrize("source", SOURCES, ids=[source["type"] for source in SOURCES])
def test_sources_of_files(source: dict) -> None:
    made = only_part({"id": "p1", "type": "file", "mime": "text/plain", "url": "file:///a.py", "source": source})
    assert made.extra_json == ""
    assert made.file.source.WhichOneof("kind") == source["type"]
    assert made.file.source.text == v1.TextSpan(value=source["text"]["value"], start=0, end=2)


def test_a_synthetic_file_is_kept_in_the_extras() -> None:
    made = only_part({"id": "p1", "type": "file", "mime": "image/png", "url": "data:,x", "synthetic": True})
    assert made.extra_json == '{"opencode":{"/synthetic":true}}'


def test_states_of_tools() -> None:
    running = {"status": "running", "input": {"a": [1, 1.5]}, "time": {"start": 3}}
    made = only_part({"id": "p1", "type": "tool", "callID": "c", "tool": "t", "state": running}).tool
    assert made.state == v1.ToolState.TOOL_STATE_RUNNING
    assert made.input_json == '{"a":[1,1.5]}'
    assert not made.HasField("output")
    assert made.metadata_json == ""
    pending = {"status": "pending", "input": {}, "raw": ""}
    made = only_part({"id": "p1", "type": "tool", "callID": "c", "tool": "t", "state": pending}).tool
    assert made.state == v1.ToolState.TOOL_STATE_PENDING
    assert made.HasField("raw_input")
    assert not made.HasField("time")
    failed = {"status": "error", "input": {}, "error": "no", "time": {"start": 1, "end": 2}}
    made = only_part({"id": "p1", "type": "tool", "callID": "c", "tool": "t", "state": failed}).tool
    assert (made.state, made.error) == (v1.ToolState.TOOL_STATE_ERROR, "no")


def test_a_compacted_output_with_attachments() -> None:
    attachment = {"id": "prt_9", "sessionID": "ses_1", "messageID": "m2", "type": "file", "mime": "image/png"}
    part = tool(
        "p1",
        time={"start": 1, "end": 2, "compacted": 3},
        attachments=[attachment | {"url": "data:,x"}, attachment | {"url": "data:,y", "extra": 1}],
    )
    made = only_part(part)
    assert milliseconds(made.tool.compacted) == b"3"
    assert [one.label for one in made.tool.attachments] == ["prt_9", "prt_9"]
    assert [one.file.url for one in made.tool.attachments] == ["data:,x", "data:,y"]
    assert [one.extra_json for one in made.tool.attachments] == ["", '{"opencode":{"/extra":1}}']
    assert made.extra_json == ""


@pytest.mark.parametrize(
    ("metadata", "signed"),
    [
        ({"anthropic": {"signature": "abc"}}, True),
        ({"anthropic": {"redactedData": "abc"}}, True),
        ({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "abc"}}, True),
        ({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": None}}, False),
        ({"google": {"thoughtSignature": "abc"}}, True),
        ({"openai": {"itemId": "rs_1"}}, False),
        ({}, False),
    ],
)
def test_metadata_that_binds_the_content(metadata: dict, signed: bool) -> None:
    made = only_part({"id": "p1", "type": "reasoning", "text": "", "time": {"start": 1}, "metadata": metadata})
    assert made.reasoning.provider.signed is signed
    assert json.loads(made.reasoning.provider.metadata_json) == metadata
    assert not made.reasoning.provider.HasField("model")


def test_metadata_of_a_users_text_is_no_providers() -> None:
    made = only_part(text("p1", metadata={"compaction_continue": True}), role="user")
    assert not made.text.HasField("provider")
    assert made.extra_json == '{"opencode":{"/metadata":{"compaction_continue":true}}}'
