"""Brings the sessions of an import into a store, through any client.

A session that is new is created with its entries; one that is there gets what its source has new, changed or lost, see
`turnwire.formats.changes`. Loading the same session again changes nothing, and a load that was broken off goes on: each
append is atomic and marks what it brought, see `turnwire.formats.ledger`. An object that the store refuses is left out
and reported; the others of its session are brought all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final, Protocol

from turnwire import errors, faults, v1
from turnwire.formats import ledger, stored
from turnwire.formats.base import SessionImport
from turnwire.formats.changes import Changes, changes
from turnwire.formats.report import Outcome, Report

#: What one append carries at most, its mark aside; one entry may be larger by itself.
BATCH_ENTRIES: Final = 999
BATCH_BYTES: Final = 8 * 1024 * 1024

_KINDS: Final = {
    "turn": "turn",
    "user": "message",
    "assistant": "message",
    "part": "part",
    "summary": "summary",
    "revert": "revert",
}

#: How often another writer may come between.
_TRIES: Final = 5
#: How many objects of a session may be refused before it is refused as a whole.
_MOST_REFUSED: Final = 1000
_PART: Final = re.compile(r"entries\[(\d+)\]\.(?:user\.user|assistant\.assistant)\.parts\[(\d+)\]")
_ENTRY: Final = re.compile(r"entries\[(\d+)\]\.(part|summary|revert)\b")


class Log(stored.Reading, Protocol):
    """What loading needs of a client."""

    async def append(
        self,
        session_id: str,
        entries: Iterable[Any],
        *,
        create: v1.SessionProperties | bool = False,
        expected_revision: int | None = None,
        request_id: str | None = None,
    ) -> v1.AppendResponse:
        """Append entries; see `turnwire.Client.append`."""
        ...

    async def create_session(
        self, session_id: str = "", *, properties: v1.SessionProperties | None = None
    ) -> v1.Session:
        """Create a session; see `turnwire.Client.create_session`."""
        ...

    async def get_session(self, session_id: str) -> v1.Session:
        """A session without its messages; see `turnwire.Client.get_session`."""
        ...

    def read_entries(
        self, session_id: str, from_revision: int = 1, to_revision: int | None = None
    ) -> AsyncIterator[v1.Entry]:
        """Raw entries; see `turnwire.Client.read_entries`."""
        ...


async def load(log: Log, session: SessionImport, report: Report, *, dry_run: bool = False) -> Outcome:
    """Bring one session into a store, or with ``dry_run`` only find out what that would do.

    ``IMPORTED``: it was not there; ``UPDATED``; ``UNCHANGED``; ``REFUSED``, with what was appended before. The report
    counts the objects and says what is refused, also where that is for a fault of the program. Raises
    `errors.Unavailable`, and whatever else is about the store and not about this session.
    """
    try:
        return await _Load(log, session, report, dry_run).run()
    except _NotOurs:
        reason = "a session of this id exists, and was not imported from this program"
    except errors.SessionDeleted:
        reason = "a session of this id was deleted, and its id is never used again"
    except _NOT_ABOUT_THE_SESSION:
        raise
    except errors.TurnwireError as error:
        reason = f"{error.reason_name or error.status}: {error}"
    except OSError:
        raise
    except Exception as error:
        reason = faults.reason(error)
    report.refused("session", "", reason, source=session.source, id=session.session_id)
    return Outcome.REFUSED


# Trying the next session would fail likewise.
_NOT_ABOUT_THE_SESSION = (
    errors.Unavailable,
    errors.ResourceExhausted,
    errors.StoreReadOnly,
    errors.StoreForeign,
    errors.StoreTooNew,
    errors.DeadlineExceeded,
    errors.Cancelled,
)


class _NotOurs(Exception):
    """The session is none that an importer of this program brought."""


class _Load:
    """The load of one session. What it reports is held back until it is done, since it may have to begin again."""

    def __init__(self, log: Log, session: SessionImport, report: Report, dry_run: bool) -> None:
        self._log = log
        self._session = session
        self._report = report
        self._dry_run = dry_run
        self._digest = session.digest or ledger.digest_of(session)
        self._refused: list[tuple[str, str, str]] = []  # kind, id, reason
        self._appended = False
        #: What is left of the entries of an append that would change nothing, and is not made.
        self._idle: list[list[v1.EntryInput]] = []

    async def run(self) -> Outcome:
        for tries_left in reversed(range(_TRIES)):
            try:
                outcome, counts = await self._once()
            except (errors.RevisionConflict, errors.SessionAlreadyExists):
                if not tries_left:
                    raise
                continue
            for kind, name, reason in self._refused:
                fate = Outcome.IMPORTED if counts[Outcome.IMPORTED, kind] else Outcome.UPDATED
                counts[fate, kind] -= 1
                self._report.refused(kind, "", reason, source=self._session.source, id=name)
            for (fate, kind), number in counts.items():
                self._report.count(fate, kind, number)
            return outcome
        raise AssertionError

    async def _once(self) -> tuple[Outcome, Counter[tuple[Outcome, str]]]:
        try:
            shown = await self._log.get_session(self._session.session_id)
        except errors.SessionNotFound:
            return await self._create()
        mark = ledger.mark_of(shown.properties)
        if mark is not None and (mark.source, mark.digest) == (self._session.source, self._digest):
            return Outcome.UNCHANGED, _counts(self._session, Outcome.UNCHANGED)
        return await self._update()

    async def _create(self) -> tuple[Outcome, Counter[tuple[Outcome, str]]]:
        counts = _counts(self._session, Outcome.IMPORTED)
        if not self._dry_run:
            revert = next((one.revert for one in reversed(self._session.entries) if one.HasField("revert")), None)
            await self._append(self._session.properties, self._session.entries, 0, stored.revert_digest(revert))
        return Outcome.IMPORTED, counts

    async def _update(self) -> tuple[Outcome, Counter[tuple[Outcome, str]]]:
        there = await stored.read(self._log, self._session.session_id)
        if self._session.program not in there.programs:
            raise _NotOurs
        found = changes(self._session, there)
        if found.kept:
            reason = f"{found.kept} messages are not in this source; another brought them, and they stay"
            self._report.remark("session", "", reason, source=self._session.source, id=self._session.session_id)
        if found.reordered:
            reason = "messages have another order in the source now; those that are here keep their places"
            self._report.remark("session", "", reason, source=self._session.source, id=self._session.session_id)
        if found.empty:
            return Outcome.UNCHANGED, found.counts
        if not self._dry_run:
            await self._append_changes(found, there)
            if not self._appended:  # all that is new or changed was refused
                found.counts[Outcome.UNCHANGED, "session"] += found.counts.pop((Outcome.UPDATED, "session"), 0)
                return Outcome.UNCHANGED, found.counts
        return Outcome.UPDATED, found.counts

    async def _append_changes(self, found: Changes, there: stored.Stored) -> None:
        properties = found.properties
        self._idle = []
        if properties is None:
            properties = ledger.unmarked(there.folded.properties)
            properties.ClearField("forked_from")
            opened = there.folded.revert.revert if there.folded.revert is not None else None
            if found.revert == (there.by(self._session.source, stored.REVERT) or stored.NOTHING).decode():
                self._idle = [[], [v1.EntryInput(revert_clear=v1.RevertClear()), v1.EntryInput(revert=opened)]]
        await self._append(properties, found.entries, there.folded.revision, found.revert)

    async def _append(
        self, properties: v1.SessionProperties, entries: list[v1.EntryInput], head: int, revert: str
    ) -> None:
        """Append entries behind a head (0: create the session), each request with its mark."""
        left = len(entries)
        for batch in batches(entries) if entries else [[]]:
            left -= len(batch)
            cleared = "" if any(one.HasField("revert_clear") for one in batch) else None
            head = await self._append_batch(properties, batch, head, cleared if left else revert, last=not left)

    async def _append_batch(
        self,
        properties: v1.SessionProperties,
        batch: list[v1.EntryInput],
        head: int,
        revert: str | None,
        *,
        last: bool,
    ) -> int:
        """Append one batch, without what is refused; returns the new head."""
        while True:
            digest = self._digest if last and not self._refused and self._session.whole else ""
            mark = ledger.Mark(self._session.program, self._session.source, head + 1, len(batch), digest, revert)
            properties = ledger.marked(properties, mark)
            try:
                if head == 0 and not batch:
                    return (
                        await self._log.create_session(self._session.session_id, properties=properties)
                    ).head.revision
                if head == 0:
                    response = await self._log.append(
                        self._session.session_id, batch, create=properties, expected_revision=0
                    )
                else:
                    own = v1.EntryInput(session=properties)
                    response = await self._log.append(self._session.session_id, [own, *batch], expected_revision=head)
            except errors.TurnwireError as error:
                if not self._leave_out(batch, error, first=0 if head == 0 else 1):
                    raise
                if head and ((last and not self._appended and batch in self._idle) or (not last and not batch)):
                    return head
            else:
                self._appended = True
                return response.head.revision

    def _leave_out(self, batch: list[v1.EntryInput], error: errors.TurnwireError, *, first: int) -> bool:
        """Leave out the object that an error is about; False if it is about none.

        ``first``: how many entries stand before the batch in the request.
        """
        paths = [violation.path for violation in error.violations] if isinstance(error, errors.RuleViolation) else []
        for path in [*paths, error.path]:
            part, entry = _PART.match(path), _ENTRY.match(path)
            if len(self._refused) >= _MOST_REFUSED:
                return False
            if part is not None and first <= int(part[1]) < first + len(batch):
                parts = _parts(batch[int(part[1]) - first])
                if int(part[2]) < len(parts):
                    self._refuse("part", parts[int(part[2])].id, error)
                    del parts[int(part[2])]
                    return True
            elif entry is not None and first <= int(entry[1]) < first + len(batch):
                found = batch.pop(int(entry[1]) - first)
                name = found.part.part.id or found.summary.message_id or found.revert.message_id
                self._refuse(entry[2], name, error)
                return True
        return False

    def _refuse(self, kind: str, name: str, error: errors.TurnwireError) -> None:
        self._refused.append((kind, name, f"{error.reason_name or error.status}: {error}"))


def batches(entries: Iterable[v1.EntryInput]) -> Iterator[list[v1.EntryInput]]:
    """Cut entries into what fits into one append each."""
    batch: list[v1.EntryInput] = []
    size = 0
    for entry in entries:
        length = entry.ByteSize() + 8  # tag and length of the entry in the request
        if batch and (len(batch) == BATCH_ENTRIES or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch


def _parts(entry: v1.EntryInput) -> Any:
    return entry.user.user.parts if entry.HasField("user") else entry.assistant.assistant.parts


def _counts(session: SessionImport, fate: Outcome) -> Counter[tuple[Outcome, str]]:
    """The objects of a session, all of one fate."""
    counts: Counter[tuple[Outcome, str]] = Counter()
    counts[fate, "session"] += not session.headless  # which the reader has refused
    for entry in session.entries:
        kind = entry.WhichOneof("payload") or ""
        if kind in _KINDS:
            counts[fate, _KINDS[kind]] += 1
        if kind in ("user", "assistant"):
            counts[fate, "part"] += len(_parts(entry))
    return counts
