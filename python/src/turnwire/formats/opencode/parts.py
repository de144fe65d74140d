"""opencode's parts as `PromptPart`: all twelve kinds, and an extension for what is none of them."""

from __future__ import annotations

from collections.abc import Callable

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.fields import INT32
from turnwire.formats.jsonlit import Json, Node, compact, literal
from turnwire.formats.opencode.failures import to_failure
from turnwire.formats.opencode.files import file_part, text_span
from turnwire.formats.opencode.making import (
    ASSISTANT,
    USER,
    Context,
    Documents,
    Made,
    members_of,
    model_ref,
    period_of,
    provider_of,
    usage,
)
from turnwire.formats.opencode.shape_parts import EXTENSION, SPACE, part_tree
from turnwire.formats.opencode.tools import tool_part

_TYPE_CHARACTERS = 256
_MANY_FILES = 100_000


def map_part(node: Node, part_id: str, context: Context) -> v1.PromptPart:
    """The part for a part object. The order of keys aside, `part_tree` and the extras give the object back."""
    tree = node.value
    if isinstance(tree, dict):
        kind = tree.get("type")
        roles, make = _KINDS.get(kind, _NONE) if isinstance(kind, str) else _NONE
        if context.role in roles:
            part, documents = make(tree, node, part_id, context)
            if part is not None:
                part.id = part_id
                original = _with_documents(tree, documents)
                found = extras.compare(original, part_tree(part, context.owner, context.ids))
                if found is not extras.NONE:
                    part.extra_json = extras.join({SPACE: extras.encode(found, node)})
                return part
        elif roles:
            context.fields.note("/type", f"no part of a message of the {context.role}, kept as an extension")
        else:
            context.fields.note("/type", "a type that is not known, kept as an extension")
    else:
        context.fields.note("", "not an object, or far too deep, kept as an extension")
    return _extension(node, part_id)


def _extension(node: Node, part_id: str) -> v1.PromptPart:
    kind = node.value.get("type") if isinstance(node.value, dict) else None
    if not isinstance(kind, str) or not _sound(kind) or len(EXTENSION + kind) > _TYPE_CHARACTERS:
        kind = "part"
    data = compact(node.raw)
    part = v1.PromptPart(id=part_id)
    part.extension.type = EXTENSION + kind
    if extras.storable(data):
        part.extension.data_json = data
    else:
        part.extension.data_json = "null"
        part.extra_json = extras.join({SPACE: extras.encode(extras.Difference(sets=((),)), node)})
    return part


