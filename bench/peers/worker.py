"""A process that loads or reads a peer's store: ``python -m bench.peers.worker PEER PATH``, in the peers' environment.

It does what comes over `bench.lines`. Messages come as lists of texts, one for each part, and are made into the peer's
own form before the clock starts. Calls that a peer refuses since its file is locked are counted as failed.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bench import lines
from bench.peers.base import Locked, Peer

_MODULES = {
    "openai-agents": "bench.peers.openai_agents",
    "langgraph": "bench.peers.langgraph",
    "google-adk": "bench.peers.google_adk",
}


class Worker:
    """The commands, over one peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._ready: list[tuple[str, list[list[Any]]]] = []

    def commands(self) -> dict[str, lines.Command]:
        """All commands by name."""
        return {each.__name__: each for each in (self.about, self.prepare, self.append, self.fill, self.read)}

    async def about(self) -> Mapping[str, Any]:
        """The version of the peer, and its durability as its own connection tells it."""
        return {"version": self._peer.version(), "journal": await self._peer.journal()}

    async def prepare(self, sessions: list[str], messages: list[list[str]], count: int, batch: int = 1) -> None:
        """Open sessions, one for each caller, and make ``count`` appends of ``batch`` messages for each."""
        self._ready = []
        for session in sessions:
            await self._peer.open(session)
            made = [self._peer.message(messages[at % len(messages)]) for at in range(count * batch)]
            self._ready.append((session, [made[at * batch : (at + 1) * batch] for at in range(count)]))

    async def append(self) -> Mapping[str, Any]:
        """Append what was prepared, each caller one append after another."""
        latencies: list[float] = []
        units = failed = 0

        async def caller(session: str, appends: list[list[Any]]) -> None:
            nonlocal units, failed
            for each in appends:
                begun = time.perf_counter()
                try:
                    await self._peer.append(session, each)
                except Locked:
                    failed += 1
                    continue
                latencies.append(time.perf_counter() - begun)
                units += len(each)

        timed = await _timed([caller(session, appends) for session, appends in self._ready])
        return timed | {"units": units, "failed": failed, "latencies": latencies}

    async def fill(self, session: str, messages: list[list[str]], count: int) -> None:
        """Write one session of ``count`` messages, in the fastest way that the peer has."""
        await self._peer.open(session)
        await self._peer.fill(session, [self._peer.message(messages[at % len(messages)]) for at in range(count)])

    async def read(self, session: str, last: int | None = None, times: int = 1) -> Mapping[str, Any]:
        """Read a session, or the last of its messages, into the objects that the peer gives its users."""
        latencies: list[float] = []
        found = 0

        async def run() -> None:
            nonlocal found
            for _ in range(times):
                begun = time.perf_counter()
                found += await self._peer.read(session, last)
                latencies.append(time.perf_counter() - begun)

        timed = await _timed([run()])
        return timed | {"units": found, "latencies": latencies}


async def _timed(works: list[Awaitable[None]]) -> dict[str, Any]:
    begun = time.perf_counter()
    await asyncio.gather(*works)
    return {"begun": begun, "ended": time.perf_counter()}


async def main(name: str, path: str) -> None:
    """Answer commands until there are no more."""
    make: Callable[[str], Peer] = importlib.import_module(_MODULES[name]).make
    peer = make(path)
    try:
        await lines.serve(Worker(peer).commands())
    finally:
        await peer.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
