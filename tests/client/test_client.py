"""What only a client over gRPC has to deal with: servers that are away, lost replies, time limits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc.aio
import pytest

import turnwire
from tests.client.flow import MODEL, text, turn, user
from turnwire import errors, v1
from turnwire.calls import Service
from turnwire.engine import Engine
from turnwire.server import Options, Server
from turnwire.store.memory import MemoryStore


async def test_nobody_listens() -> None:
    """A second or so of tries, then a clear error."""
    async with turnwire.Client.connect("127.0.0.1:1") as tw:
        begun = time.perf_counter()
        with pytest.raises(errors.ConnectionFailed, match="Connection refused"):
            await tw.server_info()
        assert time.perf_counter() - begun < 5
    async with turnwire.Client.connect("127.0.0.1:1", options=(("grpc.enable_retries", 0),)) as tw:
        with pytest.raises(errors.Unavailable):
            await tw.history("ses_1")
        with pytest.raises(errors.Unavailable):
            [entry async for entry in tw.tail("ses_1", patience=0)]
        with pytest.raises(errors.Unavailable):
            [each async for each in tw.append_stream([turnwire.append_request("ses_1", [turn()])])]


async def test_a_server_that_comes_later(unused_port: int) -> None:
    async with turnwire.Client.connect(f"127.0.0.1:{unused_port}") as tw:
        asking = asyncio.create_task(tw.server_info())
        await asyncio.sleep(0.1)
        async with Server(Engine(MemoryStore()), Options(address=f"127.0.0.1:{unused_port}")):
            assert (await asking).version == turnwire.__version__


async def test_another_server() -> None:
    """Something that speaks HTTP/2 and gRPC, and not Turnwire."""
    other = grpc.aio.server()
    port = other.add_insecure_port("127.0.0.1:0")
    await other.start()
    async with turnwire.Client.connect(f"127.0.0.1:{port}") as tw:
        with pytest.raises(errors.Unimplemented):
            await tw.server_info()
    await other.stop(None)


class Flaky(MemoryStore):
    """Writes are stored, and the news of it is lost, so many times in a row."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    async def write(self, tenant: str, session_id: str, step: Any) -> Any:
        result = await super().write(tenant, session_id, step)
        return self._lose(result)

    async def fork(self, *args: Any) -> Any:
        return self._lose(await super().fork(*args))

    def _lose(self, result: Any) -> Any:
        if self.losses:
            self.losses -= 1
            raise errors.StoreBusy("the reply is lost")
        return result


class TestLostReplies:
    """C83: a write whose reply is lost is sent again by the client, and is done once."""

    @pytest.fixture
    async def lossy(self) -> Any:
        store = Flaky(0)
        async with (
            Server(Engine(store), Options(address="127.0.0.1:0")) as server,
            turnwire.Client.connect(server.address) as tw,
        ):
            yield store, tw

    async def test_every_write(self, lossy: tuple[Flaky, Service]) -> None:
        store, tw = lossy
        store.losses = 2
        made = await tw.create_session(title="x")
        assert store.losses == 0
        id = made.id
        store.losses = 2
        reply = await tw.append(id, [turn(), user("msg_1", "a")])
        assert reply.head.revision == 3
        store.losses = 2
        assert (await tw.update_session(id, title="y")).head.revision == 4
        store.losses = 2
        fork = await tw.fork_session(id)
        assert sorted([each.id async for each in tw.list_sessions()]) == sorted([id, fork.id])
        store.losses = 2
        prompt = await tw.mutate_prompt(id, "trn_1")
        assert prompt.head.revision == 5
        store.losses = 0
        assert (await tw.get_session(id)).head.revision == 5
        assert [record.id async for record in tw.list_prompts(id)] == [prompt.id]

    async def test_an_append_stream_is_not_tried_again(self, lossy: tuple[Flaky, Service]) -> None:
        store, tw = lossy
        request = turnwire.append_request("ses_1", [turn(), user("msg_1", "a")], create=True, request_id="r-1")
        store.losses = 1
        (lost,) = [outcome async for outcome in tw.append_stream([request])]
        assert isinstance(lost, errors.StoreBusy)
        (found,) = [outcome async for outcome in tw.append_stream([request])]
        assert isinstance(found, v1.AppendResponse)
        assert found.head.revision == 3

    async def test_an_answer_that_is_streamed(self, lossy: tuple[Flaky, Service]) -> None:
        store, tw = lossy
        session = await tw.open_session(guarded=True)
        turn = await session.start_turn("build", model=MODEL)
        await turn.add_user("a")
        async with turn.answer(flush_seconds=60) as answer:
            for number in range(20):
                store.losses = 2 if number % 3 == 0 else 0
                await answer.text(f"{number} ")
                await answer.flush()
        message = (await session.history()).messages[-1]
        assert message.parts[0].text.text == "".join(f"{number} " for number in range(20))

    async def test_what_the_client_gives_up_on_waits_for_the_next_call(self, lossy: tuple[Flaky, Service]) -> None:
        store, tw = lossy
        session = await tw.open_session()
        turn = await session.start_turn("build", model=MODEL)
        async with turn.answer(flush_seconds=60) as answer:
            await answer.text("first ")
            await answer.text("second ")
            store.losses = 5  # as often as a call is tried
            with pytest.raises(errors.StoreBusy):
                await answer.flush()
            await answer.text("third")
        revision = (await session.history()).head.revision
        assert (await session.history()).messages[-1].parts[0].text.text == "first second third"
        assert revision == 8  # properties, turn, message, part, three deltas, end


