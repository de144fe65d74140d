"""Streams: tails that are live and slow nobody down, cancellation, pipelined appends, long replays."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc.aio
import pytest

import turnwire
from tests.client.flow import turn, user
from turnwire import errors, v1
from turnwire.engine import Engine, Limits
from turnwire.engine.core import Caller
from turnwire.methods import METHODS
from turnwire.server import Options, Server
from turnwire.store.memory import MemoryStore

#: How little a client lets come that it has not read yet.
SMALL_WINDOW = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_535)]


class TestTail:
    async def test_other_clients_see_an_append_within_100_ms(self, server: Server, client: turnwire.Client) -> None:
        await client.append("ses_1", [turn()], create=True)
        delays: list[float] = []
        appended = [0.0] * 20
        ready = asyncio.Event()

        async def follow() -> None:
            async with turnwire.Client.connect(
                server.address, options=(("grpc.use_local_subchannel_pool", 1),)
            ) as other:
                async for entry in other.tail("ses_1", 2, on_caught_up=lambda _: ready.set()):
                    delays.append(time.perf_counter() - appended[entry.revision - 3])
                    if len(delays) == 20:
                        return

        following = asyncio.create_task(follow())
        await ready.wait()
        for number in range(20):
            appended[number] = time.perf_counter()
            await client.append("ses_1", [user(f"msg_{number}", "x")])
            await asyncio.sleep(0.01)
        await asyncio.wait_for(following, 5)
        assert statistics.median(delays) < 0.1

    async def test_a_slow_reader_does_not_slow_a_writer(self, server: Server, client: turnwire.Client) -> None:
        """Nobody reads the tail: its window fills, and appends go on as before."""
        await client.append("ses_1", [turn()], create=True)
        channel = grpc.aio.insecure_channel(server.address, options=SMALL_WINDOW)
        method = METHODS["Tail"]
        tail: Any = channel.unary_stream(
            method.path, request_serializer=_bytes, response_deserializer=v1.TailResponse.FromString
        )(v1.TailRequest(session_id="ses_1"))
        revisions = [entry.revision for entry in (await tail.read()).entries]
        message = "x" * 500_000
        took: list[float] = []
        for number in range(40):
            begun = time.perf_counter()
            await client.append("ses_1", [user(f"msg_{number}", message)])
            took.append(time.perf_counter() - begun)
        assert statistics.median(took[20:]) < 5 * statistics.median(took[:5]) + 0.05
        while revisions[-1] < 42:
            revisions += [entry.revision for entry in (await tail.read()).entries]
        assert revisions == list(range(1, 43))
        tail.cancel()
        await channel.close()

    async def test_what_is_deleted_ends(self, client: turnwire.Client) -> None:
        await client.create_session("ses_1")

        async def follow() -> None:
            async for _ in client.tail("ses_1"):
                pass

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.05)
        await client.delete_session("ses_1")
        with pytest.raises(errors.SessionDeleted):
            await asyncio.wait_for(following, 5)


class TestCancellation:
    """A call that its client gave up stops reading the store."""

    @pytest.mark.parametrize("how", ["cancel", "close", "deadline"])
    async def test_a_stream_is_closed(
        self, how: str, engine: Engine, client: turnwire.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = asyncio.Event()

        async def endless(caller: Caller, request: v1.TailRequest) -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield v1.TailResponse(entries=[v1.Entry(revision=1)]).SerializeToString()
                    await asyncio.sleep(0.01)
            finally:
                closed.set()

        # The handlers were made when the server started, so the engine's own parts are replaced.
        monkeypatch.setattr(engine.store, "watch", lambda *_: endless(Caller(), v1.TailRequest()))
        await client.create_session("ses_1")
        if how == "close":
            async with aclosing(client.tail("ses_1")) as entries:
                await anext(entries)
        elif how == "deadline":
            with pytest.raises(errors.DeadlineExceeded):
                [entry async for entry in client.within(0.2).tail("ses_1")]
        else:
            reading = asyncio.create_task(_all(client.tail("ses_1")))
            await asyncio.sleep(0.1)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        await asyncio.wait_for(closed.wait(), 5)

    async def test_a_client_that_cannot_take_a_response_is_no_fault_of_the_server(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "turnwire.server")
        options = (("grpc.max_receive_message_length", 1000),)
        async with turnwire.Client.connect(server.address, options=options) as small:
            await small.append("ses_1", [turn(), *(user(f"msg_{n}", "x" * 700_000) for n in range(9))], create=True)
            with pytest.raises(errors.ResourceExhausted, match="more than the 1,000 that this client takes"):
                await small.history("ses_1")
        async with asyncio.timeout(5):
            while "method=Replay" not in caplog.text:
                await asyncio.sleep(0.01)
        assert "method=Replay session_id=ses_1 status=CANCELLED" in caplog.text
        assert "incident" not in caplog.text

    async def test_a_unary_call(self, engine: Engine, client: turnwire.Client, monkeypatch: pytest.MonkeyPatch) -> None:
        ended: list[str] = []

        async def slow(*_: Any) -> Any:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        monkeypatch.setattr(engine.store, "session", slow)
        with pytest.raises(errors.DeadlineExceeded):
            await client.within(0.1).get_session("ses_1")
        await asyncio.sleep(0.1)
        assert ended == ["cancelled"]


class TestAppendStream:
    async def test_order_and_refusals_at_length(self, client: turnwire.Client) -> None:
        """2,000 requests for 7 sessions, every tenth refused; replies in order, each session's appends in order."""
        for number in range(7):
            await client.append(f"ses_{number}", [turn()], create=True)

        async def requests() -> AsyncIterator[v1.AppendRequest]:
            for number in range(2000):
                turn_id = "trn_none" if number % 10 == 9 else "trn_1"
                yield turnwire.append_request(f"ses_{number % 7}", [user(f"msg_{number}", "x", turn_id=turn_id)])

        outcomes = [outcome async for outcome in client.append_stream(requests())]
        assert len(outcomes) == 2000
        for number, outcome in enumerate(outcomes):
            if number % 10 == 9:
                assert isinstance(outcome, errors.UnknownTurn)
                assert outcome.path == "entries[0].user.user.turn_id"
            else:
                assert isinstance(outcome, v1.AppendResponse)
                assert outcome.results[0].id == f"msg_{number}"
        for session in range(7):
            history = await client.history(f"ses_{session}")
            wanted = [f"msg_{n}" for n in range(2000) if n % 7 == session and n % 10 != 9]
            assert [message.id for message in history.messages] == wanted

    async def test_replies_come_while_requests_go_on(self, client: turnwire.Client) -> None:
        await client.append("ses_1", [turn()], create=True)
        answered = asyncio.Event()

        async def requests() -> AsyncIterator[v1.AppendRequest]:
            yield turnwire.append_request("ses_1", [user("msg_1", "x")])
            await answered.wait()
            yield turnwire.append_request("ses_1", [user("msg_2", "x")])

        heads: list[int] = []
        async for outcome in client.append_stream(requests()):
            assert isinstance(outcome, v1.AppendResponse)
            heads.append(outcome.head.revision)
            answered.set()
        assert heads == [3, 4]

    async def test_a_reader_that_stalls_holds_the_writer_back(self) -> None:
        """Nobody reads the replies: the server stops taking requests in, instead of gathering them without end."""
        engine = Engine(MemoryStore(), limits=Limits(request_bytes=100_000))
        async with (
            Server(engine, Options(address="127.0.0.1:0", grace=1)) as server,
            grpc.aio.insecure_channel(server.address, options=SMALL_WINDOW) as channel,
        ):
            request = turnwire.append_request("ses_1", [turn("trn_1")] * 1000, create=True)
            method = METHODS["AppendStream"]
            stream: Any = channel.stream_stream(
                method.path, request_serializer=_bytes, response_deserializer=v1.AppendStreamResponse.FromString
            )()
            sent = 0

            async def send() -> None:
                nonlocal sent
                while True:
                    await stream.write(v1.AppendStreamRequest(append=request))
                    sent += 1

            sending = asyncio.create_task(send())
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.5)
            assert sent < 200
            results: list[int] = []
            while len(results) < 5:
                results += [len(each.append.results) for each in (await stream.read()).outcomes]
            assert set(results) == {1000}
            sending.cancel()
            stream.cancel()

    async def test_the_request_id_of_a_stream_is_that_of_a_call(self, client: turnwire.Client) -> None:
        await client.append("ses_1", [turn()], create=True)
        request = turnwire.append_request("ses_1", [user("msg_1", "x")], request_id="r-1")
        (first,) = [outcome async for outcome in client.append_stream([request])]
        assert await client.append("ses_1", [user("msg_1", "x")], request_id="r-1") == first
        assert (await client.get_session("ses_1")).head.revision == 3

    async def test_a_client_that_goes_away(self, channel: grpc.aio.Channel, client: turnwire.Client) -> None:
        await client.append("ses_1", [turn()], create=True)
        method = METHODS["AppendStream"]
        stream: Any = channel.stream_stream(method.path, request_serializer=_bytes)()
        for number in range(100):
            append = turnwire.append_request("ses_1", [user(f"msg_{number}", "x")])
            await stream.write(v1.AppendStreamRequest(append=append))
        stream.cancel()
        await asyncio.sleep(0.1)
        history = await client.history("ses_1")
        assert [message.id for message in history.messages] == [f"msg_{n}" for n in range(len(history.messages))]


async def test_a_history_of_10001_messages_is_complete(client: turnwire.Client) -> None:
    """C71: no silent cap."""
    await client.append("ses_1", [turn()], create=True)
    requests = (
        turnwire.append_request("ses_1", [user(f"msg_{n}", f"text {n}") for n in range(at, min(at + 1000, 10_001))])
        for at in range(0, 10_001, 1000)
    )
    assert all([isinstance(each, v1.AppendResponse) async for each in client.append_stream(requests)])
    history = await client.history("ses_1")
    assert len(history.messages) == 10_001
    assert history.head.revision == 10_003
    assert all(message.id == f"msg_{n}" for n, message in enumerate(history.messages))
    assert history.messages[-1].parts[0].text.text == "text 10000"
    assert [entry.revision async for entry in client.read_entries("ses_1")] == list(range(1, 10_004))


async def _all(entries: AsyncIterator[v1.Entry]) -> list[v1.Entry]:
    return [entry async for entry in entries]


def _bytes(message: Any) -> bytes:
    raw: bytes = message.SerializeToString()
    return raw
