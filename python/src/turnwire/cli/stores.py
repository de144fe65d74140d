"""What ``turnwire validate`` does with a store's file, and with the sessions of a store or server."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

from turnwire import errors, faults, ids, v1
from turnwire.calls.service import Service
from turnwire.cli.findings import Report
from turnwire.cli.output import Output, explain
from turnwire.cli.text import plural
from turnwire.embedded import open as open_store
from turnwire.store import sqlite_check, sqlite_compare, sqlite_errors
from turnwire.validation import Selection, replies, values
from turnwire.validation.findings import Findings

#: What says that the log is damaged, so that the index, which is compared with it, would seem to be too.
_DAMAGE: Final = frozenset(
    (
        *("session.digest", "session.first", "session.head", "session.recorded", "session.revision"),
        *("storage.bytes", "storage.form", "storage.unreadable"),
    )
)
#: Without these nothing can be said of any session.
_NEEDED: Final = frozenset(("table session", "table entry"))


class Session(NamedTuple):
    """A session that is to be checked, and about how many entries it has (0: not known).

    ``key``: the one that it has in a file with which its log is to be compared; 0: it is not.
    """

    id: str
    head: int = 0
    key: int = 0


class Stores:
    """Checks sessions one after another; what is wrong with one stops no other."""

    def __init__(
        self, report: Report, out: Output, selection: Selection, names: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        """``names``: what ``selection`` was made of, for a server to make it again."""
        self.seen: set[str] = set()  # ids of sessions that were wanted or named, and were there
        self._report = report
        self._out = out
        self._selection = selection
        self._select, self._ignore = names
        self._index_unread: set[Path] = set()

    async def file(self, path: Path, wanted: Sequence[str], named: Sequence[str] = ()) -> None:
        """A store's file: its pages, then its sessions, of which a damaged one stops no other.

        ``wanted``: these only, as far as they are there, and those that are ``named``, which must be.
        """
        found = Findings(self._selection, source=str(path))
        for told in await self._faults(path):
            found.add("storage.database", value=told)
        self._report.add(found.take())
        try:
            async with open_store(path, read_only=True) as client:
                missing, changed = await asyncio.to_thread(sqlite_check.schema, path)
                for what in changed:
                    found.add("storage.table", value=what, text="a table or an index is described in other words")
                total = await asyncio.to_thread(_look, path, missing, found)
                self._report.add(found.take())
                whole = _NEEDED.isdisjoint(missing)
                there = sqlite_check.sessions(path) if whole else iter(())
                keyed = not missing
                sessions: Iterator[Session] = (
                    Session(one.id, one.head, one.key * keyed) for one in there if ids.valid(one.id)
                )
                if wanted or named:
                    only = {*wanted, *named}
                    chosen = {one.id: one for one in sessions if one.id in only}
                    chosen = {id: Session(id) for id in named} | chosen
                    self.seen.update(chosen)
                    sessions, total = iter(chosen.values()), sum(one.head for one in chosen.values())
                await self.sessions(client, sessions, total, str(path), named, store=path if keyed else None)
        except errors.StoreForeign as error:
            stamped = path.is_file() and sqlite_check.is_store(path)
            why = "the header or first page of the store is damaged" if stamped else explain(error)
            self._report.unreadable(str(path), why)
        except errors.TurnwireError as error:
            self._report.unreadable(str(path), explain(error))
        except sqlite3.Error as error:
            self._report.unreadable(str(path), f"it cannot be read: {error}")
        except UnicodeDecodeError:  # SQLite's own words quote what is damaged
            self._report.unreadable(str(path), "it cannot be read: malformed database schema")

    async def _faults(self, path: Path) -> list[str]:
        """What SQLite says of the pages of a file. An interrupt ends it."""
        stopped = Event()
        try:
            with self._report.progress(self._out.progress("looking at all pages", while_writing=False), None):
                return await asyncio.to_thread(sqlite_check.faults, path, stopped)
        finally:
            stopped.set()

    async def sessions(
        self,
        client: Service,
        sessions: Iterable[Session],
        total: int,
        source: str,
        named: Sequence[str] = (),
        store: Path | None = None,
    ) -> None:
        """Sessions of a client, with about ``total`` entries (0: not known).

        ``store``: the file that has them, which is gone through a second time to compare its index with the logs.
        """
        passes = 1 if store is None else 2
        bar = self._out.progress(
            "validating", while_writing=False, rate=lambda speed: f"{plural(round(speed / passes), 'entry')}/s"
        )
        before = 0
        with self._report.progress(bar, passes * total or None):
            for session in sessions:
                await self._session(client, session, source, before, session.id in named, store)
                before += passes * session.head
                self._report.done(before)

    async def _session(
        self, client: Service, session: Session, source: str, before: int, named: bool, store: Path | None
    ) -> None:
        rules: set[str] = set()
        id = session.id

        def summary(summary: v1.ValidationSummary) -> None:
            self._report.tally.entries += summary.checked

        try:
            findings = client.validate_session(
                id,
                select=self._select,
                ignore=self._ignore,
                on_progress=lambda revision: self._report.done(before + revision),
                on_summary=summary,
            )
            async with aclosing(findings):
                async for finding in findings:
                    finding.source = source
                    if finding.severity == v1.Severity.SEVERITY_ERROR:
                        rules.add(finding.rule)
                    self._report.add([finding])
            if store is not None and session.key:
                self._beside(store, session, source, _DAMAGE.isdisjoint(rules))
                if rules.isdisjoint(_DAMAGE):
                    await self._index(store, session, bool(rules), before + session.head)
        except errors.DataLoss as error:
            # Not even its end can be told.
            found = Findings(self._selection, session_id=id, source=source)
            found.add("storage.unreadable", text=str(error))
            self._report.add(found.take())
        except errors.NotFound as error:
            what = "neither a file nor a session: " if named else ""
            self._report.unreadable(id, what + explain(error))
            return
        except (errors.Unavailable, errors.InvalidArgument):
            raise  # the same for every session
        except errors.TurnwireError as error:
            self._report.unreadable(id, f"it could not be checked to its end: {explain(error)}")
            return
        except Exception as error:
            if faults.shown():
                raise
            self._report.unreadable(id, f"it could not be checked to its end: {faults.told(error)}")
            return
        self._report.tally.sessions += 1

    def _beside(self, store: Path, session: Session, source: str, whole: bool) -> None:
        """What follows from no entry: the replies to request ids, and digests that are not kept yet.

        ``whole``: the log is not damaged, so that its digests are right.
        """
        found = Findings(self._selection, session_id=session.id, source=source)
        try:
            bare = sqlite_check.without_digest(store, session.id)
            if bare is not None:
                first, last = bare
                found.add("storage.no_digest", revision=first, value=f"revisions {first:,} to {last:,}")
            last = bare[1] if bare is not None else session.head
            with closing(sqlite_check.Digests(store, session.id)) as digests:
                for reply in sqlite_check.replies(store, session.key):
                    replies.check(reply, session.id, last, digests.at if whole else _unknown, found)
                    self._report.add(found.take())
        except sqlite3.DatabaseError:
            pass  # a damaged page, of which the check of all pages has told
        self._report.add(found.take())

    async def _index(self, store: Path, session: Session, wrong: bool, before: int) -> None:
        """Compare the index with the log. ``wrong``: the log is known to contradict itself. Raises TurnwireError."""
        found = Findings(self._selection, session_id=session.id, source=str(store))
        try:
            for step in sqlite_compare.compare(store, session.id):
                for table, rows, text in step.found:
                    found.add("storage.index", place=f"table {table}", value=plural(rows, "row"), expected=text)
                self._report.done(before + step.done * session.head)
                await asyncio.sleep(0)  # an interrupt is heeded here
        except sqlite_compare.Unfit:
            if not wrong:
                found.add("storage.index", text="the log cannot be laid out as a server does, to compare the index")
        except sqlite3.Error as error:
            meaning = sqlite_errors.translate(error)
            if not isinstance(meaning, errors.DataLoss):
                raise meaning from error
            if store not in self._index_unread:  # a page that is damaged may have to do with every session
                self._index_unread.add(store)
                text = "the index of this session, and perhaps of others, cannot be read"
                found.add("storage.unreadable", text=text)
        self._report.add(found.take())


def _unknown(revision: int) -> bytes:
    """The digest of a log of which nothing can be said."""
    return b""


def _look(path: Path, missing: Sequence[str], found: Findings) -> int:
    """What a store's file has as a whole, and about how many entries its sessions have in all."""
    for what in missing:
        found.add("storage.table", value=what)
    if not _NEEDED.isdisjoint(missing):
        return 0
    for key, tables in sqlite_check.orphans(path).items():
        found.add("storage.orphan", place=f"session key {key}", value=", ".join(tables))
    total = 0
    for each in sqlite_check.sessions(path):
        total += each.head
        if not ids.valid(each.id):
            found.add("storage.id", place=f"session key {each.key}", value=values.short(each.id))
    if "table deleted" not in missing:
        try:
            _deleted(path, found)
        except sqlite3.DatabaseError as error:  # of a damaged page the check of all pages has told
            if not isinstance(sqlite_errors.translate(error), errors.DataLoss):
                raise
    others = sqlite_check.of_others(path)
    if others:
        found.add("storage.tenants", value=plural(others, "session"))
    return total


def _deleted(path: Path, found: Findings) -> None:
    """What a store keeps of sessions that were deleted. Raises sqlite3.Error."""
    for id in sqlite_check.resurrected(path):
        found.add("storage.deleted", value=values.short(id))
    for id in sqlite_check.tombstones(path):
        if not ids.valid(id):
            text = "a deleted session whose id is none, so that nothing keeps its right id from being used again"
            found.add("storage.id", place="table deleted", value=values.short(id), text=text)
