"""Validating: a session up to its head, or messages that a caller sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from turnwire import errors, v1
from turnwire.engine.core import Caller, Core, check, head_of
from turnwire.log import frames
from turnwire.store.base import EntryRow, SessionRow
from turnwire.validation import Selection, SessionCheck, messages
from turnwire.validation.findings import Findings

#: The most findings of one response, so that none is much larger than a frame.
_FINDINGS: Final = 500
#: How much of a log is read and checked between two responses, which tell how far that is: some hundred entries.
_PAGE_BYTES: Final = 64 * 1024
#: How many entries are read one by one from where many could not be read at once.
_STRIDE: Final = 128
_END: Final = object()


class _Missed(NamedTuple):
    """Entries that could not be read, by the rule that says why."""

    first: int
    last: int
    rule: str


class Validations(Core):
    """The methods that validate. Streams yield serialized responses."""

    async def validate_session(self, caller: Caller, request: v1.ValidateSessionRequest) -> AsyncIterator[bytes]:
        """Findings and progress, as ``ValidateSessionResponse``. Raises ``UnknownFilter``, ``SessionNotFound``.

        Damage is a finding and no error, but for damage of what the store keeps of the session beside its log.
        """
        check(request)
        selection = Selection(request.select, request.ignore)
        session = await self.store.session(caller.tenant, request.session_id)
        head = _head(session)
        run = SessionCheck(session.id, selection=selection)
        try:
            async with aclosing(self._log(session)) as pages:
                async for page in pages:
                    # Away from the event loop, which has other calls to answer.
                    for found in _cut(await asyncio.to_thread(_checked, run, page)):
                        yield v1.ValidateSessionResponse(findings=found, revision=run.last).SerializeToString()
            ending = run.ending(head)
            while not await asyncio.to_thread(_ended, ending):
                if more := run.take():
                    for found in _cut(more):
                        yield v1.ValidateSessionResponse(findings=found, revision=run.last).SerializeToString()
            summary = run.summary()
            summary.head.CopyFrom(head)
            *some, last = _cut(run.take())
            for found in some:
                yield v1.ValidateSessionResponse(findings=found, revision=run.last).SerializeToString()
            response = v1.ValidateSessionResponse(findings=last, revision=run.last, summary=summary)
            yield response.SerializeToString()
        finally:
            run.close()

    async def _log(self, session: SessionRow) -> AsyncGenerator[Sequence[EntryRow | _Missed], None]:
        """The whole log, page by page, with what could not be read."""
        at = 1
        while at <= session.head:
            try:
                page: Sequence[EntryRow | _Missed] = await self.store.entries(session, at, session.head, _PAGE_BYTES)
            except errors.CorruptData as error:
                if "last" in error.metadata:  # there is nothing more, however far the head says that the log goes
                    page = [_Missed(at, session.head, "session.revision")]
                else:
                    page = await self._around_damage(session, at, min(at + _STRIDE - 1, session.head))
            yield page
            last = page[-1]
            at = (last.last if isinstance(last, _Missed) else last.revision) + 1

    async def _around_damage(self, session: SessionRow, first: int, last: int) -> list[EntryRow | _Missed]:
        """Entries one by one; those that cannot be read are told of, many that lie beside each other as one."""
        found: list[EntryRow | _Missed] = []
        for revision in range(first, last + 1):
            try:
                found.append(await self.store.entry(session, revision))
            except errors.CorruptData as error:
                # The error of a store that has no such row says which it is; else it comes from below.
                rule = "session.revision" if "revision" in error.metadata else "storage.unreadable"
                before = found[-1] if found else None
                if isinstance(before, _Missed) and before.rule == rule:
                    found[-1] = before._replace(last=revision)
                else:
                    found.append(_Missed(revision, revision, rule))
        return found

    async def validate_messages(
        self, caller: Caller, requests: AsyncIterator[v1.ValidateMessagesRequest]
    ) -> AsyncIterator[bytes]:
        """One ``ValidateMessagesResponse`` for each request. Raises ``RuleViolation`` for one that is none."""
        index = 0
        async for request in requests:
            check(request)
            large = request.ByteSize() > frames.FRAME_BYTES
            found = await asyncio.to_thread(_message, request) if large else _message(request)
            yield v1.ValidateMessagesResponse(index=index, findings=found[:_FINDINGS]).SerializeToString()
            index += 1


def _checked(run: SessionCheck, page: Sequence[EntryRow | _Missed]) -> list[v1.Finding]:
    for each in page:
        if isinstance(each, _Missed):
            run.missed(each.first, each.last, each.rule)
        else:
            run.entry(each)
    return run.take()


def _head(session: SessionRow) -> v1.Head:
    try:
        return head_of(session)
    except ValueError:
        text = "what the store keeps of the session's end is damaged"
        raise errors.CorruptData(text, session_id=session.id) from None


def _ended(ending: Iterator[None]) -> bool:
    """Whether a check is through with its end, of which this does a stretch."""
    return next(ending, _END) is _END


def _cut(found: list[v1.Finding]) -> list[list[v1.Finding]]:
    return [found[at : at + _FINDINGS] for at in range(0, len(found), _FINDINGS)] or [[]]


def _message(request: v1.ValidateMessagesRequest) -> list[v1.Finding]:
    found = Findings()
    cls = messages.message_type(request.type)
    stored = request.stored if request.HasField("stored") else None
    if cls is None:
        found.add("storage.type", value=request.type[:80])
        return found.take()
    if request.WhichOneof("message") == "json":
        read = messages.from_json(request.json, cls, found)
    else:
        read = messages.from_bytes(request.binary, cls, found)
    if read is not None:
        messages.check(read.message, found, stored=stored, role=request.role, later=read.later)
    return found.take()
