"""A part of a message as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.unknown_fields import UnknownFieldSet
from rich.text import Text

from turnwire import v1
from turnwire.cli.output import Line
from turnwire.cli.text import cut, moment, plural, size, span, visible

_INDENT: Final = 2
_SHORT_LINES: Final = 12
_SHORT_WIDTH: Final = 300
_STATES: Final = {
    v1.ToolState.TOOL_STATE_PENDING: ("pending", "yellow"),
    v1.ToolState.TOOL_STATE_RUNNING: ("running", "yellow"),
    v1.ToolState.TOOL_STATE_COMPLETED: ("completed", "green"),
    v1.ToolState.TOOL_STATE_ERROR: ("error", "red"),
}


@dataclass(frozen=True, slots=True)
class Detail:
    """How much to show. ``full``: nothing is shortened. ``ids``: parts with their ids."""

    full: bool = False
    ids: bool = False


def part_lines(part: v1.PromptPart, detail: Detail, indent: int = _INDENT, mark: str = "") -> Iterator[Line]:
    """A part as lines. ``mark`` is said of it beside its kind, for example that a mutation added it."""
    kind = part.WhichOneof("kind")
    body = _Body(detail, indent)
    label, bare = _label(part, kind)
    notes = [*([part.id] if detail.ids and part.id else []), *([mark] if mark else [])]
    if notes or not bare or detail.ids:
        label.append(f"  {'  '.join(notes)}" if notes else "", style="bold magenta" if mark else "dim")
        yield Line(indent, label)
        body.indent += _INDENT
    match kind:
        case "text":
            style = "dim" if part.text.ignored else ""
            yield from body.text(part.text.text, style=style, whole=True)
        case "reasoning":
            yield from body.text(part.reasoning.text, style="italic dim")
        case "tool":
            yield from _tool(part.tool, body)
        case "subtask":
            yield from body.text(part.subtask.prompt)
        case "patch":
            yield from body.text("\n".join(part.patch.files), style="dim")
        case "retry":
            yield from body.text(failure(part.retry.failure), style="red")
        case "extension":
            yield from body.text(part.extension.data_json, style="dim")
        case _:
            pass
    if part.extra_json and detail.full:
        yield from body.text(f"extra {part.extra_json}", style="dim")


def failure(failure: v1.Failure) -> str:
    """A failure in words: its kind, status and message."""
    kind = failure.WhichOneof("kind")
    if kind is None:
        return "failed"
    found = getattr(failure, kind)
    status = f" {failure.api.status_code}" if kind == "api" and failure.api.HasField("status_code") else ""
    name = f" {failure.unknown.name}" if kind == "unknown" and failure.unknown.name else ""
    message = f": {found.message}" if found.message else ""
    return f"{kind.replace('_', ' ')}{status}{name}{message}"


def usage(usage: v1.Usage) -> str:
    """Cost and tokens, for example ``$0.0012  in 120  out 30  cache read 80``."""
    pieces = [f"${usage.cost:.6f}".rstrip("0").rstrip(".")] if usage.HasField("cost") and usage.cost else []
    tokens = usage.tokens
    cache = tokens.cache
    for name, count in (
        ("in", tokens.input),
        ("out", tokens.output),
        ("reasoning", tokens.reasoning),
        ("cache read", cache.read),
        ("cache write", cache.write),
    ):
        if count:
            pieces.append(f"{name} {count:,}")
    return "  ".join(pieces)


@dataclass(slots=True)
class _Body:
    """Writes texts under a part's label."""

    detail: Detail
    indent: int

    def text(self, text: str, *, style: str = "", prefix: str = "", whole: bool = False) -> Iterator[Line]:
        """The lines of a text, shortened unless it is to be shown whole."""
        if not text:
            yield Line(self.indent, Text("(empty)", style="dim"))
            return
        lines = text.removesuffix("\n").split("\n")
        shown = lines if self.detail.full or whole else lines[:_SHORT_LINES]
        for line in shown:
            yield Line(self.indent, Text.assemble((prefix, "dim"), (self._width(line, whole), style)))
        if len(shown) < len(lines):
            rest = plural(len(lines) - len(shown), "more line")
            yield Line(self.indent, Text(f"{prefix}… {rest} (--full shows all)", style="dim"))

    def _width(self, line: str, whole: bool) -> str:
        if self.detail.full or whole or len(line) <= _SHORT_WIDTH:
            return visible(line)
        return f"{visible(line[:_SHORT_WIDTH])}… {len(line) - _SHORT_WIDTH:,} more characters"


