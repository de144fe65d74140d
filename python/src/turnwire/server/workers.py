"""Several processes that serve one file on one port, so that more than one processor runs Python.

The system gives each connection to one of them (SO_REUSEPORT), for as long as it lasts. What they share is the file:
they see each other's writes as those of any other process, a tail at its next look. One that ends is replaced.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from turnwire import errors, ownprocess
from turnwire.engine import Limits
from turnwire.server.server import Options, taken
from turnwire.server.signals import heeded
from turnwire.store.sqlite import SqliteStore

#: The module that a process runs.
MODULE: Final = "turnwire.server.worker"

_logger = logging.getLogger("turnwire.server")
_TRIES = 3  # of a process to come to listen, where no other does
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0  # before another one is started
_HURRY_S = 5.0  # after a second signal, until one that heeds none is killed
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@dataclass(frozen=True, slots=True)
class Work:
    """What a process is to serve: a store's file, within limits. ``logging``: whether it writes logs to stderr."""

    path: str
    limits: Limits
    options: Options
    logging: bool

    def argument(self) -> str:
        """As an argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, argument: str) -> Self:
        """What `argument` wrote."""
        found = json.loads(argument)
        limits, options = Limits(**found["limits"]), Options(**found["options"])
        return cls(found["path"], limits, options, found["logging"])


class Workers:
    """``count`` processes with a `Server` each over the store in a file::

        workers = Workers("sessions.db", 4)
        await workers.serve_until_signal(lambda: print(workers.address, flush=True))

    ``options.address`` is ``HOST:PORT``; a unix socket has one owner. ``logging``: whether they write logs to stderr.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        count: int,
        *,
        limits: Limits | None = None,
        options: Options | None = None,
        logging: bool = True,
        module: str = MODULE,
    ) -> None:
        self._work = Work(os.fspath(path), limits or Limits(), options or Options(), logging)
        self._count = count
        self._module = module
        self._running: set[Process] = set()
        self._listening: set[Process] = set()
        self._ending = False
        #: Where they really listen; set when they do.
        self.address = self._work.options.address

    async def serve_until_signal(self, ready: Callable[[], object] | None = None) -> None:
        """Serve until SIGTERM or SIGINT comes, then drain all; a second signal ends the calls under way at once.

        ``ready`` is called when all of them listen. Raises OSError if the address is taken or cannot be used, what
        `SqliteStore.open` raises, and InternalError if one of the first processes ends before it listens, or all have
        ended and none comes to listen again.
        """
        work = self._work
        # What is wrong with the file is told here, and once; and nobody has to make it beside others.
        store = await asyncio.to_thread(SqliteStore.open, work.path, part_bytes=work.limits.part_bytes)
        await store.close()
        with heeded() as asked, _reserved(work.options.address) as self.address:
            options = replace(work.options, address=self.address, shared_port=True)
            argument = replace(work, options=options).argument()
            listening = [asyncio.Event() for _ in range(self._count)]
            keepers = [asyncio.create_task(self._keep(argument, each)) for each in listening]
            all_listen = asyncio.create_task(_all(listening))
            end = asyncio.create_task(asked.end.wait())
            try:
                await _first(all_listen, end, *keepers)
                if ready is not None and not end.done():
                    ready()
                await _first(end, *keepers)
            finally:
                self._ending = True
                self._signal(signal.SIGTERM)
                hurry = asyncio.create_task(asked.hurry.wait())
                ended: asyncio.Future[Any] = asyncio.gather(*keepers, return_exceptions=True)
                await asyncio.wait({ended, hurry}, return_when=asyncio.FIRST_COMPLETED)
                if not ended.done():
                    self._signal(signal.SIGTERM)
                    await asyncio.wait({ended}, timeout=_HURRY_S)
                    self._signal(signal.SIGKILL)
                for each in (all_listen, end, hurry):
                    each.cancel()
                await ended

    async def _keep(self, argument: str, listening: asyncio.Event) -> None:
        """Have one process run, and another when it ends by itself."""
        failed = 0
        while not self._ending:
            # In a group of its own Ctrl-C does not reach it: the signal would come twice.
            process = await asyncio.create_subprocess_exec(
                *ownprocess.command(self._module),
                argument,
                stdin=PIPE,
                stdout=PIPE,
                env=ownprocess.environment(),
                start_new_session=True,
            )
            self._running.add(process)
            try:
                if self._ending:
                    process.terminate()
                assert process.stdout is not None
                failed += 1
                if await process.stdout.readline():
                    self._listening.add(process)
                    listening.set()
                    failed = 0
                code = await process.wait()
            finally:
                self._running.discard(process)
                self._listening.discard(process)
            if self._ending:
                return
            if not listening.is_set() or (failed >= _TRIES and not self._listening):
                raise errors.InternalError(f"a process of the server ended with {code} before it listened")
            _logger.warning("process %d ended with %d; another one is started", process.pid, code)
            await asyncio.sleep(min(_PAUSE_S * 2**failed, _LONGEST_PAUSE_S))

    def _signal(self, number: signal.Signals) -> None:
        for process in self._running:
            if process.returncode is None:
                process.send_signal(number)


async def _all(events: list[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


async def _first(*tasks: asyncio.Task[Any]) -> None:
    """Wait for the first to end. Raises what it raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


@contextmanager
def _reserved(address: str) -> Generator[str]:
    """Keep a port for processes that share it, and say which. Raises OSError if somebody else has it."""
    host, _, port = address.rpartition(":")
    number = int(port)
    with ExitStack() as held:
        kept = False
        try:
            found = socket.getaddrinfo(host.strip("[]"), number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, _, _, _, where in found:
                try:
                    sharing = held.enter_context(_share(family, (where[0], number, *where[2:])))
                except OSError as error:
                    # Of the addresses of a name this machine may lack some, as it does without IPv6.
                    if error.errno not in _NOT_HERE:
                        raise
                else:
                    kept = True
                    number = int(sharing.getsockname()[1])
            if not kept:
                raise OSError(errno.EADDRNOTAVAIL, "no address of this machine")
        except OSError as error:
            raise taken(address) from error
        yield f"{host}:{number}"


def _share(family: int, place: tuple[Any, ...]) -> socket.socket:
    """A socket that has a place together with whoever wants to share it. Raises OSError if somebody has it already."""
    if place[1]:
        # Servers of another store could share the port as well, if nobody asked who is there.
        _bound(family, place, socket.SO_REUSEADDR).close()
    try:
        # Without SO_REUSEADDR, so that whoever asks as above is refused even while nobody listens here yet.
        return _bound(family, place, socket.SO_REUSEPORT)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        # Connections of a server that has just ended are left.
        return _bound(family, place, socket.SO_REUSEPORT, socket.SO_REUSEADDR)


def _bound(family: int, place: tuple[Any, ...], *options: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options:
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(place)
    except BaseException:
        made.close()
        raise
    return made
