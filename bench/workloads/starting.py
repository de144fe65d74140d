"""How long a server takes to answer, and the memory that it holds at rest and with many sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from bench.children import resident
from bench.context import Bench, process
from bench.results import OURS, Ratio, Result, compared
from bench.rounds import Round, Work, interleave
from turnwire import Client, append_request, v1

_SESSIONS = 10_000
_LEAST_ROUNDS = 3


async def starting(bench: Bench) -> list[Result]:
    """Both, against a grpc.aio server that serves nothing."""
    path = bench.folder / "starting.db"
    memory: dict[str, list[int]] = {OURS: [], "bare server": []}

    def start(name: str, module: str, *arguments: str) -> Work:
        async def work(_: int) -> Round:
            begun = time.perf_counter()
            async with process(module, *arguments) as server:
                seconds = time.perf_counter() - begun
                memory[name].append(resident(server.pid))
            return Round(1, seconds, [seconds])

        return work

    works = {OURS: start(OURS, "bench.served", str(path)), "bare server": start("bare server", "bench.bare")}
    sides = await interleave(works, max(_LEAST_ROUNDS, bench.rounds // 2))
    title = "starts of a server until it listens"
    text = f"{title} / a grpc.aio server that serves nothing"
    result = compared("start", title, "starts", sides, limits={"bare server": text})
    rest, bare = sorted(memory[OURS])[0], sorted(memory["bare server"])[0]
    count = bench.scaled(_SESSIONS, 100)
    many = await _with_sessions(bench, count)
    kept = Result("memory", "resident memory of a server", "bytes")
    text = "resident memory of a server at rest / of a grpc.aio server that serves nothing"
    kept.ratios.append(Ratio("memory.rest", text, rest / bare, "low", note=f"{rest / 1e6:.0f} MB, {bare / 1e6:.0f} MB"))
    text = f"resident memory with {count:,} sessions, all written and listed / at rest"
    note = f"{many / 1e6:.0f} MB, {rest / 1e6:.0f} MB"
    kept.ratios.append(Ratio("memory.sessions", text, many / rest, "low", note=note))
    return [result, kept]


async def _with_sessions(bench: Bench, count: int) -> int:
    """The memory of a server in which so many sessions were made and listed, bytes."""

    async def requests() -> AsyncIterator[v1.AppendRequest]:
        for at in range(count):
            turn = v1.Turn(request=v1.TurnRequest(agent="build", model=v1.ModelRef(provider_id="p", model_id="m")))
            yield append_request(f"ses_{at:020d}", [turn], create=True)

    async with (
        bench.serving(bench.folder / "memory.db") as server,
        Client.connect(server.address, timeout=None) as client,
    ):
        async for outcome in client.append_stream(requests()):
            if isinstance(outcome, Exception):
                raise outcome
        listed = [session.id async for session in client.list_sessions()]
        assert len(listed) == count
        await asyncio.sleep(0.2)
        return resident(server.pid)