def _sound(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _with_documents(tree: dict[str, Json], documents: Documents) -> Json:
    """The tree with each document in the place of the value that it was made from."""
    if not documents:
        return tree
    copy = dict(tree)
    for path, text in documents.items():
        place = copy
        if len(path) == 2:
            inner = copy[path[0]]
            copy[path[0]] = place = dict(inner) if isinstance(inner, dict) else {}
        place[path[-1]] = literal(text)
    return copy


def _text(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    fields = context.fields
    # The metadata of a user's text is opencode's own and nothing that a provider returned: it goes to the extras.
    members = members_of(node, "", context) if "metadata" in tree and context.role == ASSISTANT else {}
    provider, documents = provider_of(members, tree, context)
    text = v1.TextPart(
        text=fields.text(tree.get("text"), "/text") or "",
        synthetic=fields.flag(tree.get("synthetic"), "/synthetic"),
        ignored=fields.flag(tree.get("ignored"), "/ignored"),
        time=period_of(tree.get("time"), "/time", context),
        provider=provider,
    )
    return v1.PromptPart(text=text), documents


def _reasoning(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    members = members_of(node, "", context) if "metadata" in tree else {}
    provider, documents = provider_of(members, tree, context)
    reasoning = v1.ReasoningPart(
        text=context.fields.text(tree.get("text"), "/text") or "",
        time=period_of(tree.get("time"), "/time", context),
        provider=provider,
    )
    return v1.PromptPart(reasoning=reasoning), documents


def _file(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    file = file_part(tree, "", context.fields)
    return (None if file is None else v1.PromptPart(file=file)), {}


def _subtask(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    fields = context.fields
    subtask = v1.SubtaskPart(
        prompt=fields.text(tree.get("prompt"), "/prompt") or "",
        description=fields.text(tree.get("description"), "/description") or "",
        agent=fields.name(tree.get("agent"), "/agent", "unknown"),
        model=model_ref(tree.get("model"), "/model", fields),
        command=fields.text(tree.get("command"), "/command"),
    )
    return v1.PromptPart(subtask=subtask), {}


def _agent(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    agent = v1.AgentPart(
        name=context.fields.name(tree.get("name"), "/name", "unknown"),
        source=text_span(tree.get("source"), "/source", context.fields),
    )
    return v1.PromptPart(agent=agent), {}


def _step_start(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    snapshot = context.fields.text(tree.get("snapshot"), "/snapshot", 1024)
    return v1.PromptPart(step_start=v1.StepStartPart(snapshot=snapshot)), {}


def _step_finish(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    finish = v1.StepFinishPart(
        reason=context.fields.text(tree.get("reason"), "/reason", 256) or "",
        snapshot=context.fields.text(tree.get("snapshot"), "/snapshot", 1024),
        usage=usage(tree, context.fields),
    )
    return v1.PromptPart(step_finish=finish), {}


def _snapshot(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    snapshot = context.fields.text(tree.get("snapshot"), "/snapshot", 1024) or ""
    return v1.PromptPart(snapshot=v1.SnapshotPart(snapshot=snapshot)), {}


def _patch(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    patch = v1.PatchPart(hash=context.fields.text(tree.get("hash"), "/hash", 1024) or "")
    files = tree.get("files")
    if isinstance(files, list) and len(files) <= _MANY_FILES:
        patch.files.extend(context.fields.text(file, f"/files/{index}") or "" for index, file in enumerate(files))
    elif files is not None:
        context.fields.note("/files", "no list of paths, or too long a one")
    return v1.PromptPart(patch=patch), {}


def _retry(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    time = tree.get("time")
    retry = v1.RetryPart(
        attempt=context.fields.count(tree.get("attempt"), "/attempt", INT32) or 0,
        failure=to_failure(context.fields, tree.get("error"), "/error") or v1.Failure(unknown=v1.UnknownFailure()),
        created=context.fields.time(time.get("created"), "/time/created") if isinstance(time, dict) else None,
    )
    return v1.PromptPart(retry=retry), {}


def _compaction(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    compaction = v1.CompactionPart(
        auto=context.fields.flag(tree.get("auto"), "/auto") or False,
        overflow=context.fields.flag(tree.get("overflow"), "/overflow"),
    )
    tail = tree.get("tail_start_id")
    if tail is not None:
        start = context.earlier.get(tail) if isinstance(tail, str) else None
        if start is None:
            context.fields.note("/tail_start_id", "no message before this one, left out")
        else:
            compaction.tail_start_id = start
    return v1.PromptPart(compaction=compaction), {}


_Maker = Callable[[dict[str, Json], Node, str, Context], Made]


def _none(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    return None, {}


_BOTH = frozenset({USER, ASSISTANT})
_BY_USER = frozenset({USER})
_BY_ASSISTANT = frozenset({ASSISTANT})
_NONE: tuple[frozenset[str], _Maker] = (frozenset(), _none)

# The roles are those of the option `held_by` of PromptPart.kind.
_KINDS: dict[str, tuple[frozenset[str], _Maker]] = {
    "text": (_BOTH, _text),
    "reasoning": (_BY_ASSISTANT, _reasoning),
    "file": (_BOTH, _file),
    "tool": (_BY_ASSISTANT, tool_part),
    "subtask": (_BY_USER, _subtask),
    "agent": (_BY_USER, _agent),
    "step-start": (_BY_ASSISTANT, _step_start),
    "step-finish": (_BY_ASSISTANT, _step_finish),
    "snapshot": (_BY_ASSISTANT, _snapshot),
    "patch": (_BY_ASSISTANT, _patch),
    "retry": (_BY_ASSISTANT, _retry),
    "compaction": (_BY_USER, _compaction),
}
