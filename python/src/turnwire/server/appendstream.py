"""AppendStream: reads requests off the stream into a pipeline and writes its outcomes back, in order.

When the pipeline has no room, reading stops and HTTP/2 flow control holds the client back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import grpc.aio
from google.protobuf.message import DecodeError

from turnwire import errors, status, v1
from turnwire.calls.sizes import too_large
from turnwire.engine import Caller, Engine
from turnwire.engine.pipeline import Given, Pipeline
from turnwire.log import wire
from turnwire.server.calls import Call, Context, incident

_OUTCOMES = v1.AppendStreamResponse.OUTCOMES_FIELD_NUMBER
_RESPONSE_BYTES = 64 * 1024  # from which on a response takes no more outcomes
_TAG = v1.AppendStreamRequest.APPEND_FIELD_NUMBER << 3 | 2


class AppendStream:
    """One stream."""

    def __init__(self, engine: Engine, caller: Caller, draining: asyncio.Event) -> None:
        self._engine = engine
        self._caller = caller
        self._draining = draining
        self._reading = False  # waiting for the next request
        self._broken_off = False  # by the drain
        self._pipeline = Pipeline(self._append_each, size=2 * engine.limits.request_bytes)

    async def run(self, call: Call, context: Context) -> None:
        """Take requests in and answer them until the client has sent all. Raises ``ShuttingDown`` on a drain."""
        reader = asyncio.create_task(self._read(call, context))
        try:
            async for outcomes in self._pipeline.outcomes():
                for response in responses(outcomes):
                    call.bytes_out += len(response)
                    await context.write(response)
            await reader
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            await self._pipeline.stop()

    async def _read(self, call: Call, context: Context) -> None:
        """Take requests until there are no more. Raises ``ShuttingDown`` when the drain comes before the next."""
        drain = asyncio.create_task(self._break_off(asyncio.current_task()))
        try:
            while (raw := await self._next(context)) is not None:
                call.requests += 1
                call.bytes_in += len(raw)
                await self._take(raw)
        finally:
            drain.cancel()
            self._pipeline.end()

    async def _next(self, context: Context) -> bytes | None:
        """The next request; None after the last."""
        if self._draining.is_set():
            raise errors.ShuttingDown("the server is ending")
        self._reading = True
        try:
            raw = await context.read()
        except asyncio.CancelledError:
            if not self._broken_off:
                raise
            raise errors.ShuttingDown("the server is ending") from None
        finally:
            self._reading = False
        return None if raw is grpc.aio.EOF else raw

    async def _break_off(self, reader: asyncio.Task[Any] | None) -> None:
        """Let a drain end the waiting for the next request. To wait for both at each request costs more than it."""
        await self._draining.wait()
        if self._reading and reader is not None:
            self._broken_off = True
            reader.cancel()

    async def _take(self, raw: bytes) -> None:
        limit = self._engine.limits.request_bytes
        if len(raw) > limit:
            await self._pipeline.refuse(too_large(len(raw), limit), len(raw))
            return
        try:
            request = v1.AppendStreamRequest.FromString(raw)
        except DecodeError:
            text = f"is not a serialized {v1.AppendStreamRequest.DESCRIPTOR.full_name}"
            await self._pipeline.refuse(_violation("", "turnwire.wire_format", text), len(raw))
            return
        if request.HasField("append"):
            await self._pipeline.put(request.append, inner(raw), len(raw))
        else:
            await self._pipeline.refuse(_violation("append", "required", "is required"), len(raw))

    async def _append_each(self, requests: Sequence[Given]) -> list[v1.AppendResponse | Exception]:
        try:
            return [_told(each) for each in await self._engine.append_each(self._caller, requests)]
        except errors.TurnwireError:
            raise
        except Exception as error:
            raise incident(error, "AppendStream") from None


def _told(outcome: v1.AppendResponse | Exception) -> v1.AppendResponse | errors.TurnwireError:
    """An outcome with an incident in the place of a fault: one append fails, the stream goes on."""
    if isinstance(outcome, v1.AppendResponse | errors.TurnwireError):
        return outcome
    return incident(outcome, "AppendStream")


def responses(outcomes: Iterable[v1.AppendResponse | errors.TurnwireError]) -> Iterator[bytes]:
    """Outcomes as serialized responses of the stream, as few as they go into."""
    waiting: list[bytes] = []
    size = 0
    for outcome in outcomes:
        waiting.append(wire.field(_OUTCOMES, _outcome(outcome)))
        size += len(waiting[-1])
        if size >= _RESPONSE_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def _outcome(outcome: v1.AppendResponse | errors.TurnwireError) -> bytes:
    if isinstance(outcome, v1.AppendResponse):
        return wire.field(v1.AppendOutcome.APPEND_FIELD_NUMBER, outcome.SerializeToString())
    sent = status.to_status(outcome)
    refusal = v1.Refusal(code=sent.code, message=sent.message, status=sent.SerializeToString())
    return v1.AppendOutcome(refusal=refusal).SerializeToString()


def _violation(path: str, rule: str, text: str) -> errors.RuleViolation:
    return errors.RuleViolation([errors.Violation(path, rule, text)])


def inner(raw: bytes) -> bytes | None:
    """The append inside a request, as it was received, so that its request id means the same as in a call of Append.

    None if the request holds anything else beside it.
    """
    if not raw or raw[0] != _TAG:
        return None
    length = shift = 0
    for at in range(1, min(len(raw), 11)):
        length |= (raw[at] & 0x7F) << shift
        shift += 7
        if raw[at] < 0x80:
            return raw[at + 1 :] if at + 1 + length == len(raw) else None
    return None
