"""The server: a grpc.aio server over an engine, with health, reflection and a drain that loses no work."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from turnwire.engine import Engine
from turnwire.methods import SERVICE
from turnwire.server.calls import Calls
from turnwire.server.handlers import handlers
from turnwire.server.requestlog import LogFormat, RequestLog
from turnwire.server.signals import heeded

#: Where a server listens unless it is told otherwise: this machine only.
ADDRESS = "127.0.0.1:7411"

_logger = logging.getLogger("turnwire.server")
_OVER_BYTES = 16 * 1024 * 1024  # how much over the limit a request may be and still get a full answer
_MOST_BYTES = 2**31 - 1  # gRPC's own limit
_FLUSH = 0.5  # seconds for statuses that were given to gRPC to reach the clients
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass(frozen=True, slots=True)
class Options:
    """How a server runs.

    ``address``: ``HOST:PORT`` (port 0: any free one) or ``unix:PATH``. ``grace``: seconds that calls under way get to
    finish when the server drains. ``log_format``: of the request log. ``shared_port``: servers in other processes
    listen on the same port, and the system gives each connection to one of them; see `Workers`.
    """

    address: str = ADDRESS
    grace: float = 10.0
    log_format: LogFormat = "text"
    shared_port: bool = False


class Server:
    """Serves an engine::

        async with Server(Engine(store)) as server:
            await server.serve_until_signal(lambda: print(server.address, flush=True))

    Leaving the block drains the server and closes the engine with its store.
    """

    def __init__(self, engine: Engine, options: Options | None = None) -> None:
        self._engine = engine
        self._options = options or Options()
        self._calls = Calls(RequestLog(self._options.log_format))
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self._stopping: asyncio.Task[None] | None = None
        #: Where the server really listens; set by `start`.
        self.address = self._options.address
        #: Whether, after the drain, gRPC still waits for a client that takes nothing any more: until the keepalive
        #: finds out. The store is closed by then all the same.
        self.held_up = False

    async def start(self) -> None:
        """Begin to listen. Raises OSError if the address is taken or cannot be used."""
        server = grpc.aio.server(options=_channel_options(self._engine.limits.request_bytes, self._options.shared_port))
        server.add_generic_rpc_handlers((handlers(self._engine, self._calls),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        self.address = _bind(server, self._options.address)
        await self._health.set("", _SERVING)
        await self._health.set(SERVICE, _SERVING)
        await server.start()
        self._server = server

    async def drain(self, grace: float | None = None) -> None:
        """End the server and close the store. Idempotent; a later call with a shorter ``grace`` (seconds) hurries it.

        Health says NOT_SERVING and new calls get SHUTTING_DOWN at once; tails end with SHUTTING_DOWN, an AppendStream
        takes no more requests and answers those it has; all other calls run on, for ``grace`` seconds at most.
        """
        grace = self._options.grace if grace is None else grace
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace))
        elif grace <= 0:
            self._calls.end_all()
        await asyncio.shield(self._stopping)

    async def wait_closed(self) -> None:
        """Wait until the server has ended."""
        if self._server is not None:
            await self._server.wait_for_termination()

    async def serve_until_signal(self, ready: Callable[[], object] | None = None) -> None:
        """Serve until SIGTERM or SIGINT comes, then drain; a second signal ends the calls under way at once.

        ``ready`` is called when signals are heeded: whoever is told by it that the server runs can end it.
        """
        with heeded() as asked:
            if ready is not None:
                ready()
            await asked.end.wait()
            _logger.info("draining, up to %g s", self._options.grace)
            drain = asyncio.create_task(self.drain())
            hurry = asyncio.create_task(asked.hurry.wait())
            await asyncio.wait({drain, hurry}, return_when=asyncio.FIRST_COMPLETED)
            if not drain.done():
                await self.drain(0)
            hurry.cancel()
            await drain

    async def _stop(self, grace: float) -> None:
        await self._health.enter_graceful_shutdown()
        await self._calls.drain(grace)
        if self._server is not None:
            stopping = asyncio.create_task(self._server.stop(_FLUSH))
            _, waiting = await asyncio.wait({stopping}, timeout=2 * _FLUSH)
            self.held_up = bool(waiting)
            if not waiting:
                stopping.result()
        await self._engine.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drain()


def _channel_options(request_bytes: int, shared_port: bool) -> list[tuple[str, Any]]:
    return [
        # gRPC refuses with a bare status, before any handler can say why. So the handlers refuse what is over the limit
        # of a request, and gRPC only what is out of all proportion, so that nobody fills the memory.
        ("grpc.max_receive_message_length", min(request_bytes + _OVER_BYTES, _MOST_BYTES)),
        ("grpc.max_send_message_length", -1),
        # Two servers on one port each get some of the connections.
        ("grpc.so_reuseport", int(shared_port)),
        # A tail can be silent for hours: find out when its client is gone, and let clients do the same.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ]


def _bind(server: grpc.aio.Server, address: str) -> str:
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("///") else path
        _refuse_taken_socket(path)
        before = os.umask(0o177)  # the socket is for its owner
        try:
            _listen(server, f"unix:{path}")
        finally:
            os.umask(before)
        return f"unix:{path}"
    host, _, _ = address.rpartition(":")
    return f"{host}:{_listen(server, address)}"


def _listen(server: grpc.aio.Server, address: str) -> int:
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise taken(address) from error
    return port


def taken(address: str) -> OSError:
    """What is said of an address that cannot be listened on."""
    return OSError(errno.EADDRINUSE, f"cannot listen on {address}: it is in use, or no address of this machine")


def _refuse_taken_socket(path: str) -> None:
    """gRPC replaces whatever socket it finds; only one that nobody listens on any more may be replaced."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise OSError(errno.EADDRINUSE, f"{path} exists and is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return
    raise OSError(errno.EADDRINUSE, f"another program listens on {path}")
