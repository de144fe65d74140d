"""The ``info`` of opencode's messages as turn, user message, summary and assistant message."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.fields import QUIET, Fields
from turnwire.formats.jsonlit import Json, Node, literal
from turnwire.formats.opencode.failures import to_failure
from turnwire.formats.opencode.making import model_ref, usage
from turnwire.formats.opencode.shape import SETTINGS, assistant_tree, diff_tree, summary_tree, user_tree
from turnwire.formats.opencode.shape_parts import SPACE, OriginalIds

_UNKNOWN = "unknown"
_MANY_DIFFS = 100_000
_RETRIES = 1000
_NAME_CHARACTERS = 256
_DIGEST_DIGITS = 16
_ID_CHARACTERS = 100


@dataclass(slots=True)
class UserMessage:
    """What one user message of opencode becomes."""

    turn: v1.Turn
    user: v1.User
    summary: v1.MessageSummary | None


@dataclass(slots=True)
class Settings:
    """What stands in for settings that a user message of an old version lacks: those of its answer, if it has one."""

    agent: str = _UNKNOWN
    provider_id: str = _UNKNOWN
    model_id: str = _UNKNOWN


def turn_id(message_id: str, turn: v1.Turn) -> str:
    """The id of the turn of a message: the message's id, and a digest of everything that the turn holds.

    Other content gives another id, so that importing again never changes a turn. ``turn.id`` must be empty.
    """
    content = turn.SerializeToString(deterministic=True)
    digest = hashlib.sha256(message_id.encode() + b"\0" + content).hexdigest()[:_DIGEST_DIGITS]
    return f"trn_{message_id.removeprefix('msg_')[:_ID_CHARACTERS]}_{digest}"


def time_created(tree: dict[str, Json]) -> Json:
    """``time.created`` of a message or a session."""
    time = tree.get("time")
    return time.get("created") if isinstance(time, dict) else None


def map_user(
    node: Node, message_id: str, session_id: str, fallback: Settings, now: Timestamp, fields: Fields
) -> UserMessage:
    """A user message; ``session_id`` is the one that stands in the source, ``now`` the time for a missing one."""
    tree = node.value if isinstance(node.value, dict) else {}
    created = fields.time_or(time_created(tree), "/time/created", now, "the time before it")
    request, schema = _request(tree, node, fallback, fields)
    turn = v1.Turn(created=created, request=request)
    user = v1.User(id=message_id, time=v1.UserTime(created=created))
    original = dict(tree)
    if schema and isinstance(original["format"], dict):
        original["format"] = {**original["format"], "schema": literal(schema)}
    summary = None
    described = tree.get("summary")
    if isinstance(described, dict):
        del original["summary"]
        summary = _summary(node, described, message_id, fields)
    found = extras.compare(original, user_tree(user, request, session_id))
    if found is not extras.NONE:
        of_turn = found.part(SETTINGS.__contains__)
        of_user = found.part(lambda key: key not in SETTINGS)
        turn.extra_json = extras.join({SPACE: extras.encode(of_turn, node)})
        user.extra_json = extras.join({SPACE: extras.encode(of_user, node)})
    turn.id = user.turn_id = turn_id(message_id, turn)
    return UserMessage(turn, user, summary)


def _request(tree: dict[str, Json], node: Node, fallback: Settings, fields: Fields) -> tuple[v1.TurnRequest, str]:
    """The settings, and the JSON schema among them."""
    model = tree.get("model")
    if isinstance(model, dict):
        ref = model_ref(model, "/model", fields)
        variant = model.get("variant")
    else:
        fields.note("/model", "missing, the model of the answer stands for it")
        ref = v1.ModelRef(provider_id=fallback.provider_id, model_id=fallback.model_id)
        variant = None
    at = "/model/variant"
    if variant is None:  # until 1.1 it stood beside the model
        variant, at = tree.get("variant"), "/variant"
    request = v1.TurnRequest(
        agent=fields.name(tree.get("agent"), "/agent", fallback.agent),
        model=ref,
        variant=fields.text(variant, at, _NAME_CHARACTERS),
        system=fields.text(tree.get("system"), "/system"),
    )
    tools = tree.get("tools")
    for name, on in tools.items() if isinstance(tools, dict) else ():
        if not isinstance(on, bool) or not name or len(name) > _NAME_CHARACTERS:
            fields.note("/tools", "a tool that is neither on nor off, or without a proper name, left out")
            continue
        known = fields.text(name, "/tools")
        if known is not None:
            request.tools[known] = on
    schema = ""
    format = tree.get("format")
    if isinstance(format, dict):
        schema = _format(format, node, request, fields)
    return request, schema


def _format(format: dict[str, Json], node: Node, request: v1.TurnRequest, fields: Fields) -> str:
    kind = format.get("type")
    if kind == "text":
        request.format.text.SetInParent()
        return ""
    if kind == "json_schema" and "schema" in format:
        schema = fields.document(node.find(("format", "schema")), "/format/schema")
        if schema:
            retries = fields.count(format.get("retryCount"), "/format/retryCount", _RETRIES)
            request.format.json_schema.CopyFrom(v1.JsonSchemaFormat(schema_json=schema, retry_count=retries))
            return schema
    fields.note("/format", "a format that is not known or has no schema, left out")
    return ""


def _summary(info: Node, tree: dict[str, Json], message_id: str, fields: Fields) -> v1.MessageSummary:
    summary = v1.MessageSummary(
        message_id=message_id,
        title=fields.text(tree.get("title"), "/summary/title"),
        body=fields.text(tree.get("body"), "/summary/body"),
    )
    diffs = tree.get("diffs")
    if diffs and isinstance(diffs, list):
        if len(diffs) <= _MANY_DIFFS and all(isinstance(one, dict) for one in diffs):
            for index, one in enumerate(info.find(("summary", "diffs")).items()):
                summary.diffs.append(_diff(one, f"/summary/diffs/{index}", fields))
        else:
            fields.note("/summary/diffs", "not a list of file diffs, or too long a one")
    found = extras.compare(tree, summary_tree(summary))
    if found is not extras.NONE:
        summary.extra_json = extras.join({SPACE: extras.encode(found, info.find(("summary",)))})
    return summary


def _diff(node: Node, at: str, fields: Fields) -> v1.FileDiff:
    tree = node.value if isinstance(node.value, dict) else {}
    diff = v1.FileDiff(
        path=fields.text(tree.get("file"), f"{at}/file"),
        patch=fields.text(tree.get("patch"), f"{at}/patch"),
        additions=fields.count(tree.get("additions"), f"{at}/additions"),
        deletions=fields.count(tree.get("deletions"), f"{at}/deletions"),
        status=fields.text(tree.get("status"), f"{at}/status", _NAME_CHARACTERS),
        before=fields.text(tree.get("before"), f"{at}/before"),
        after=fields.text(tree.get("after"), f"{at}/after"),
    )
    found = extras.compare(tree, diff_tree(diff))
    diff.extra_json = extras.join({SPACE: extras.encode(found, node)})
    return diff


def map_assistant(
    node: Node,
    message_id: str,
    parent_id: str | None,
    session_id: str,
    ids: OriginalIds,
    now: Timestamp,
    fields: Fields,
) -> v1.Assistant:
    """An assistant message, still without its turn; see `map_user` for the rest."""
    tree = node.value if isinstance(node.value, dict) else {}
    created = fields.time_or(time_created(tree), "/time/created", now, "the time before it")
    time = tree.get("time")
    completed = time.get("completed") if isinstance(time, dict) else None
    structured = ""
    original = tree
    if "structured" in tree:
        structured = fields.document(node.find(("structured",)), "/structured")
        if structured:
            original = {**tree, "structured": literal(structured)}
    assistant = v1.Assistant(
        id=message_id,
        parent_id=parent_id,
        time=v1.AssistantTime(created=created, completed=fields.time(completed, "/time/completed")),
        run=_run(tree, fields),
        usage=usage(tree, fields),
        result=_result(tree, structured, fields),
    )
    found = extras.compare(original, assistant_tree(assistant, session_id, ids))
    if found is not extras.NONE:
        assistant.extra_json = extras.join({SPACE: extras.encode(found, node)})
    return assistant


def _run(tree: dict[str, Json], fields: Fields) -> v1.Run:
    path = tree.get("path")
    # Until `agent` came, `mode` held the agent's name; both are written since.
    agent = tree.get("agent") or tree.get("mode")
    return v1.Run(
        agent=fields.name(agent, "/agent", _UNKNOWN),
        model=model_ref(tree, "", fields),
        variant=fields.text(tree.get("variant"), "/variant", _NAME_CHARACTERS),
        path=v1.RunPath(
            cwd=fields.text(path.get("cwd"), "/path/cwd") or "",
            root=fields.text(path.get("root"), "/path/root") or "",
        )
        if isinstance(path, dict)
        else None,
    )


def _result(tree: dict[str, Json], structured: str, fields: Fields) -> v1.Result | None:
    finish = fields.text(tree.get("finish"), "/finish", _NAME_CHARACTERS)
    failure = to_failure(fields, tree.get("error"), "/error")
    summary = tree.get("summary") is True
    if finish is None and failure is None and not structured and not summary:
        return None
    kind = v1.ResultKind.RESULT_KIND_SUMMARY if summary else v1.ResultKind.RESULT_KIND_UNSPECIFIED
    return v1.Result(finish=finish, failure=failure, structured_json=structured, kind=kind)


def settings_of(tree: dict[str, Json]) -> Settings:
    """The settings that an answer tells of the user message that it answers."""
    return Settings(
        QUIET.name(tree.get("agent") or tree.get("mode"), "", _UNKNOWN),
        QUIET.name(tree.get("providerID"), "", _UNKNOWN),
        QUIET.name(tree.get("modelID"), "", _UNKNOWN),
    )
