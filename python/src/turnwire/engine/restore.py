"""Restore: bring back entries that were read from a log, as they were, times of recording and digests included.

This is no method of the service: whoever may call it can say when something was recorded. It is for a program that has
the store itself, and takes what `turnwire.formats.native` has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwire import errors, ids, v1
from turnwire.engine.appends import blank
from turnwire.engine.core import Caller, Core, head_of, living
from turnwire.log import plan, raw, unwritten
from turnwire.log.draft import Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import Change, SessionRow, View


class Restored(NamedTuple):
    """The head after a restore, and how many of the entries were new."""

    head: v1.Head
    added: int


class Restores(Core):
    """The method that restores a session."""

    async def restore(self, caller: Caller, session_id: str, entries: Sequence[bytes]) -> Restored:
        """Append serialized entries of a log, all or none, with the revisions, times and digests that they have.

        They are dense. A new session begins with revision 1; one that is there goes on behind its head, and entries
        that it has already must be the same, which their digests tell. What only the session can tell is checked as in
        an append. Limits and forms that the schema sets are not checked again: what was legal when it was written
        stays. What never was is refused: see `turnwire.log.unwritten`.

        Raises ``CorruptData`` if the entries are damaged, are not those of this session, by the digests, or are such
        as no server writes;
        ``RevisionOutOfRange`` if they begin behind the head; ``RevisionConflict`` if the session has others at their
        place; ``SessionDeleted``.
        """
        if not ids.valid(session_id):
            raise errors.RuleViolation([errors.Violation("session_id", "string.pattern", "no id of a session")])
        found = [_entry(data) for data in entries]
        if not found or any(one.revision != found[0].revision + at for at, one in enumerate(found)):
            raise errors.CorruptData("the entries are not dense")
        ready = [_prepared(one) for one in found]
        await self._compare(caller, session_id, found)

        def step(view: View) -> tuple[Change | None, Restored]:
            session = living(view, session_id)
            head = session.head if session is not None else 0
            if found[0].revision > head + 1:
                detail = v1.RevisionConflict(expected=found[0].revision - 1, actual=head)
                raise errors.RevisionOutOfRange(f"the head is {head}", detail=detail, path="entries")
            new = [at for at, one in enumerate(found) if one.revision > head]
            if not new:
                assert session is not None
                return None, Restored(head_of(session), 0)
            if session is not None and new[0] and found[new[0] - 1].digest != session.digest:
                raise _other(head)
            start = session or blank(caller.tenant, session_id, found[0].recorded_us)
            draft = _Draft(view, start, found[new[0] :])
            for group in _groups([ready[at] for at in new]):
                draft.admit(group)
            return draft.change(None), Restored(head_of(draft.session), len(new))

        return await self.store.write(caller.tenant, session_id, step)

    async def _compare(self, caller: Caller, session_id: str, found: Sequence[raw.RawEntry]) -> None:
        """See to it that a session which is longer has the last of the entries."""
        try:
            session = await self.store.session(caller.tenant, session_id)
        except errors.SessionNotFound:
            return
        last = found[-1]
        if last.revision <= session.head:
            (row,) = await self.store.entries(session, last.revision, last.revision, 1)
            if row.digest != last.digest:
                raise _other(last.revision)


class _Draft(Draft):
    """A draft whose entries get the times that they had, and must come to the digests that they had."""

    def __init__(self, view: View, session: SessionRow, entries: Sequence[raw.RawEntry]) -> None:
        super().__init__(view, session, entries[0].recorded_us)
        self._wanted = {one.revision: one for one in entries}

    def record(self, field: int, payload: bytes, *, previous: int = 0, ignorable: bool = False) -> int:
        wanted = self._wanted[self.next]
        self._now_us = wanted.recorded_us
        revision = super().record(field, payload, previous=previous, ignorable=ignorable)
        if self.session.digest != wanted.digest:
            raise errors.CorruptData("an entry does not have its digest", revision=revision)
        return revision

    def admit(self, entries: Sequence[Prepared]) -> None:
        """Admit entries of known payloads, or a single one of an unknown payload."""
        first = entries[0]
        if v1.Entry.DESCRIPTOR.fields_by_number.get(first.field) is None:
            self.record(first.field, first.payload, ignorable=first.ignorable)
            return
        before = self.session.head
        plan.plan(self, entries)
        if self.session.head != before + len(entries):
            raise errors.CorruptData("entries that no server has written: some change nothing", revision=before + 1)


def _groups(entries: Sequence[Prepared]) -> list[list[Prepared]]:
    """The entries cut before and after each one whose payload this build does not know."""
    groups: list[list[Prepared]] = []
    known = False
    for entry in entries:
        here = entry.field in v1.Entry.DESCRIPTOR.fields_by_number
        if here and known:
            groups[-1].append(entry)
        else:
            groups.append([entry])
        known = here
    return groups


def _entry(data: bytes) -> raw.RawEntry:
    try:
        return raw.entry(data)
    except ValueError as error:
        raise errors.CorruptData(f"damaged: {error}") from None


def _prepared(entry: raw.RawEntry) -> Prepared:
    try:
        ready = raw.prepared(entry)
    except ValueError as error:
        raise errors.CorruptData(f"damaged: {error}", revision=entry.revision) from None
    why = unwritten.why(ready, entry.revision)
    if why:
        raise errors.CorruptData(f"an entry that no server has written: {why}", revision=entry.revision)
    return ready


def _other(revision: int) -> errors.RevisionConflict:
    return errors.RevisionConflict(
        f"the session has another entry at revision {revision}",
        detail=v1.RevisionConflict(expected=revision, actual=revision),
        path="entries",
    )
