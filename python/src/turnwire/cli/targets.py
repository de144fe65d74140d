"""What ``turnwire validate`` goes through: stores, servers, files, and other programs' sessions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from google.protobuf.message import Message

from turnwire import errors, faults, ids, v1
from turnwire.calls.service import Service
from turnwire.cli.findings import Report
from turnwire.cli.output import Output, error_line, explain
from turnwire.cli.source import Source
from turnwire.cli.text import plural, size
from turnwire.embedded import open as open_store
from turnwire.formats import native
from turnwire.formats.base import EVERYTHING, Wanted
from turnwire.store import sqlite_check, sqlite_compare, sqlite_errors
from turnwire.validation import Selection, files, values
from turnwire.validation.findings import Findings
from turnwire.validation.imports import Import

_PAGE = 1000
_NO_FILE = "neither a regular file nor a directory; nothing else is opened"
#: What says that the log is damaged, so that the index, which is compared with it, would seem to be too.
_DAMAGE = frozenset(
    (
        *("session.digest", "session.first", "session.head", "session.recorded", "session.revision"),
        *("storage.bytes", "storage.form", "storage.unreadable"),
    )
)
#: Without these nothing can be said of any session.
_NEEDED = frozenset(("table session", "table entry"))


class Targets:
    """One run of the command over all its targets: what cannot be read stops no other."""

    def __init__(
        self, source: Source, out: Output, selection: Selection, names: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        """``names``: what ``selection`` was made of, for a server to make it again."""
        self.report = Report(out)
        self.seen: set[str] = set()  # ids of sessions that were in a target, or of which it was said that they are not
        self._source = source
        self._out = out
        self._selection = selection
        self._select, self._ignore = names
        self._named: Sequence[str] = ()
        self._index_unread: set[Path] = set()

    def unreadable(self, target: str, why: str) -> None:
        """Say that a target could not be read."""
        self.report.tally.unreadable += 1
        error_line(f"{target}: {why}")

    async def store(self, named: Sequence[str], wanted: Sequence[str]) -> None:
        """The sessions of the store or server that the options name; ``named`` and ``wanted``: these only.

        ``named`` are targets that are no paths.
        """
        self._named = named
        if self._source.server is None:
            try:
                path = self._source.file(create=False)
            except errors.TurnwireError as error:
                for each in named:
                    self.unreadable(each, f"neither a file nor a session: {error}")
                if not named:
                    self.unreadable(self._source.name, str(error))
                self.seen.update(wanted)
            else:
                if path.is_file():
                    await self._database(path, wanted, named)
                else:
                    self.unreadable(str(path), _NO_FILE)
            return
        wanted = [*named, *wanted]
        try:
            async with self._source.open() as client:
                heads = dict.fromkeys(wanted, 0)
                if not wanted:
                    heads = {each.id: each.head.revision async for each in client.list_sessions(page_size=_PAGE)}
                await self._sessions(client, heads, "")
        except errors.TurnwireError as error:
            self.unreadable(self._source.name, explain(error))

    async def path(self, path: Path, cls: type[Message] | None, stored: bool | None, wanted: list[str]) -> None:
        """Whatever is at a path."""
        try:
            if not path.is_file() and not path.is_dir():
                self.unreadable(str(path), _NO_FILE)
                return
            if path.is_file() and sqlite_check.is_store(path):
                await self._database(path, wanted)
                return
            own = await self._inside(path, wanted) if path.is_dir() and cls is None else False
            found = Import.at(path) if cls is None else None
            if found is not None:
                only = Wanted(frozenset(wanted)) if wanted else EVERYTHING
                await self._steps(found.check(self._selection, only), found.count(), "reading", _sessions_a_second)
            elif path.is_dir():
                if not own:
                    self.unreadable(str(path), "nothing that can be checked is there")
            elif cls is None and sqlite_check.damaged_database(path):
                text = "a SQLite database whose header or first page is damaged, or of a program that is not known"
                self.unreadable(str(path), text)
            else:
                await self._file(path, wanted, cls, stored)
        except files.Unreadable as error:
            self.unreadable(str(path), str(error))
        except OSError as error:
            self.unreadable(str(path), f"it cannot be read: {error.strerror or error}")

    async def _inside(self, folder: Path, wanted: list[str]) -> bool:
        """The stores and exports of Turnwire in a directory; whether there are any. Raises OSError."""
        found = False
        for each in sorted(folder.iterdir()):
            if not each.is_file():
                continue
            if sqlite_check.is_store(each) or native.is_native(each):
                found = True
                await self.path(each, None, None, wanted)
        return found

    async def _file(self, path: Path, wanted: list[str], cls: type[Message] | None, stored: bool | None) -> None:
        steps = files.check(path, self._selection, cls=cls, stored=stored, wanted=frozenset(wanted))
        await self._steps(steps, path.stat().st_size, "reading", _bytes_a_second)

    async def _steps(self, steps: Iterator[files.Step], total: int, what: str, rate: Callable[[float], str]) -> None:
        last = files.Step([])
        with self.report.progress(self._out.progress(what, while_writing=False, rate=rate), total or None):
            for step in steps:
                self.report.add(step.findings)
                self.report.done(step.done)
                self.seen |= step.seen
                self._count(last, -1)
                self._count(step, 1)
                last = step
                await asyncio.sleep(0)  # an interrupt is heeded here

    def _count(self, step: files.Step, sign: int) -> None:
        tally = self.report.tally
        tally.sessions += sign * step.sessions
        tally.entries += sign * step.entries
        tally.messages += sign * step.messages

    async def _database(self, path: Path, wanted: Sequence[str], named: Sequence[str] = ()) -> None:
        """A store's file: its pages, then its sessions, of which a damaged one stops no other.

        ``wanted``: these only, as far as they are there, and those that are ``named``, which must be.
        """
        found = Findings(self._selection, source=str(path))
        for told in await asyncio.to_thread(sqlite_check.faults, path):
            found.add("storage.database", value=told)
        self.report.add(found.take())
        try:
            async with open_store(path, read_only=True) as client:
                missing = await asyncio.to_thread(sqlite_check.missing, path)
                known = await asyncio.to_thread(_look, path, missing, found)
                self.report.add(found.take())
                heads = known
                if wanted or named:
                    there = [*named, *(each for each in wanted if each in known)]
                    heads = {each: known.get(each, 0) for each in there}
                await self._sessions(client, heads, str(path), store=None if missing else path)
        except errors.StoreForeign as error:
            stamped = path.is_file() and sqlite_check.is_store(path)
            self.unreadable(
                str(path), "the header or first page of the store is damaged" if stamped else explain(error)
            )
        except errors.TurnwireError as error:
            self.unreadable(str(path), explain(error))
        except sqlite3.Error as error:
            self.unreadable(str(path), f"it cannot be read: {error}")

    async def _sessions(
        self, client: Service, heads: Mapping[str, int], source: str, store: Path | None = None
    ) -> None:
        """Sessions by their ids, each with about how many entries it has (0: not known).

        ``store``: the file whose index is to be compared with the logs.
        """
        bar = self._out.progress("validating", while_writing=False, rate=_entries_a_second)
        before = 0
        with self.report.progress(bar, sum(heads.values()) or None):
            for id, head in heads.items():
                await self._session(client, id, source, before, store)
                before += head

    async def _session(self, client: Service, id: str, source: str, before: int, store: Path | None) -> None:
        rules: set[str] = set()
        self.seen.add(id)

        def summary(summary: v1.ValidationSummary) -> None:
            self.report.tally.entries += summary.checked

        try:
            findings = client.validate_session(
                id,
                select=self._select,
                ignore=self._ignore,
                on_progress=lambda revision: self.report.done(before + revision),
                on_summary=summary,
            )
            async with aclosing(findings):
                async for finding in findings:
                    finding.source = source
                    if finding.severity == v1.Severity.SEVERITY_ERROR:
                        rules.add(finding.rule)
                    self.report.add([finding])
            if store is not None and rules.isdisjoint(_DAMAGE):
                self.report.add(await asyncio.to_thread(self._index, store, id, bool(rules)))
        except errors.DataLoss as error:
            # Not even its end can be told.
            found = Findings(self._selection, session_id=id, source=source)
            found.add("storage.unreadable", text=str(error))
            self.report.add(found.take())
        except errors.NotFound as error:
            what = "neither a file nor a session: " if id in self._named else ""
            self.unreadable(id, what + explain(error))
            return
        except (errors.Unavailable, errors.InvalidArgument):
            raise  # the same for every session
        except errors.TurnwireError as error:
            self.unreadable(id, f"it could not be checked to its end: {explain(error)}")
            return
        except Exception as error:
            if faults.shown():
                raise
            self.unreadable(id, f"it could not be checked to its end: {faults.told(error)}")
            return
        self.report.tally.sessions += 1

    def _index(self, store: Path, id: str, wrong: bool) -> list[v1.Finding]:
        """Compare the index with the log. ``wrong``: the log is known to contradict itself. Raises TurnwireError."""
        found = Findings(self._selection, session_id=id, source=str(store))
        try:
            for table, rows, text in sqlite_compare.differences(store, id):
                found.add("storage.index", place=f"table {table}", value=plural(rows, "row"), expected=text)
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
        return found.take()


def _look(path: Path, missing: Sequence[str], found: Findings) -> dict[str, int]:
    """What a store's file has as a whole, and its sessions with about how many entries each has."""
    for what in missing:
        found.add("storage.table", value=what)
    if not _NEEDED.isdisjoint(missing):
        return {}
    for key, tables in sqlite_check.orphans(path).items():
        found.add("storage.orphan", place=f"session key {key}", value=", ".join(tables))
    sessions, others = sqlite_check.sessions(path)
    for each in sessions:
        if not ids.valid(each.id):
            found.add("storage.id", place=f"session key {each.key}", value=values.short(each.id))
    if others:
        found.add("storage.tenants", value=plural(others, "session"))
    return {each.id: each.head for each in sessions if ids.valid(each.id)}


def _entries_a_second(speed: float) -> str:
    return f"{plural(round(speed), 'entry')}/s"


def _sessions_a_second(speed: float) -> str:
    return f"{speed:.1f} sessions/s"


def _bytes_a_second(speed: float) -> str:
    return f"{size(round(speed))}/s"
