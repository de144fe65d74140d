"""The commands about whole sessions: list, fork, delete and verify them, and what a server says of itself."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from turnwire import errors, ids, v1
from turnwire.calls.service import Service
from turnwire.cli import tables
from turnwire.cli.app import Call, command, interruptible
from turnwire.cli.output import ExitCode, Line, error_line, exit_code, explain
from turnwire.cli.usage import Usage, labels_of, time_of

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False)]

_MOST_A_PAGE = 1000


def add_to(app: typer.Typer) -> None:
    """Add the commands to a program."""
    command(app, "sessions")(sessions)
    command(app, "fork")(fork)
    command(app, "delete")(delete)
    command(app, "verify")(verify)
    command(app, "info")(info)


async def sessions(
    call: Call,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="With this label; repeatable.")] = None,
    directory: Annotated[str | None, typer.Option(metavar="PATH", help="Of exactly this directory.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Last recorded then or later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Last recorded before then.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="SESSION", help="Started by this session.")] = None,
    archived: Annotated[
        bool | None, typer.Option("--archived/--active", help="Put away, or in use.", show_default="both")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="How many at most; 0 is all.")] = 100,
    page_token: Annotated[
        str, typer.Option(metavar="TOKEN", help="Go on where an earlier list ended.", show_default=False)
    ] = "",
) -> None:
    """List sessions, the last recorded first.

    All filters that are given must hold. A TIME is a date, RFC 3339, or an age such as 2h, 3d. If there are more
    than --limit, a note on stderr says how to go on. With --json: a turnwire.v1.Session a line.
    """
    async with call.client() as client:
        page = partial(
            client.list_sessions_page,
            labels=labels_of(label or []),
            directory=directory,
            recorded_from=time_of(since, "--since") if since is not None else None,
            recorded_before=time_of(until, "--until") if until is not None else None,
            parent_session_id=parent,
            archived=archived,
        )
        found: list[v1.Session] = []
        left = limit or None
        while True:
            wanted = _MOST_A_PAGE if left is None else min(left, _MOST_A_PAGE)
            answer = await page(page_size=wanted, page_token=page_token)
            page_token = answer.next_page_token
            for session in answer.sessions:
                if call.out.json:
                    call.out.message(session)
                else:
                    found.append(session)
            left = None if left is None else left - len(answer.sessions)
            if not page_token or left == 0:
                break
    if found:
        call.out.print(tables.sessions(found))
    elif not call.out.json:
        call.out.note("no session")
    if page_token:
        call.out.note(f"there are more: --page-token {page_token}")


async def fork(
    call: Call,
    session: SessionId,
    revision: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The last revision to copy.", show_default="all")
    ] = None,
    id: Annotated[str, typer.Option("--id", metavar="ID", help="The new session's id.", show_default="a new one")] = "",
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The new session's title.", show_default="the same")
    ] = None,
) -> None:
    """Copy a session up to a revision into a new one.

    Revisions and all ids within the session stay equal. With --json: the new turnwire.v1.Session.
    """
    async with call.client() as client:
        forked = await client.fork_session(session, revision, new_session_id=id, title=title)
    if call.out.json:
        call.out.message(forked)
    else:
        call.out.lines(tables.session_lines(forked))


async def delete(
    call: Call,
    session: SessionId,
    children: Annotated[bool, typer.Option("--children", help="The sessions that it started too, and theirs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session for good.

    Its id is never used again. Asks first on a terminal; elsewhere it needs --yes. With --json: a
    turnwire.v1.DeleteSessionResponse.
    """
    async with call.client() as client:
        if not yes:
            await _confirm(client, session, children)
        deleted = await client.delete_session(session, include_children=children)
    if call.out.json:
        call.out.message(v1.DeleteSessionResponse(session_ids=deleted))
    else:
        call.out.lines(Line(0, Text(f"deleted {each}")) for each in deleted)


async def _confirm(client: Service, session: str, children: bool) -> None:
    if not sys.stdin.isatty():
        raise Usage("delete asks before it deletes, and here is no terminal; --yes says so at once")
    shown = await client.get_session(session)
    what = f"{session} ({shown.head.revision:,} entries)" + (" and the sessions that it started" if children else "")
    with interruptible():
        typer.confirm(f"Delete {what} for good?", abort=True, err=True)


async def verify(
    call: Call,
    session: Annotated[list[str] | None, typer.Argument(metavar="SESSION...", help="Ids of sessions.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All sessions.")] = False,
) -> ExitCode:
    """Compute the digests of sessions again and compare them with those that are stored.

    Exit code 1 if one is not sound, else 3 if one is not there; neither stops the others. With --json: a
    turnwire.v1.VerifySessionResponse a line, with the sessionId before it.
    """
    if bool(session) == every:
        raise Usage("verify takes ids of sessions, or --all")
    for name in session or []:
        if not ids.valid(name):
            raise Usage(f"an id has 1 to 128 characters of A-Z a-z 0-9 . _ : - and is not {name!r}")
    found = ExitCode.OK
    async with call.client() as client:
        names = [each.id async for each in client.list_sessions(page_size=_MOST_A_PAGE)] if every else session or []
        with call.out.progress("verifying", while_writing=True) as progress:
            for name in progress.track(names, description=""):
                try:
                    response = await client.verify_session(name)
                except (errors.NotFound, errors.DataLoss) as error:
                    if every and isinstance(error, errors.NotFound):
                        continue  # deleted since it was listed
                    error_line(explain(error))
                    found = _worse(found, exit_code(error))
                    continue
                if not response.sound:
                    found = ExitCode.FINDINGS
                if call.out.json:
                    call.out.named(response, sessionId=name)
                else:
                    call.out.lines(tables.verified(name, response))
    return found


def _worse(one: ExitCode, other: ExitCode) -> ExitCode:
    return ExitCode.FINDINGS if ExitCode.FINDINGS in (one, other) else max(one, other)


async def info(call: Call) -> None:
    """Show version, limits and features of the server, or of the engine that opens the file.

    With --json: a turnwire.v1.GetServerInfoResponse.
    """
    async with call.client() as client:
        answer = await client.server_info()
    if call.out.json:
        call.out.message(answer)
    else:
        call.out.lines(tables.server(answer))
