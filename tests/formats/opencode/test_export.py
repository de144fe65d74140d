"""What the exporter writes for sessions that opencode did not make, and how its text looks."""

from __future__ import annotations

import json

from google.protobuf.timestamp_pb2 import Timestamp

from tests.formats.samples import DATA, content, there_and_back
from turnwire import v1
from turnwire.formats import EXPORTERS, IMPORTERS, History
from turnwire.formats.opencode import OPENCODE

THEN = Timestamp(seconds=1_800_000_000, nanos=123_456_000)


def native() -> History:
    """A session of Turnwire's own."""
    model = v1.ModelRef(provider_id="anthropic", model_id="claude")
    turn = v1.Turn(id="trn_1", created=THEN, request=v1.TurnRequest(agent="build", model=model))
    asked = v1.User(id="msg_1", turn_id="trn_1", time=v1.UserTime(created=THEN))
    asked.parts.add(id="prt_1", text=v1.TextPart(text="hi"))
    answer = v1.Assistant(
        id="msg_2",
        turn_id="trn_1",
        parent_id="msg_1",
        time=v1.AssistantTime(created=THEN),
        run=v1.Run(agent="build", model=model),
        result=v1.Result(kind=v1.ResultKind.RESULT_KIND_REPLY),
    )
    call = v1.ToolPart(call_id="c", name="bash", state=v1.ToolState.TOOL_STATE_RUNNING, input_json='{"b":1.0,"a":[]}')
    answer.parts.add(id="prt_2", tool=call)
    answer.parts.add(id="prt_3", extension=v1.ExtensionPart(type="other/x", data_json="1"))
    properties = v1.SessionProperties(title="T", created=THEN, extra_json='{"other":{"a":1}}')
    revert = v1.Revert(message_id="msg_2", part_id="prt_2")
    return History("ses_1", properties, {"trn_1": turn}, [asked, answer], {}, revert)


def test_a_session_of_turnwires_own() -> None:
    assert json.loads(OPENCODE.export(native())) == {
        "info": {
            "id": "ses_1",
            "slug": "ses_1",
            "projectID": "global",
            "directory": "/",
            "title": "T",
            "version": "",
            "time": {"created": 1_800_000_000_123, "updated": 1_800_000_000_123},
            "revert": {"messageID": "msg_2", "partID": "prt_2"},
        },
        "messages": [
            {
                "info": {
                    "id": "msg_1",
                    "sessionID": "ses_1",
                    "role": "user",
                    "time": {"created": 1_800_000_000_123},
                    "agent": "build",
                    "model": {"providerID": "anthropic", "modelID": "claude"},
                },
                "parts": [{"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "hi"}],
            },
            {
                "info": {
                    "id": "msg_2",
                    "sessionID": "ses_1",
                    "role": "assistant",
                    "time": {"created": 1_800_000_000_123},
                    "parentID": "msg_1",
                    "modelID": "claude",
                    "providerID": "anthropic",
                    "mode": "build",
                    "agent": "build",
                    "path": {"cwd": "/", "root": "/"},
                    "cost": 0,
                    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
                },
                "parts": [
                    {
                        "id": "prt_2",
                        "sessionID": "ses_1",
                        "messageID": "msg_2",
                        "type": "tool",
                        "callID": "c",
                        "tool": "bash",
                        "state": {
                            "status": "running",
                            "input": {"b": 1.0, "a": []},
                            "time": {"start": 1_800_000_000_123},
                        },
                    }
                ],
            },
        ],
    }


def test_documents_are_written_as_they_are() -> None:
    assert '"input": {"b":1.0,"a":[]}' in OPENCODE.export(native())


def test_the_text_is_laid_out_as_opencodes_is() -> None:
    original = content(DATA / "surrogates.json")
    back = there_and_back(original)
    assert back.endswith("}\n")
    assert original.endswith("}\n")
    assert sorted(line.strip(" ,") for line in back.splitlines() if '"text"' in line or '"created"' in line) == sorted(
        line.strip(" ,") for line in original.splitlines() if '"text"' in line or '"created"' in line
    )


def test_messages_that_came_later_stand_at_the_end() -> None:
    """An import keeps the order of an odd file; what was appended since does not disturb it."""
    history = native()
    history.properties.extra_json = '{"opencode/file":{"order":[1,0]}}'
    tree = json.loads(OPENCODE.export(history))
    assert [one["info"]["id"] for one in tree["messages"]] == ["msg_2", "msg_1"]
    later = v1.User(id="msg_3", turn_id="trn_1", time=v1.UserTime(created=THEN))
    history.messages.append(later)
    tree = json.loads(OPENCODE.export(history))
    assert [one["info"]["id"] for one in tree["messages"]] == ["msg_2", "msg_1", "msg_3"]
    del history.messages[1:]
    tree = json.loads(OPENCODE.export(history))
    assert [one["info"]["id"] for one in tree["messages"]] == ["msg_1"]


def test_programs_are_found_by_name() -> None:
    assert list(IMPORTERS) == ["opencode"]
    assert EXPORTERS["opencode"] is OPENCODE
