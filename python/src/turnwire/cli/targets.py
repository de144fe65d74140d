"""What ``turnwire validate`` goes through: stores, servers, files, and other programs' sessions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from google.protobuf.message import Message

from turnwire import errors, v1
from turnwire.calls.service import Service
from turnwire.cli.findings import Report
from turnwire.cli.output import Output, error_line, explain
from turnwire.cli.source import Source
from turnwire.cli.text import plural, size
from turnwire.embedded import open as open_store
from turnwire.formats.base import EVERYTHING, Wanted
from turnwire.store import sqlite_check
from turnwire.validation import Selection, files
from turnwire.validation.findings import Findings
from turnwire.validation.imports import Import

_PAGE = 1000


class Targets:
    """One run of the command over all its targets: what cannot be read stops no other."""

    def __init__(
        self, source: Source, out: Output, selection: Selection, names: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        """``names``: what ``selection`` was made of, for a server to make it again."""
        self.report = Report(out)
        self._source = source
        self._out = out
        self._selection = selection
        self._select, self._ignore = names

    def unreadable(self, target: str, why: str) -> None:
        """Say that a target could not be read."""
        self.report.tally.unreadable += 1
        error_line(f"{target}: {why}")

    async def store(self, wanted: list[str]) -> None:
        """The sessions of the store or server that the options name; ``wanted``: these only."""
        if self._source.server is None:
            try:
                path = self._source.file(create=False)
            except errors.TurnwireError as error:
                self.unreadable(self._source.name, str(error))
            else:
                await self._database(path, wanted)
            return
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
            if path.is_file() and sqlite_check.is_store(path):
                await self._database(path, wanted)
                return
            found = Import.at(path) if cls is None else None
            if found is not None:
                only = Wanted(frozenset(wanted)) if wanted else EVERYTHING
                await self._steps(found.check(self._selection, only), found.count(), "reading", _sessions_a_second)
            elif path.is_dir():
                self.unreadable(str(path), "nothing that can be checked is there")
            else:
                steps = files.check(path, self._selection, cls=cls, stored=stored)
                await self._steps(steps, path.stat().st_size, "reading", _bytes_a_second)
        except files.Unreadable as error:
            self.unreadable(str(path), str(error))
        except OSError as error:
            self.unreadable(str(path), f"it cannot be read: {error.strerror or error}")

    async def _steps(self, steps: Iterator[files.Step], total: int, what: str, rate: Callable[[float], str]) -> None:
        last = files.Step([])
        with self.report.progress(self._out.progress(what, while_writing=False, rate=rate), total or None):
            for step in steps:
                self.report.add(step.findings)
                self.report.done(step.done)
                self._count(last, -1)
                self._count(step, 1)
                last = step
                await asyncio.sleep(0)  # an interrupt is heeded here

    def _count(self, step: files.Step, sign: int) -> None:
        tally = self.report.tally
        tally.sessions += sign * step.sessions
        tally.entries += sign * step.entries
        tally.messages += sign * step.messages

    async def _database(self, path: Path, wanted: Sequence[str]) -> None:
        """A store's file: its pages, then its sessions, of which a damaged one stops no other."""
        found = Findings(self._selection, source=str(path))
        for fault in await asyncio.to_thread(sqlite_check.faults, path):
            found.add("storage.database", value=fault)
        self.report.add(found.take())
        try:
            known = {each.id: each.head for each in await asyncio.to_thread(sqlite_check.sessions, path)}
            heads = {each: known.get(each, 0) for each in wanted} or known
            async with open_store(path, read_only=True) as client:
                await self._sessions(client, heads, str(path))
        except errors.TurnwireError as error:
            self.unreadable(str(path), explain(error))
        except sqlite3.Error as error:
            self.unreadable(str(path), f"it cannot be read: {error}")

    async def _sessions(self, client: Service, heads: Mapping[str, int], source: str) -> None:
        """Sessions by their ids, each with about how many entries it has (0: not known)."""
        bar = self._out.progress("validating", while_writing=False, rate=_entries_a_second)
        before = 0
        with self.report.progress(bar, sum(heads.values()) or None):
            for id, head in heads.items():
                await self._session(client, id, source, before)
                before += head

    async def _session(self, client: Service, id: str, source: str, before: int) -> None:
        def summary(summary: v1.ValidationSummary) -> None:
            self.report.tally.entries += summary.checked

        findings = client.validate_session(
            id,
            select=self._select,
            ignore=self._ignore,
            on_progress=lambda revision: self.report.done(before + revision),
            on_summary=summary,
        )
        try:
            async with aclosing(findings):
                async for finding in findings:
                    finding.source = source
                    self.report.add([finding])
        except errors.DataLoss as error:
            # Not even its end can be told.
            found = Findings(self._selection, session_id=id, source=source)
            found.add("storage.unreadable", text=str(error))
            self.report.add(found.take())
        except errors.NotFound as error:
            self.unreadable(id, explain(error))
            return
        self.report.tally.sessions += 1


def _entries_a_second(speed: float) -> str:
    return f"{plural(round(speed), 'entry')}/s"


def _sessions_a_second(speed: float) -> str:
    return f"{speed:.1f} sessions/s"


def _bytes_a_second(speed: float) -> str:
    return f"{size(round(speed))}/s"
