"""Replay over gRPC against the same bytes streamed from memory through the same server, both parsed by the client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio

from bench import payloads
from bench.appends import begin, open_engine
from bench.rounds import Compared, compare
from turnwire import v1
from turnwire.engine import Caller, Engine
from turnwire.server import Options, Server
from turnwire.store.sqlite import SqliteStore

_SESSION, _MEMORY = "stored", "memory"
_METHOD = "/turnwire.v1.SessionService/Replay"


async def replay(folder: Path, messages: int, rounds: int = 7) -> tuple[Compared, int]:
    """Compare; the units are messages. Also gives the bytes of one replay."""
    path = folder / "replay.db"
    await _fill(path, messages)
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.replay", str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stdin is not None
    try:
        address = json.loads(server.stdout.readline())["address"]
        options = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            call = channel.unary_stream(
                _METHOD,
                request_serializer=v1.ReplayRequest.SerializeToString,
                response_deserializer=v1.ReplayResponse.FromString,
            )
            sizes: list[int] = []

            async def read(session_id: str) -> None:
                count = size = 0
                async for response in call(v1.ReplayRequest(session_id=session_id)):
                    size += response.ByteSize()
                    count += sum(frame.HasField("assistant") for frame in response.frames)
                assert count == messages, (session_id, count)
                sizes.append(size)

            await read(_SESSION)  # makes the server keep the bytes for the other side
            compared = await compare(lambda _: read(_SESSION), lambda _: read(_MEMORY), rounds=rounds, units=messages)
            assert len(set(sizes)) == 1
            return compared, sizes[0]
    finally:
        server.stdin.close()
        server.wait(30)


async def _fill(path: Path, messages: int) -> None:
    """Messages of eight parts, put part by part."""
    engine = open_engine(path)
    await begin(engine, _SESSION)
    batch: list[v1.EntryInput] = []
    for at in range(messages):
        header = payloads.message(0)
        batch.append(header)
        message_id = header.assistant.assistant.id
        batch += (v1.EntryInput(part=v1.PartPut(message_id=message_id, part=payloads.text(200))) for _ in range(8))
        if len(batch) >= 900 or at == messages - 1:
            await engine.append(Caller(), v1.AppendRequest(session_id=_SESSION, entries=batch))
            batch = []
    await engine.close()


class _Remembering(Engine):
    """Keeps what a replay yields, and yields it again for the session ``memory``."""

    _kept: list[bytes]

    async def replay(self, caller: Caller, request: v1.ReplayRequest) -> AsyncIterator[bytes]:
        if request.session_id == _MEMORY:
            for response in self._kept:
                yield response
            return
        kept: list[bytes] = []
        async for response in super().replay(caller, request):
            kept.append(response)
            yield response
        self._kept = kept


async def _serve(path: str) -> None:
    async with Server(_Remembering(SqliteStore.open(path)), Options(address="127.0.0.1:0")) as server:
        print(json.dumps({"address": server.address}), flush=True)
        await asyncio.to_thread(sys.stdin.read)  # until the other side closes it


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
