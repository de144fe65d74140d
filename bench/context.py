"""What every workload gets: where to put its files, how large to be, a server, client processes and the peers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import children, payloads
from bench.children import Child, ask_all, joined
from bench.peers import PEERS
from bench.rounds import Round, Work

_STARTING_S = 60.0
_ENDING_S = 30.0
_TEXTS = 64  # different messages that peers are given


@dataclass(frozen=True, slots=True)
class Served:
    """A server in a process of its own."""

    address: str
    pid: int


@dataclass(frozen=True, slots=True)
class Bench:
    """One run. ``scale``: 1 as published; ``rounds`` of each comparison; ``peers``: their Python, None without them."""

    folder: Path
    scale: float
    rounds: int
    peers: Path | None
    say: Callable[[str], None]

    def scaled(self, count: int, least: int = 1) -> int:
        """A size of a measurement in this run."""
        return max(least, round(count * self.scale))

    @asynccontextmanager
    async def serving(self, path: Path, workers: int = 1) -> AsyncGenerator[Served]:
        """``turnwire serve`` over the store in a file, with the limits of `bench.served` beside its methods."""
        async with process("bench.served", str(path), str(workers)) as served:
            yield served

    @asynccontextmanager
    async def clients(self, served: Served, count: int) -> AsyncGenerator[list[Child]]:
        """Client processes of a server."""
        async with children.several(count, "bench.load", served.address) as made:
            yield made

    @asynccontextmanager
    async def peer_processes(self, name: str, count: int = 1) -> AsyncGenerator[dict[str, list[Child]]]:
        """So many processes of every peer, each peer over a file of its own; empty where the peers are left out."""
        async with AsyncExitStack() as stack:
            found: dict[str, list[Child]] = {}
            for peer in PEERS if self.peers is not None else ():
                path = self.folder / f"{name}-{peer}.db"
                starting = children.several(count, "bench.peers.worker", peer, str(path), python=self.peers or "")
                found[peer] = await stack.enter_async_context(starting)
                await found[peer][0].ask("about")  # makes the tables before the others come
            yield found


@asynccontextmanager
async def process(module: str, *arguments: str) -> AsyncGenerator[Served]:
    """A server of this repository that says on stdout where it listens, and ends on SIGTERM."""
    environment = os.environ | {"PYTHONPATH": str(children.ROOT), "GRPC_VERBOSITY": "NONE"}
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, cwd=children.ROOT, stdout=asyncio.subprocess.PIPE, env=environment
    )
    try:
        assert server.stdout is not None
        line = await asyncio.wait_for(server.stdout.readline(), _STARTING_S)
        yield Served(json.loads(line)["address"], server.pid)
    finally:
        if server.returncode is None:
            server.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(server.wait(), _ENDING_S)
            except TimeoutError:
                server.kill()
                await server.wait()


def texts(parts: int, size: int) -> list[list[str]]:
    """The texts of some messages, for the peers: in so many parts, of about ``size`` bytes together."""
    return [[payloads.text(size // parts).text.text for _ in range(parts)] for _ in range(_TEXTS)]


def client_work(clients: Sequence[Child], count: int, *, do: str = "unary", batch: int = 1, **prepare: bool) -> Work:
    """Rounds of appends by client processes that have begun sessions."""

    async def work(_: int) -> Round:
        await ask_all(clients, "prepare", count=count, batch=batch, **prepare)
        return joined(await ask_all(clients, do))

    return work


def echo_work(clients: Sequence[Child], count: int, method: str) -> Work:
    """The same requests, to the echo of `bench.served`."""

    async def work(_: int) -> Round:
        await ask_all(clients, "prepare", count=count)
        return joined(await ask_all(clients, "unary", method=method))

    return work


def peer_work(
    processes: Sequence[Child], messages: list[list[str]], *, callers: int, count: int, batch: int = 1
) -> Work:
    """Rounds of appends by ``callers`` in each process of a peer, each to a session of its own."""
    names = [[f"s{process}.{caller}" for caller in range(callers)] for process in range(len(processes))]

    async def work(_: int) -> Round:
        for process, own in zip(processes, names, strict=True):  # not at once: a peer may lock others out meanwhile
            await process.ask("prepare", sessions=own, messages=messages, count=count, batch=batch)
        return joined(await ask_all(processes, "append"))

    return work
