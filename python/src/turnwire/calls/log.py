"""The log: append to it, replay it, read and follow its entries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing
from typing import TypeVar

from turnwire import errors, v1
from turnwire.calls.base import Base
from turnwire.calls.entries import EntryLike, append_request, repeats_safely
from turnwire.calls.given import built
from turnwire.calls.history import ReplayItem, SessionHistory, StoredMessage, stored_message, whole

M = TypeVar("M")

_FIRST_PAUSE, _LAST_PAUSE = 0.05, 2.0  # seconds between tries to reach a server again


class LogCalls(Base):
    """The methods that write and read a session's log.

    Beside the errors that a method names, every method raises `turnwire.errors.RuleViolation` for an argument that
    breaks a rule of the schema, `SessionNotFound` and `SessionDeleted`, and `turnwire.errors.Unavailable` and
    `turnwire.errors.DeadlineExceeded` for a store or server that does not answer.
    """

    async def append(
        self,
        session_id: str,
        entries: Iterable[EntryLike],
        *,
        create: v1.SessionProperties | bool = False,
        expected_revision: int | None = None,
        request_id: str | None = None,
    ) -> v1.AppendResponse:
        """Append 1 to 1,000 entries, all or none; they are durable when this returns.

        ``create``: the properties to create the session with if it does not exist (True: none). ``expected_revision``:
        the head that the caller decided by; 0, with ``create``: there is no session yet. ``request_id``: makes a retry
        by the caller safe; without one, retries on the way are safe all the same.

        Raises `RevisionConflict`, `RequestIdReused`, `PartTooLarge`, `RequestTooLarge`, `UnknownTurn`,
        `UnknownMessage`, `MessageRemoved`, `PartRemoved`, `PartSealed`, `DeltaOffsetMismatch`, `DuplicateCallId` and
        the other errors of the schema, each with the path of the field at fault.
        """
        request = append_request(
            session_id, entries, create=create, expected_revision=expected_revision, request_id=request_id
        )
        self._make_safe(request)
        return await self._transport.unary("Append", request, v1.AppendResponse, timeout=self._timeout)

    async def append_stream(
        self, requests: Iterable[v1.AppendRequest] | AsyncIterable[v1.AppendRequest]
    ) -> AsyncGenerator[v1.AppendResponse | errors.TurnwireError, None]:
        """Append to many sessions on one stream, without waiting for replies; see `turnwire.append_request`.

        Yields one outcome for each request, in order: the reply, or the error that refused it, which ends nothing.
        Raises only what ends the stream, such as `Unavailable`; then requests without an outcome may have gone through.
        """

        async def prepared() -> AsyncGenerator[v1.AppendRequest, None]:
            async for request in each_of(requests):
                copied = v1.AppendRequest()
                copied.CopyFrom(request)
                self._make_safe(copied)
                yield copied

        outcomes = self._transport.append_stream(prepared(), timeout=self._timeout)
        async with aclosing(outcomes):
            async for outcome in outcomes:
                yield outcome

    def _make_safe(self, request: v1.AppendRequest) -> None:
        if self._transport.loses_replies and not request.HasField("request_id") and not repeats_safely(request):
            id = self._request_id(None)
            if id is not None:
                request.request_id = id

    async def replay(
        self,
        session_id: str,
        *,
        revision: int | None = None,
        last_turns: int | None = None,
        from_message_id: str | None = None,
        to_message_id: str | None = None,
        include_summaries: bool = False,
    ) -> AsyncGenerator[ReplayItem, None]:
        """The folded history at ``revision`` (None: the head), item by item; see `ReplayItem`. The head comes last.

        ``last_turns``: from the first message of the so many last turns on. ``from_message_id`` and ``to_message_id``:
        a range, both ends included. Raises `RevisionOutOfRange`, `MessageNotFound`, `UnknownPayload`, `CorruptData`.
        """
        request = built(v1.ReplayRequest, session_id=session_id, revision=revision, include_summaries=include_summaries)
        if last_turns is not None:
            request.last_turns = last_turns
        if from_message_id is not None or to_message_id is not None:
            if last_turns is not None:
                raise ValueError("give last_turns or a range of messages, not both")
            request.range.CopyFrom(built(v1.MessageRange, from_id=from_message_id, to_id=to_message_id))
        responses = self._transport.stream("Replay", request, v1.ReplayResponse, timeout=self._timeout)
        async with aclosing(whole(responses)) as items:
            async for item in items:
                yield item

    async def history(
        self,
        session_id: str,
        *,
        revision: int | None = None,
        last_turns: int | None = None,
        from_message_id: str | None = None,
        to_message_id: str | None = None,
        include_summaries: bool = False,
    ) -> SessionHistory:
        """The folded history as one object; the arguments and errors are those of `replay`."""
        history = SessionHistory()
        async for item in self.replay(
            session_id,
            revision=revision,
            last_turns=last_turns,
            from_message_id=from_message_id,
            to_message_id=to_message_id,
            include_summaries=include_summaries,
        ):
            history.add(item)
        return history

    async def get_message(
        self, session_id: str, message_id: str, *, revision: int | None = None, include_summary: bool = False
    ) -> StoredMessage:
        """One message, whole, with its turn. Raises `MessageNotFound`, `RevisionOutOfRange`."""
        request = built(
            v1.GetMessageRequest,
            session_id=session_id,
            message_id=message_id,
            revision=revision,
            include_summary=include_summary,
        )
        responses = self._transport.stream("GetMessage", request, v1.GetMessageResponse, timeout=self._timeout)
        return stored_message([item async for item in whole(responses)])

    async def read_entries(
        self, session_id: str, from_revision: int = 1, to_revision: int | None = None
    ) -> AsyncGenerator[v1.Entry, None]:
        """The raw entries of a range, both ends included (``to_revision`` None: the head). Raises `RevisionOutOfRange`.

        A payload of a later schema is kept in the entry's unknown fields.
        """
        request = built(
            v1.ReadEntriesRequest, session_id=session_id, from_revision=from_revision, to_revision=to_revision
        )
        responses = self._transport.stream("ReadEntries", request, v1.ReadEntriesResponse, timeout=self._timeout)
        async with aclosing(responses):
            async for response in responses:
                for entry in response.entries:
                    yield entry

    async def tail(
        self,
        session_id: str,
        after_revision: int = 0,
        *,
        follow: bool = True,
        on_caught_up: Callable[[v1.Head], object] | None = None,
        patience: float = 60.0,
    ) -> AsyncGenerator[v1.Entry, None]:
        """The entries after a revision, then, live, whatever is appended by anybody, each once and in order.

        ``follow`` False: end when caught up. ``on_caught_up`` is called once, with the head up to which everything has
        been yielded. When the server goes away the tail goes on from the last entry it saw as soon as it is back,
        trying for up to ``patience`` seconds; then it raises `Unavailable`. Raises `RevisionOutOfRange`, and
        `SessionDeleted` when the session is deleted.
        """
        seen = after_revision
        caught_up = False
        tries = 0
        lost_at: float | None = None  # when the server went away; None: it is there
        clock = asyncio.get_running_loop().time
        left = self._timeout  # of the time limit, which is for all tries together
        begun = clock()
        while True:
            request = built(v1.TailRequest, session_id=session_id, after_revision=seen)
            responses = self._transport.stream("Tail", request, v1.TailResponse, timeout=left)
            try:
                async with aclosing(responses):
                    async for response in responses:
                        tries, lost_at = 0, None
                        for entry in response.entries:
                            if entry.revision > seen:
                                seen = entry.revision
                                yield entry
                        if response.HasField("caught_up"):
                            if not caught_up and on_caught_up is not None:
                                on_caught_up(response.caught_up)
                            caught_up = True
                            if not follow:
                                return
            except errors.Unavailable:
                lost_at = clock() if lost_at is None else lost_at
                if clock() - lost_at >= patience:
                    raise
            pause = min(_FIRST_PAUSE * 2**tries, _LAST_PAUSE)
            tries += 1
            pause *= random.uniform(0.5, 1.0)
            if self._timeout is not None:
                left = begun + self._timeout - clock() - pause
                if left <= 0:
                    await asyncio.sleep(pause + left)
                    raise errors.DeadlineExceeded(f"the call took longer than {self._timeout:g} s")
            await asyncio.sleep(pause)


async def each_of(requests: Iterable[M] | AsyncIterable[M]) -> AsyncGenerator[M, None]:
    """The items of either kind of iterable."""
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request
