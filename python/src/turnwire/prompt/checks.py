"""What is checked of a mutation beside its anchors: the schema's rules, and whether its parts fit where they go."""

from __future__ import annotations

from collections.abc import Sequence

from turnwire import errors, rules, v1
from turnwire.prompt.parts import Part


def alone(mutation: v1.Mutation, path: str) -> None:
    """Check a mutation by itself.

    Raises UnknownToThisServer (no kind, or one of a later schema), TransientPartHasId, RuleViolation (no parts,
    a part that its role may not hold, any rule of the schema), DuplicateCallId.
    """
    rules.require(mutation, path)


def held_by(part: v1.PromptPart, role: v1.Role.ValueType, path: str) -> None:
    """Refuse a part that a message of that role may not hold: RuleViolation."""
    rules.require(part, path, role=role)


def fits(parts: Sequence[v1.PromptPart], beside: Sequence[Part], path: str) -> None:
    """Check parts against those that their message has beside them; ``path`` has ``{}`` where an index goes.

    Raises DuplicateCallId when two have the same call id.
    """
    if not any(part.HasField("tool") for part in parts):
        return
    calls = {part.message.tool.call_id for part in beside if part.kind == "tool"}
    for index, part in enumerate(parts):
        if part.HasField("tool") and part.tool.call_id in calls:
            raise errors.DuplicateCallId(
                "another tool part of the message has this call id",
                path=f"{path.format(index)}.tool.call_id",
                call_id=part.tool.call_id,
            )
