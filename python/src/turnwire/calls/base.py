"""What the groups of methods share: the transport, the deadline, and small conversions of arguments."""

from __future__ import annotations

import copy
import secrets
import time
from datetime import UTC, datetime
from typing import Self

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire.calls.transport import Transport


class Base:
    """A transport and the deadline of its calls."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._timeout: float | None = None

    def within(self, seconds: float | None) -> Self:
        """The same store or server, with another time limit for each whole call, streams included.

        None: the default of the transport. Calls on ``tw.within(2)`` raise `turnwire.errors.DeadlineExceeded` when they
        take longer than two seconds.
        """
        other = copy.copy(self)
        other._timeout = seconds
        return other

    @property
    def loses_replies(self) -> bool:
        """Whether the reply to a write can be lost on the way, so that only a request id makes a retry safe."""
        return self._transport.loses_replies

    async def close(self) -> None:
        """Close it, with everything that `within` made of it. Idempotent."""
        await self._transport.close()

    def _request_id(self, given: str | None) -> str | None:
        """The request id of a write: the one given, or a new one where the reply could be lost."""
        if given is not None or not self._transport.loses_replies:
            return given
        return new_request_id()


def new_request_id() -> str:
    """A request id: the time in nanoseconds and 48 random bits, in hex.

    A store that has sorted its request ids need not look for one that comes behind all of a session.
    """
    return f"{time.time_ns():016x}{secrets.token_hex(6)}"


def timestamp(time: datetime | Timestamp | None) -> Timestamp | None:
    """A time as the schema has it. A datetime without a time zone is in UTC."""
    if time is None or isinstance(time, Timestamp):
        return time
    made = Timestamp()
    made.FromDatetime(time if time.tzinfo is not None else time.replace(tzinfo=UTC))
    return made
