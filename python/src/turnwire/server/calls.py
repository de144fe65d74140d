"""The calls under way: admitting them, ending them on a drain, and turning what they raise into statuses."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from turnwire import damage, errors, status
from turnwire.methods import Method
from turnwire.server.requestlog import RequestLine, RequestLog

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]

# What a client may keep open for as long as it likes.
_ENDLESS = frozenset(("Tail", "ValidateMessages"))

_logger = logging.getLogger("turnwire.server")
_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


class Call:
    """One call under way, with what the request log will say about it."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.session_id = ""
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 1
        self.started = time.perf_counter()
        self.ended_by_drain = False
        self._task: asyncio.Task[Any] | None = asyncio.current_task()

    def end_by_drain(self) -> None:
        """Break the call off, so that it answers SHUTTING_DOWN."""
        if self._task is not None and not self.ended_by_drain:
            self.ended_by_drain = True
            self._task.cancel()

    def go_on(self) -> None:
        """The call was broken off and goes on to answer."""
        if self._task is not None:
            self._task.uncancel()


class Calls:
    """All calls under way on a server."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log
        self._open: set[Call] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = asyncio.Event()

    async def run(self, method: Method, context: Context, body: Callable[[Call], Awaitable[T]]) -> T:
        """Run the body of a call. What it raises becomes the call's status; the call is logged when it has ended."""
        call = Call(method)
        failure: errors.TurnwireError
        self._open.add(call)
        self._idle.clear()
        try:
            if self.draining.is_set():
                raise errors.ShuttingDown("the server is ending")
            reply = await body(call)
        except errors.TurnwireError as error:
            failure = error
        except DecodeError:  # requests are read elsewhere
            failure = damage.corrupt()
        except asyncio.CancelledError:
            if not call.ended_by_drain:
                self._end(call, "CANCELLED")
                raise
            call.go_on()
            failure = errors.ShuttingDown("the server is ending")
        except grpc.aio.InternalError:  # of a write to a client that is gone
            self._end(call, "CANCELLED")
            raise asyncio.CancelledError from None
        except Exception as error:  # whatever it is, the caller gets a number and the log gets the rest
            failure = incident(error, method.name)
        except BaseException:
            self._end(call, "UNKNOWN")
            raise
        else:
            self._end(call, "OK")
            return reply
        self._end(call, failure.status, failure.reason_name)
        sent = status.to_status(failure)
        trailers = ((status.DETAILS_KEY, sent.SerializeToString()),)
        await context.abort(_CODES[sent.code], sent.message, trailing_metadata=trailers)
        raise AssertionError("abort always raises")

    def _end(self, call: Call, code: str, reason: str = "") -> None:
        self._open.discard(call)
        if not self._open:
            self._idle.set()
        if not self._log.wanted:
            return
        self._log.write(
            RequestLine(
                method=call.method.name,
                session_id=call.session_id,
                status=code,
                reason=reason,
                milliseconds=(time.perf_counter() - call.started) * 1000,
                bytes_in=call.bytes_in,
                bytes_out=call.bytes_out,
                requests=call.requests,
            )
        )

    async def drain(self, grace: float) -> None:
        """Refuse new calls, end those that would go on for ever, and wait up to ``grace`` seconds for the others."""
        self.draining.set()
        for call in self._open:
            if call.method.name in _ENDLESS:
                call.end_by_drain()
        try:
            await asyncio.wait_for(self._idle.wait(), grace)
        except TimeoutError:
            self.end_all()

    def end_all(self) -> None:
        """End all calls now."""
        for call in self._open:
            call.end_by_drain()


def incident(error: BaseException, method: str) -> errors.InternalError:
    """Log an unexpected exception under a number, and make the error that names the number.

    The log gets the type and the place, never the exception's own text, which may quote a message.
    """
    number = secrets.token_hex(4)
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    _logger.error("incident=%s method=%s error=%s\n%s", number, method, _types(error), frames)
    return errors.InternalError(f"a fault of the server; its log has details under {number}", incident=number)


def _types(error: BaseException) -> str:
    names: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        names.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        cause = cause.__cause__ or cause.__context__
    return "<-".join(names)
