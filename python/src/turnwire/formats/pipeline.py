"""The whole way of an import: read, map, load, for all sessions of some sources.

Reading and mapping go a little ahead of the store: in a thread, or for much at once in a process of its own, so that
both processors of a small machine have something to do. Several sessions are loaded at once, and their commits share
the waiting for the disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, NamedTuple, TypeVar

from turnwire import faults, ownprocess
from turnwire.formats import gone, worker
from turnwire.formats.base import EVERYTHING, Importer, SessionImport, Source, Wanted
from turnwire.formats.gone import Store
from turnwire.formats.load import load
from turnwire.formats.report import Outcome, Report

Record = TypeVar("Record")

#: How many sessions are loaded at once.
_AHEAD: Final = 4
#: From how many sessions on, or bytes of files, a process of its own is worth its start.
_MANY: Final = 500
_LARGE: Final = 8_000_000
_LONGEST_LINE: Final = 64 * 1024 * 1024


class Brought(NamedTuple):
    """What became of one session."""

    session_id: str
    outcome: Outcome
    source: str


async def bring(
    log: Store,
    importer: Importer[Record],
    sources: Sequence[Source],
    report: Report,
    wanted: Wanted = EVERYTHING,
    *,
    dry_run: bool = False,
    remove_gone: bool = False,
    apart: bool | None = None,
) -> AsyncGenerator[Brought, None]:
    """Import the sessions of some sources, and say in their order what became of each.

    Then, if everything was wanted, what becomes of those that are gone from a source that could be read without any
    failure: they stay, or with ``remove_gone`` are deleted; see `turnwire.formats.gone`. A session that is wanted by
    its id and is nowhere is refused in the report, as is a source that cannot be read, which stops no other.

    ``apart``: read in a process of its own (None: if there is much to read, and more than one processor). Raises what
    loading raises.
    """
    if apart is None:
        apart = _is_much(importer, sources, wanted)
    found = _from_process if apart else _from_thread
    reading = Report()  # what is said of reading alone tells whether a source was read whole
    present: set[str] = set()
    tasks: list[asyncio.Task[Brought]] = []

    async def one(session: SessionImport) -> Brought:
        outcome = await load(log, session, report, dry_run=dry_run)
        return Brought(session.session_id, outcome, session.source)

    try:
        async with aclosing(found(importer, sources, reading, wanted)) as sessions:
            async for session in sessions:
                present |= {session.session_id, session.original_id or session.session_id}
                tasks.append(asyncio.create_task(one(session)))
                if len(tasks) >= _AHEAD:
                    yield await tasks.pop(0)
        while tasks:
            yield await tasks.pop(0)
        if wanted.session_ids is not None:
            await asyncio.to_thread(_refuse_unknown, importer, sources, reading, wanted, present)
        if wanted == EVERYTHING:
            failed = {note.source for note in reading.notes if note.outcome is Outcome.REFUSED}
            whole = {str(one.path) for one in sources if importer.is_store(one)} - failed
            for name, source in await gone.find(log, importer.program, whole, present) if whole else ():
                outcome = await gone.settle(log, name, source, report, remove=remove_gone, dry_run=dry_run)
                yield Brought(name, outcome, source)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        report.add(reading)


def _refuse_unknown(
    importer: Importer[Record], sources: Sequence[Source], report: Report, wanted: Wanted, present: set[str]
) -> None:
    """Refuse the sessions that are wanted by their ids, are in no source, and were not refused with a better reason."""
    refused = {note.id for note in report.notes if note.outcome is Outcome.REFUSED}
    missing = (wanted.session_ids or frozenset()) - present - refused
    if missing and wanted.since_ms is not None:  # one that has not changed since is there all the same
        there = mapped(importer, sources, Report(), Wanted(missing))
        missing -= {name for session in there for name in (session.session_id, session.original_id)}
    for name in sorted(missing):
        report.refused("session", "", "there is no session of this id in what was read", id=name)


def _is_much(importer: Importer[Any], sources: Sequence[Source], wanted: Wanted) -> bool:
    if (os.cpu_count() or 1) < 2 or not sys.executable:
        return False
    size = sum(source.path.stat().st_size for source in sources if source.path.is_file())
    return size >= _LARGE or sum(importer.count(source, wanted) for source in sources) >= _MANY


async def _from_thread(
    importer: Importer[Any], sources: Sequence[Source], report: Report, wanted: Wanted
) -> AsyncGenerator[SessionImport, None]:
    found = mapped(importer, sources, report, wanted)
    while (session := await asyncio.to_thread(next, found, None)) is not None:
        yield session


async def _from_process(
    importer: Importer[Any], sources: Sequence[Source], report: Report, wanted: Wanted
) -> AsyncGenerator[SessionImport, None]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *ownprocess.command(worker.__name__),
        stdin=pipe,
        stdout=pipe,
        env=ownprocess.environment(),
        limit=_LONGEST_LINE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(worker.order(importer.program, sources, wanted))
        process.stdin.close()
        while True:
            line = await process.stdout.readline()
            header: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
            if worker.REPORT in header:
                report.give(header[worker.REPORT])
            elif worker.SESSION in header:
                sizes: list[int] = header[worker.SIZES]
                yield worker.session_of(header, _cut(await process.stdout.readexactly(sum(sizes)), sizes))
            elif worker.END in header:
                return
            else:
                raise RuntimeError("the process that reads the sources broke off")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size


def mapped(
    importer: Importer[Record], sources: Iterable[Source], report: Report, wanted: Wanted
) -> Iterator[SessionImport]:
    """The sessions of some sources, mapped. A source or session that cannot be taken is refused, and stops no other."""
    for source in sources:
        try:
            for record in importer.read(source, report, wanted):
                session = _map(importer, source, record, report)
                if session is not None:
                    yield session
        except OSError as error:
            reason = f"it cannot be read: {error.strerror or error}"
            report.refused("file", "", reason, source=str(source.path))
        except Exception as error:
            report.refused("file", "", faults.reason(error), source=str(source.path))


def _map(importer: Importer[Record], source: Source, record: Record, report: Report) -> SessionImport | None:
    """A record's session; a fault of the program costs that one alone."""
    notes = Report()
    try:
        session = importer.map(record, notes)
    except Exception as error:
        name = importer.id_of(record)
        report.refused("session", "", faults.reason(error), source=str(source.path), id=name)
        return None
    report.add(notes)
    return session
