"""What opencode's schema asks for and Turnwire does not have to know: filled in for what did not come from opencode.

Works on the trees of the exporter, and only on sessions, messages and parts that no importer brought. What opencode has
nothing for is left out, what it must have and nobody said is empty, 0, or the nearest that is known. Nothing here ever
touches an object that came from opencode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from turnwire.formats.jsonlit import Json, integer

Tree = dict[str, Json]

SESSION_PREFIX: Final = "ses"
MESSAGE_PREFIX: Final = "msg"
PART_PREFIX: Final = "prt"

_ZERO: Final = b"0"
_STATUSES: Final = ("added", "deleted", "modified")
_ERRORS: Final = frozenset(
    {
        "ProviderAuthError",
        "UnknownError",
        "MessageOutputLengthError",
        "MessageAbortedError",
        "StructuredOutputError",
        "ContextOverflowError",
        "ContentFilterError",
        "APIError",
    }
)


def fitting_id(name: str, prefix: str) -> str:
    """An id as opencode takes it: it begins with the prefix of its kind."""
    return name if name.startswith(prefix) else f"{prefix}_{name}"


def complete_session(info: Tree, last: int) -> None:
    """Complete the ``info`` of a session; ``last`` is when something happened in it last, in milliseconds."""
    info["id"] = fitting_id(_text(info, "id"), SESSION_PREFIX)
    if "parentID" in info:
        info["parentID"] = fitting_id(_text(info, "parentID"), SESSION_PREFIX)
    time = _object(info, "time")
    _clamp(time, ("created",))
    time["updated"] = integer(max(_number(time, "created"), last))
    defaults: Tree = {
        "slug": _text(info, "id"),
        "projectID": "global",
        "directory": "/",
        "title": "",
        "version": "",
    }
    _fill(info, defaults)


def complete_user(info: Tree) -> None:
    """Complete the ``info`` of a user message."""
    _clamp(_object(info, "time"), ("created",))
    summary = info.get("summary")
    if isinstance(summary, dict):
        for diff in _objects(summary.get("diffs")):
            _fill(diff, {"additions": _ZERO, "deletions": _ZERO})
            _keep(diff, ("file", "patch", "additions", "deletions", "status"))
            if diff.get("status") not in _STATUSES:
                diff.pop("status", None)
    format_ = info.get("format")
    if isinstance(format_, dict) and "schema" in format_:
        schema = format_["schema"]
        if not _is_object(schema):
            format_["schema"] = {}


def complete_assistant(info: Tree, parent: str, directory: str) -> None:
    """Complete the ``info`` of an assistant message; ``parent`` is the user message to be its parent if it has none."""
    _clamp(_object(info, "time"), ("created", "completed"))
    if "parentID" in info:
        info["parentID"] = fitting_id(_text(info, "parentID"), MESSAGE_PREFIX)
    _fill(info, {"parentID": parent, "path": {"cwd": directory, "root": directory}})
    _complete_usage(info)
    if "error" in info:
        info["error"] = _error(info["error"])


def complete_part(part: Tree, created: Json) -> None:
    """Complete a part; ``created`` is when its message was."""
    part["id"] = fitting_id(_text(part, "id"), PART_PREFIX)
    complete = _PARTS.get(_text(part, "type"))
    if complete is not None:
        complete(part, created)


def _text_part(part: Tree, created: Json) -> None:
    if "time" in part:
        _complete_period(part, created)


def _reasoning(part: Tree, created: Json) -> None:
    _complete_period(part, created)


def _file(part: Tree, created: Json) -> None:
    source = part.get("source")
    if isinstance(source, dict):
        _fill(source, {"text": {"value": "", "start": _ZERO, "end": _ZERO}})
        if source.get("type") == "symbol":
            nowhere: Tree = {"line": _ZERO, "character": _ZERO}
            _fill(source, {"range": {"start": dict(nowhere), "end": dict(nowhere)}})


def _step_finish(part: Tree, created: Json) -> None:
    _complete_usage(part)


def _compaction(part: Tree, created: Json) -> None:
    if "tail_start_id" in part:
        part["tail_start_id"] = fitting_id(_text(part, "tail_start_id"), MESSAGE_PREFIX)


def _retry(part: Tree, created: Json) -> None:
    error = part.get("error")
    if not isinstance(error, dict) or error.get("name") != "APIError":
        data = error.get("data") if isinstance(error, dict) else None
        message = _text(data, "message") if isinstance(data, dict) else ""
        part["error"] = {"name": "APIError", "data": {"message": message, "isRetryable": True}}
    time = _object(part, "time")
    _fill(time, {"created": created})
    _clamp(time, ("created",))


def _tool(part: Tree, created: Json) -> None:
    state = _object(part, "state")
    given = state.get("input")
    if not _is_object(given):
        state["input"] = {} if given is None else {"input": given}
    status = state.get("status")
    time = _object(state, "time") if status != "pending" else {}
    _fill(time, {"start": created})
    keys: tuple[str, ...]
    defaults: Tree = {}
    if status == "pending":
        keys, defaults = ("raw",), {"raw": ""}
    elif status == "running":
        keys = ("title", "metadata", "time")
        _keep(time, ("start",))
    else:
        _fill(time, {"end": time["start"]})
        if status == "completed":
            keys, defaults = (
                ("output", "title", "metadata", "time", "attachments"),
                {"output": "", "title": "", "metadata": {}},
            )
            for attachment in _objects(state.get("attachments")):
                attachment["id"] = fitting_id(_text(attachment, "id"), PART_PREFIX)
                _file(attachment, created)
        else:
            keys, defaults = ("error", "metadata", "time"), {"error": ""}
            _keep(time, ("start", "end"))
    _clamp(time, ("start", "end", "compacted"))
    _fill(state, defaults)
    _keep(state, ("status", "input", *keys))


_PARTS: Final[dict[str, Callable[[Tree, Json], None]]] = {
    "text": _text_part,
    "reasoning": _reasoning,
    "file": _file,
    "step-finish": _step_finish,
    "retry": _retry,
    "compaction": _compaction,
    "tool": _tool,
}


def _complete_usage(tree: Tree) -> None:
    _fill(tree, {"cost": _ZERO})
    tokens = _object(tree, "tokens")
    _fill(tokens, {"input": _ZERO, "output": _ZERO, "reasoning": _ZERO})
    _fill(_object(tokens, "cache"), {"read": _ZERO, "write": _ZERO})


def _complete_period(part: Tree, created: Json) -> None:
    time = _object(part, "time")
    _fill(time, {"start": time.get("end", created)})
    _clamp(time, ("start", "end"))


def _error(error: Json) -> Json:
    """An error that opencode knows: one of another name is an unknown one that says so."""
    if not isinstance(error, dict):
        return {"name": "UnknownError", "data": {"message": ""}}
    name, data = _text(error, "name"), _object(error, "data")
    if name not in _ERRORS:
        message = _text(data, "message")
        return {"name": "UnknownError", "data": {"message": f"{name}: {message}" if message else name}}
    if name == "StructuredOutputError":
        _fill(data, {"retries": _ZERO})
    return error


def _fill(tree: Tree, defaults: Tree) -> None:
    for key, value in defaults.items():
        if key not in tree:
            tree[key] = value


def _keep(tree: Tree, keys: Iterable[str]) -> None:
    for key in tree.keys() - set(keys):
        del tree[key]


def _clamp(time: Tree, keys: Iterable[str]) -> None:
    """opencode's times begin at the epoch."""
    for key in keys:
        if key in time:
            time[key] = integer(max(_number(time, key), 0))


def _object(tree: Tree, key: str) -> Tree:
    """The object at a key, made if there is none."""
    found = tree.get(key)
    if not isinstance(found, dict):
        found = tree[key] = {}
    return found


def _objects(value: Json) -> list[Tree]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _is_object(value: Json) -> bool:
    return isinstance(value, dict) or (isinstance(value, bytes) and value.lstrip().startswith(b"{"))


def _text(tree: Tree, key: str) -> str:
    value = tree.get(key)
    return value if isinstance(value, str) else ""


def _number(tree: Tree, key: str) -> int:
    value = tree.get(key)
    return int(value) if isinstance(value, bytes) and value.lstrip(b"-").isdigit() else 0
