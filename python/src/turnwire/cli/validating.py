"""``turnwire validate``: whether stores, servers, files and other programs' sessions are sound."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from turnwire import errors, ids
from turnwire.cli.app import Call, command
from turnwire.cli.output import ExitCode, Output
from turnwire.cli.targets import Targets
from turnwire.cli.usage import Usage
from turnwire.validation import Selection
from turnwire.validation.messages import message_type

_PAGE = 1000


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "validate")(validate)


async def validate(
    call: Call,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET...",
            help="Stores, files of entries or messages, opencode's data, or sessions of the store.",
            show_default="all sessions of the store",
        ),
    ] = None,
    type: Annotated[
        str | None,
        typer.Option(metavar="MESSAGE", help="The type of the messages of files.", show_default="told by content"),
    ] = None,
    stored: Annotated[
        bool | None,
        typer.Option("--stored/--transient", help="Parts in files must have ids, or none.", show_default="either"),
    ] = None,
    session: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="This session only, in all targets; repeatable.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Report this layer or rule, or rules that begin so; repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Do not report this rule, or such; repeatable.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    format: Annotated[
        Format | None, typer.Option("--format", help="How to write findings.", show_default="text")
    ] = None,
) -> ExitCode:
    """Check whether what is stored is sound: by the schema, from entry to entry, and byte by byte.

    A TARGET is a path or the id of a session. A path is a store, a file that `turnwire export` wrote, a file of
    length-delimited messages, ProtoJSON or JSON lines, plain or gzipped, opencode's data directory, database, tree or
    export, of which it tells what an import would refuse or repair, or a directory of such files.
    docs/validation.md lists the rules. With --json: a turnwire.v1.Finding a line, then a summary. Exit code 1 for
    errors, 2 if something could not be read.
    """
    if format is Format.TEXT and call.out.json:
        raise Usage("--json and --format text exclude each other")
    out = Output(json=True) if format is Format.JSON else call.out
    cls = message_type(type) if type is not None else None
    if type is not None and cls is None:
        raise Usage(f"the schema has no message {type}; `turnwire schema` lists them")
    for name in session or []:
        if not ids.valid(name):
            raise Usage(f"an id has 1 to 128 characters of A-Z a-z 0-9 . _ : - and is not {name!r}")
    if "" in (target or []):
        raise Usage("an empty TARGET is neither a path nor the id of a session")
    try:
        selection = Selection(select or (), ignore or ())
    except errors.UnknownFilter as error:
        raise Usage(str(error)) from None
    targets = Targets(call.source, out, selection, (select or [], ignore or []))
    paths = [each for each in target or [] if Path(each).exists()]
    sessions = [each for each in target or [] if each not in paths and ids.valid(each)]
    for each in target or []:
        if each not in paths and each not in sessions:
            targets.report.unreadable(each, "neither a file nor a session: there is no such path, and no id looks so")
    for each in paths:
        await targets.path(Path(each), cls, stored, session or [])
    if sessions or not target:
        await targets.store(sessions, session or [])
    for each in sorted({*(session or [])} - targets.seen):
        targets.report.unreadable(each, "this session is in none of the targets")
    report = targets.report
    report.end()
    if report.tally.unreadable:
        return ExitCode.USAGE
    return ExitCode.FINDINGS if report.tally.broken(strict=strict) else ExitCode.OK
