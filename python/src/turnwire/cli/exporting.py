"""``turnwire export``: sessions out of a store, in Turnwire's own form or as another program writes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from turnwire import errors
from turnwire.calls.service import Service
from turnwire.cli.app import Call, command
from turnwire.cli.output import ExitCode
from turnwire.cli.text import plural
from turnwire.cli.usage import Usage
from turnwire.formats import EXPORTERS, native, stored
from turnwire.formats.base import Exporter
from turnwire.formats.report import Report

_MOST_A_PAGE: Final = 1000
_OWN: Final = "turnwire"
Put = Callable[[bytes], object]


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "export")(export)


async def export(
    call: Call,
    session: Annotated[list[str] | None, typer.Argument(metavar="SESSION...", help="Ids of sessions.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All sessions.")] = False,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help=f"As which program: {', '.join([_OWN, *EXPORTERS])}.")
    ] = _OWN,
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help="Turnwire's own form as JSON, a record a line; --json is the same.")
    ] = False,
    after: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Turnwire's own form: only what came after this earlier export; repeatable.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Write here: a file, or for several sessions or --all in another program's form a directory.",
            show_default="stdout",
        ),
    ] = None,
) -> ExitCode:
    """Export sessions: whole logs in Turnwire's own form, or the history as another program's own file.

    Turnwire's own form keeps every entry byte for byte, with the revision reached, so that --after goes on from
    there; `turnwire import turnwire` brings it back to equal digests. `--format opencode` writes what
    `opencode export` writes. A session that was deleted meanwhile is left out, and a note says so.
    """
    if bool(session) == every:
        raise Usage("export takes ids of sessions, or --all")
    if form != _OWN and form not in EXPORTERS:
        raise Usage(f"--format takes {' or '.join([_OWN, *EXPORTERS])}")
    async with call.client() as client:
        names = [each.id async for each in client.list_sessions(page_size=_MOST_A_PAGE)] if every else session or []
        if form == _OWN:
            await _own(call, client, names, _reached(after or []), out, json_lines=json_lines or call.out.json)
        else:
            if after or json_lines:
                raise Usage("--after and --json-lines are for Turnwire's own form")
            several = every or len(names) > 1
            await _foreign(call, client, names, EXPORTERS[form], _folder(out) if several else out)
    return ExitCode.OK


async def _own(
    call: Call,
    client: Service,
    names: list[str],
    reached: dict[str, tuple[int, bytes]],
    out: Path | None,
    *,
    json_lines: bool,
) -> None:
    if out is None and not json_lines and sys.stdout.isatty():
        raise Usage("the binary form is not for a terminal: give --out or --json-lines")
    with _target(call, out) as put, call.out.progress("exporting", while_writing=out is None) as progress:
        writer = native.Writer(put, json_lines=json_lines)
        for name in progress.track(names, description=""):
            revision, digest = reached.get(name, (0, b""))
            try:
                if revision:
                    await _check(client, name, revision, digest)
                await native.write(client, name, writer, after=revision)
            except errors.SessionDeleted:
                if len(names) == 1:
                    raise
                call.out.note(f"{name} was deleted, and is left out")
    if writer.incomplete:
        reason = "JSON cannot carry fields that this version does not know"
        call.out.note(f"{reason}; {plural(writer.incomplete, 'record')} had some, and cannot be imported again")


async def _check(client: Service, name: str, revision: int, digest: bytes) -> None:
    """See to it that the session is the one that was exported before."""
    async for entry in client.read_entries(name, revision, revision):
        if entry.digest != digest:
            raise Usage(f"{name} is not the session that --after has: another digest at revision {revision}")


async def _foreign(call: Call, client: Service, names: list[str], exporter: Exporter, out: Path | None) -> None:
    if len(names) > 1 and out is None:
        raise Usage("several sessions need --out with a directory, for a file each")
    with call.out.progress("exporting", while_writing=out is None) as progress:
        for name in progress.track(names, description=""):
            try:
                text = exporter.export(await stored.history(client, name))
            except errors.SessionDeleted:
                if len(names) == 1:
                    raise
                call.out.note(f"{name} was deleted, and is left out")
                continue
            path = out / f"{name}.json" if out is not None and out.is_dir() else out
            with _target(call, path) as put:
                put(text.encode())


def _folder(out: Path | None) -> Path | None:
    """The directory for several files, made if it is not there. Raises `Usage` if it cannot be one."""
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise Usage(f"--out takes a directory for several sessions, and {out} is, or is below, a file") from None
    return out


def _reached(files: list[Path]) -> dict[str, tuple[int, bytes]]:
    """How far earlier exports go: revision and digest by session."""
    reached: dict[str, tuple[int, bytes]] = {}
    report = Report()
    for file in files:
        if not native.is_native(file):
            raise Usage(f"{file} is not a file that `turnwire export` wrote")
        for log in native.read(file, report):
            head = log.session.head
            if head.revision > reached.get(log.session.id, (0, b""))[0]:
                reached[log.session.id] = (head.revision, head.digest)
    if not report.complete:
        raise Usage(f"--after has a file that is damaged: {report.notes[0]}")
    return reached


@contextmanager
def _target(call: Call, out: Path | None) -> Generator[Put, None, None]:
    """Where bytes go: stdout, or a file that is there only when all is written."""
    if out is None:
        yield call.out.binary
        return
    unfinished = out.with_name(f".{out.name}.part")
    try:
        with unfinished.open("wb") as file:
            yield file.write
        os.replace(unfinished, out)
    finally:
        unfinished.unlink(missing_ok=True)
