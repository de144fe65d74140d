"""Parts as opencode writes them: what the exporter derives from the fields of a part, before its extras.

The importer compares the same trees with what it read, so that nothing here has to be right for a file to come back;
it only has to be right for sessions that opencode did not write.
"""

from __future__ import annotations

from typing import NamedTuple

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.fields import milliseconds
from turnwire.formats.jsonlit import Json, integer, literal, real
from turnwire.formats.opencode.failures import to_error

#: The name space of opencode's extras, and the prefix of its part types in extension parts.
SPACE = "opencode"
EXTENSION = SPACE + "/"

#: The name spaces of what stands in an export around ``info``: in the file, and in a message. Beside pointers they hold
#: ``order`` where the file is not in opencode's own order: the place in the file of each message, or part, in turn.
FILE = "opencode/file"
MESSAGE = "opencode/message"
ORDER = "order"

#: The name space of what opencode keeps beside a session and no export has: ``todo``, ``share``, ``project``, unknown
#: columns of a database. In the summary of the last user message: ``session_diff``.
BESIDE = "opencode/beside"
DIFFS = "session_diff"

_STATUS = {
    v1.ToolState.TOOL_STATE_PENDING: "pending",
    v1.ToolState.TOOL_STATE_RUNNING: "running",
    v1.ToolState.TOOL_STATE_COMPLETED: "completed",
    v1.ToolState.TOOL_STATE_ERROR: "error",
}


class Owner(NamedTuple):
    """The ids that a part repeats, as they stand in the export."""

    session_id: str
    message_id: str


class OriginalIds(dict[str, str]):
    """The ids of messages as they stand in the export, where they differ from those in Turnwire."""

    def __missing__(self, key: str) -> str:
        return key


def part_tree(part: v1.PromptPart, owner: Owner, ids: OriginalIds) -> Json:
    """The JSON of a part, without its extras; None if opencode has nothing like it."""
    kind = part.WhichOneof("kind")
    if kind == "extension":
        extension = part.extension
        return literal(extension.data_json) if extension.type.startswith(EXTENSION) else None
    tree: dict[str, Json] = {"id": part.id, "sessionID": owner.session_id, "messageID": owner.message_id}
    match kind:
        case "text":
            _text(part.text, tree)
        case "reasoning":
            reasoning = part.reasoning
            tree |= {"type": "reasoning", "text": reasoning.text}
            _time(reasoning, tree)
            _provider(reasoning, tree)
        case "file":
            _file(part.file, tree)
        case "tool":
            _tool(part.tool, tree, owner)
        case "subtask":
            _subtask(part.subtask, tree)
        case "agent":
            tree |= {"type": "agent", "name": part.agent.name}
            if part.agent.HasField("source"):
                tree["source"] = _span(part.agent.source)
        case "step_start":
            tree["type"] = "step-start"
            _snapshot(part.step_start, tree)
        case "step_finish":
            finish = part.step_finish
            tree |= {"type": "step-finish", "reason": finish.reason}
            _snapshot(finish, tree)
            usage_tree(finish.usage, tree)
        case "snapshot":
            tree |= {"type": "snapshot", "snapshot": part.snapshot.snapshot}
        case "patch":
            files: list[Json] = list(part.patch.files)
            tree |= {"type": "patch", "hash": part.patch.hash, "files": files}
        case "retry":
            retry = part.retry
            tree |= {"type": "retry", "attempt": integer(retry.attempt), "error": to_error(retry.failure)}
            if retry.HasField("created"):
                tree["time"] = {"created": milliseconds(retry.created)}
        case "compaction":
            compaction = part.compaction
            tree |= {"type": "compaction", "auto": compaction.auto}
            if compaction.HasField("overflow"):
                tree["overflow"] = compaction.overflow
            if compaction.HasField("tail_start_id"):
                tree["tail_start_id"] = ids[compaction.tail_start_id]
        case _:
            return None
    return tree


def attachment_tree(attachment: v1.ToolAttachment, owner: Owner) -> Json:
    """The JSON of a file that belongs to a tool's output, without its extras."""
    tree: dict[str, Json] = {
        "id": attachment.label,
        "sessionID": owner.session_id,
        "messageID": owner.message_id,
    }
    _file(attachment.file, tree)
    return tree


