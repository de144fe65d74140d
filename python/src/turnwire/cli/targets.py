"""What ``turnwire validate`` goes through: stores, servers, files, and other programs' sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from google.protobuf.message import Message

from turnwire import errors
from turnwire.calls.service import Service
from turnwire.cli.findings import Report
from turnwire.cli.output import Output, explain
from turnwire.cli.source import Source
from turnwire.cli.stores import Session, Stores
from turnwire.cli.text import size
from turnwire.formats import native
from turnwire.formats.base import EVERYTHING, Wanted
from turnwire.store import sqlite_check
from turnwire.validation import Selection, files
from turnwire.validation.imports import Import

_PAGE = 1000
_NO_FILE = "neither a regular file nor a directory; nothing else is opened"
_BESIDE = ("-wal", "-shm", "-journal")  # files that SQLite has beside a database
_MOST_PASSED = 5


class Targets:
    """One run of the command over all its targets: what cannot be read stops no other."""

    def __init__(
        self, source: Source, out: Output, selection: Selection, names: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        """``names``: what ``selection`` was made of, for a server to make it again."""
        self.report = Report(out)
        self._stores = Stores(self.report, out, selection, names)
        self._seen: set[str] = set()  # ids of sessions that were in a file, or of which it was said that they are not
        self._source = source
        self._out = out
        self._selection = selection

    @property
    def seen(self) -> set[str]:
        """The ids of sessions that were in a target, or of which it was said that they are not."""
        return self._seen | self._stores.seen

    async def store(self, named: Sequence[str], wanted: Sequence[str]) -> None:
        """The sessions of the store or server that the options name; ``named`` and ``wanted``: these only.

        ``named`` are targets that are no paths.
        """
        if self._source.server is None:
            try:
                path = self._source.file(create=False)
            except errors.TurnwireError as error:
                for each in named:
                    self.report.unreadable(each, f"neither a file nor a session: {error}")
                if not named:
                    self.report.unreadable(self._source.name, str(error))
                self._seen.update(wanted)
            else:
                if path.is_file():
                    await self._stores.file(path, wanted, named)
                else:
                    self.report.unreadable(str(path), _NO_FILE)
            return
        wanted = [*named, *wanted]
        self._seen.update(wanted)
        try:
            async with self._source.open() as client:
                sessions = [await _named(client, each) for each in wanted]
                if not wanted:
                    listed = client.list_sessions(page_size=_PAGE)
                    sessions = [Session(each.id, each.head.revision) async for each in listed]
                total = sum(each.head for each in sessions)
                await self._stores.sessions(client, sessions, total, "", named)
        except errors.TurnwireError as error:
            self.report.unreadable(self._source.name, explain(error))

    async def path(self, path: Path, cls: type[Message] | None, stored: bool | None, wanted: list[str]) -> None:
        """Whatever is at a path. ``cls`` and ``stored`` are those of `files.check`."""
        try:
            if path.is_dir():
                await self._folder(path, cls, stored, wanted)
            else:
                await self._one(path, cls, stored, wanted)
        except files.Unreadable as error:
            self.report.unreadable(str(path), str(error))
        except OSError as error:
            self.report.unreadable(str(path), f"it cannot be read: {error.strerror or error}")

    async def _one(self, path: Path, cls: type[Message] | None, stored: bool | None, wanted: list[str]) -> None:
        """A file. Raises OSError, and `files.Unreadable` for what is in no known form."""
        if not path.is_file():
            self.report.unreadable(str(path), _NO_FILE)
            return
        if sqlite_check.is_store(path):
            await self._stores.file(path, wanted)
            return
        found = Import.at(path) if cls is None else None
        if found is not None:
            await self._import(found, wanted)
        elif cls is None and sqlite_check.damaged_database(path):
            text = "a SQLite database whose header or first page is damaged, or of a program that is not known"
            self.report.unreadable(str(path), text)
        else:
            steps = files.check(path, self._selection, cls=cls, stored=stored, wanted=frozenset(wanted))
            await self._steps(steps, path.stat().st_size, "reading", _bytes_a_second)

    async def _folder(self, folder: Path, cls: type[Message] | None, stored: bool | None, wanted: list[str]) -> None:
        """What is directly in a directory, and what another program keeps there. Raises OSError."""
        found = Import.at(folder) if cls is None else None
        nothing = found is None
        passed: list[str] = []
        for each in sorted(folder.iterdir()):
            if found is not None and found.has(each) and not _is_own(each):
                continue
            if not each.is_file():
                passed.append(f"{each.name}/" if each.is_dir() else each.name)
            elif not _is_beside(each):
                try:
                    await self._one(each, cls, stored, wanted)
                    nothing = False
                except files.Unreadable:
                    passed.append(each.name)
                except OSError as error:
                    self.report.unreadable(str(each), f"it cannot be read: {error.strerror or error}")
        if found is not None:
            await self._import(found, wanted)
        if nothing:
            raise files.Unreadable("nothing that can be checked is there")
        if passed:
            more = f" and {len(passed) - _MOST_PASSED:,} more" if len(passed) > _MOST_PASSED else ""
            names = ", ".join(passed[:_MOST_PASSED])
            self._out.note(f"{folder}: passed over what is in no form that is known: {names}{more}")

    async def _import(self, found: Import, wanted: list[str]) -> None:
        only = Wanted(frozenset(wanted)) if wanted else EVERYTHING
        await self._steps(found.check(self._selection, only), found.count(), "reading", _sessions_a_second)

    async def _steps(self, steps: Iterator[files.Step], total: int, what: str, rate: Callable[[float], str]) -> None:
        last = files.Step([])
        with self.report.progress(self._out.progress(what, while_writing=False, rate=rate), total or None):
            for step in steps:
                self.report.add(step.findings)
                self.report.done(step.done)
                self._seen |= step.seen
                self._count(last, -1)
                self._count(step, 1)
                last = step
                await asyncio.sleep(0)  # an interrupt is heeded here

    def _count(self, step: files.Step, sign: int) -> None:
        tally = self.report.tally
        tally.sessions += sign * step.sessions
        tally.entries += sign * step.entries
        tally.messages += sign * step.messages


async def _named(client: Service, id: str) -> Session:
    """A session of a server, with the number of its entries if that can be told: what else is wrong is told later."""
    try:
        return Session(id, (await client.get_session(id)).head.revision)
    except (errors.NotFound, errors.DataLoss):
        return Session(id)


def _is_own(path: Path) -> bool:
    """Whether a file is of Turnwire's. Raises OSError."""
    return path.is_file() and (sqlite_check.is_store(path) or native.is_native(path))


def _is_beside(path: Path) -> bool:
    """Whether a file is SQLite's, beside a database."""
    return any(path.name.endswith(end) and path.with_name(path.name.removesuffix(end)).is_file() for end in _BESIDE)


def _sessions_a_second(speed: float) -> str:
    return f"{speed:.1f} sessions/s"


def _bytes_a_second(speed: float) -> str:
    return f"{size(round(speed))}/s"
