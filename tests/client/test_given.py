"""What callers give: what cannot be written is refused with the field's name, before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

import turnwire
from tests.client.flow import MODEL
from turnwire import errors, v1
from turnwire.calls import Service
from turnwire.calls.given import json_text
from turnwire.handle.content import part_of

HALF = "half \ud83d"

CALLS: dict[str, Callable[[Service], Awaitable[object]]] = {
    "session_id": lambda tw: tw.get_session(HALF),
    "title": lambda tw: tw.open_session(title=HALF),
    'labels["k"]': lambda tw: tw.create_session(labels={"k": HALF}),
    "page_token": lambda tw: tw.list_sessions_page(page_token=HALF),
    "directory": lambda tw: tw.list_sessions_page(directory=HALF),
    "update_mask[0]": lambda tw: tw.update_session("ses_1", fields=[HALF]),
    "new_session_id": lambda tw: tw.fork_session("ses_1", new_session_id=HALF),
    "message_id": lambda tw: tw.get_message("ses_1", HALF),
    "from_id": lambda tw: tw.history("ses_1", from_message_id=HALF),
    "request_id": lambda tw: tw.append("ses_1", [v1.User(turn_id="trn_1")], request_id=HALF),
}
SESSIONS: dict[str, Callable[[turnwire.Session], Awaitable[object]]] = {
    "agent": lambda session: session.start_turn(HALF, model=MODEL),
    "variant": lambda session: session.start_turn("build", model=MODEL, variant=HALF),
    "system": lambda session: session.start_turn("build", model=MODEL, system=HALF),
    "tools": lambda session: session.start_turn("build", model=MODEL, tools={HALF: True}),
    "id": lambda session: session.start_turn("build", model=MODEL, turn_id=HALF),
}
ANSWERS: dict[str, Callable[[turnwire.Answer], Awaitable[object]]] = {
    "text": lambda answer: answer.text(HALF),
    "name": lambda answer: answer.tool(HALF),
    "call_id": lambda answer: answer.tool("bash", call_id=HALF),
    "input_json": lambda answer: answer.tool("bash", input={"a": math.nan}),
    "metadata_json": lambda answer: answer.end_part(metadata={"a": math.inf}),
    "finish": lambda answer: answer.finish(HALF),
    "structured_json": lambda answer: answer.finish(structured_json=HALF),
}
TOOLS: dict[str, Callable[[turnwire.ToolCall], Awaitable[object]]] = {
    "raw_input": lambda call: call.input_delta(HALF),
    "output": lambda call: call.output_delta(HALF),
    "input_json": lambda call: call.running({"a": {"b": -math.inf}}),
    "title": lambda call: call.running(title=HALF),
    "metadata_json": lambda call: call.running(metadata={"a": math.nan}),
    "error": lambda call: call.failed(HALF),
}


@pytest.fixture
async def tw() -> Any:
    async with turnwire.open(":memory:") as opened:
        yield opened


async def refused(path: str, made: Callable[[Any], Awaitable[object]], given: Any) -> None:
    with pytest.raises(errors.RuleViolation) as caught:
        await made(given)
    assert caught.value.path == path
    assert "\ud83d" not in str(caught.value)
    assert str(caught.value).encode()


@pytest.mark.parametrize("path", CALLS)
async def test_of_calls(tw: Service, path: str) -> None:
    await refused(path, CALLS[path], tw)


@pytest.mark.parametrize("path", SESSIONS)
async def test_of_sessions(tw: Service, path: str) -> None:
    session = await tw.open_session("ses_1")
    await refused(path, SESSIONS[path], session)
    assert session.revision == 1


async def test_of_turns(tw: Service) -> None:
    turn = await (await tw.open_session("ses_1")).start_turn("build", model=MODEL)
    await refused("text", turn.add_user, HALF)
    await turn.add_user("a")
    draft = await turn.prompt()
    with pytest.raises(errors.RuleViolation, match=r"^text: "):
        draft.push(HALF)
    assert len(draft.messages) == 1


@pytest.mark.parametrize("path", ANSWERS)
async def test_of_answers(tw: Service, path: str) -> None:
    """The answer goes on as if nothing had been."""
    session = await tw.open_session("ses_1")
    turn = await session.start_turn("build", model=MODEL)
    async with turn.answer() as answer:
        await answer.text("a")
        await refused(path, ANSWERS[path], answer)
        await answer.text("b")
    message = (await session.history()).messages[-1]
    assert [part.text.text for part in message.parts] == ["ab"]


@pytest.mark.parametrize("path", TOOLS)
async def test_of_tool_calls(tw: Service, path: str) -> None:
    session = await tw.open_session("ses_1")
    turn = await session.start_turn("build", model=MODEL)
    async with turn.answer() as answer:
        call = await answer.tool("bash")
        await call.input_delta("{}")
        await refused(path, TOOLS[path], call)
        assert call.state == v1.ToolState.TOOL_STATE_PENDING
        await call.completed("done")
    tool = (await session.history()).messages[-1].parts[0].tool
    assert (tool.input_json, tool.output, tool.title, tool.metadata_json) == ("{}", "done", "", "")


def test_json_is_written_down() -> None:
    assert json_text("p", {}) == "{}"
    assert json_text("p", " [1] ") == " [1] "
    assert json_text("p", {"ü": [1, None, True, 2**60]}) == '{"ü":[1,null,true,1152921504606846976]}'
    assert json_text("p", {"a": HALF}) == '{"a":"half \\ud83d"}'  # an escape is legal
    circular: dict[str, Any] = {}
    circular["a"] = circular
    with pytest.raises(errors.RuleViolation, match=r"^p: must be JSON"):
        json_text("p", circular)
    with pytest.raises(TypeError):
        json_text("p", {"a": object()})


class TestContent:
    async def test_kinds_become_parts(self, tw: Service) -> None:
        session = await tw.open_session("ses_1")
        turn = await session.start_turn("build", model=MODEL)
        file = v1.FilePart(mime="text/plain", url="data:,x")
        given = v1.PromptPart(id="prt_1", text=v1.TextPart(text="c"))
        message = await turn.add_user("a", v1.TextPart(text="b"), given, file)
        stored = (await session.history()).messages[-1]
        assert list(stored.parts) == list(message.parts)
        assert [part.text.text for part in stored.parts] == ["a", "b", "c", ""]
        assert stored.parts[2].id == "prt_1"
        assert stored.parts[3].file == file
        draft = await turn.prompt()
        draft.push("now", file)
        pushed = draft.messages[-1].parts
        assert (pushed[0].text.synthetic, pushed[1].file) == (True, file)
        async with turn.answer() as answer:
            await answer.part(v1.StepStartPart())
        assert (await session.history()).messages[-1].parts[0].HasField("step_start")

    async def test_every_kind(self, tw: Service) -> None:
        turn = await (await tw.open_session("ses_1")).start_turn("build", model=MODEL)
        async with turn.answer() as answer:
            for field in v1.PromptPart.DESCRIPTOR.oneofs_by_name["kind"].fields:
                kind = getattr(v1, field.message_type.name)()
                with suppress(errors.RuleViolation):  # of what is in it
                    await answer.part(kind)
                assert part_of(kind).WhichOneof("kind") == field.name

    async def test_what_is_no_part(self, tw: Service) -> None:
        turn = await (await tw.open_session("ses_1")).start_turn("build", model=MODEL)
        wrong: list[Any] = [5, {"text": "a"}, None, v1.User(), b"a"]
        for each in wrong:
            with pytest.raises(TypeError, match=r"is no part: give a text, or a part such as v1\.PromptPart\(file="):
                await turn.add_user(each)

    async def test_no_content(self, tw: Service) -> None:
        session = await tw.open_session("ses_1")
        turn = await session.start_turn("build", model=MODEL)
        with pytest.raises(ValueError, match="a user message needs content"):
            await turn.add_user()
        assert session.revision == 2


@pytest.mark.parametrize(
    "target",
    ["", "garbage", "host:", ":7411", "host:port", "http://127.0.0.1:7411", "unix:", "a b:1", "host:7411/", "host:٣"],
)
def test_an_address_that_is_none(target: str) -> None:
    for connect in (turnwire.Client.connect, turnwire.blocking.connect):
        with pytest.raises(ValueError, match=r"^a server is HOST:PORT or unix:PATH, not "):
            connect(target)


@pytest.mark.parametrize(
    "target", ["h:1", "127.0.0.1:7411", "[::1]:7411", "unix:s", "unix:///run/a b", "dns:///h:50", "dns:h:50"]
)
async def test_an_address(target: str) -> None:
    await turnwire.Client.connect(target).close()
