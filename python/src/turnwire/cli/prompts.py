"""``turnwire prompt``: what a model would get, with mutations; records of it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from turnwire import errors, v1
from turnwire.calls.prompts import Prompt
from turnwire.calls.service import Service
from turnwire.cli import edits, render, tables
from turnwire.cli.app import Call, command, interruptible
from turnwire.cli.output import ExitCode
from turnwire.cli.parts import Detail
from turnwire.cli.sessions import SessionId
from turnwire.cli.usage import Usage

_EDITS = "Mutations, applied in the order given"
_BLOCK = 512


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "prompt", cls=edits.EditCommand)(prompt)


def _edit(option: str, metavar: str, help: str) -> Any:
    return typer.Option(option, metavar=metavar, help=help, rich_help_panel=_EDITS, show_default=False)


Edits = list[str] | None


async def prompt(
    call: Call,
    session: SessionId,
    turn: Annotated[
        str | None, typer.Option(metavar="ID", help="The turn to run.", show_default="the last one")
    ] = None,
    revision: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Of the history at this revision.", show_default="the head")
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="PROMPT", help="Of the prompt of an earlier record.", show_default=False)
    ] = None,
    append: Annotated[Edits, _edit("--append", "ROLE:TEXT", "A message at the end.")] = None,
    prepend: Annotated[Edits, _edit("--prepend", "ROLE:TEXT", "A message at the beginning.")] = None,
    append_to: Annotated[Edits, _edit("--append-to", "ROLE:TEXT", "A part at the last message of a role.")] = None,
    insert_after: Annotated[Edits, _edit("--insert-after", "ID:ROLE:TEXT", "A message after a stored one.")] = None,
    insert_before: Annotated[Edits, _edit("--insert-before", "ID:ROLE:TEXT", "A message before a stored one.")] = None,
    remove: Annotated[Edits, _edit("--remove", "ID", "Leave a stored message out.")] = None,
    remove_part: Annotated[Edits, _edit("--remove-part", "ID", "Leave a stored part out.")] = None,
    replace_part: Annotated[Edits, _edit("--replace-part", "ID:TEXT", "A text in a stored part's place.")] = None,
    mutations: Annotated[
        Edits, _edit("--mutations", "FILE", "A JSON array of turnwire.v1.Mutation; - is stdin.")
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Record the prompt in the session's log.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Record nothing, which is the default.")] = False,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="The choices of assembling.", show_default="default")
    ] = "",
    get: Annotated[
        str | None, typer.Option(metavar="PROMPT", help="Compute a record's prompt again.", show_default=False)
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the records, of --turn if given.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Shorten nothing.")] = False,
) -> ExitCode:
    """Show the prompt of a turn, item by item with where each comes from, and try mutations on it.

    The history never changes. Nothing is recorded unless --record is given. Texts from the command line become
    synthetic text parts. With --json: a turnwire.v1.PromptItem a line, then the turnwire.v1.PromptEnd; with --list a
    turnwire.v1.PromptRecord a line. Exit code 1 if the digest of a record that is computed again does not hold.
    """
    given = edits.given(call.context)
    computing = bool(given or record or dry_run or base or revision or profile)
    if (get is not None) + listed + computing > 1 or (get is not None and turn is not None):
        raise Usage("--get, --list and computing a prompt exclude each other")
    if record and dry_run:
        raise Usage("--record and --dry-run exclude each other")
    if base is not None and revision is not None:
        raise Usage("--base and --revision exclude each other")
    with interruptible():  # a file may be stdin
        mutated = edits.mutations(given)
    async with call.client() as client:
        if listed:
            await _list(call, client, session, turn)
            return ExitCode.OK
        if get is not None:
            found = await client.get_prompt(session, get)
        else:
            found = await client.mutate_prompt(
                session,
                turn or await last_turn(client, session, revision),
                mutated,
                base_revision=revision,
                base_prompt_id=base,
                dry_run=not record,
                profile=profile,
            )
    _show(call, found, Detail(full=full, ids=True), dry_run=not record, recomputed=get is not None)
    return ExitCode.OK if found.digest_holds else ExitCode.FINDINGS


async def last_turn(client: Service, session: str, revision: int | None) -> str:
    """The id of the last turn that was appended up to a revision (None: the head).

    Raises `errors.TurnNotFound` if there is none, and `errors.RevisionOutOfRange`.
    """
    head = (await client.get_session(session)).head.revision
    last = head if revision is None else revision
    if last > head:
        detail = v1.RevisionConflict(expected=last, actual=head)
        raise errors.RevisionOutOfRange(f"the head is {head}", detail=detail, path="revision")
    while last > 0:
        first = max(last - _BLOCK + 1, 1)
        found = ""
        async for entry in client.read_entries(session, first, last):
            found = entry.turn.id or found
        if found:
            return found
        last = first - 1
    raise errors.TurnNotFound("the session has no turn yet", session_id=session)


async def _list(call: Call, client: Service, session: str, turn: str | None) -> None:
    records: list[v1.PromptRecord] = []
    async for record in client.list_prompts(session, turn_id=turn):
        if call.out.json:
            call.out.message(record)
        else:
            records.append(record)
    if records:
        call.out.print(tables.prompts(records))
    elif not call.out.json:
        call.out.note("no prompt record")


def _show(call: Call, found: Prompt, detail: Detail, *, dry_run: bool, recomputed: bool) -> None:
    end = v1.PromptEnd(
        record=found.record,
        items=len(found.items),
        head=found.head,
        context=found.context,
        digest_holds=found.digest_holds,
        renderings=found.renderings,
    )
    for number, item in enumerate(found.items, 1):
        if call.out.json:
            call.out.message(item)
        else:
            call.out.lines(render.item_lines(number, item, detail))
    if call.out.json:
        call.out.message(end)
    else:
        call.out.lines(render.prompt_lines(end, dry_run=dry_run, recomputed=recomputed))
