"""``turnwire render``: the body of a provider's request, and what in it differs from what is stored."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer
from google.protobuf import json_format

from turnwire import v1
from turnwire.calls.service import Service
from turnwire.cli.app import Call, command, interruptible
from turnwire.cli.prompts import last_turn
from turnwire.cli.sessions import SessionId
from turnwire.cli.text import plural
from turnwire.cli.usage import Usage
from turnwire.modelref import model_ref
from turnwire.rendering import (
    Capabilities,
    Change,
    Dialect,
    ForeignReasoning,
    MediaPolicy,
    Options,
    Rendering,
    Rule,
    Stopped,
)
from turnwire.rendering.wire import rule_number
from turnwire.rules import schema
from turnwire.validation import protojson

_CHOICES: Final = "What becomes of it (else the profile chooses)"
_TARGET: Final = "What the model takes (else what is usual for the dialect)"
_STDIN: Final = "-"


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "render")(render)


def _choice(option: str, help: str, *, metavar: str | None = None, least: int | None = None) -> Any:
    return typer.Option(option, help=help, metavar=metavar, min=least, rich_help_panel=_CHOICES, show_default=False)


def _takes(option: str, help: str) -> Any:
    return typer.Option(f"--{option}/--no-{option}", help=help, rich_help_panel=_TARGET, show_default=False)


async def render(
    call: Call,
    session: SessionId,
    dialect: Annotated[Dialect, typer.Option("--as", help="The format of the request.", show_default=False)],
    turn: Annotated[
        str | None, typer.Option(metavar="ID", help="The turn to run.", show_default="the last one")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="ID", help="A prompt record, with its context.", show_default=False)
    ] = None,
    revision: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Of the history at this revision.", show_default="the head")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/MODEL", help="The model that it is for.", show_default="the turn's")
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Whose choices: default or opencode.", show_default="the record's, or default"
        ),
    ] = "",
    beside: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="FILE",
            help="System texts, tools and parameters: a turnwire.v1.PromptContext in JSON; - is stdin.",
            show_default="the record's",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Record in the log how it was rendered, and the prompt if it is not yet.")
    ] = False,
    changes: Annotated[
        bool, typer.Option("--changes", help="List on stderr what is sent otherwise than it is stored.")
    ] = False,
    foreign_reasoning: Annotated[
        ForeignReasoning | None, _choice("--foreign-reasoning", "Reasoning that another model made.")
    ] = None,
    media: Annotated[MediaPolicy | None, _choice("--media", "Pictures, documents, sounds and films.")] = None,
    media_bytes: Annotated[
        int | None,
        _choice("--media-bytes", "The most of them; the oldest gives way. 0: no limit.", metavar="N", least=0),
    ] = None,
    output_bytes: Annotated[
        int | None, _choice("--output-bytes", "The most of one tool output. 0: no limit.", metavar="N", least=0)
    ] = None,
    aborted: Annotated[Stopped | None, _choice("--aborted", "Answers whose run was stopped.")] = None,
    failed: Annotated[Stopped | None, _choice("--failed", "Answers whose run failed.")] = None,
    cache_marks: Annotated[
        int | None, _choice("--cache-marks", "Messages at the end with Anthropic's cache mark.", metavar="N", least=0)
    ] = None,
    interrupted_text: Annotated[
        str | None, _choice("--interrupted-text", "The result of a call that has none.", metavar="TEXT")
    ] = None,
    compacted_text: Annotated[
        str | None, _choice("--compacted-text", "What stands for a cleared output.", metavar="TEXT")
    ] = None,
    empty_output_text: Annotated[
        str | None, _choice("--empty-output-text", "What stands for an empty output.", metavar="TEXT")
    ] = None,
    leading_text: Annotated[
        str | None, _choice("--leading-text", "The user's message before a leading assistant.", metavar="TEXT")
    ] = None,
    closing_text: Annotated[
        str | None, _choice("--closing-text", "The user's message after a closing assistant.", metavar="TEXT")
    ] = None,
    images: Annotated[bool | None, _takes("images", "Pictures.")] = None,
    pdf: Annotated[bool | None, _takes("pdf", "PDF documents.")] = None,
    audio: Annotated[bool | None, _takes("audio", "Sounds.")] = None,
    video: Annotated[bool | None, _takes("video", "Films.")] = None,
    media_in_results: Annotated[
        bool | None, _takes("media-in-results", "Pictures and documents inside tool results.")
    ] = None,
    assistant_first: Annotated[
        bool | None, _takes("assistant-first", "A conversation that begins with the assistant.")
    ] = None,
    assistant_last: Annotated[
        bool | None, _takes("assistant-last", "A conversation that ends with the assistant.")
    ] = None,
    reasoning_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The field that takes reasoning back (openai-chat); empty: none.",
            rich_help_panel=_TARGET,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the body of a provider's request for a turn, or for the prompt of a record, as JSON.

    stdout gets exactly the bytes whose SHA-256 is recorded, without a line break at the end. What is sent otherwise
    than it is stored is counted on stderr, and listed with --changes. The history never changes; --record appends a
    note to the log. With --json: one object with the body, its sha256, the changes, and whom and what it is for.
    """
    if prompt is not None and (turn is not None or revision is not None):
        raise Usage("a prompt record has its own turn and revision: --prompt excludes --turn and --revision")
    if record and prompt is not None and beside is not None:
        raise Usage("a prompt record has its own context: with --record, --prompt excludes --context")
    capabilities = Capabilities(
        images=images,
        pdf=pdf,
        audio=audio,
        video=video,
        media_in_results=media_in_results,
        assistant_first=assistant_first,
        assistant_last=assistant_last,
        reasoning_field=reasoning_field,
    )
    options = Options(
        foreign_reasoning=foreign_reasoning,
        media=media,
        media_bytes=media_bytes,
        output_bytes=output_bytes,
        aborted=aborted,
        failed=failed,
        cache_marks=cache_marks,
        interrupted_text=interrupted_text,
        compacted_text=compacted_text,
        empty_output_text=empty_output_text,
        leading_text=leading_text,
        closing_text=closing_text,
        capabilities=capabilities,
    )
    try:
        target = model_ref(model) if model is not None else None
    except ValueError as error:
        raise Usage(f"--model: {error}") from error
    with interruptible():  # a file may be stdin
        given = _context(beside) if beside is not None else None
    async with call.client() as client:
        prompt_id, turn_id = prompt, turn
        if prompt_id is None:
            turn_id = turn or await last_turn(client, session, revision)
            if record:
                prompt_id = await _recorded(client, session, turn_id, revision, profile, given)
        of_record = prompt_id is not None
        rendering = await client.render_prompt(
            session,
            dialect,
            turn_id=None if of_record else turn_id,
            prompt_id=prompt_id,
            revision=None if of_record else revision,
            model=target,
            options=options,
            profile=profile,
            context=None if record else given,
            record=record,
        )
    if call.out.json:
        call.out.text(_object(rendering, prompt_id))
        return
    call.out.document(rendering.body)
    if record:
        call.out.note(f"recorded for the prompt {prompt_id} at revision {rendering.revision}")
    for line in _listed(rendering) if changes else _counted(rendering):
        call.out.note(line)


