"""The embedded store: the service's methods over an engine in this process, without a server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from turnwire import damage, errors, v1
from turnwire.calls import sizes
from turnwire.calls.service import Service
from turnwire.calls.transport import Response
from turnwire.engine import EMBEDDED, Caller, Engine, Limits, Restored
from turnwire.engine.pipeline import Outcome, Pipeline
from turnwire.methods import METHODS
from turnwire.store.base import Store
from turnwire.store.memory import MemoryStore

T = TypeVar("T")

#: The path that stands for a store in memory.
MEMORY = ":memory:"


class Embedded(Service):
    """Sessions in a file or in memory, asynchronously; made by `open`."""

    def __init__(self, transport: EngineTransport) -> None:
        super().__init__(transport)
        self._local = transport

    async def restore(self, session_id: str, entries: Sequence[bytes]) -> Restored:
        """Bring back entries of a log as they were, with their times and digests, which a server never does.

        ``entries`` are serialized ``turnwire.v1.Entry`` messages, dense, from revision 1 or from behind the head on.
        All or none are taken. Raises `CorruptData`, `RevisionOutOfRange`, `RevisionConflict`, `SessionDeleted`.
        """
        return await self._local.restore(session_id, entries)


class Opening:
    """A store that is being opened: ``tw = await open(path)``, or ``async with open(path) as tw:``."""

    def __init__(self, make: Callable[[], Store], limits: Limits) -> None:
        self._make = make
        self._limits = limits
        self._opened: Embedded | None = None

    def __await__(self) -> Generator[Any, None, Embedded]:
        return self._open().__await__()

    async def __aenter__(self) -> Embedded:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> Embedded:
        store = await asyncio.to_thread(self._make)  # it may wait for other processes
        return Embedded(EngineTransport(Engine(store, limits=self._limits)))


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    busy_timeout: float = 10.0,
    limits: Limits = EMBEDDED,
) -> Opening:
    """Open the store in a file, which is made if there is none; ``":memory:"`` is a store that ends with the process.

    ::

        async with turnwire.open("agent.db") as tw:
            session = await tw.create_session(title="A talk")

    Other processes, servers included, may have the same file open; ``busy_timeout`` is how many seconds a write waits
    for them before `StoreBusy`. ``limits`` are wider than a server's, since the caller trusts itself. Raises
    `StoreForeign` for a file of another program, `StoreTooNew`, `CorruptData`, and OSError for a path that is no file.
    """

    def make() -> Store:
        if os.fspath(path) == MEMORY:
            return MemoryStore(part_bytes=limits.part_bytes)
        from turnwire.store.sqlite import SqliteStore  # not needed for a store in memory

        return SqliteStore.open(
            path, busy_timeout=busy_timeout, read_only=read_only, part_bytes=limits.part_bytes, inline=True
        )

    return Opening(make, limits)


class EngineTransport:
    """An engine in this process. Nothing is serialized but what the engine streams from stored bytes."""

    loses_replies = False

    def __init__(self, engine: Engine, caller: Caller | None = None) -> None:
        self._engine = engine
        self._caller = caller or Caller()
        self._closed = False

    async def unary(
        self, method: str, request: Message, response: type[Response], *, timeout: float | None
    ) -> Response:
        self._check(request)
        run: Callable[[Caller, Message], Awaitable[Response]] = getattr(self._engine, METHODS[method].call)
        try:
            if timeout is None:
                return await run(self._caller, request)
            async with asyncio.timeout(timeout):
                return await run(self._caller, request)
        except TimeoutError:
            if timeout is None:
                raise
            raise _too_late(timeout) from None
        except DecodeError:
            raise damage.corrupt() from None

    async def stream(
        self, method: str, request: Message, response: type[Response], *, timeout: float | None
    ) -> AsyncGenerator[Response, None]:
        self._check(request)
        run: Callable[[Caller, Message], AsyncGenerator[bytes, None]] = getattr(self._engine, METHODS[method].call)
        try:
            async with aclosing(run(self._caller, request)) as responses:
                async for each in _until(responses, timeout):
                    yield response.FromString(each)
        except DecodeError:
            raise damage.corrupt() from None

    async def append_stream(
        self, requests: AsyncIterable[v1.AppendRequest], *, timeout: float | None
    ) -> AsyncGenerator[Outcome, None]:
        pipeline = Pipeline(partial(self._engine.append_each, self._caller), size=self._engine.limits.request_bytes)

        async def take() -> None:
            try:
                async for request in requests:
                    try:
                        self._check(request)
                    except errors.TurnwireError as error:
                        await pipeline.refuse(error, request.ByteSize())
                    else:
                        await pipeline.put(request, None, request.ByteSize())
            finally:
                pipeline.end()

        taker = asyncio.create_task(take())
        try:
            async for outcomes in _until(pipeline.outcomes(), timeout):
                for outcome in outcomes:
                    yield outcome
            await taker
        finally:
            taker.cancel()
            await pipeline.stop()

    async def exchange(
        self, method: str, requests: AsyncIterable[Message], response: type[Response], *, timeout: float | None
    ) -> AsyncGenerator[Response, None]:
        run: Callable[[Caller, AsyncIterable[Message]], AsyncGenerator[bytes, None]]
        run = getattr(self._engine, METHODS[method].call)

        async def checked() -> AsyncGenerator[Message, None]:
            async for request in requests:
                self._check(request)
                yield request

        try:
            async with aclosing(checked()) as given, aclosing(run(self._caller, given)) as responses:
                async for each in _until(responses, timeout):
                    yield response.FromString(each)
        except DecodeError:
            raise damage.corrupt() from None

    def _check(self, request: Message) -> None:
        if self._closed:
            raise RuntimeError("the store is closed")
        sizes.check(request, self._engine.limits.request_bytes)

    async def restore(self, session_id: str, entries: Sequence[bytes]) -> Restored:
        """Restore a session; see `Embedded.restore`."""
        if self._closed:
            raise RuntimeError("the store is closed")
        return await self._engine.restore(self._caller, session_id, entries)

    async def close(self) -> None:
        self._closed = True
        await self._engine.close()


async def _until(items: AsyncGenerator[T, None], timeout: float | None) -> AsyncGenerator[T, None]:
    """The items, as long as they come within so many seconds from now."""
    if timeout is None:
        async for each in items:
            yield each
        return
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                each = await anext(items)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _too_late(timeout) from None
        yield each


def _too_late(timeout: float) -> errors.DeadlineExceeded:
    return errors.DeadlineExceeded(f"the call took longer than {timeout:g} s")
