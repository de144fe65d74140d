"""What becomes of sessions that a source brought once and has no more.

They stay, and the report says so. Only on demand are they deleted, and then only those that hold nothing but what that
source brought: a session to which something was added here, or that another source knows, stays in any case. Sessions
that a deleted one started are sessions by themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Final, Protocol

from turnwire import v1
from turnwire.formats import ledger, stored
from turnwire.formats.load import Log
from turnwire.formats.report import Outcome, Report

_PAGE: Final = 1000
_KEPT: Final = "no longer in the source, kept"


class Store(Log, Protocol):
    """What an import needs of a client."""

    def list_sessions(self, *, page_size: int = 100) -> AsyncIterator[v1.Session]:
        """All sessions; see `turnwire.Client.list_sessions`."""
        ...

    async def delete_session(self, session_id: str) -> list[str]:
        """Delete a session; see `turnwire.Client.delete_session`."""
        ...


async def find(store: Store, program: str, sources: Collection[str], present: Collection[str]) -> list[tuple[str, str]]:
    """The sessions that one of some sources brought last and that are not ``present`` there: ids, and the sources.

    A fork is none of them: it was made here.
    """
    found: list[tuple[str, str]] = []
    async for shown in store.list_sessions(page_size=_PAGE):
        mark = ledger.mark_of(shown.properties)
        if mark is None or mark.program != program or mark.source not in sources or shown.id in present:
            continue
        if not shown.properties.HasField("forked_from") and (shown.id, mark.source) not in found:
            found.append((shown.id, mark.source))
    return found


async def settle(store: Store, session_id: str, source: str, report: Report, *, remove: bool, dry_run: bool) -> Outcome:
    """Say in the report that a session is gone from its source; with ``remove`` delete it, if it may be."""
    reason = _KEPT
    if remove:
        there = await stored.read(store, session_id)
        if there.own or there.sources != {source}:
            reason = f"{_KEPT}: it holds what this source did not bring"
        else:
            if not dry_run:
                await store.delete_session(session_id)
            report.count(Outcome.REMOVED, "session")
            return Outcome.REMOVED
    report.left("session", "", reason, source=source, id=session_id)
    return Outcome.LEFT
