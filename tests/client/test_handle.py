"""Session and turn handles, over every transport."""

from __future__ import annotations

import ast
import asyncio
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.client.flow import MODEL, text, turn, user
from turnwire import errors, handle, v1
from turnwire.calls import Service

OTHER = "openai/gpt-5"


async def test_the_example_of_the_docstring_runs(tmp_path: Path) -> None:
    """It is run as it stands, so that it stays right."""
    doc = handle.__doc__ or ""
    block = doc[doc.index("::\n") + 3 :]
    example = textwrap.dedent(block[: block.index("\n\nEverything here")])
    names: dict[str, Any] = {"turnwire": turnwire, "v1": v1, "path": tmp_path / "turnwire.db"}
    code = compile(example, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await eval(code, names)
    history: turnwire.SessionHistory = names["history"]
    question, answer = history.messages
    assert isinstance(answer, v1.Assistant)
    assert question.parts[0].text.text == "What does the README say?"
    assert answer.parent_id == question.id
    assert answer.result.finish == "stop"
    assert answer.time.HasField("completed")
    assert answer.usage.tokens.output == 14
    assert [part.WhichOneof("kind") for part in answer.parts] == ["reasoning", "tool", "text"]
    assert answer.parts[1].tool.state == v1.ToolState.TOOL_STATE_COMPLETED
    assert answer.parts[1].tool.input_json == '{"path":"README.md"}'
    assert answer.parts[2].text.text == "It says that Turnwire stores sessions."
    prompt: turnwire.Prompt = names["prompt"]
    assert [item.message_id for item in prompt.items] == [question.id, ""]
    assert prompt.items[1].message.parts[0].text.synthetic
    assert (await turnwire_prompt(tmp_path, prompt.id)).digest_holds


async def turnwire_prompt(directory: Path, prompt_id: str) -> turnwire.Prompt:
    async with turnwire.open(directory / "turnwire.db") as tw:
        return await tw.get_prompt("ses_demo", prompt_id)


async def test_open_session_creates_or_goes_on(tw: Service) -> None:
    made = await tw.open_session("ses_1", title="first")
    assert (made.id, made.revision) == ("ses_1", 1)
    again = await tw.open_session("ses_1", title="second")
    assert again.revision == 1
    assert (await again.show()).properties.title == "first"
    assert (await tw.open_session()).id.startswith("ses_")
    many = await asyncio.gather(*(tw.open_session("ses_2") for _ in range(10)))
    assert {each.revision for each in many} == {1}
    await tw.delete_session("ses_1")
    with pytest.raises(errors.SessionDeleted):
        await tw.open_session("ses_1")


class TestSettings:
    """C96: what is not given is as in the last turn of that agent; earlier turns never change."""

    async def test_a_turn_goes_on_as_the_last_of_its_agent(self, tw: Service) -> None:
        session = await tw.open_session("ses_1")
        plan = await session.start_turn("plan", model=MODEL, variant="high", tools={"bash": False}, system="plan it")
        await plan.add_user("a")
        build = await session.start_turn("build", model=OTHER)
        await build.add_user("b")

        for opened in (session, await tw.open_session("ses_1")):
            again = await opened.start_turn("plan")
            assert again.settings == plan.settings
            await again.add_user("c")
            last = await opened.start_turn("build")
            assert last.settings == build.settings
            await last.add_user("d")
            assert (await opened.start_turn()).settings == build.settings

        first = (await session.history(last_turns=None)).turns[plan.id]
        assert first.request == plan.settings

    async def test_what_is_given_goes_before(self, tw: Service) -> None:
        session = await tw.open_session()
        await session.start_turn("plan", model=MODEL, variant="high", system="plan it")
        other = await session.start_turn("plan", model=OTHER)
        assert other.settings.model.model_id == "gpt-5"
        assert not other.settings.HasField("variant")
        assert other.settings.system == "plan it"
        bare = await session.start_turn("plan", system=None, variant="low")
        assert not bare.settings.HasField("system")
        assert bare.settings.variant == "low"

    async def test_a_new_agent_needs_a_model(self, tw: Service) -> None:
        session = await tw.open_session()
        with pytest.raises(ValueError, match="this session has had no turn"):
            await session.start_turn()
        turn = await session.start_turn("plan", model=MODEL)
        await turn.add_user("a")
        with pytest.raises(ValueError, match="the agent 'build' has had no turn"):
            await session.start_turn("build")
        with pytest.raises(ValueError, match="provider/model"):
            await session.start_turn("build", model="gpt-5")

    async def test_far_back(self, tw: Service) -> None:
        session = await tw.open_session("ses_1")
        await (await session.start_turn("plan", model=MODEL)).add_user("a")
        for _ in range(20):
            await (await session.start_turn("build", model=OTHER)).add_user("b")
        assert (await (await tw.open_session("ses_1")).start_turn("plan")).settings.model == MODEL

    async def test_last_turn(self, tw: Service) -> None:
        session = await tw.open_session("ses_1")
        assert await session.last_turn() is None
        turn = await session.start_turn("build", model=MODEL)
        question = await turn.add_user("a")
        found = await (await tw.open_session("ses_1")).last_turn()
        assert found is not None
        assert (found.id, found.user_id) == (turn.id, question.id)
        async with found.answer() as answer:
            await answer.text("b")
        assert answer.message.parent_id == question.id
        assert await session.last_turn("plan") is None


class TestAnswer:
    async def test_few_appends_for_many_pieces(self, tw: Service) -> None:
        session, turn = await opened(tw)
        async with turn.answer(flush_seconds=60) as answer:
            before = session.revision
            for _ in range(1000):
                await answer.text("wörd ")
            await answer.flush()
            assert session.revision - before < 6
        message = (await session.history()).messages[-1]
        assert message.parts[0].text.text == "wörd " * 1000
        deltas = [entry.delta async for entry in tw.read_entries(session.id) if entry.HasField("delta")]
        assert deltas[0].offset == 0
        for left, right in pairwise(deltas):
            assert right.offset == left.offset + len(left.text.encode())

    async def test_text_that_is_old_enough_is_appended_by_itself(self, tw: Service) -> None:
        session, turn = await opened(tw)
        async with turn.answer(flush_seconds=0.05) as answer:
            await answer.text("first")
            async with asyncio.timeout(5):
                while True:
                    parts = (await tw.get_message(session.id, answer.id)).message.parts
                    if parts and parts[0].text.text == "first":
                        break
                    await asyncio.sleep(0.02)

    async def test_parts_keep_their_order(self, tw: Service) -> None:
        session, turn = await opened(tw)
        async with turn.answer() as answer:
            await answer.reasoning("why")
            await answer.end_part(metadata={"signature": "S"}, signed=True, model=MODEL)
            await answer.reasoning("more")
            await answer.text("so")
            await answer.part(v1.PromptPart(step_finish=v1.StepFinishPart(reason="stop")))
            await answer.text("then")
            await answer.end_part()
        parts = (await session.history()).messages[-1].parts
        assert [part.WhichOneof("kind") for part in parts] == ["reasoning", "reasoning", "text", "step_finish", "text"]
        assert parts[0].reasoning.text == "why"
        assert parts[0].reasoning.provider.signed
        assert parts[0].reasoning.provider.metadata_json == '{"signature":"S"}'
        assert parts[0].reasoning.time.HasField("end")
        assert parts[1].reasoning.text == "more"
        assert not parts[2].text.time.HasField("end")
        assert parts[4].text.text == "then"
        assert parts[4].text.time.HasField("end")

    async def test_tool_calls(self, tw: Service) -> None:
        session, turn = await opened(tw)

        async def part(call: turnwire.ToolCall) -> v1.ToolPart:
            parts = (await tw.get_message(session.id, answer.id)).message.parts
            return next(each.tool for each in parts if each.id == call.id)

        async with turn.answer() as answer:
            call = await answer.tool("bash", call_id="call_0")
            assert (await part(call)).state == v1.ToolState.TOOL_STATE_PENDING
            await call.input_delta('{"cmd"')
            await call.input_delta(':"ls ö"}')
            await answer.flush()
            assert (await part(call)).raw_input == '{"cmd":"ls ö"}'
            await call.running(title="list")
            running = await part(call)
            assert running.state == v1.ToolState.TOOL_STATE_RUNNING
            assert running.input_json == '{"cmd":"ls ö"}'
            await call.output_delta("a\n")
            await call.output_delta("ß\n")
            await answer.flush()
            assert (await part(call)).output == "a\nß\n"
            other = await answer.tool("read", input="{}")
            await other.running()
            await other.failed("no such file", metadata={"code": 2})
            await call.completed(metadata={"exit": 0})
            cut = await answer.tool("edit")
            await cut.input_delta('{"a": ')
            await cut.failed("interrupted")
        first = await part(call)
        assert first.state == v1.ToolState.TOOL_STATE_COMPLETED
        assert (first.output, first.title, first.metadata_json) == ("a\nß\n", "list", '{"exit":0}')
        assert first.time.HasField("end")
        second = await part(other)
        assert (second.state, second.error) == (v1.ToolState.TOOL_STATE_ERROR, "no such file")
        third = await part(cut)
        assert (third.input_json, third.raw_input) == ("", '{"a": ')

    async def test_an_exception_ends_the_answer_with_a_failure(self, tw: Service) -> None:
        session, turn = await opened(tw)

        async def run() -> None:
            async with turn.answer() as answer:
                await answer.text("so far")
                raise ZeroDivisionError("division by zero")

        with pytest.raises(ZeroDivisionError):
            await run()
        message = (await session.history()).messages[-1]
        assert isinstance(message, v1.Assistant)
        assert message.parts[0].text.text == "so far"
        assert not message.result.HasField("finish")
        assert message.result.failure.unknown.name == "ZeroDivisionError"
        assert message.time.HasField("completed")

    async def test_a_cancellation_ends_the_answer_as_aborted(self, tw: Service) -> None:
        session, turn = await opened(tw)
        begun = asyncio.Event()

        async def run() -> None:
            async with turn.answer() as answer:
                await answer.text("so far")
                begun.set()
                await asyncio.sleep(60)

        running = asyncio.create_task(run())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        message = (await session.history()).messages[-1]
        assert isinstance(message, v1.Assistant)
        assert message.result.failure.HasField("aborted")
        assert message.parts[0].text.text == "so far"

    async def test_what_really_runs(self, tw: Service) -> None:
        session, turn = await opened(tw)
        path = v1.RunPath(cwd="/w", root="/")
        async with turn.answer(agent="title", model=OTHER, path=path) as answer:
            pass
        run = (await session.history()).messages[-1]
        assert isinstance(run, v1.Assistant)
        assert run.run.agent == "title"
        assert run.run.model.model_id == "gpt-5"
        assert run.run.path == path
        assert run.id == answer.id

    async def test_a_lone_surrogate_is_refused_and_nothing_is_lost(self, tw: Service) -> None:
        session, turn = await opened(tw)
        async with turn.answer() as answer:
            await answer.text("a")
            with pytest.raises(errors.RuleViolation, match=r"^text: must be valid Unicode"):
                await answer.text("\ud83d")
            await answer.text("b\x00😀")
        assert (await session.history()).messages[-1].parts[0].text.text == "ab\x00😀"


async def test_a_prompt_draft_stays_on_its_base(tw: Service) -> None:
    _, turn = await opened(tw)
    draft = await turn.prompt()
    draft.push("go on")
    draft.editor.append_to("user", "please")
    await turn.add_user("meanwhile")
    prompt = await draft.record(context=v1.PromptContext(system=["s"]))
    assert prompt.digest == draft.editor.digest()
    assert prompt.messages == draft.messages
    assert prompt.record.base_revision == draft.base_revision
    assert len(prompt.items) == 2
    assert [part.text.text for part in prompt.items[1].message.parts] == ["go on", "please"]


async def test_a_guarded_session_tells_of_other_writers(tw: Service) -> None:
    session = await tw.open_session("ses_1", guarded=True)
    turn = await session.start_turn("build", model=MODEL)
    await turn.add_user("a")
    draft = await turn.prompt()
    await draft.record(context=v1.PromptContext(system=["s"]))
    await turn.add_user("b")
    assert session.revision == 6
    await tw.append("ses_1", [user("msg_x", "x", turn_id=turn.id)])
    with pytest.raises(errors.RevisionConflict) as conflict:
        await turn.add_user("c")
    assert conflict.value.detail == v1.RevisionConflict(expected=6, actual=7)
    other = await tw.open_session("ses_1", guarded=True)
    await tw.append("ses_1", [user("msg_y", "y", turn_id=turn.id)])
    found = await other.last_turn()
    assert found is not None
    draft = await found.prompt()
    with pytest.raises(errors.RevisionConflict):
        await draft.record()


async def test_a_guarded_session_goes_on_from_the_new_head(tw: Service) -> None:
    session = await tw.open_session("ses_1", guarded=True)
    turn = await session.start_turn("build", model=MODEL)
    assert await session.refresh() == []
    await tw.append("ses_1", [user("msg_x", "x", turn_id=turn.id)])
    for _ in range(2):  # reading alone does not take the head
        with pytest.raises(errors.RevisionConflict):
            await turn.add_user("a")
        await session.history()
        await session.show()
    (added,) = await session.refresh()
    assert (added.revision, added.user.user.id) == (3, "msg_x")
    await turn.add_user("a")
    assert session.revision == 4
    await tw.append("ses_1", [user(f"msg_{at}", "x", turn_id=turn.id) for at in range(3)])
    assert [entry.revision for entry in await session.refresh()] == [5, 6, 7]
    assert session.revision == 7


async def opened(tw: Service) -> tuple[turnwire.Session, turnwire.Turn]:
    session = await tw.open_session("ses_1")
    await session.append(turn("trn_1"))
    await session.append(v1.User(id="msg_1", turn_id="trn_1", parts=[text("hello")]))
    found = await session.last_turn()
    assert found is not None
    return session, found
