"""Ending a server: a drain loses nothing, a kill loses nothing that was answered."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import turnwire
from tests.client.flow import turn, user
from tests.server.conftest import Processes
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.server import Options, Server
from turnwire.store.memory import MemoryStore


class SlowStore(MemoryStore):
    """Writes take a while; says what was closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.writing = asyncio.Event()
        self.closed = False

    async def write(self, tenant: str, session_id: str, step: Any) -> Any:
        self.writing.set()
        await asyncio.sleep(self.seconds)
        return await super().write(tenant, session_id, step)

    async def close(self) -> None:
        self.closed = True


async def draining(store: SlowStore, grace: float) -> Server:
    server = Server(Engine(store), Options(address="127.0.0.1:0", grace=grace))
    await server.start()
    return server


async def test_calls_under_way_finish_and_new_ones_are_refused() -> None:
    store = SlowStore(0.5)
    server = await draining(store, 5)
    # Nothing is tried again, so that the refusal can be seen.
    options = (("grpc.enable_retries", 0),)
    async with turnwire.Client.connect(server.address, options=options) as client:
        writing = asyncio.create_task(client.create_session("ses_1"))
        await store.writing.wait()
        drain = asyncio.create_task(server.drain())
        await asyncio.sleep(0.05)
        with pytest.raises(errors.ShuttingDown):
            await client.server_info()
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert not store.closed
        assert (await writing).id == "ses_1"
        await drain
        assert store.closed
        with pytest.raises(errors.ConnectionFailed):
            await client.server_info()
    await server.drain()


async def test_tails_end_at_once() -> None:
    server = await draining(SlowStore(0), 30)
    async with turnwire.Client.connect(server.address) as client:
        await client.create_session("ses_1")
        caught_up = asyncio.Event()

        async def follow() -> None:
            async for _ in client.tail("ses_1", patience=0, on_caught_up=lambda _: caught_up.set()):
                pass

        following = asyncio.create_task(follow())
        await caught_up.wait()
        begun = time.perf_counter()
        await server.drain()
        assert time.perf_counter() - begun < 2
        with pytest.raises(errors.Unavailable):
            await following


async def test_what_lasts_longer_than_the_grace_is_ended() -> None:
    store = SlowStore(60)
    server = await draining(store, 0.2)
    async with turnwire.Client.connect(server.address, options=(("grpc.enable_retries", 0),)) as client:
        writing = asyncio.create_task(client.create_session("ses_1"))
        await store.writing.wait()
        begun = time.perf_counter()
        await server.drain()
        assert time.perf_counter() - begun < 2
        assert store.closed
        with pytest.raises(errors.ShuttingDown):
            await writing


async def test_a_drain_can_be_hurried() -> None:
    store = SlowStore(60)
    server = await draining(store, 60)
    async with turnwire.Client.connect(server.address, options=(("grpc.enable_retries", 0),)) as client:
        writing = asyncio.create_task(client.create_session("ses_1"))
        await store.writing.wait()
        drain = asyncio.create_task(server.drain())
        await asyncio.sleep(0.05)
        assert not drain.done()
        await asyncio.wait_for(server.drain(0), 5)
        await drain
        with pytest.raises(errors.ShuttingDown):
            await writing


