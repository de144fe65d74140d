"""The same methods without async: for scripts, notebooks and programs that have no event loop.

::

    with turnwire.blocking.open("agent.db") as tw:
        session = tw.open_session("ses_demo")
        for item in tw.replay(session.id):
            ...

    with turnwire.blocking.connect("127.0.0.1:7411") as tw:
        print(tw.server_info().version)

Names, arguments and errors are those of the async classes: a coroutine becomes a plain method, an async iterator a
plain one (``close()`` it, or run to its end, to end the call), an async context manager a plain one. The classes are
made here by wrapping; ``blocking.pyi``, which `tools/blocking_stub.py` writes, gives type checkers their signatures.

Each store or client has a thread with an event loop of its own, and may be used by many threads at once. Only callbacks
(``on_caught_up``) run in that thread, and must not call back into it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar, cast

from turnwire import embedded, handle
from turnwire.calls import service
from turnwire.engine import EMBEDDED, Limits

__all__ = [
    "Answer",
    "Client",  # noqa: F822  # pyright: ignore[reportUnsupportedDunderAll]  # made when it is asked for
    "Embedded",
    "PromptDraft",
    "Service",
    "Session",
    "ToolCall",
    "Turn",
    "connect",
    "open",
]

T = TypeVar("T")
_END = object()
_FACES: dict[type[Any], type[Any]] = {}


class _Runner:
    """A thread with an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ending: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turnwire.blocking", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end. An interrupt (Ctrl-C) cancels it."""
        if threading.current_thread() is self._thread or self._loop.is_closed():
            coroutine.close()
            closed = self._loop.is_closed()
            raise RuntimeError("it is closed" if closed else "a callback cannot call a blocking method")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError("it was closed") from None
        except BaseException:
            future.cancel()
            raise

    def end(self, items: AsyncGenerator[Any, None]) -> None:
        """Close an iterator. The garbage collector may do this in any thread, at any time."""
        if self._loop.is_closed():
            return
        if threading.current_thread() is self._thread:
            self._ending.add(task := self._loop.create_task(items.aclose()))
            task.add_done_callback(self._ending.discard)
        else:
            self.run(items.aclose())

    @property
    def closed(self) -> bool:
        """Whether the thread has ended."""
        return self._loop.is_closed()

    def close(self) -> None:
        """End what still runs, then the thread. Idempotent."""
        if self._loop.is_closed():
            return
        self.run(_end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_tasks() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


class _Face:
    """An async object seen without async. The static methods make the methods of the classes below."""

    def __init__(self, inner: Any, runner: _Runner) -> None:
        self._inner = inner
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._wrapped(getattr(self._inner, name))

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"

    def _wrapped(self, value: Any) -> Any:
        face = _FACES.get(cast("type[Any]", type(value)))
        return face(value, self._runner) if face is not None else value

    @staticmethod
    def calling(name: str) -> Callable[..., Any]:
        """What is no coroutine is called in this thread."""

        def call(self: _Face, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped(getattr(self._inner, name)(*args, **kwargs))

        return call

    @staticmethod
    def running(name: str) -> Callable[..., Any]:
        """A coroutine is run to its end."""

        def run(self: _Face, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped(self._runner.run(getattr(self._inner, name)(*args, **kwargs)))

        return run

    @staticmethod
    def iterating(name: str) -> Callable[..., Any]:
        """An async iterator is asked for one item after the other."""

        def iterate(self: _Face, *args: Any, **kwargs: Any) -> Iterator[Any]:
            given = [_in_thread(cast("Iterator[Any]", each)) if isinstance(each, Iterator) else each for each in args]
            items: AsyncGenerator[Any, None] = getattr(self._inner, name)(*given, **kwargs)
            try:
                while (item := self._runner.run(_next(items))) is not _END:
                    yield item
            finally:
                self._runner.end(items)

        return iterate

    def enter(self) -> Any:
        """``__enter__`` of what is an async context manager."""
        self._runner.run(self._inner.__aenter__())
        return self

    def leave(self, *error: Any) -> None:
        """``__exit__`` of it."""
        self._runner.run(self._inner.__aexit__(*error))

    def end(self, *_: Any) -> None:
        """``close`` and ``__exit__`` of what owns the thread."""
        if not self._runner.closed:
            self._runner.run(self._inner.close())
            self._runner.close()


def _face(cls: type[Any]) -> type[Any]:
    """The blocking class of an async one: its public methods, with signatures and docstrings."""
    members: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": __name__}
    for name in dir(cls):
        member: Any = inspect.getattr_static(cls, name)
        if name.startswith("_") or not inspect.isfunction(member):
            continue
        if inspect.isasyncgenfunction(member):
            made = _Face.iterating(name)
        elif inspect.iscoroutinefunction(member):
            made = _Face.running(name)
        else:
            made = _Face.calling(name)
        made.__name__, made.__doc__, made.__qualname__ = name, member.__doc__, member.__qualname__
        made.__dict__["__signature__"] = inspect.signature(member)  # for help()
        members[name] = made
    if issubclass(cls, service.Service):
        members |= {"close": _Face.end, "__enter__": _Face.enter, "__exit__": _Face.end}
    elif hasattr(cls, "__aenter__"):
        members |= {"__enter__": _Face.enter, "__exit__": _Face.leave}
    face = type(cls.__name__, (_Face,), members)
    _FACES[cls] = face
    return face


async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items, _END)


async def _in_thread(items: Iterator[Any]) -> AsyncIterator[Any]:
    """The items of an iterator that may block, or call blocking methods itself.

    The thread is its own: one that blocks for ever, on a queue say, must hold up neither closing nor the program's end.
    """
    loop = asyncio.get_running_loop()
    wanted: queue.SimpleQueue[asyncio.Future[Any] | None] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def serve() -> None:
        while (future := wanted.get()) is not None:
            try:
                settle = partial(_settle, future, context.run(next, items, _END), None)
            except BaseException as error:
                settle = partial(_settle, future, None, error)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle)

    threading.Thread(target=serve, name="turnwire.blocking.items", daemon=True).start()
    try:
        while True:
            future: asyncio.Future[Any] = loop.create_future()
            wanted.put(future)
            if (item := await future) is _END:
                return
            yield item
    finally:
        wanted.put(None)


def _settle(future: asyncio.Future[Any], item: Any, error: BaseException | None) -> None:
    if future.done():  # nobody waits any more
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(item)


Service = _face(service.Service)
Embedded = _face(embedded.Embedded)
Session = _face(handle.Session)
Turn = _face(handle.Turn)
PromptDraft = _face(handle.PromptDraft)
Answer = _face(handle.Answer)
ToolCall = _face(handle.ToolCall)


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    busy_timeout: float = 10.0,
    limits: Limits = EMBEDDED,
) -> Any:
    """Open the store in a file; see `turnwire.open`. Close it, or use it as a context manager."""

    async def opened() -> embedded.Embedded:
        return await embedded.open(path, read_only=read_only, busy_timeout=busy_timeout, limits=limits)

    runner = _Runner()
    try:
        return Embedded(runner.run(opened()), runner)
    except BaseException:
        runner.close()
        raise


def connect(target: str, *, timeout: float | None = 60.0, options: tuple[tuple[str, Any], ...] = ()) -> Any:
    """A client of the server at ``HOST:PORT`` or ``unix:PATH``; see `turnwire.Client.connect`."""
    from turnwire.client import Client  # loads gRPC, which an embedded store does without

    return _client_face()(Client.connect(target, timeout=timeout, options=options), _Runner())


def _client_face() -> type[Any]:
    from turnwire.client import Client  # as above

    return _FACES.get(Client) or _face(Client)


def __getattr__(name: str) -> Any:
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _client_face()
