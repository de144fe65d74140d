"""What a message is made of, as callers write it."""

from __future__ import annotations

from typing import TypeAlias

from google.protobuf.message import Message

from turnwire import v1
from turnwire.calls.given import built

#: A part, one of its kinds, or a text that is to become one.
Content: TypeAlias = (
    str
    | v1.PromptPart
    | v1.TextPart
    | v1.ReasoningPart
    | v1.FilePart
    | v1.ToolPart
    | v1.SubtaskPart
    | v1.AgentPart
    | v1.StepStartPart
    | v1.StepFinishPart
    | v1.SnapshotPart
    | v1.PatchPart
    | v1.RetryPart
    | v1.CompactionPart
    | v1.ExtensionPart
)

_KINDS: dict[str, str] = {
    field.message_type.full_name: field.name
    for field in v1.PromptPart.DESCRIPTOR.oneofs_by_name["kind"].fields
    if field.message_type is not None
}


def part_of(content: Content, *, synthetic: bool | None = None) -> v1.PromptPart:
    """A new part of what is given: a text (marked as ``synthetic`` on demand), a kind of part, or a part, copied.

    Raises TypeError for anything else, and `RuleViolation` for a text that is no valid Unicode.
    """
    made = v1.PromptPart()
    if isinstance(content, str):
        made.text.CopyFrom(built(v1.TextPart, text=content, synthetic=synthetic))
    elif isinstance(content, v1.PromptPart):
        made.CopyFrom(content)
    else:
        descriptor = getattr(content, "DESCRIPTOR", None)
        name = _KINDS.get(descriptor.full_name) if descriptor is not None else None
        if name is None:
            is_a = type(content).__name__
            raise TypeError(f"a {is_a} is no part: give a text, or a part such as v1.PromptPart(file=v1.FilePart(...))")
        kind: Message = getattr(made, name)
        kind.CopyFrom(content)
        kind.SetInParent()
    return made