async def test_an_append_stream_answers_what_it_took_in() -> None:
    store = SlowStore(0.3)
    server = await draining(store, 5)
    async with turnwire.Client.connect(server.address) as client:
        outcomes: list[v1.AppendResponse | errors.TurnwireError] = []

        async def requests() -> AsyncIterator[v1.AppendRequest]:
            yield turnwire.append_request("ses_1", [turn()], create=True)
            yield turnwire.append_request("ses_2", [turn()], create=True)
            await asyncio.sleep(60)

        async def stream() -> None:
            async for outcome in client.append_stream(requests()):
                outcomes.append(outcome)

        streaming = asyncio.create_task(stream())
        await store.writing.wait()
        await asyncio.sleep(0.1)
        await server.drain()
        with pytest.raises(errors.ShuttingDown):
            await streaming
        assert [type(each) for each in outcomes] == [v1.AppendResponse] * 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_a_real_server(number: signal.Signals, tmp_path: Path, processes: Processes) -> None:
    process = processes.start(path=tmp_path / "turnwire.db")
    async with turnwire.Client.connect(process.address) as client:
        await client.append("ses_1", [turn()], create=True)
        acknowledged = 0

        async def requests() -> AsyncIterator[v1.AppendRequest]:
            for number in range(1_000_000):
                yield turnwire.append_request("ses_1", [user(f"msg_{number}", "x")])

        async def stream() -> None:
            nonlocal acknowledged
            async for outcome in client.append_stream(requests()):
                assert isinstance(outcome, v1.AppendResponse)
                acknowledged += 1
                if acknowledged == 100:
                    process.signal(number)

        with pytest.raises(errors.Unavailable):
            await stream()
    assert await asyncio.to_thread(process.wait) == 0
    assert "draining" in process.log.read_text()
    async with turnwire.open(tmp_path / "turnwire.db") as tw:
        history = await tw.history("ses_1")
        # What was answered is there. The answers to what was under way can be lost: this client never stops to write.
        assert acknowledged <= len(history.messages) <= acknowledged + 256
        assert [each.id for each in history.messages] == [f"msg_{n}" for n in range(len(history.messages))]
        assert (await tw.verify_session("ses_1")).sound


async def test_kill_9_loses_nothing_that_was_answered(tmp_path: Path, processes: Processes) -> None:
    process = processes.start(path=tmp_path / "turnwire.db")
    async with turnwire.Client.connect(process.address, options=(("grpc.enable_retries", 0),)) as client:
        await client.append("ses_1", [turn()], create=True)
        acknowledged = 0

        async def write() -> None:
            nonlocal acknowledged
            while True:
                await client.append("ses_1", [user(f"msg_{acknowledged}", "x")])
                acknowledged += 1
                if acknowledged == 50:
                    process.signal(signal.SIGKILL)

        with pytest.raises(errors.ConnectionFailed):
            await write()
    process.wait()
    async with turnwire.open(tmp_path / "turnwire.db") as tw:
        history = await tw.history("ses_1")
        assert len(history.messages) - acknowledged in (0, 1)
        assert (await tw.verify_session("ses_1")).sound


async def test_a_client_lives_through_a_restart(tmp_path: Path, processes: Processes) -> None:
    """Reads, writes and a tail go on by themselves when the server is back; nothing is written twice."""
    address = f"unix:{tmp_path / 's'}"
    path = tmp_path / "turnwire.db"
    first = processes.start(address=address, path=path, grace=1)
    async with turnwire.Client.connect(address) as client:
        await client.append("ses_1", [turn()], create=True)
        seen: list[int] = []

        async def follow() -> None:
            async for entry in client.tail("ses_1"):
                seen.append(entry.revision)
                if entry.revision == 12:
                    return

        following = asyncio.create_task(follow())
        for number in range(5):
            await client.append("ses_1", [user(f"msg_{number}", "x")])
        first.signal(signal.SIGTERM)
        restart = asyncio.create_task(asyncio.to_thread(_restart, processes, first, address, path))
        for number in range(5, 10):
            while True:
                try:
                    await client.append("ses_1", [user(f"msg_{number}", "x")], request_id=f"r-{number}")
                    break
                except errors.Unavailable:
                    await asyncio.sleep(0.05)
        await restart
        await asyncio.wait_for(following, 20)
        assert seen == list(range(1, 13))
        assert [each.id for each in (await client.history("ses_1")).messages] == [f"msg_{n}" for n in range(10)]


def _restart(processes: Processes, first: Any, address: str, path: Path) -> None:
    first.wait()
    processes.start(address=address, path=path)
