"""Sessions and message heads as opencode writes them: what the exporter derives from fields, before the extras."""

from __future__ import annotations

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.fields import milliseconds
from turnwire.formats.jsonlit import Json, integer, literal
from turnwire.formats.opencode.failures import to_error
from turnwire.formats.opencode.shape_parts import SPACE, OriginalIds, usage_tree

#: Members of a user message's ``info`` that are settings of its turn.
SETTINGS = frozenset({"agent", "model", "variant", "format", "system", "tools"})


def session_tree(session_id: str, properties: v1.SessionProperties) -> dict[str, Json]:
    """The ``info`` of a session, without its revert and its extras."""
    tree: dict[str, Json] = {"id": session_id}
    if properties.HasField("directory"):
        tree["directory"] = properties.directory
    if properties.HasField("parent"):
        tree["parentID"] = properties.parent.session_id
    if properties.HasField("title"):
        tree["title"] = properties.title
    if properties.origin.HasField("version"):
        tree["version"] = properties.origin.version
    if properties.HasField("share_url"):
        tree["share"] = {"url": properties.share_url}
    time: dict[str, Json] = {"created": milliseconds(properties.created)}
    if properties.HasField("archived"):
        time["archived"] = milliseconds(properties.archived)
    tree["time"] = time
    return tree


def revert_tree(revert: v1.Revert, ids: OriginalIds, part_ids: OriginalIds) -> Json:
    """The ``revert`` of a session, without its extras."""
    tree: dict[str, Json] = {"messageID": ids[revert.message_id]}
    if revert.HasField("part_id"):
        tree["partID"] = part_ids[revert.part_id]
    if revert.HasField("snapshot"):
        tree["snapshot"] = revert.snapshot
    if revert.HasField("diff"):
        tree["diff"] = revert.diff
    return tree


def user_tree(user: v1.User, request: v1.TurnRequest, session_id: str) -> dict[str, Json]:
    """The ``info`` of a user message with the settings of its turn, without its summary and its extras."""
    model: dict[str, Json] = {
        "providerID": request.model.provider_id,
        "modelID": request.model.model_id,
    }
    if request.HasField("variant"):
        model["variant"] = request.variant
    tree: dict[str, Json] = {
        "id": user.id,
        "sessionID": session_id,
        "role": "user",
        "time": {"created": milliseconds(user.time.created)},
        "agent": request.agent,
        "model": model,
    }
    if request.HasField("format"):
        tree["format"] = _format(request.format)
    if request.HasField("system"):
        tree["system"] = request.system
    if request.tools:
        tree["tools"] = dict(request.tools)
    return tree


def _format(format: v1.OutputFormat) -> Json:
    if format.WhichOneof("kind") != "json_schema":
        return {"type": "text"}
    schema = format.json_schema
    tree: dict[str, Json] = {"type": "json_schema", "schema": literal(schema.schema_json)}
    if schema.HasField("retry_count"):
        tree["retryCount"] = integer(schema.retry_count)
    return tree


def summary_tree(summary: v1.MessageSummary) -> Json:
    """The ``summary`` of a user message, without its own extras but with those of its file diffs."""
    tree: dict[str, Json] = {}
    if summary.HasField("title"):
        tree["title"] = summary.title
    if summary.HasField("body"):
        tree["body"] = summary.body
    tree["diffs"] = [extras.restore(diff_tree(diff), extras.space(diff.extra_json, SPACE)) for diff in summary.diffs]
    return tree


def diff_tree(diff: v1.FileDiff) -> Json:
    """One file's diff, without its extras."""
    tree: dict[str, Json] = {}
    if diff.HasField("path"):
        tree["file"] = diff.path
    if diff.HasField("patch"):
        tree["patch"] = diff.patch
    if diff.HasField("before"):
        tree["before"] = diff.before
    if diff.HasField("after"):
        tree["after"] = diff.after
    if diff.HasField("additions"):
        tree["additions"] = integer(diff.additions)
    if diff.HasField("deletions"):
        tree["deletions"] = integer(diff.deletions)
    if diff.HasField("status"):
        tree["status"] = diff.status
    return tree


def assistant_tree(assistant: v1.Assistant, session_id: str, ids: OriginalIds) -> dict[str, Json]:
    """The ``info`` of an assistant message, without its extras."""
    time: dict[str, Json] = {"created": milliseconds(assistant.time.created)}
    if assistant.time.HasField("completed"):
        time["completed"] = milliseconds(assistant.time.completed)
    tree: dict[str, Json] = {
        "id": assistant.id,
        "sessionID": session_id,
        "role": "assistant",
        "time": time,
    }
    result = assistant.result
    if result.HasField("failure"):
        tree["error"] = to_error(result.failure)
    if assistant.HasField("parent_id"):
        tree["parentID"] = ids[assistant.parent_id]
    run = assistant.run
    tree |= {
        "modelID": run.model.model_id,
        "providerID": run.model.provider_id,
        "mode": run.agent,
        "agent": run.agent,
    }
    if run.HasField("path"):
        tree["path"] = {"cwd": run.path.cwd, "root": run.path.root}
    if result.kind == v1.ResultKind.RESULT_KIND_SUMMARY:
        tree["summary"] = True
    usage_tree(assistant.usage, tree)
    if result.structured_json:
        tree["structured"] = literal(result.structured_json)
    if run.HasField("variant"):
        tree["variant"] = run.variant
    if result.HasField("finish"):
        tree["finish"] = result.finish
    return tree
