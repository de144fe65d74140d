"""opencode's tool parts: a call with its result."""

from __future__ import annotations

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.jsonlit import Json, Node
from turnwire.formats.opencode.files import file_part
from turnwire.formats.opencode.making import Context, Made, members_of, period_of, provider_of
from turnwire.formats.opencode.shape_parts import SPACE, attachment_tree

_STATES = {
    "pending": v1.ToolState.TOOL_STATE_PENDING,
    "running": v1.ToolState.TOOL_STATE_RUNNING,
    "completed": v1.ToolState.TOOL_STATE_COMPLETED,
    "error": v1.ToolState.TOOL_STATE_ERROR,
}
_CALL_ID_BYTES = 512
_LABEL_BYTES = 128
_MANY_ATTACHMENTS = 1000


def tool_part(tree: dict[str, Json], node: Node, part_id: str, context: Context) -> Made:
    """The tool part for a part object; an extension if it has no state, or a call id that stands there already."""
    fields = context.fields
    state = tree.get("state")
    if not isinstance(state, dict):
        fields.note("/state", "a tool call without a state, kept as an extension")
        return None, {}
    call_id = fields.name(tree.get("callID"), "/callID", part_id, _CALL_ID_BYTES)
    if len(call_id.encode()) > _CALL_ID_BYTES:
        fields.note("/callID", f"longer than {_CALL_ID_BYTES} bytes, kept as an extension")
        return None, {}
    if call_id in context.calls:
        fields.note("/callID", "the call id stands in the message already, kept as an extension")
        return None, {}
    context.calls.add(call_id)
    status = state.get("status")
    known = _STATES.get(status) if isinstance(status, str) else None
    if known is None:
        fields.note("/state/status", "a status that is not known, taken as pending")
        known = v1.ToolState.TOOL_STATE_PENDING
    members = members_of(node, "", context)
    provider, documents = provider_of(members, tree, context)
    inside = members_of(members["state"], "/state", context)
    taken: dict[str, str] = {}
    for key in ("input", "metadata"):
        if key in state:
            text = fields.document(inside[key], f"/state/{key}", obj=key == "metadata")
            if text:
                taken[key] = text
                documents["state", key] = text
    time = state.get("time")
    compacted = fields.time(time.get("compacted"), "/state/time/compacted") if isinstance(time, dict) else None
    period = period_of(time, "/state/time", context)
    if period is not None and not period.ByteSize():
        period = None
    tool = v1.ToolPart(
        call_id=call_id,
        name=fields.name(tree.get("tool"), "/tool", "unknown"),
        state=known,
        input_json=taken.get("input", ""),
        raw_input=fields.text(state.get("raw"), "/state/raw"),
        output=fields.text(state.get("output"), "/state/output"),
        error=fields.text(state.get("error"), "/state/error"),
        title=fields.text(state.get("title"), "/state/title"),
        metadata_json=taken.get("metadata", ""),
        time=period,
        compacted=compacted,
        provider=provider,
    )
    if state.get("attachments"):
        tool.attachments.extend(_attachments(inside["attachments"], context))
    return v1.PromptPart(tool=tool), documents


def _attachments(node: Node, context: Context) -> list[v1.ToolAttachment]:
    """The attachments, or none if one of them can't be taken: all of them are then kept in the part's extras."""
    made: list[v1.ToolAttachment] = []
    for index, one in enumerate(node.items()):
        at = f"/state/attachments/{index}"
        file = file_part(one.value, at, context.fields) if isinstance(one.value, dict) else None
        if file is None or not isinstance(one.value, dict) or index >= _MANY_ATTACHMENTS:
            context.fields.note(at, "no attachment that can be taken, so none of them is")
            return []
        label = context.fields.text(one.value.get("id"), f"{at}/id") or ""
        if len(label.encode()) > _LABEL_BYTES:
            context.fields.note(f"{at}/id", f"longer than {_LABEL_BYTES} bytes, left out")
            label = ""
        attachment = v1.ToolAttachment(label=label, file=file)
        found = extras.compare(one.value, attachment_tree(attachment, context.owner))
        attachment.extra_json = extras.join({SPACE: extras.encode(found, one)})
        made.append(attachment)
    return made
