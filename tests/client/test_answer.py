"""Answers lose nothing silently: writing after the end, appends that are refused late, servers that go away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import turnwire
from tests.client.flow import MODEL
from turnwire import errors, v1
from turnwire.calls import Service
from turnwire.calls.log import LogCalls

Write = Callable[[turnwire.Answer], Awaitable[object]]

WRITES: dict[str, Write] = {
    "text": lambda answer: answer.text("LOST"),
    "no text": lambda answer: answer.text(""),
    "reasoning": lambda answer: answer.reasoning("LOST"),
    "part": lambda answer: answer.part(v1.TextPart(text="LOST")),
    "tool": lambda answer: answer.tool("bash"),
    "end_part": lambda answer: answer.end_part(),
    "finish": lambda answer: answer.finish(),
    "fail": lambda answer: answer.fail(v1.Failure(aborted=v1.AbortedFailure(message="x"))),
}


async def begun(tw: Service, *, guarded: bool = False) -> tuple[turnwire.Session, turnwire.Turn]:
    session = await tw.open_session("ses_1", guarded=guarded)
    turn = await session.start_turn("build", model=MODEL)
    await turn.add_user("hello")
    return session, turn


async def last(session: turnwire.Session) -> v1.Assistant:
    message = (await session.history()).messages[-1]
    assert isinstance(message, v1.Assistant)
    return message


class TestAfterTheEnd:
    @pytest.mark.parametrize("name", WRITES)
    async def test_a_finished_answer_takes_no_more(self, tw: Service, name: str) -> None:
        session, turn = await begun(tw)
        async with turn.answer() as answer:
            await answer.text("a")
            await answer.finish("length")
            with pytest.raises(RuntimeError, match="the answer is finished"):
                await WRITES[name](answer)
            await answer.flush()
        with pytest.raises(RuntimeError, match="the answer is finished"):
            await WRITES[name](answer)
        await answer.flush()
        message = await last(session)
        assert ([part.text.text for part in message.parts], message.result.finish) == (["a"], "length")

    @pytest.mark.parametrize("name", WRITES)
    async def test_nor_does_one_that_failed_or_whose_block_has_ended(self, name: str) -> None:
        async with turnwire.open(":memory:") as tw:
            _, turn = await begun(tw)
            async with turn.answer() as answer:
                await answer.fail(ValueError("x"))
                with pytest.raises(RuntimeError, match="the answer is finished"):
                    await WRITES[name](answer)
            async with turn.answer() as answer:
                await answer.text("a")
            with pytest.raises(RuntimeError, match="the answer is finished"):
                await WRITES[name](answer)

    async def test_a_tool_call_takes_its_result_but_no_stream(self, tw: Service) -> None:
        session, turn = await begun(tw)
        async with turn.answer() as answer:
            call = await answer.tool("bash", input={"cmd": "ls"})
            await call.running()
            await answer.finish("tool-calls")
            for stream in (call.input_delta, call.output_delta):
                with pytest.raises(RuntimeError, match="the answer is finished"):
                    await stream("LOST")
            await call.completed("a\n")
            for stream in (call.input_delta, call.output_delta):
                with pytest.raises(RuntimeError, match="the tool call has ended"):
                    await stream("LOST")
        tool = (await last(session)).parts[0].tool
        assert (tool.state, tool.output) == (v1.ToolState.TOOL_STATE_COMPLETED, "a\n")

    async def test_what_another_task_writes_while_the_answer_ends(self, tw: Service) -> None:
        session, turn = await begun(tw)
        async with turn.answer(flush_seconds=60) as answer:
            await answer.text("a")
            ending = asyncio.create_task(answer.finish())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="the answer is finished"):
                await answer.text("LOST")
            await ending
        assert [part.text.text for part in (await last(session)).parts] == ["a"]


class Broken:
    """Lets the appends of a store fail for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = None
        self.after = False  # whether the append goes through all the same
        self.tried = 0
        real = LogCalls.append

        async def append(service: Any, *args: Any, **kwargs: Any) -> v1.AppendResponse:
            if self.error is None:
                return await real(service, *args, **kwargs)
            self.tried += 1
            if self.after:
                await real(service, *args, **kwargs)
            raise self.error

        monkeypatch.setattr(LogCalls, "append", append)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Broken:
    return Broken(monkeypatch)