async def _recorded(
    client: Service, session: str, turn_id: str, revision: int | None, profile: str, context: v1.PromptContext | None
) -> str:
    """Record the prompt of a turn and return the record's id."""
    made = await client.mutate_prompt(session, turn_id, base_revision=revision, profile=profile, context=context)
    return made.id


def _context(name: str) -> v1.PromptContext:
    try:
        if name == _STDIN:
            text = sys.stdin.read()
        else:
            with open(name, encoding="utf-8-sig") as file:
                text = file.read()
        return protojson.parse(text, v1.PromptContext)
    except OSError as error:
        raise Usage(f"--context: cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise Usage(f"--context: {name} is not a turnwire.v1.PromptContext: {error}") from error


def _object(rendering: Rendering, prompt_id: str | None) -> str:
    """A rendering as one JSON object; the body stands in it as it is."""
    about: dict[str, Any] = {
        "dialect": rendering.dialect.value,
        "model": json_format.MessageToDict(rendering.model),
        "profile": rendering.profile,
        "rendererVersion": rendering.version,
        "sha256": rendering.sha256.hex(),
    }
    if prompt_id is not None:
        about["promptId"] = prompt_id
    if rendering.revision is not None:
        about["revision"] = rendering.revision
    about["changes"] = [_change(change) for change in rendering.changes]
    return f'{json.dumps(about, ensure_ascii=False)[:-1]}, "body": {rendering.body}}}'


def _change(change: Change) -> dict[str, str]:
    named = {"rule": change.rule.value, "messageId": change.message_id, "partId": change.part_id}
    return {name: value for name, value in named.items() if value}


def _counted(rendering: Rendering) -> Iterator[str]:
    if rendering.changes:
        counts = Counter(change.rule for change in rendering.changes)
        told = ", ".join(f"{rule.value} {count:,}" for rule, count in counts.items())
        yield f"{plural(len(rendering.changes), 'difference')} to what is stored: {told} (--changes lists them)"


def _listed(rendering: Rendering) -> Iterator[str]:
    if not rendering.changes:
        yield "nothing is sent otherwise than it is stored"
    for change in rendering.changes:
        named = [("message", change.message_id), ("part", change.part_id)]
        where = ", ".join(f"{noun} {id}" for noun, id in named if id)
        yield f"{change.rule.value}{f' ({where})' if where else ''}: {_meaning(change.rule)}"


def _meaning(rule: Rule) -> str:
    return " ".join(schema.value_comments("RenderRule")[rule_number(rule)].split())
