"""The commands that read a session's log: show, replay, tail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import typer

from turnwire import v1
from turnwire.calls.history import ReplayItem
from turnwire.cli import render, tables
from turnwire.cli.app import Call, command
from turnwire.cli.output import Line
from turnwire.cli.parts import Detail
from turnwire.cli.sessions import SessionId
from turnwire.cli.usage import Usage
from turnwire.log import wire

Revision = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="The history as it was at this revision.", show_default="the head"),
]
Summaries = Annotated[bool, typer.Option("--summaries", help="The summaries of messages too.")]
Full = Annotated[bool, typer.Option("--full", help="Shorten nothing.")]
Ids = Annotated[bool, typer.Option("--ids", help="The ids of parts too.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to a program."""
    command(app, "show")(show)
    command(app, "replay")(replay)
    command(app, "tail")(tail)


async def show(
    call: Call,
    session: SessionId,
    message: Annotated[str | None, typer.Option(metavar="ID", help="Only this message.", show_default=False)] = None,
    summaries: Summaries = False,
    full: Full = False,
    ids: Ids = False,
) -> None:
    """Show a session: its properties, and its messages as a readable transcript.

    With --json: a turnwire.v1.GetSessionResponse, then a turnwire.v1.HistoryFrame a line, each message whole.
    """
    detail = Detail(full=full, ids=ids)
    async with call.client() as client:
        if message is not None:
            found = await client.get_message(session, message, include_summary=summaries)
            for item in (found.turn, found.message, found.summary, found.head):
                if item is not None:
                    _write(call, item, detail)
            return
        shown = await client.get_session(session)
        if call.out.json:
            call.out.message(v1.GetSessionResponse(session=shown))
        else:
            call.out.lines(tables.session_lines(shown))
        # The head as it was shown, so that what is written meanwhile does not make the two disagree.
        items = client.replay(session, revision=shown.head.revision, include_summaries=summaries)
        await _each(call, items, detail, head=call.out.json)


async def replay(
    call: Call,
    session: SessionId,
    revision: Revision = None,
    last_turns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the last N turns.", show_default=False)
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="ID", help="From this message on.", show_default=False)
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="ID", help="Up to this message, inclusive.", show_default=False)
    ] = None,
    summaries: Summaries = False,
    binary: Annotated[
        bool, typer.Option("--binary", help="Write binary frames, each after its length as a varint.")
    ] = False,
    full: Full = False,
    ids: Ids = False,
) -> None:
    """Replay the history of a session: turns, messages in order, and the head that it is of.

    With --json a turnwire.v1.HistoryFrame a line, with --binary the same in binary (unknown fields included), each
    message whole in one frame.
    """
    if last_turns is not None and (first is not None or last is not None):
        raise Usage("--last-turns and --from/--to exclude each other")
    if binary and call.out.json:
        raise Usage("--binary and --json exclude each other")
    async with call.client() as client:
        items = client.replay(
            session,
            revision=revision,
            last_turns=last_turns,
            from_message_id=first,
            to_message_id=last,
            include_summaries=summaries,
        )
        await _each(call, items, Detail(full=full, ids=ids), binary=binary)


async def tail(
    call: Call,
    session: SessionId,
    after: Annotated[int, typer.Option(min=0, metavar="N", help="The last revision that is known already.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", "-f", help="Go on with what is appended, until interrupted.")
    ] = True,
) -> None:
    """Show the entries of a session's log after a revision, and follow it.

    With --json: a turnwire.v1.Entry a line. Ends with exit code 3 when the session is deleted, and is started again
    with --after and the last revision seen.
    """
    async with call.client() as client:
        async for entry in client.tail(session, after, follow=follow):
            if call.out.json:
                call.out.message(entry)
            else:
                call.out.lines([Line(0, render.entry_line(entry))])
            call.out.flush()


async def _each(
    call: Call, items: AsyncIterator[ReplayItem], detail: Detail, *, binary: bool = False, head: bool = True
) -> None:
    async for item in items:
        if head or not isinstance(item, v1.Head):
            _write(call, item, detail, binary=binary)


def _write(call: Call, item: ReplayItem, detail: Detail, *, binary: bool = False) -> None:
    frame = frame_of(item)
    if binary:
        data = frame.SerializeToString()
        call.out.binary(wire.varint(len(data)) + data)
    elif call.out.json:
        call.out.message(frame)
    else:
        call.out.lines(render.frame_lines(frame, detail))


def frame_of(item: ReplayItem) -> v1.HistoryFrame:
    """An item of a replay as a frame."""
    match item:
        case v1.Turn():
            return v1.HistoryFrame(turn=item)
        case v1.User():
            return v1.HistoryFrame(user=item)
        case v1.Assistant():
            return v1.HistoryFrame(assistant=item)
        case v1.MessageSummary():
            return v1.HistoryFrame(summary=item)
        case _:
            return v1.HistoryFrame(head=item)
