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
AppendEach: TypeAlias = Callable[[Sequence[Given]], Awaitable[Sequence[v1.AppendResponse | Exception]]]


class _Slot:
    """The place of a request among the outcomes; its own is None until it is there."""

    __slots__ = ("given", "outcome", "size")

    def __init__(self, given: Given | None, size: int, outcome: Outcome | None = None) -> None:
        self.given = given
        self.size = size
        self.outcome: Outcome | Exception | None = outcome


class Pipeline:
    """One stream of appends, to be used by one producer (`put`, `end`) and one consumer (`outcomes`)."""

    def __init__(self, append_each: AppendEach, *, size: int, requests: int = REQUESTS) -> None:
        """``append_each`` does appends of one session; ``size`` bounds the bytes under way, but one always fits."""
        self._append_each = append_each
        self._lines: dict[str, deque[_Slot]] = {}  # of the sessions that are worked on: who waits for its turn
        self._workers: set[asyncio.Task[None]] = set()
        self._slots: deque[_Slot] = deque()
        self._ended = False
        self._moved = asyncio.Event()  # an outcome has come, or the end
        self._room = _Room(requests, size)

    async def put(self, request: v1.AppendRequest, wire: bytes | None, size: int) -> None:
        """Start an append; waits while there is no room. The request is taken over."""
        if not self._room.take(size):
            await self._room.wait(size)
        slot = _Slot((request, wire), size)
        session_id = request.session_id
        line = self._lines.get(session_id)
        if line is None:
            line = self._lines[session_id] = deque()
            worker = asyncio.create_task(self._work(session_id, line))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        line.append(slot)
        self._slots.append(slot)

    async def refuse(self, error: errors.TurnwireError, size: int) -> None:
        """Take the place of a request that cannot be appended at all."""
        if not self._room.take(size):
            await self._room.wait(size)
        self._slots.append(_Slot(None, size, error))
        self._moved.set()

    def end(self) -> None:
        """There are no more requests."""
        self._ended = True
        self._moved.set()

    async def outcomes(self) -> AsyncGenerator[list[Outcome], None]:
        """The outcome of each request, in order, until `end`: all that are there, at least one at a time.

        Room is made when the next are asked for.
        """
        slots = self._slots
        while slots or not self._ended:
            ready: list[Outcome] = []
            size = 0
            while slots and slots[0].outcome is not None:
                outcome = slots[0].outcome
                if not isinstance(outcome, v1.AppendResponse | errors.TurnwireError):
                    if ready:
                        break
                    raise outcome
                ready.append(outcome)
                size += slots.popleft().size
            if ready:
                yield ready
                self._room.give(len(ready), size)
            else:
                self._moved.clear()
                await self._moved.wait()

    async def stop(self) -> None:
        """Cancel what is still under way; what has reached the store goes through. Idempotent."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self, session_id: str, line: deque[_Slot]) -> None:
        """Append what is asked for one session, one after the other, until nobody waits."""
        try:
            while line:
                taken = _together(line)
                results: Sequence[v1.AppendResponse | Exception]
                try:
                    results = await self._append_each([slot.given for slot in taken if slot.given is not None])
                except Exception as error:
                    results = [error] * len(taken)
                for slot, result in zip(taken, results, strict=True):
                    slot.given, slot.outcome = None, result
                self._moved.set()
        finally:
            del self._lines[session_id]


def _together(line: deque[_Slot]) -> list[_Slot]:
    """Take from a line those that are appended together."""
    taken = [line.popleft()]
    size = taken[0].size
    while line and len(taken) < _TOGETHER and size + line[0].size <= _TOGETHER_BYTES:
        size += line[0].size
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

    def take(self, size: int) -> bool:
        """Take room if there is any; one request always fits."""
        if self._taken_requests and (self._taken_requests >= self._requests or self._taken_bytes + size > self._bytes):
            return False
        self._taken_requests += 1
        self._taken_bytes += size
        return True

    async def wait(self, size: int) -> None:
        """Take room as soon as there is any."""
        while not self.take(size):
            self._freed.clear()
            await self._freed.wait()

    def give(self, requests: int, size: int) -> None:
        """Give back what so many requests took together."""
        self._taken_requests -= requests
        self._taken_bytes -= size
        self._freed.set()
