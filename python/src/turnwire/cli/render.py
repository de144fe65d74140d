"""Histories, prompts and entries as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from turnwire import v1
from turnwire.cli.output import Line
from turnwire.cli.parts import Detail, failure, part_lines, usage
from turnwire.cli.text import clock, cut, moment, plural, span

_ROLES: Final = {v1.Role.ROLE_USER: ("user", "bold cyan"), v1.Role.ROLE_ASSISTANT: ("assistant", "bold green")}
_BLANK: Final = Line(0, Text(""))
_SUMMARY: Final = v1.ResultKind.RESULT_KIND_SUMMARY


def frame_lines(frame: v1.HistoryFrame, detail: Detail) -> Iterator[Line]:
    """One step of a history."""
    match frame.WhichOneof("frame"):
        case "turn":
            yield _BLANK
            yield Line(0, turn_line(frame.turn))
            if frame.turn.request.system and detail.full:
                yield Line(2, Text(f"system  {cut(frame.turn.request.system, 2000)}", style="dim"))
        case "user":
            yield _BLANK
            yield Line(0, _user_heading(frame.user))
            yield from _parts(frame.user.parts, detail)
        case "assistant":
            yield _BLANK
            yield from _assistant(frame.assistant)
            yield from _parts(frame.assistant.parts, detail)
        case "parts":
            yield from _parts(frame.parts.parts, detail)
        case "summary":
            yield from _summary(frame.summary)
        case "head":
            yield _BLANK
            yield Line(0, head_line(frame.head))
        case None:
            yield Line(0, Text("a frame of a kind that this version does not know", style="yellow"))


def turn_line(turn: v1.Turn) -> Text:
    """A turn: what was asked of whom."""
    request = turn.request
    line = Text.assemble(("turn ", "dim"), (turn.id, "dim"), "  ", (cut(request.agent, 60), "bold"), "  ")
    line.append(_model(request.model))
    if request.variant:
        line.append(f" {cut(request.variant, 60)}")
    kind = request.format.WhichOneof("kind")
    if kind == "json_schema":
        line.append("  answers as JSON", style="dim")
    if request.tools:
        off = sum(not on for on in request.tools.values())
        line.append(f"  {plural(len(request.tools), 'tool')} named, {off} off", style="dim")
    return line.append(f"  {moment(turn.created)}", style="dim")


def head_line(head: v1.Head) -> Text:
    """The end of a log."""
    return Text(f"revision {head.revision}  digest {head.digest.hex()}", style="dim")


def item_lines(number: int, item: v1.PromptItem, detail: Detail) -> Iterator[Line]:
    """One item of a prompt: its place from 1, role, origin and parts."""
    name, style = _role(item.message.role)
    heading = Text.assemble((f"{number:>3} ", "dim"), (f"{name:<10}", style), "  ")
    stored = item.WhichOneof("origin") == "message_id"
    if stored:
        heading.append(f"stored {item.message_id}")
    else:
        heading.append(_mutation(item.mutation), style="bold magenta")
    if item.HasField("facts"):
        heading.append(f"  {_facts(item.facts)}", style="dim")
    yield _BLANK
    yield Line(0, heading)
    for part in item.message.parts:
        mark = "added by a mutation" if stored and not part.id else ""
        yield from part_lines(part, detail, 4, mark)


def prompt_lines(end: v1.PromptEnd, *, dry_run: bool, recomputed: bool) -> Iterator[Line]:
    """The end of a prompt: what it was computed from, and whether it is recorded."""
    record = end.record
    if record.WhichOneof("base") == "base_prompt_id":
        base = f"the prompt {record.base_prompt_id}"
    else:
        base = f"the history at revision {record.base_revision}"
    yield _BLANK
    yield Line(0, Text(f"{plural(end.items, 'item')} for turn {record.turn_id}, from {base}"))
    applied = plural(len(record.mutations), "mutation")
    yield Line(0, Text(f"{applied}, profile {cut(record.profile, 64)}, rules version {record.assembly_version}"))
    yield Line(0, Text(f"digest {record.digest.hex()}"))
    if end.HasField("context"):
        told = f"{plural(len(end.context.system), 'system text')}, {plural(len(end.context.tools), 'tool')}"
        yield Line(0, Text(f"context: {told}"))
    if recomputed:
        holds = ("the digest holds", "green") if end.digest_holds else ("the digest does NOT hold", "bold red")
        yield Line(0, Text.assemble(f"recorded as {record.id}; computed again: ", holds))
        for rendering in end.renderings:
            yield Line(0, Text(f"rendered as {_rendering(rendering)}, profile {cut(rendering.profile, 64)}"))
    elif dry_run:
        yield Line(0, Text("a dry run: nothing was recorded (--record records it)", style="dim"))
    else:
        yield Line(0, Text.assemble("recorded as ", (record.id, "bold"), f" at revision {end.head.revision}"))


def entry_line(entry: v1.Entry) -> Text:
    """One entry of a log."""
    kind = entry.WhichOneof("payload") or "a payload that this version does not know"
    line = Text.assemble((f"{entry.revision:>6}  ", "dim"), f"{clock(entry.recorded)}  ")
    line.append(f"{kind.replace('_', ' '):<13}", style="bold")
    return line.append(f" {_payload(entry, kind)}".rstrip())


def _payload(entry: v1.Entry, kind: str) -> str:
    """What one line says of an entry's payload."""
    match kind:
        case "session":
            return cut(entry.session.title, 100)
        case "turn":
            return f"{entry.turn.id}  {cut(entry.turn.request.agent, 60)}  {_model(entry.turn.request.model)}"
        case "user":
            return f"{entry.user.user.id}  {_told(entry.user.user.parts)}"
        case "assistant":
            return _told_assistant(entry.assistant.assistant)
        case "part":
            return f"{entry.part.message_id}  {_told([entry.part.part])}"
        case "delta":
            target = entry.delta.WhichOneof("target") or ""
            text = getattr(entry.delta, target) if target else ""
            return f"{entry.delta.part_id}  {target} at {entry.delta.offset:,}  {cut(text, 80)}"
        case "summary":
            return f"{entry.summary.message_id}  {plural(len(entry.summary.diffs), 'diff')}"
        case "removal":
            removed = entry.removal.WhichOneof("target") or ""
            return f"{removed.removesuffix('_id')} {getattr(entry.removal, removed) if removed else ''}"
        case "revert":
            return f"from {entry.revert.message_id} {entry.revert.part_id}"
        case "context":
            told = plural(len(entry.context.system), "system text")
            return f"{told}, {plural(len(entry.context.tools), 'tool')}"
        case "prompt":
            return f"{entry.prompt.id}  turn {entry.prompt.turn_id}  {plural(len(entry.prompt.mutations), 'mutation')}"
        case "rendering":
            return f"{entry.rendering.prompt_id}  as {_rendering(entry.rendering)}"
        case _:
            return ""


