"""A server over memory, a client of it, and servers in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import grpc
import grpc.aio
import pytest

import turnwire
from turnwire.engine import Engine
from turnwire.server import Options, Server
from turnwire.store.memory import MemoryStore


@pytest.fixture
def engine() -> Engine:
    return Engine(MemoryStore())


@pytest.fixture
async def server(engine: Engine) -> AsyncIterator[Server]:
    async with Server(engine, Options(address="127.0.0.1:0", grace=2)) as made:
        yield made


@pytest.fixture
async def client(server: Server) -> AsyncIterator[turnwire.Client]:
    async with turnwire.Client.connect(server.address) as made:
        yield made


@pytest.fixture
async def channel(server: Server) -> AsyncIterator[grpc.aio.Channel]:
    """A channel without Turnwire's client: what other languages have."""
    async with grpc.aio.insecure_channel(server.address) as made:
        yield made


SERVE = """
import asyncio, sys
from turnwire.engine import Engine
from turnwire.server import Options, Server, to_stream
from turnwire.store.memory import MemoryStore
from turnwire.store.sqlite import SqliteStore

async def main(address, path, grace):
    to_stream(sys.stderr)
    store = SqliteStore.open(path) if path else MemoryStore()
    async with Server(Engine(store), Options(address=address, grace=float(grace))) as server:
        await server.serve_until_signal(lambda: print(server.address, flush=True))

asyncio.run(main(*sys.argv[1:]))
"""


@dataclass
class Process:
    """A server in a process of its own."""

    popen: subprocess.Popen[str]
    address: str
    log: Path

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def wait(self, seconds: float = 10) -> int:
        return self.popen.wait(seconds)


class Processes:
    """Starts servers, and ends those that are left."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[tuple[subprocess.Popen[str], IO[str]]] = []

    def start(self, *, address: str = "127.0.0.1:0", path: Path | None = None, grace: float = 5) -> Process:
        log = self._directory / f"log{len(self._started)}"
        stream = log.open("w")
        command = [sys.executable, "-c", SERVE, address, str(path or ""), str(grace)]
        popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
        self._started.append((popen, stream))
        assert popen.stdout is not None
        return Process(popen, popen.stdout.readline().strip(), log)

    def end(self) -> None:
        for popen, stream in self._started:
            if popen.poll() is None:
                popen.kill()
            popen.wait()
            if popen.stdout is not None:
                popen.stdout.close()
            stream.close()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end()