def _label(part: v1.PromptPart, kind: str | None) -> tuple[Text, bool]:
    """The line above a part's content, and whether it says nothing but the kind of a plain text."""
    match kind:
        case "text":
            words = [word for word, on in (("synthetic", part.text.synthetic), ("ignored", part.text.ignored)) if on]
            return Text(" ".join(["text", *words]), style="dim"), not words
        case "reasoning":
            signed = " signed" if part.reasoning.provider.signed else ""
            return Text(f"reasoning{signed}", style="italic dim"), False
        case "tool":
            return _tool_label(part.tool), False
        case None:
            unknown = UnknownFieldSet(part)
            number = unknown[0].field_number if len(unknown) else 0
            return Text(f"a part of a kind that this version does not know (field {number})", style="yellow"), False
        case _:
            label = Text(kind.replace("_", " "), style="bold dim")
            return label.append(f"  {_about(part, kind)}".rstrip(), style="dim"), False


def _about(part: v1.PromptPart, kind: str) -> str:
    """What one line says of a part that is neither text, reasoning nor tool."""
    match kind:
        case "file":
            return _file(part.file)
        case "subtask":
            return f"for {cut(part.subtask.agent, 60)}: {cut(part.subtask.description, 100)}"
        case "agent":
            return f"@{cut(part.agent.name, 60)}"
        case "step_start":
            return cut(part.step_start.snapshot, 60)
        case "step_finish":
            return f"{cut(part.step_finish.reason, 60)}  {usage(part.step_finish.usage)}"
        case "snapshot":
            return cut(part.snapshot.snapshot, 60)
        case "patch":
            return f"{cut(part.patch.hash, 60)}  {plural(len(part.patch.files), 'file')}"
        case "retry":
            return f"attempt {part.retry.attempt}" if part.retry.attempt else ""
        case "compaction":
            kept = f"  tail from {part.compaction.tail_start_id}" if part.compaction.HasField("tail_start_id") else ""
            return f"{'automatic' if part.compaction.auto else 'asked for'}{kept}"
        case _:
            return cut(part.extension.type, 100)


def _file(file: v1.FilePart) -> str:
    name = f"{cut(file.filename, 100)}  " if file.HasField("filename") else ""
    where = f"data, {size(len(file.url))} as a URL" if file.url.startswith("data:") else cut(file.url, 200)
    return f"{cut(file.mime, 60) or 'no media type'}  {name}{where}"


def _tool_label(tool: v1.ToolPart) -> Text:
    state, style = _STATES.get(tool.state, (f"state {tool.state}", "yellow"))
    label = Text.assemble(("tool ", "dim"), (cut(tool.name, 60), "bold"), " ", (state, style))
    if tool.title:
        label.append(f"  {cut(tool.title, 100)}")
    if tool.time.HasField("start") and tool.time.HasField("end"):
        label.append(f"  {span(tool.time.start, tool.time.end)}", style="dim")
    return label.append(f"  {cut(tool.call_id, 60)}", style="dim")


def _tool(tool: v1.ToolPart, body: _Body) -> Iterator[Line]:
    if tool.input_json:
        yield from body.text(tool.input_json, prefix="in  ")
    elif tool.raw_input:
        yield from body.text(tool.raw_input, prefix="in… ")
    if tool.HasField("compacted"):
        yield Line(body.indent, Text(f"the output was compacted at {moment(tool.compacted)}", style="dim"))
    if tool.HasField("output"):
        yield from body.text(tool.output, prefix="out ")
    if tool.HasField("error"):
        yield from body.text(tool.error, style="red", prefix="err ")
    for attachment in tool.attachments:
        yield Line(body.indent, Text(f"attachment  {_file(attachment.file)}", style="dim"))