def _told(parts: Iterable[v1.PromptPart]) -> str:
    told: list[str] = []
    for part in parts:
        kind = part.WhichOneof("kind") or "unknown"
        if kind == "text":
            told.append(f"“{cut(part.text.text, 60)}”")
        elif kind == "tool":
            told.append(f"tool {cut(part.tool.name, 40)} {v1.ToolState.Name(part.tool.state)[11:].lower()}")
        else:
            told.append(kind.replace("_", " "))
    shown = told[:4]
    return "  ".join([*shown, *([f"and {plural(len(told) - 4, 'more part')}"] if len(told) > 4 else [])])


def _told_assistant(assistant: v1.Assistant) -> str:
    ended = "completed" if assistant.time.HasField("completed") else ""
    told = [assistant.id, _told(assistant.parts), ended]
    if assistant.result.HasField("failure"):
        told.append(cut(failure(assistant.result.failure), 80))
    return "  ".join(piece for piece in told if piece)


def _user_heading(user: v1.User) -> Text:
    return Text.assemble(("user", "bold cyan"), (f"  {user.id}  {clock(user.time.created)}", "dim"))


def _assistant(assistant: v1.Assistant) -> Iterator[Line]:
    heading = Text.assemble(("assistant", "bold green"), (f"  {assistant.id}  {clock(assistant.time.created)}", "dim"))
    heading.append(f"  {_model(assistant.run.model)}", style="dim")
    if assistant.run.variant:
        heading.append(f" {cut(assistant.run.variant, 60)}", style="dim")
    if assistant.result.kind == _SUMMARY:
        heading.append("  summary of a compaction", style="bold dim")
    yield Line(0, heading)
    told: list[str] = []
    if assistant.result.HasField("finish"):
        told.append(f"finish {cut(assistant.result.finish, 60)}")
    if assistant.time.HasField("completed"):
        took = span(assistant.time.created, assistant.time.completed)
        told += [f"took {took}"] if took else []
    else:
        told.append("not ended")
    told += [usage(assistant.usage)] if usage(assistant.usage) else []
    yield Line(2, Text("  ".join(told), style="dim"))
    if assistant.result.HasField("failure"):
        yield Line(2, Text(f"failed: {cut(failure(assistant.result.failure), 500)}", style="red"))
    if assistant.result.structured_json:
        yield Line(2, Text(f"answer as JSON  {cut(assistant.result.structured_json, 500)}"))


def _parts(parts: Iterable[v1.PromptPart], detail: Detail) -> Iterator[Line]:
    for part in parts:
        yield from part_lines(part, detail)


def _summary(summary: v1.MessageSummary) -> Iterator[Line]:
    yield Line(2, Text.assemble(("summary ", "bold dim"), cut(summary.title, 200)))
    if summary.body:
        yield Line(4, Text(cut(summary.body, 2000), style="dim"))
    for diff in summary.diffs:
        counts = f"+{diff.additions} -{diff.deletions}"
        yield Line(4, Text(f"{cut(diff.path, 300)}  {counts}  {cut(diff.status, 60)}".rstrip(), style="dim"))


def _model(model: v1.ModelRef) -> str:
    return f"{cut(model.provider_id, 80)}/{cut(model.model_id, 120)}"


def _rendering(rendering: v1.PromptRendering) -> str:
    dialect = v1.Dialect.Name(rendering.dialect) if rendering.dialect in v1.Dialect.values() else "?"
    name = dialect.removeprefix("DIALECT_").lower().replace("_", "-")
    return f"{name} for {_model(rendering.model)}, SHA-256 {rendering.body_sha256.hex()[:16]}"


def _role(role: v1.Role.ValueType) -> tuple[str, str]:
    return _ROLES.get(role, (f"role {role}", "yellow"))


def _mutation(origin: v1.MutationOrigin) -> str:
    return f"mutation {origin.index}" + (f" of {origin.prompt_id}" if origin.HasField("prompt_id") else "")


def _facts(facts: v1.AssistantFacts) -> str:
    told = [_model(facts.model)]
    if facts.kind == _SUMMARY:
        told.append("summary")
    if facts.HasField("finish"):
        told.append(f"finish {cut(facts.finish, 60)}")
    if facts.HasField("failure"):
        told.append("failed")
    if not facts.completed:
        told.append("not ended")
    return "  ".join(told)
