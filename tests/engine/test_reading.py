"""Raw entries and live tails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.builders import (
    CALLER,
    append,
    assistant,
    delete,
    opened,
    parsed,
    read,
    refused,
    text,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.log.frames import FRAME_BYTES


class TestEntries:
    async def test_a_range(self, engine: Engine) -> None:
        await opened(engine, "s", *(user(f"u{at}") for at in range(5)))

        async def revisions(first: int = 0, last: int | None = None) -> list[int]:
            return [entry.revision for entry in await read(engine, "s", first, last)]

        assert await revisions() == [1, 2, 3, 4, 5, 6, 7]
        assert await revisions(1) == [1, 2, 3, 4, 5, 6, 7]
        assert await revisions(6) == [6, 7]
        assert await revisions(2, 4) == [2, 3, 4]
        assert await revisions(7, 7) == [7]
        assert await revisions(5, 4) == []

    @pytest.mark.parametrize(("first", "last", "path"), [(4, None, "from_revision"), (1, 4, "to_revision")])
    async def test_beyond_the_head(self, engine: Engine, first: int, last: int | None, path: str) -> None:
        await opened(engine, "s", user("u"))
        with refused(errors.RevisionOutOfRange, path) as caught:
            await read(engine, "s", first, last)
        assert caught.value.detail == v1.RevisionConflict(expected=4, actual=3)

    async def test_the_envelope(self, engine: Engine) -> None:
        entry = user("u", text("p", "x"))
        entry.ignorable = True
        head = (await opened(engine, "s", entry)).head
        stored = (await read(engine, "s"))[2]
        assert stored.ignorable
        assert stored.recorded == head.recorded
        assert stored.digest == head.digest
        assert stored.user == user("u", text("p", "x")).user
        assert not (await read(engine, "s"))[1].ignorable

    async def test_responses_are_closed_at_a_size(self, engine: Engine) -> None:
        await opened(engine, "s", *(user(f"u{at}", text(f"p{at}", "x" * 300_000)) for at in range(8)))
        responses = await parsed(
            v1.ReadEntriesResponse, engine.read_entries(CALLER, v1.ReadEntriesRequest(session_id="s"))
        )
        assert [entry.revision for response in responses for entry in response.entries] == list(range(1, 11))
        assert len(responses) == 2
        assert max(response.ByteSize() for response in responses) < FRAME_BYTES + 300_500

    async def test_an_unknown_session(self, engine: Engine) -> None:
        with refused(errors.SessionNotFound, session_id="s"):
            await read(engine, "s")


class Tail:
    """A client of a tail: what it saw."""

    def __init__(self, engine: Engine, after: int = 0) -> None:
        request = v1.TailRequest(session_id="s", after_revision=after)
        self._responses: AsyncIterator[bytes] = engine.tail(CALLER, request)
        self.revisions: list[int] = []
        self.caught_up: list[v1.Head] = []

    async def until(self, revision: int) -> None:
        """Go on until a revision has been seen, and the end of what was there."""
        async with asyncio.timeout(5):
            while not self.caught_up or (self.revisions and self.revisions[-1] < revision):
                await self.step()

    async def step(self) -> None:
        response = v1.TailResponse.FromString(await anext(self._responses))
        self.revisions += [entry.revision for entry in response.entries]
        if response.HasField("caught_up"):
            assert not self.revisions or self.revisions[-1] <= response.caught_up.revision
            self.caught_up.append(response.caught_up)


class TestTail:
    async def test_it_catches_up_and_stays_live(self, engine: Engine) -> None:
        head = (await opened(engine, "s", user("u1"))).head
        tail = Tail(engine)
        await tail.until(3)
        assert tail.revisions == [1, 2, 3]
        assert tail.caught_up == [head]
        for at in range(4, 10):
            await append(engine, "s", turn(f"n{at}"))
            await tail.until(at)
        assert tail.revisions == list(range(1, 10))
        assert tail.caught_up == [head]

    async def test_it_goes_on_after_a_revision(self, engine: Engine) -> None:
        head = (await opened(engine, "s", user("u1"), user("u2"))).head
        tail = Tail(engine, 2)
        await tail.until(4)
        assert tail.revisions == [3, 4]
        at_head = Tail(engine, 4)
        await at_head.step()
        assert at_head.revisions == []
        assert at_head.caught_up == [head]
        await append(engine, "s", user("u3"))
        await at_head.step()
        assert at_head.revisions == [5]

    async def test_nothing_is_lost_between_the_read_and_the_watch(self, engine: Engine) -> None:
        await opened(engine, "s")
        tail = Tail(engine)

        async def write() -> None:
            for at in range(100):
                await append(engine, "s", turn(f"n{at}"))
                if at % 10 == 0:
                    await asyncio.sleep(0)

        writer = asyncio.create_task(write())
        async with asyncio.timeout(10):
            while not tail.revisions or tail.revisions[-1] < 102:
                await tail.step()
        await writer
        assert tail.revisions == list(range(1, 103))
        assert len(tail.caught_up) == 1

    async def test_beyond_the_head(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.RevisionOutOfRange, "after_revision") as caught:
            await Tail(engine, 3).step()
        assert caught.value.detail == v1.RevisionConflict(expected=3, actual=2)

    async def test_a_delete_ends_it(self, engine: Engine) -> None:
        await opened(engine, "s")
        tail = Tail(engine)
        await tail.until(2)
        waiting = asyncio.create_task(tail.step())
        await asyncio.sleep(0.01)
        await delete(engine, "s")
        with refused(errors.SessionDeleted, session_id="s"):
            async with asyncio.timeout(5):
                await waiting

    async def test_of_a_deleted_or_unknown_session(self, engine: Engine) -> None:
        with refused(errors.SessionNotFound, session_id="s"):
            await Tail(engine).step()
        await opened(engine, "s")
        await delete(engine, "s")
        with refused(errors.SessionDeleted, session_id="s"):
            await Tail(engine).step()

    async def test_other_sessions_do_not_disturb_it(self, engine: Engine) -> None:
        await opened(engine, "s")
        tail = Tail(engine)
        await tail.until(2)
        await opened(engine, "other", assistant("a"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await tail.step()

    async def test_a_slow_reader_slows_no_writer(self, engine: Engine) -> None:
        """A tail that is not read holds nothing: it takes up what it missed from the log."""
        await opened(engine, "s")
        tail = Tail(engine)
        await tail.until(2)
        async with asyncio.timeout(5):
            for at in range(20):
                await append(engine, "s", user(f"u{at}", text(f"p{at}", "x" * 100_000)))
        await tail.until(22)
        assert tail.revisions == list(range(1, 23))

    async def test_it_can_be_left(self, engine: Engine) -> None:
        await opened(engine, "s")
        responses = engine.tail(CALLER, v1.TailRequest(session_id="s"))
        await anext(responses)
        await responses.aclose()  # type: ignore[attr-defined]  # an async generator in fact
        await append(engine, "s", user("u"))
