"""Looking up what must be live in a session: a message, a part, or why it is not."""

from __future__ import annotations

from turnwire import errors, v1
from turnwire.log.draft import Draft
from turnwire.store.base import MESSAGE, PART, Node


def message(draft: Draft, id: str, path: str) -> Node:
    """The header of a live message. Raises ``UnknownMessage`` or ``MessageRemoved``."""
    header = draft.live(draft.name(MESSAGE, id))
    if header is None:
        raise gone(draft, MESSAGE, id, path)
    return header


def gone(draft: Draft, space: int, id: str, path: str) -> errors.TurnwireError:
    """Why a message or a part is not live."""
    if space == MESSAGE:
        if draft.name(MESSAGE, id) is None:
            return errors.UnknownMessage("the session has no such message", path=path, message_id=id)
        return errors.MessageRemoved("the message was removed", path=path, message_id=id)
    if draft.name(PART, id) is None:
        return errors.UnknownPart("the message has no such part", path=path, part_id=id)
    return errors.PartRemoved("the part was removed", path=path, part_id=id)


def part_of(draft: Draft, node: Node) -> v1.PromptPart:
    """A part as it was put, without its deltas."""
    payload = draft.entry(node.revision).payload
    return v1.PromptPart.FromString(payload[node.offset : node.offset + node.length])