class TestRequestIds:
    async def test_who_gets_one(self, tw: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """Over gRPC every write that could be doubled; in this process none, since no reply is lost there."""
        sent: list[v1.AppendRequest] = []
        unary = type(tw._transport).unary

        async def spy(self: Any, method: str, request: Any, response: Any, *, timeout: float | None) -> Any:
            if method == "Append":
                kept = v1.AppendRequest()
                kept.CopyFrom(request)
                sent.append(kept)
            return await unary(self, method, request, response, timeout=timeout)

        monkeypatch.setattr(type(tw._transport), "unary", spy)
        part = v1.PartPut(message_id="msg_1", part=text("", "prt_1"))
        await tw.append("ses_1", [turn(), user("msg_1", "a"), part], create=True)
        delta = v1.PartDelta(part_id="prt_1", offset=0, text="x")
        await tw.append("ses_1", [delta])
        await tw.append("ses_1", [v1.PartDelta(part_id="prt_1", offset=1, text="y")], expected_revision=5)
        await tw.append("ses_1", [turn()], request_id="mine")
        given = [each.request_id for each in sent]
        if tw.loses_replies:
            assert [bool(id) for id in given] == [True, False, True, True]
            assert len(set(given)) == 4
        else:
            assert given[:3] == ["", "", ""]
        assert given[3] == "mine"


async def test_the_time_limit_of_a_tail_holds_while_the_server_is_away() -> None:
    async with Server(Engine(MemoryStore()), Options(address="127.0.0.1:0", grace=1)) as server:
        tw = turnwire.Client.connect(server.address, options=(("grpc.enable_retries", 0),))
        await tw.create_session("ses_1")

        async def follow() -> None:
            async for _ in tw.within(1.5).tail("ses_1"):
                pass

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.1)
        await server.drain()
        with pytest.raises(errors.DeadlineExceeded):
            await asyncio.wait_for(following, 20)
        await tw.close()


async def test_a_tail_gives_up_after_its_patience() -> None:
    async with Server(Engine(MemoryStore()), Options(address="127.0.0.1:0", grace=1)) as server:
        tw = turnwire.Client.connect(server.address)
        await tw.create_session("ses_1")
        seen: list[int] = []

        async def follow() -> None:
            async for entry in tw.tail("ses_1", patience=0.5):
                seen.append(entry.revision)

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.1)
        await server.drain()
        with pytest.raises(errors.Unavailable):
            await asyncio.wait_for(following, 20)
        assert seen == [1]
        await tw.close()
