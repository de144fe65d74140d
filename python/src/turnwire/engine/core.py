"""What every call of the engine needs: the caller, the limits, the store, and the checks that all calls share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from google.protobuf.message import Message

from turnwire import errors, rules, v1
from turnwire.store.base import Reply, Request, SessionRow, Store, View

Response = TypeVar("Response", bound=Message)
AnyRequest = TypeVar("AnyRequest", bound=Message)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the tenant, taken from credentials and never from a request. Empty until there are credentials."""

    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bytes, and entries per append. The request limit is the transport's to enforce."""

    part_bytes: int = 3 * 1024 * 1024
    request_bytes: int = 16 * 1024 * 1024
    append_entries: int = 1000


#: A runtime that embeds the engine trusts itself with more.
EMBEDDED = Limits(part_bytes=64 * 1024 * 1024, request_bytes=256 * 1024 * 1024)


class Core:
    """The store with limits and clock. The methods of ``turnwire.v1.SessionService`` are in its subclasses."""

    def __init__(self, store: Store, *, limits: Limits | None = None) -> None:
        self.store = store
        wanted = limits or Limits()
        self.limits = replace(wanted, part_bytes=min(wanted.part_bytes, store.part_bytes))

    def now_us(self) -> int:
        """The server's clock: microseconds since the epoch."""
        return time.time_ns() // 1000

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()


def check(request: Message, *skip: str) -> None:
    """Check a request by the rules of the schema, without the fields that are filled in first.

    Raises ``RuleViolation`` or ``UnknownToThisServer``.
    """
    if skip:
        partial = type(request)()
        for field, value in request.ListFields():
            if field.name in skip:
                continue
            if field.is_repeated or field.message_type is not None:
                getattr(partial, field.name).MergeFrom(value)
            else:
                setattr(partial, field.name, value)
        left_out = {field.name for field, _ in request.ListFields()} & set(skip)
        found = [each for each in rules.check(partial) if each.path not in left_out]
        if found:
            raise rules.failure(found)
    else:
        rules.require(request)


def revision_of(session: SessionRow, wanted: int | None, path: str = "revision") -> int:
    """The revision to read at: the head, or the one wanted. Raises ``RevisionOutOfRange``."""
    if wanted is None:
        return session.head
    if not 1 <= wanted <= session.head:
        detail = v1.RevisionConflict(expected=wanted, actual=session.head)
        raise errors.RevisionOutOfRange(f"the head is {session.head}", detail=detail, path=path)
    return wanted


def head_of(session: SessionRow) -> v1.Head:
    """The head of a session as a message."""
    head = v1.Head(revision=session.head, digest=session.digest)
    head.recorded.FromMicroseconds(session.recorded_us)
    return head


def check_head(head: int, expected: int) -> None:
    """Raise ``RevisionConflict`` unless the head is the expected one; 0: there is no session."""
    if head != expected:
        raise errors.RevisionConflict(
            f"the head is {head}, not {expected}",
            detail=v1.RevisionConflict(expected=expected, actual=head),
            path="expected_revision",
            expected=expected,
            actual=head,
        )


class Once:
    """A request id: returns the first reply again, or keeps the one that is made now."""

    def __init__(self, method: str, request: Message, wire: bytes | None) -> None:
        """``wire`` is the request as received; None: it was never serialized, and its own serialization stands in."""
        self.method = method
        self.id: str = getattr(request, "request_id", "")
        received = wire if wire is not None else request.SerializeToString(deterministic=True) if self.id else b""
        self._sha256 = sha256(received).digest() if self.id else b""

    def replay(self, view: View, make: Callable[[bytes], Response]) -> Response | None:
        """The first reply, if this request came before. Raises ``RequestIdReused``."""
        if not self.id:
            return None
        return self.matched(view.reply(self.method, self.id), make)

    def matched(self, reply: Reply | None, make: Callable[[bytes], Response]) -> Response | None:
        """The same for a reply that was looked up elsewhere."""
        if reply is None:
            return None
        if reply.sha256 != self._sha256:
            text = "the request id was used before for another request"
            raise errors.RequestIdReused(text, path="request_id", request_id=self.id)
        return make(reply.response)

    def keep(self, response: Message) -> Request | None:
        """What to store so that a retry finds this reply."""
        return Request(self.method, self.id, Reply(self._sha256, response.SerializeToString())) if self.id else None


def living(view: View, session_id: str) -> SessionRow | None:
    """The session's row, or None if it was never made. Raises ``SessionDeleted``."""
    if view.deleted:
        raise errors.SessionDeleted("the session was deleted", session_id=session_id)
    return view.session
