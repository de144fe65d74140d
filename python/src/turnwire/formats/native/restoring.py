"""Brings what Turnwire's own form holds back into a store, to equal digests."""

from __future__ import annotations

from turnwire import errors
from turnwire.embedded import Embedded
from turnwire.formats.native.reading import SessionLog
from turnwire.formats.report import Outcome, Report


async def restore(store: Embedded, log: SessionLog, report: Report, *, source: str = "") -> Outcome:
    """Bring back one session; what the store has of it already must be the same.

    ``IMPORTED``: it was not there; ``UPDATED``: entries were added behind those that were; ``UNCHANGED``; ``REFUSED``,
    and then nothing was changed. Raises `errors.Unavailable`, and whatever else is about the store.
    """
    session_id = log.session.id
    try:
        if not log.entries:
            shown = await store.get_session(session_id)
            if shown.head.revision < log.session.head.revision:
                raise errors.RevisionOutOfRange("an earlier file has the entries before")
            outcome, added = Outcome.UNCHANGED, 0
        else:
            restored = await store.restore(session_id, log.entries)
            added = restored.added
            begun = restored.head.revision == added
            outcome = Outcome.UNCHANGED if not added else Outcome.IMPORTED if begun else Outcome.UPDATED
    except (errors.Unavailable, errors.ResourceExhausted, errors.StoreReadOnly):
        raise
    except errors.TurnwireError as error:
        reason = f"{error.reason_name or error.status}: {error}"
        report.refused("session", "", reason, source=source, id=session_id)
        return Outcome.REFUSED
    report.count(outcome, "session")
    report.count(Outcome.IMPORTED, "entry", added)
    report.count(Outcome.UNCHANGED, "entry", len(log.entries) - added)
    return outcome
