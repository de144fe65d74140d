"""Appends without waiting: what AppendStream does, on either side of a transport.

Requests of different sessions are appended at the same time, those of one session one after the other: what has come
for a session while it was written to is appended next, with one commit. Outcomes come in the order of the requests.
What was taken in and has not been handed out yet is bounded in number and in bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeAlias

from turnwire import errors, v1

#: How many requests may be under way at once.
REQUESTS = 256

_TOGETHER = 64  # requests of a session that are appended with one commit, at most,
_TOGETHER_BYTES = 1024 * 1024  # and their bytes; one may have more

Outcome: TypeAlias = v1.AppendResponse | errors.TurnwireError
#: A request, and its bytes as they were received if they were.
Given: TypeAlias = tuple[v1.AppendRequest, bytes | None]
_Waiting: TypeAlias = tuple[Given, int, "asyncio.Future[Outcome]"]
AppendEach: TypeAlias = Callable[[Sequence[Given]], Awaitable[Sequence[v1.AppendResponse | Exception]]]


class Pipeline:
    """One stream of appends, to be used by one producer (`put`, `end`) and one consumer (`outcomes`)."""

    def __init__(self, append_each: AppendEach, *, size: int, requests: int = REQUESTS) -> None:
        """``append_each`` does appends of one session; ``size`` bounds the bytes under way, but one always fits."""
        self._append_each = append_each
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
        line.append(((request, wire), size, outcome))
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
                taken = _together(line)
                results: Sequence[v1.AppendResponse | Exception]
                try:
                    results = await self._append_each([given for given, _, _ in taken])
                except Exception as error:
                    results = [error] * len(taken)
                for (_, _, outcome), result in zip(taken, results, strict=True):
                    if outcome.done():  # cancelled with who waited for it
                        continue
                    if isinstance(result, v1.AppendResponse | errors.TurnwireError):
                        outcome.set_result(result)
                    else:
                        outcome.set_exception(result)
        finally:
            del self._lines[session_id]


def _together(line: deque[_Waiting]) -> list[_Waiting]:
    """Take from a line those that are appended together."""
    taken = [line.popleft()]
    size = taken[0][1]
    while line and len(taken) < _TOGETHER and size + line[0][1] <= _TOGETHER_BYTES:
        size += line[0][1]
        taken.append(line.popleft())
    return taken


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