class TestRefusals:
    """An append that was put off is refused: the next call says so, whichever it is."""

    @pytest.mark.parametrize("name", ["text", "reasoning", "part", "tool", "end_part", "finish", "flush"])
    async def test_by_the_next_call(self, tw: Service, broken: Broken, name: str) -> None:
        session, turn = await begun(tw)
        async with turn.answer(flush_seconds=0.01) as answer:
            await answer.text("a")
            broken.error = errors.MessageRemoved("it is gone")
            await answer.text("b")
            await refused(broken)
            with pytest.raises(errors.MessageRemoved):
                await (answer.flush() if name == "flush" else WRITES[name](answer))
            assert not answer.finished
            await answer.part(v1.TextPart(text="it goes on"))
            await answer.finish("length")
        message = await last(session)
        assert (message.parts[-1].text.text, message.result.finish) == ("it goes on", "length")

    @pytest.mark.parametrize("then", ["text", "end_part", "finish", "block"])
    async def test_what_was_refused_is_written_with_its_part(self, tw: Service, broken: Broken, then: str) -> None:
        """It was refused for a reason that has gone."""
        session, turn = await begun(tw)
        async with turn.answer(flush_bytes=1) as answer:
            await answer.text("a")
            for text in ("b", "c"):
                broken.error = errors.PartSealed("it is sealed")
                with pytest.raises(errors.PartSealed):
                    await answer.text(text)
            broken.error = None
            if then == "text":
                await answer.text("")
            elif then == "end_part":
                await answer.end_part()
            elif then == "finish":
                await answer.finish()
        assert [part.text.text for part in (await last(session)).parts] == ["abc"]

    async def test_text_behind_what_was_refused_waits_for_the_whole(self, tw: Service, broken: Broken) -> None:
        session, turn = await begun(tw)
        async with turn.answer(flush_seconds=60) as answer:
            await answer.text("a")
            await answer.text("b")
            broken.error = errors.ConnectionFailed("gone")
            with pytest.raises(errors.Unavailable):
                await answer.flush()
            await answer.text("c")
            broken.error = errors.PartSealed("it is sealed")
            with pytest.raises(errors.PartSealed):
                await answer.flush()
            broken.error = None
            await answer.text("d")
            await answer.text("e")
        assert [part.text.text for part in (await last(session)).parts] == ["abcde"]

    async def test_a_tool_call_likewise(self, tw: Service, broken: Broken) -> None:
        session, turn = await begun(tw)
        async with turn.answer(flush_bytes=1) as answer:
            call = await answer.tool("bash")
            await call.input_delta("{")
            broken.error = errors.PartSealed("it is sealed")
            with pytest.raises(errors.PartSealed):
                await call.input_delta('"a"')
            broken.error = None
            await call.input_delta(":")
            await call.input_delta("1}")
            assert (await last(session)).parts[0].tool.raw_input == '{"a":1}'
            await call.running()
            await call.output_delta("x")
            broken.error = errors.PartSealed("it is sealed")
            with pytest.raises(errors.PartSealed):
                await call.output_delta("y")
            with pytest.raises(errors.PartSealed):
                await call.running(title="lost")
            broken.error = None
            await call.output_delta("z")
            tool = (await last(session)).parts[0].tool
            assert (tool.output, tool.title, tool.input_json) == ("xyz", "", '{"a":1}')
            await call.completed()
        assert (await last(session)).parts[0].tool.output == "xyz"

    async def test_by_the_end_of_the_block(self, tw: Service, broken: Broken) -> None:
        session, turn = await begun(tw)
        answer = turn.answer(flush_seconds=0.01)

        async def run() -> None:
            async with answer:
                await answer.text("a")
                broken.error = errors.MessageRemoved("it is gone")
                await answer.text("b")
                await refused(broken)

        with pytest.raises(errors.MessageRemoved):
            await run()
        assert not answer.finished
        with pytest.raises(RuntimeError, match="the block of the answer has ended"):
            await answer.text("c")
        assert not (await last(session)).time.HasField("completed")

    async def test_where_another_exception_leaves_the_block(self, tw: Service, broken: Broken) -> None:
        _, turn = await begun(tw)
        answer = turn.answer(flush_seconds=0.01)

        async def run() -> None:
            async with answer:
                await answer.text("a")
                broken.error = errors.MessageRemoved("it is gone")
                await answer.text("b")
                await refused(broken)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError) as caught:
            await run()
        assert caught.value.__notes__ == [f"the end of the answer {answer.id} was not written: it is gone"]

    async def test_a_fault_of_another_kind(self, tw: Service, broken: Broken) -> None:
        session, turn = await begun(tw)
        async with turn.answer(flush_seconds=0.01) as answer:
            await answer.text("a")
            broken.error = RuntimeError("the client is closed")
            await answer.text("b")
            await refused(broken)
            with pytest.raises(RuntimeError, match="the client is closed"):
                await answer.flush()
        assert (await last(session)).parts[0].text.text == "ab"

    async def test_an_end_that_came_after_what_was_refused_is_not_written_later(
        self, tw: Service, broken: Broken
    ) -> None:
        """The caller was told that it is not finished, and says otherwise in the end."""
        session, turn = await begun(tw)
        async with turn.answer(flush_seconds=60) as answer:
            await answer.text("a")
            await answer.text("b")
            broken.error = errors.ConnectionFailed("gone")
            with pytest.raises(errors.Unavailable):
                await answer.flush()
            broken.error = errors.PartSealed("it is sealed")
            with pytest.raises(errors.PartSealed):
                await answer.finish("stop", structured_json="{}")
            broken.error = None
            assert not answer.finished
            await answer.text("c")
            await answer.finish("length")
        message = await last(session)
        assert (message.parts[0].text.text, message.result.finish) == ("abc", "length")
        assert not message.result.structured_json
        ends = [entry async for entry in tw.read_entries(session.id) if entry.assistant.assistant.result.finish]
        assert len(ends) == 1


