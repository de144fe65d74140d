"""The client: the service's methods over gRPC."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable
from importlib import resources
from typing import Any, Generic, Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from turnwire import errors, status, v1
from turnwire.calls.service import Service
from turnwire.calls.sizes import largest_part
from turnwire.calls.transport import Response, read
from turnwire.methods import METHODS

M = TypeVar("M", bound=Message)

#: What grpc.aio says when a request could not be sent since the call has ended; the call's own status is lost then.
_BROKEN = "Internal error from Core"

# gRPC's own forms of the two, such as dns:///HOST:PORT, too. A scheme of the web is none of them.
_TARGET = re.compile(r"unix(-abstract)?:\S.*|((dns|ipv4|ipv6):(//[^/\s]*/)?)?[^/\s]+:[0-9]{1,5}", re.DOTALL)

#: Seconds that a call without a stream may take, retries included.
TIMEOUT = 60.0


def service_config() -> str:
    """The gRPC service config, as JSON: which methods are tried again when the server is not there, and how.

    It is right for any client that gives its writing calls request ids, as `Client` does.
    """
    return resources.files("turnwire").joinpath("service_config.json").read_text()


def check_target(target: str) -> None:
    """Raise ValueError unless a target is ``HOST:PORT`` or ``unix:PATH``; gRPC would call it unreachable, for ever."""
    if not _TARGET.fullmatch(target):
        raise ValueError(f"a server is HOST:PORT or unix:PATH, not {target!r}")


class Client(Service):
    """A server's sessions, asynchronously::

        async with Client.connect("127.0.0.1:7411") as tw:
            session = await tw.create_session(title="A talk")
            async for item in tw.replay(session.id):
                ...

    Calls that fail since the server is not there are tried again for about a second; writes bear request ids, so that
    none is done twice. What fails for good raises one of `turnwire.errors`.
    """

    @classmethod
    def connect(
        cls,
        target: str,
        *,
        timeout: float | None = TIMEOUT,
        options: tuple[tuple[str, Any], ...] = (),
    ) -> Self:
        """A client of the server at ``HOST:PORT`` or ``unix:PATH``. Connects when the first call is made.

        ``timeout``: seconds for each call that is no stream (None: no limit); `within` sets it for single calls.
        ``options``: gRPC channel options, set over the client's own. Raises ValueError for a target of another form.
        """
        check_target(target)
        return cls(GrpcTransport(target, timeout=timeout, options=options))


class GrpcTransport:
    """A gRPC channel. It belongs to the event loop in which the first call is made."""

    loses_replies = True

    def __init__(self, target: str, *, timeout: float | None, options: tuple[tuple[str, Any], ...] = ()) -> None:
        self._target = target
        self._timeout = timeout
        self._options = options
        self._made: grpc.aio.Channel | None = None
        self._closed = False

    async def unary(
        self, method: str, request: Message, response: type[Response], *, timeout: float | None
    ) -> Response:
        call = self._channel().unary_unary(METHODS[method].path, request_serializer=_bytes, response_deserializer=bytes)
        try:
            reply: bytes = await call(request, timeout=self._timeout if timeout is None else timeout)
        except grpc.aio.AioRpcError as error:
            raise _failure(error, request) from None
        return read(response, reply)

    async def stream(
        self, method: str, request: Message, response: type[Response], *, timeout: float | None
    ) -> AsyncGenerator[Response, None]:
        call = self._channel().unary_stream(
            METHODS[method].path, request_serializer=_bytes, response_deserializer=bytes
        )(request, timeout=timeout)
        try:
            async for each in call:
                yield read(response, each)
        except grpc.aio.AioRpcError as error:
            raise _failure(error, request) from None
        finally:
            call.cancel()

    async def append_stream(
        self, requests: AsyncIterable[v1.AppendRequest], *, timeout: float | None
    ) -> AsyncGenerator[v1.AppendResponse | errors.TurnwireError, None]:
        given = _Given(requests)

        async def wrapped() -> AsyncGenerator[v1.AppendStreamRequest, None]:
            async for request in given.all():
                yield v1.AppendStreamRequest(append=request)

        call = self._channel().stream_stream(
            METHODS["AppendStream"].path,
            request_serializer=_bytes,
            response_deserializer=v1.AppendStreamResponse.FromString,
        )(wrapped(), timeout=timeout)
        try:
            async for response in call:
                for each in response.outcomes:
                    if each.HasField("append"):
                        yield each.append
                    else:
                        yield status.from_status(Status.FromString(each.refusal.status))
            given.end()
        except grpc.aio.AioRpcError as error:
            raise _failure(error, None) from None
        finally:
            call.cancel()

    async def exchange(
        self, method: str, requests: AsyncIterable[Message], response: type[Response], *, timeout: float | None
    ) -> AsyncGenerator[Response, None]:
        given = _Given(requests)
        call = self._channel().stream_stream(
            METHODS[method].path, request_serializer=_bytes, response_deserializer=bytes
        )(given.all(), timeout=timeout)
        try:
            async for each in call:
                yield read(response, each)
            given.end()
        except grpc.aio.AioRpcError as error:
            raise _failure(error, None) from None
        finally:
            call.cancel()

    async def close(self) -> None:
        self._closed = True
        if self._made is not None:
            await self._made.close()

    def _channel(self) -> grpc.aio.Channel:
        if self._closed:
            raise RuntimeError("the client is closed")
        if self._made is None:
            own = {
                # The server's limits hold; a part can be as large as it allows.
                "grpc.max_receive_message_length": -1,
                "grpc.max_send_message_length": -1,
                "grpc.service_config": service_config(),
                # A tail can be silent for hours: find out when its server is gone.
                "grpc.keepalive_time_ms": 60_000,
                "grpc.keepalive_timeout_ms": 20_000,
            }
            self._made = grpc.aio.insecure_channel(self._target, options=[*(own | dict(self._options)).items()])
        return self._made


class _Given(Generic[M]):
    """The requests that a caller gives for a stream.

    gRPC keeps what their iterator raises to itself, and cancels the call. So they end there instead, those before are
    answered, and then the caller gets it.
    """

    def __init__(self, requests: AsyncIterable[M]) -> None:
        self._requests = requests
        self._failure: Exception | None = None

    async def all(self) -> AsyncGenerator[M, None]:
        """The requests, up to the failure if there is one."""
        try:
            async for request in self._requests:
                yield request
        except Exception as error:
            self._failure = error

    def end(self) -> None:
        """Raise what the iterator has raised."""
        if self._failure is not None:
            raise self._failure


def _bytes(request: Message) -> bytes:
    return request.SerializeToString()


def _failure(error: grpc.aio.AioRpcError, request: Message | None) -> errors.TurnwireError:
    failure = status.from_rpc(error)
    if type(failure) is errors.Internal and error.details() == _BROKEN:
        return errors.ConnectionFailed("the server ended the stream while requests were sent")
    if isinstance(failure, errors.RequestTooLarge) and not failure.path and request is not None:
        path = largest_part(request)
        if path:
            failure.at(path)
    return failure
