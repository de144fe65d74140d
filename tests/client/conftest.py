"""A store behind each transport: in this process, over TCP, over a unix socket."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import turnwire
from turnwire.calls import Service
from turnwire.engine import Engine
from turnwire.server import Options, Server
from turnwire.store.memory import MemoryStore


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A server over memory, on a free port."""
    async with Server(Engine(MemoryStore()), Options(address="127.0.0.1:0", grace=2)) as made:
        yield made


@pytest.fixture
async def client(server: Server) -> AsyncIterator[turnwire.Client]:
    """A client of that server."""
    async with turnwire.Client.connect(server.address) as made:
        yield made


@pytest.fixture(params=["embedded", "tcp", "unix"])
async def tw(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    """The same methods over each transport."""
    if request.param == "embedded":
        async with turnwire.open(tmp_path / "turnwire.db") as opened:
            yield opened
        return
    address = "127.0.0.1:0" if request.param == "tcp" else f"unix:{tmp_path / 's'}"
    async with (
        Server(Engine(MemoryStore()), Options(address=address, grace=2)) as server,
        turnwire.Client.connect(server.address) as client,
    ):
        yield client


@pytest.fixture
def unused_port() -> int:
    """A port where nobody listens, most likely for a while."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
