"""Appends without waiting: what AppendStream does, on either side of a transport.

Requests of different sessions are appended at the same time, those of one session one after the other, and outcomes
come in the order of the requests. What was taken in and has not been handed out yet is bounded in number and in bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from turnwire import errors, v1

#: How many requests may be under way at once.
REQUESTS = 256

Outcome: TypeAlias = v1.AppendResponse | errors.TurnwireError
_Waiting: TypeAlias = tuple[v1.AppendRequest, bytes | None, "asyncio.Future[Outcome]"]
AppendOne: TypeAlias = Callable[[v1.AppendRequest, bytes | None], Awaitable[v1.AppendResponse]]


class Pipeline:
    """One stream of appends, to be used by one producer (`put`, `end`) and one consumer (`outcomes`)."""

    def __init__(self, append: AppendOne, *, size: int, requests: int = REQUESTS) -> None:
        """``append`` does one append; ``size`` bounds the bytes under way, though one request always fits."""
        self._append = append
        self._lines: dict[str, deque[_Waiting]] = {}  # of the sessions that are worked on: who waits for its turn
        self._workers: set[asyncio.Task[None]] = set()
        self._queue: asyncio.Queue[tuple[asyncio.Future[Outcome] | Outcome, int] | None] = asyncio.Queue()
        self._room = _Room(requests, size)

    async def put(self, request: v1.AppendRequest, wire: bytes | None, size: int) -> None:
        """Start an append; waits while there is no room. The request is taken over."""
        await self._room.take(size)
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        session_id = request.session_id
        line = self._lines.get(session_id)
        if line is None:
            line = self._lines[session_id] = deque()
            worker = asyncio.create_task(self._work(session_id, line))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        line.append((request, wire, outcome))
        self._queue.put_nowait((outcome, size))

    async def refuse(self, error: errors.TurnwireError, size: int) -> None:
        """Take the place of a request that cannot be appended at all."""
        await self._room.take(size)
        self._queue.put_nowait((error, size))

    def end(self) -> None:
        """There are no more requests."""
        self._queue.put_nowait(None)

    async def outcomes(self) -> AsyncGenerator[Outcome, None]:
        """The outcome of each request, in order, until `end`. Room is made when the next one is asked for."""
        while (item := await self._queue.get()) is not None:
            outcome, size = item
            yield await outcome if isinstance(outcome, asyncio.Future) else outcome
            self._room.give(size)

    async def stop(self) -> None:
        """Cancel what is still under way; what has reached the store goes through. Idempotent."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if item is not None and isinstance(item[0], asyncio.Future) and not item[0].cancel():
                item[0].exception()  # so that nobody is told that it was not looked at

    async def _work(self, session_id: str, line: deque[_Waiting]) -> None:
        """Append what is asked for one session, one after the other, until nobody waits."""
        try:
            while line:
                request, wire, outcome = line.popleft()
                result: Outcome | None = None
                fault: Exception | None = None
                try:
                    result = await self._append(request, wire)
                except errors.TurnwireError as error:
                    result = error
                except Exception as error:
                    fault = error
                if outcome.done():  # cancelled with who waited for it
                    continue
                if fault is not None:
                    outcome.set_exception(fault)
                elif result is not None:
                    outcome.set_result(result)
        finally:
            del self._lines[session_id]


class _Room:
    """Room for so many requests of so many bytes together."""

    def __init__(self, requests: int, size: int) -> None:
        self._requests = requests
        self._bytes = size
        self._taken_requests = 0
        self._taken_bytes = 0
        self._freed = asyncio.Event()

    async def take(self, size: int) -> None:
        while self._taken_requests and (
            self._taken_requests >= self._requests or self._taken_bytes + size > self._bytes
        ):
            self._freed.clear()
            await self._freed.wait()
        self._taken_requests += 1
        self._taken_bytes += size

    def give(self, size: int) -> None:
        self._taken_requests -= 1
        self._taken_bytes -= size
        self._freed.set()
