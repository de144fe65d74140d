"""Reading: replay, single messages, raw entries, live tails, and verifying the digests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from turnwire import errors, v1
from turnwire.engine.core import Caller, Core, check, head_of, revision_of
from turnwire.log import frames, replay, wire
from turnwire.store.base import EntryRow, SessionRow
from turnwire.store.sqlite_schema import DIGEST_EVERY
from turnwire.validation.chain import Chain
from turnwire.validation.findings import Findings
from turnwire.validation.wrong_digests import WrongDigests

_FINDINGS = 100
#: From one look of a tail at its session to the next, in seconds. The first entry after a pause is sent at once; those
#: that come one by one within this time are sent together, which a reader does not see and which saves looks.
_PACE_S = 0.04
#: Of this time a look and the sending may take a share. Where they take longer, since the server is busy or the reader
#: does not take what it was sent, the tail looks less often, though never less than after the longest pace.
_SHARE = 0.1
_LONGEST_PACE_S = 0.1
_ENTRIES = v1.ReadEntriesResponse.ENTRIES_FIELD_NUMBER


class History(Core):
    """The methods that read a session's log. Streams yield serialized responses."""

    async def replay(self, caller: Caller, request: v1.ReplayRequest) -> AsyncIterator[bytes]:
        """The folded history, as ``ReplayResponse``. Raises ``RevisionOutOfRange``, ``MessageNotFound``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        revision = revision_of(session, request.revision if request.HasField("revision") else None)
        head = await self._head_at(session, revision)
        async for response in replay.history(self.store, session, request, revision):
            yield response
        yield replay.end(head)

    async def get_message(self, caller: Caller, request: v1.GetMessageRequest) -> AsyncIterator[bytes]:
        """One message, as ``GetMessageResponse``. Raises ``MessageNotFound``, ``RevisionOutOfRange``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        revision = revision_of(session, request.revision if request.HasField("revision") else None)
        head = await self._head_at(session, revision)
        async for response in replay.message(
            self.store, session, request.message_id, revision, summary=request.include_summary
        ):
            yield response
        yield replay.end(head)

    async def read_entries(self, caller: Caller, request: v1.ReadEntriesRequest) -> AsyncIterator[bytes]:
        """Raw entries of a range, as ``ReadEntriesResponse``. Raises ``RevisionOutOfRange``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        first = revision_of(session, request.from_revision or 1, "from_revision")
        last = revision_of(session, request.to_revision if request.HasField("to_revision") else None, "to_revision")
        while first <= last:
            rows = await self.store.entries(session, first, last, frames.FRAME_BYTES)
            yield _entries(rows, first)
            first = rows[-1].revision + 1

    async def tail(self, caller: Caller, request: v1.TailRequest) -> AsyncIterator[bytes]:
        """Entries after a revision, live, as ``TailResponse``. Raises ``RevisionOutOfRange``, ``SessionDeleted``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        seen = request.after_revision
        if seen > session.head:
            detail = v1.RevisionConflict(expected=seen, actual=session.head)
            raise errors.RevisionOutOfRange(f"the head is {session.head}", detail=detail, path="after_revision")
        caught_up = False
        clock = asyncio.get_running_loop().time
        async for _ in self.store.watch(caller.tenant, session.id):
            if not caught_up:
                async for response in self._entries_after(session, seen):
                    yield response
                yield v1.TailResponse(caught_up=head_of(session)).SerializeToString()
                seen, caught_up = session.head, True
            # Also the first time: what was written before the watch began wakes nobody.
            begun = clock()
            session = await self.store.session(caller.tenant, session.id)
            async for response in self._entries_after(session, seen):
                yield response
            seen = session.head
            took = clock() - begun
            await asyncio.sleep(min(max(_PACE_S, took / _SHARE), _LONGEST_PACE_S) - took)

    async def _entries_after(self, session: SessionRow, seen: int) -> AsyncIterator[bytes]:
        while seen < session.head:
            rows = await self.store.entries(session, seen + 1, session.head, frames.FRAME_BYTES)
            yield _entries(rows, seen + 1)
            seen = rows[-1].revision

    async def verify_session(self, caller: Caller, request: v1.VerifySessionRequest) -> v1.VerifySessionResponse:
        """Compute the digests again. Damage is a finding, not an error."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        response = v1.VerifySessionResponse(head=head_of(session))
        found = Findings(session_id=session.id)
        chain, wrong = Chain(session.id), WrongDigests(found)
        revision = latest_us = 0
        while revision < session.head and len(response.findings) < _FINDINGS:
            try:
                rows = await self.store.entries(session, revision + 1, session.head, frames.FRAME_BYTES)
            except errors.CorruptData as error:
                rule, text = "storage.unreadable", f"from here on nothing can be read: {error.text}"
                if "last" in error.metadata:
                    rule, text = "session.revision", f"revisions {revision + 1} to {session.head} are missing"
                found.add(rule, revision=revision + 1, text=text)
                break
            for row in rows:
                if row.revision != revision + 1:
                    text = f"revisions {revision + 1} to {row.revision - 1} are missing"
                    found.add("session.revision", revision=revision + 1, text=text)
                    chain.lose(row.revision - 1 + DIGEST_EVERY)
                revision = row.revision
                latest_us = max(latest_us, row.recorded_us)
                try:
                    if chain.link(revision, row.recorded_us, row.field, row.payload, row.digest):
                        wrong.add(revision)
                except errors.CorruptData as error:
                    found.add("storage.form", revision=revision, text=error.text)
                    chain.follow(row.digest)
                wrong.settle(revision)
            response.entries += len(rows)
            response.findings.extend(found.take())
        wrong.tell(session.recorded_us - latest_us)
        response.findings.extend(found.take())
        del response.findings[_FINDINGS:]
        if not response.findings and not chain.may_be(session.digest):
            found.add("session.head", revision=session.head, text="the head's digest does not match the log")
            response.findings.extend(found.take())
        response.sound = not response.findings
        return response

    async def _head_at(self, session: SessionRow, revision: int) -> v1.Head:
        if revision == session.head:
            return head_of(session)
        (row,) = await self.store.entries(session, revision, revision, 1)
        return head_of(session._replace(head=revision, digest=row.digest, recorded_us=row.recorded_us))


def _entries(rows: list[EntryRow], first: int) -> bytes:
    """Entries from a revision on as the field ``entries`` (1) of a response, with their payloads as they are stored.

    Raises ``CorruptData`` where one is missing.
    """
    for revision, row in enumerate(rows, first):
        if row.revision != revision:
            raise errors.CorruptData("an entry of the log is missing", revision=revision)
    return b"".join(wire.field(_ENTRIES, _entry(row)) for row in rows)


def _entry(row: EntryRow) -> bytes:
    envelope = v1.Entry(revision=row.revision, digest=row.digest, ignorable=row.ignorable)
    envelope.recorded.FromMicroseconds(row.recorded_us)
    return envelope.SerializeToString() + wire.field(row.field, row.payload)
