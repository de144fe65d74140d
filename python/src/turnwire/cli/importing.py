"""``turnwire import``: sessions of other programs, and Turnwire's own exports, into a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from turnwire.calls.service import Service
from turnwire.cli.app import Call, command, group
from turnwire.cli.output import ExitCode, Line
from turnwire.cli.text import one_line, plural
from turnwire.cli.usage import Usage, time_of
from turnwire.embedded import MEMORY, Embedded
from turnwire.embedded import open as open_store
from turnwire.formats import native
from turnwire.formats.base import Source, Wanted
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import bring
from turnwire.formats.report import Note, Outcome, Report

_SHOWN_NOTES = 20

Notes = Annotated[bool, typer.Option("--notes", help="List every remark and not just the first ones.")]


def add_to(app: typer.Typer) -> None:
    """Add the group to a program."""
    imports = group(app, "import", "Bring sessions of other programs, or exported ones, into a store.")
    command(imports, "opencode")(opencode)
    command(imports, "turnwire")(turnwire)


async def opencode(
    call: Call,
    path: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Files of `opencode export`, databases, storage trees, data directories, or directories of these.",
        ),
    ],
    session: Annotated[
        list[str] | None,
        typer.Option("--session", metavar="ID", help="This session only, which must be there; repeatable."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Sessions that changed then or later.", show_default="all")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; tell what would be done.")] = False,
    remove_gone: Annotated[
        bool,
        typer.Option("--remove-gone", help="Delete sessions that are no longer in the source that brought them."),
    ] = False,
    notes: Notes = False,
) -> ExitCode:
    """Import sessions of opencode or openAgent, from whatever form they are stored in.

    Nothing is dropped: what the schema has no field for is kept beside it. The source is only read, also while
    opencode runs. Importing again brings what is new or changed, and takes out what is gone from the same source;
    what was changed here and not there stays. A session that is gone from a database or tree stays, and a remark says
    so; --remove-gone deletes it, unless something was added to it here. A TIME is a date, RFC 3339, or an age such as
    2h, 3d. With --json: a line a session, then the report of all.
    """
    at = time_of(since, "--since") if since is not None else None
    _require_any(path)
    if remove_gone and (session or since is not None):
        raise Usage("--remove-gone needs all that a source has, and goes with neither --session nor --since")
    wanted = Wanted(frozenset(session) if session else None, at.ToMilliseconds() if at is not None else None)
    report = Report()
    sources = [source for each in path for source in _sources(each, report)]
    async with _client(call, dry_run) as client:
        with call.out.progress("importing", while_writing=call.out.json) as progress:
            task = progress.add_task("", total=sum(OPENCODE.count(source, wanted) for source in sources))
            async with aclosing(
                bring(client, OPENCODE, sources, report, wanted, dry_run=dry_run, remove_gone=remove_gone)
            ) as brought:
                async for one in brought:
                    if call.out.json:
                        call.out.object(
                            {"sessionId": one.session_id, "outcome": one.outcome.value, "source": one.source}
                        )
                    progress.advance(task)
    return _finish(call, report, plural(len(sources), "source"), every=notes)


async def turnwire(
    call: Call,
    file: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that `turnwire export` wrote.")],
    notes: Notes = False,
) -> ExitCode:
    """Bring exported sessions back, with the times of recording and the digests that they had.

    It takes the binary form and JSON lines, plain or gzipped, and needs the store's own file: a server never records
    under another's time. A file that goes on from an earlier one comes after it. What is there already must be the
    same. With --json: a line a session, then the report of all.
    """
    if call.source.server is not None:
        raise Usage("import turnwire writes into a file, and not through a server: give --db")
    _require_any(file)
    report = Report()
    async with call.client(create=True) as client:
        assert isinstance(client, Embedded)
        with call.out.progress("importing", while_writing=call.out.json) as progress:
            task = progress.add_task("", total=None)
            for each in file:
                for log in _logs(each, report):
                    outcome = await native.restore(client, log, report, source=str(each))
                    if call.out.json:
                        line = {"sessionId": log.session.id, "outcome": outcome.value, "source": str(each)}
                        call.out.object(line)
                    progress.advance(task)
    return _finish(call, report, plural(len(file), "file"), every=notes)


def _require_any(paths: list[Path]) -> None:
    """Raise `Usage` if no path is there at all; of several, one that is not stops no other and is in the report."""
    if not any(path.exists() for path in paths):
        raise Usage(f"there is no file or directory {', '.join(map(str, paths))}")


@asynccontextmanager
async def _client(call: Call, dry_run: bool) -> AsyncGenerator[Service, None]:
    """The sessions; for a dry run that would make the file, an empty store in its place."""
    source = call.source
    if dry_run and source.db is not None and not source.db.exists():
        async with open_store(MEMORY) as store:
            yield store
    else:
        async with call.client(create=not dry_run) as client:
            yield client


def _sources(path: Path, report: Report) -> list[Source]:
    try:
        return OPENCODE.sources(path, report)
    except OSError as error:
        _unreadable(path, error, report)
        return []


def _logs(file: Path, report: Report) -> Iterator[native.SessionLog]:
    """The sessions of a file; if there are none, the report says so."""
    try:
        if native.is_native(file):
            yield from native.read(file, report)
        else:
            report.refused("file", "", "not a file that `turnwire export` wrote", source=str(file))
    except OSError as error:
        _unreadable(file, error, report)


def _unreadable(path: Path, error: OSError, report: Report) -> None:
    report.refused("file", "", f"it cannot be read: {error.strerror or error}", source=str(path))


def _finish(call: Call, report: Report, read: str, *, every: bool) -> ExitCode:
    if call.out.json:
        call.out.object(report.to_json())
    else:
        call.out.lines(_lines(report, read, every=every))
    return ExitCode.OK if report.complete else ExitCode.FINDINGS


def _lines(report: Report, read: str, *, every: bool) -> Iterator[Line]:
    yield Line(0, Text(f"{read} read"))
    notes = report.notes if every else _first(report.notes)
    counts = len(list(report.lines())) - len(report.notes)
    for line in list(report.lines())[:counts]:
        outcome, colon, rest = line.partition(":")
        yield Line(0, Text.assemble((f"{outcome}{colon}", _STYLES.get(outcome, "bold")), one_line(rest)))
    for note in notes:
        yield Line(2, Text(one_line(str(note)), style="red" if note.outcome is Outcome.REFUSED else "dim"))
    if len(notes) < len(report.notes):
        rest = plural(len(report.notes) - len(notes), "more remark")
        yield Line(2, Text(f"… {rest} (--notes lists all)", style="dim"))


_STYLES = {
    Outcome.IMPORTED.value: "bold green",
    Outcome.UPDATED.value: "bold green",
    Outcome.REPAIRED.value: "bold yellow",
    Outcome.REMOVED.value: "bold yellow",
    Outcome.REFUSED.value: "bold red",
}


def _first(notes: list[Note]) -> list[Note]:
    """The remarks to show unless all are asked for: every refusal, then others up to a number."""
    refused = [note for note in notes if note.outcome is Outcome.REFUSED]
    others = [note for note in notes if note.outcome is not Outcome.REFUSED]
    return refused + others[: max(_SHOWN_NOTES - len(refused), 0)]
