"""Logs as they would lie in a store, made without a store, so that they may hold what no store takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.builders import THEN, properties, turn
from turnwire import v1
from turnwire.log import digest
from turnwire.log.raw import RawEntry
from turnwire.validation import Selection, SessionCheck

ID = "s"
#: When revision 1 was recorded, in microseconds since the epoch; each later entry a second after the one before.
RECORDED_US = THEN * 1_000_000


def raw(*entries: v1.EntryInput, session_id: str = ID, step_us: int = 1_000_000) -> list[RawEntry]:
    """A log of entries from revision 1 on, with times, so far apart, and digests."""
    chain = digest.start(session_id)
    found: list[RawEntry] = []
    for revision, entry in enumerate(entries, 1):
        name = entry.WhichOneof("payload")
        assert name is not None
        field = v1.Entry.DESCRIPTOR.fields_by_name[name].number
        payload: bytes = getattr(entry, name).SerializeToString(deterministic=True)
        recorded_us = RECORDED_US + revision * step_us
        chain = digest.link(chain, revision, recorded_us, field, payload)
        found.append(RawEntry(revision, recorded_us, chain, entry.ignorable, field, payload))
    return found


def chained(entries: Iterable[RawEntry], session_id: str = ID) -> list[RawEntry]:
    """The same entries with digests that fit them as they are."""
    chain = digest.start(session_id)
    found: list[RawEntry] = []
    for entry in entries:
        chain = digest.link(chain, entry.revision, entry.recorded_us, entry.field, entry.payload)
        found.append(entry._replace(digest=chain))
    return found


def opening() -> list[v1.EntryInput]:
    """Revisions 1 and 2: properties, and turn ``t``."""
    return [v1.EntryInput(session=properties(title="A talk")), turn()]


def head(entries: list[RawEntry]) -> v1.Head:
    """The head that a log of these entries has."""
    last = entries[-1]
    made = v1.Head(revision=last.revision, digest=last.digest)
    made.recorded.FromMicroseconds(last.recorded_us)
    return made


def found_in(
    entries: list[RawEntry],
    *,
    end: v1.Head | None = None,
    change: Callable[[SessionCheck], object] | None = None,
    selection: Selection | None = None,
) -> list[v1.Finding]:
    """What is found in a log. ``end``: what is said to be its head (None: its last entry); ``change``: before it."""
    run = SessionCheck(ID, selection=selection)
    try:
        if change is not None:
            change(run)
        for entry in entries:
            run.entry(entry)
        run.end(end or head(entries))
        return run.take()
    finally:
        run.close()


def found(*entries: v1.EntryInput) -> list[v1.Finding]:
    """What is found in a log of properties, turn ``t`` and these, all of one append."""
    return found_in(raw(*opening(), *entries, step_us=0))


def rules_of(findings: Iterable[v1.Finding]) -> list[str]:
    return [finding.rule for finding in findings]