def usage_tree(usage: v1.Usage, tree: dict[str, Json]) -> None:
    """Add ``cost`` and ``tokens``, as far as they are known."""
    if usage.HasField("cost"):
        tree["cost"] = real(usage.cost)
    if usage.HasField("tokens"):
        tokens = usage.tokens
        counts: dict[str, Json] = {"total": integer(tokens.total)} if tokens.HasField("total") else {}
        counts |= {
            "input": integer(tokens.input),
            "output": integer(tokens.output),
            "reasoning": integer(tokens.reasoning),
        }
        if tokens.HasField("cache"):
            counts["cache"] = {"read": integer(tokens.cache.read), "write": integer(tokens.cache.write)}
        tree["tokens"] = counts


def _text(text: v1.TextPart, tree: dict[str, Json]) -> None:
    tree |= {"type": "text", "text": text.text}
    if text.HasField("synthetic"):
        tree["synthetic"] = text.synthetic
    if text.HasField("ignored"):
        tree["ignored"] = text.ignored
    _time(text, tree)
    _provider(text, tree)


def _time(part: v1.TextPart | v1.ReasoningPart, tree: dict[str, Json]) -> None:
    if part.HasField("time"):
        tree["time"] = _period(part.time)


def _period(time: v1.PartTime) -> dict[str, Json]:
    period: dict[str, Json] = {}
    if time.HasField("start"):
        period["start"] = milliseconds(time.start)
    if time.HasField("end"):
        period["end"] = milliseconds(time.end)
    return period


def _provider(part: v1.TextPart | v1.ReasoningPart | v1.ToolPart, tree: dict[str, Json]) -> None:
    if part.provider.metadata_json:
        tree["metadata"] = literal(part.provider.metadata_json)


def _snapshot(part: v1.StepStartPart | v1.StepFinishPart, tree: dict[str, Json]) -> None:
    if part.HasField("snapshot"):
        tree["snapshot"] = part.snapshot


def _span(span: v1.TextSpan) -> Json:
    return {"value": span.value, "start": integer(span.start), "end": integer(span.end)}


def _file(file: v1.FilePart, tree: dict[str, Json]) -> None:
    tree |= {"type": "file", "mime": file.mime}
    if file.HasField("filename"):
        tree["filename"] = file.filename
    tree["url"] = file.url
    if file.HasField("source"):
        tree["source"] = _source(file.source)


def _source(source: v1.FileSource) -> Json:
    tree: dict[str, Json] = {"text": _span(source.text)} if source.HasField("text") else {}
    match source.WhichOneof("kind"):
        case "symbol":
            symbol = source.symbol
            tree |= {"type": "symbol", "path": symbol.path}
            if symbol.HasField("range"):
                tree["range"] = {
                    "start": _position(symbol.range.start),
                    "end": _position(symbol.range.end),
                }
            tree |= {"name": symbol.name, "kind": integer(symbol.kind)}
        case "resource":
            resource = source.resource
            tree |= {"type": "resource", "clientName": resource.client_name, "uri": resource.uri}
        case _:
            tree |= {"type": "file", "path": source.file.path}
    return tree


def _position(position: v1.Position) -> Json:
    return {"line": integer(position.line), "character": integer(position.character)}


def _subtask(subtask: v1.SubtaskPart, tree: dict[str, Json]) -> None:
    tree |= {
        "type": "subtask",
        "prompt": subtask.prompt,
        "description": subtask.description,
        "agent": subtask.agent,
    }
    if subtask.HasField("model"):
        tree["model"] = {"providerID": subtask.model.provider_id, "modelID": subtask.model.model_id}
    if subtask.HasField("command"):
        tree["command"] = subtask.command


def _tool(tool: v1.ToolPart, tree: dict[str, Json], owner: Owner) -> None:
    state: dict[str, Json] = {"status": _STATUS.get(tool.state, "pending")}
    if tool.input_json:
        state["input"] = literal(tool.input_json)
    if tool.HasField("raw_input"):
        state["raw"] = tool.raw_input
    if tool.HasField("output"):
        state["output"] = tool.output
    if tool.HasField("error"):
        state["error"] = tool.error
    if tool.HasField("title"):
        state["title"] = tool.title
    if tool.metadata_json:
        state["metadata"] = literal(tool.metadata_json)
    period = _period(tool.time)
    if tool.HasField("compacted"):
        period["compacted"] = milliseconds(tool.compacted)
    if period:
        state["time"] = period
    if tool.attachments:
        state["attachments"] = [
            extras.restore(attachment_tree(one, owner), extras.space(one.extra_json, SPACE)) for one in tool.attachments
        ]
    tree |= {"type": "tool", "callID": tool.call_id, "tool": tool.name, "state": state}
    _provider(tool, tree)
