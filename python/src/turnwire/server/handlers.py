"""The handlers of the service, made from its descriptor: each calls the engine's method of the same name.

Requests come as bytes, so that a writing call can pass on exactly what was received; streamed responses are bytes
already. A request that is no message of its type is refused like any other broken rule.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from turnwire import errors
from turnwire.calls.sizes import too_large
from turnwire.engine import Caller, Engine
from turnwire.methods import METHODS, SERVICE, Method
from turnwire.server.appendstream import AppendStream
from turnwire.server.calls import Call, Calls, Context

_ANYONE = Caller()
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


def handlers(engine: Engine, calls: Calls) -> grpc.GenericRpcHandler:
    """The handlers of all methods of ``turnwire.v1.SessionService``."""
    made = {name: _handler(engine, calls, method) for name, method in METHODS.items()}
    return grpc.method_handlers_generic_handler(SERVICE, made)


def parse(method: Method, raw: bytes) -> Message:
    """A request from its bytes. Raises ``RuleViolation`` if they are none."""
    try:
        return method.request.FromString(raw)
    except DecodeError as error:
        text = f"is not a serialized {method.request.DESCRIPTOR.full_name}"
        raise errors.RuleViolation([errors.Violation("", "turnwire.wire_format", text)]) from error


def _handler(engine: Engine, calls: Calls, method: Method) -> Handler:
    if method.requests_stream:
        both = _append_stream if method.name == "AppendStream" else _exchange
        return grpc.stream_stream_rpc_method_handler(both(engine, calls, method))
    if method.responses_stream:
        return grpc.unary_stream_rpc_method_handler(_stream(engine, calls, method))
    return grpc.unary_unary_rpc_method_handler(_unary(engine, calls, method))


def _unary(engine: Engine, calls: Calls, method: Method) -> Callable[[bytes, Context], Awaitable[bytes]]:
    run: Callable[..., Awaitable[Message]] = getattr(engine, method.call)

    async def handle(raw: bytes, context: Context) -> bytes:
        async def body(call: Call) -> bytes:
            request = _received(engine, call, method, raw)
            more = (raw,) if method.keeps_replies else ()
            response = (await run(_caller(context), request, *more)).SerializeToString()
            call.bytes_out = len(response)
            return response

        return await calls.run(method, context, body)

    return handle


def _stream(engine: Engine, calls: Calls, method: Method) -> Callable[[bytes, Context], Awaitable[None]]:
    run: Callable[..., AsyncIterator[bytes]] = getattr(engine, method.call)

    async def handle(raw: bytes, context: Context) -> None:
        async def body(call: Call) -> None:
            request = _received(engine, call, method, raw)
            more = (raw,) if method.keeps_replies else ()
            responses: Any = run(_caller(context), request, *more)
            # Closed as soon as the call ends, however it ends: a cancelled call stops reading the store.
            async with aclosing(responses):
                async for response in responses:
                    call.bytes_out += len(response)
                    await context.write(response)

        await calls.run(method, context, body)

    return handle


def _exchange(
    engine: Engine, calls: Calls, method: Method
) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    """A method that answers each request of a stream by itself."""
    run: Callable[..., AsyncIterator[bytes]] = getattr(engine, method.call)

    async def handle(raws: AsyncIterator[bytes], context: Context) -> None:
        async def body(call: Call) -> None:
            call.requests = 0

            async def requests() -> AsyncIterator[Message]:
                async for raw in raws:
                    request = _received(engine, call, method, raw)
                    call.requests += 1
                    yield request

            responses: Any = run(_caller(context), requests())
            async with aclosing(responses):
                async for response in responses:
                    call.bytes_out += len(response)
                    await context.write(response)

        await calls.run(method, context, body)

    return handle


def _append_stream(
    engine: Engine, calls: Calls, method: Method
) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    async def handle(_: AsyncIterator[bytes], context: Context) -> None:
        async def body(call: Call) -> None:
            call.requests = 0
            await AppendStream(engine, _caller(context), calls.draining).run(call, context)

        await calls.run(method, context, body)

    return handle


def _received(engine: Engine, call: Call, method: Method, raw: bytes) -> Message:
    call.bytes_in += len(raw)
    if len(raw) > engine.limits.request_bytes:
        raise too_large(len(raw), engine.limits.request_bytes)
    request = parse(method, raw)
    call.session_id = getattr(request, "session_id", "")
    return request


def _caller(context: Context) -> Caller:
    """Who calls. There are no credentials yet, so that all share the empty tenant."""
    return _ANYONE