class TestNotNow:
    """A server that is not there for a while costs nothing, and nothing is written twice."""

    @pytest.mark.parametrize("after", [False, True])
    async def test_a_text_is_taken_in_though_its_call_fails(self, tw: Service, broken: Broken, after: bool) -> None:
        session, turn = await begun(tw)
        async with turn.answer(flush_bytes=1) as answer:
            broken.error, broken.after = errors.ConnectionFailed("gone"), after
            for text in ("a", "b"):
                with pytest.raises(errors.Unavailable):
                    await answer.text(text)
            call = None
            with pytest.raises(errors.Unavailable):
                call = await answer.tool("bash")
            assert call is None
            broken.error = None
            await answer.reasoning("c")
            await answer.end_part(metadata={"signature": "S"}, signed=True)
        parts = (await last(session)).parts
        assert [part.WhichOneof("kind") for part in parts] == ["text", "tool", "reasoning"]
        assert (parts[0].text.text, parts[2].reasoning.text) == ("ab", "c")

    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize("more", ["nothing", "flush", "finish"])
    async def test_an_end_that_waits(self, tw: Service, broken: Broken, after: bool, more: str) -> None:
        session, turn = await begun(tw)
        async with turn.answer() as answer:
            await answer.text("a")
            broken.error, broken.after = errors.ConnectionFailed("gone"), after
            with pytest.raises(errors.Unavailable):
                await answer.finish("length")
            assert not answer.finished
            with pytest.raises(RuntimeError, match="the answer is finished"):
                await answer.text("LOST")
            broken.error = None
            if more == "flush":
                await answer.flush()
            elif more == "finish":
                await answer.finish("length")
            assert answer.finished == (more != "nothing")
        message = await last(session)
        assert answer.finished
        assert (message.parts[0].text.text, message.result.finish) == ("a", "length")

    async def test_an_end_that_waits_when_the_block_ends(self, tw: Service, broken: Broken) -> None:
        session, turn = await begun(tw)
        answer = turn.answer()

        async def run() -> None:
            async with answer:
                await answer.text("a")
                broken.error = errors.ConnectionFailed("gone")

        with pytest.raises(errors.Unavailable):
            await run()
        with pytest.raises(RuntimeError, match="the answer is finished"):
            await answer.text("LOST")
        with pytest.raises(errors.Unavailable):
            await answer.flush()
        broken.error = None
        await answer.flush()
        assert answer.finished
        message = await last(session)
        assert (message.parts[0].text.text, message.result.finish) == ("a", "stop")

    async def test_another_writer_came_before_a_guarded_session(self, tw: Service) -> None:
        session, turn = await begun(tw, guarded=True)
        async with turn.answer(flush_seconds=60) as answer:
            await answer.text("a")
            await answer.text("b")
            await tw.append(session.id, [v1.MessageSummary(message_id=answer.id, title="x")])
            for _ in range(2):
                with pytest.raises(errors.RevisionConflict):
                    await answer.flush()
            assert [entry.WhichOneof("payload") for entry in await session.refresh()] == ["summary"]
            await answer.text("c")
        message = await last(session)
        assert (message.parts[0].text.text, message.result.finish) == ("abc", "stop")


async def refused(broken: Broken) -> None:
    """Wait until the timer's append was tried, and let later ones through."""
    async with asyncio.timeout(5):
        while not broken.tried:
            await asyncio.sleep(0.01)
    broken.error = None
