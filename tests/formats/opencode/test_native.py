"""Sessions that were made in Turnwire export to files that opencode's own schema accepts."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import turnwire
from tests.formats.samples import CORPORA, NO_CORPORA, assistant, document, take, text, user
from tests.strategies import messages
from turnwire import v1
from turnwire.formats import History, Report, stored
from turnwire.formats.load import load
from turnwire.formats.opencode import OPENCODE

DESCRIPTION = CORPORA / "opencode-1.18.33" / "openapi.json.gz"

pytestmark = pytest.mark.skipif(not DESCRIPTION.exists(), reason=NO_CORPORA)


@cache
def validator() -> Any:
    """Of an export, by the schemas of opencode's own description."""
    schemas = json.loads(gzip.decompress(DESCRIPTION.read_bytes()))["components"]["schemas"]

    def of(name: str) -> dict[str, str]:
        return {"$ref": f"#/components/schemas/{name}"}

    message = {
        "type": "object",
        "properties": {"info": of("Message"), "parts": {"type": "array", "items": of("Part")}},
        "required": ["info", "parts"],
        "additionalProperties": False,
    }
    whole = {
        "type": "object",
        "properties": {"info": of("Session"), "messages": {"type": "array", "items": message}},
        "required": ["info", "messages"],
        "additionalProperties": False,
        "components": {"schemas": schemas},
    }
    return Draft202012Validator(whole)


def accepted(exported: str) -> Any:
    """The export, which the schema must accept."""
    tree = json.loads(exported)
    assert [error.message for error in validator().iter_errors(tree)] == []
    return tree


async def test_a_session_of_every_kind_of_thing() -> None:
    async with turnwire.open(":memory:") as client:
        session = await client.open_session("talk-1", title="A talk", directory="/tmp/x")
        turn = await session.start_turn(agent="build", model="anthropic/claude", system="be brief")
        await turn.add_user("What does the README say?")
        async with turn.answer() as answer:
            await answer.reasoning("I should read it.")
            call = await answer.tool("read", call_id="c1", input={"path": "README.md"})
            await call.running()
            await call.completed("# Hello")
            await answer.text("It says hello.")
        tree = accepted(OPENCODE.export(await stored.history(client, "talk-1")))
    assert tree["info"]["id"] == "ses_talk-1"
    assert {part["sessionID"] for message in tree["messages"] for part in message["parts"]} == {"ses_talk-1"}
    asked, answered = tree["messages"]
    assert answered["info"]["parentID"] == asked["info"]["id"]
    (tool,) = (part for part in answered["parts"] if part["type"] == "tool")
    assert tool["state"]["status"] == "completed"
    assert (tool["state"]["input"], tool["state"]["output"]) == ({"path": "README.md"}, "# Hello")


async def test_a_session_of_opencode_that_went_on_here() -> None:
    async with turnwire.open(":memory:") as client:
        whole = document(
            user("msg_1", text("prt_1")),
            assistant("msg_2", text("prt_2"), parent="msg_1"),
            slug="s",
            projectID="p",
            time={"created": 1, "updated": 2},
        )
        await load(client, take(whole), Report())
        session = await client.open_session("ses_1")
        turn = await session.start_turn(agent="build", model="fake/m")
        await turn.add_user("go on", message_id="own")
        tree = accepted(OPENCODE.export(await stored.history(client, "ses_1")))
    assert tree["messages"][:2] == json.loads(whole)["messages"]
    assert tree["messages"][2]["info"]["id"] == "msg_own"


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any valid messages with any valid turns and summaries, under any valid properties."""
    history = History(draw(st.sampled_from(["ses_1", "other"])), draw(messages(v1.SessionProperties)))
    for kind in draw(st.lists(st.sampled_from([v1.User, v1.Assistant]), max_size=2)):
        message = draw(messages(kind, stored=True))
        history.messages.append(message)
        history.turns[message.turn_id] = draw(messages(v1.Turn))
        history.summaries[message.id] = draw(messages(v1.MessageSummary))
    history.properties.ClearField("origin")
    return history


@settings(max_examples=50, deadline=None)
@given(histories())
def test_whatever_is_legal_here_is_accepted_there(history: History) -> None:
    for kept in (history.properties, *history.turns.values(), *history.messages, *history.summaries.values()):
        kept.extra_json = ""
    for message in history.messages:
        for part in message.parts:
            part.extra_json = ""
    accepted(OPENCODE.export(history))
