"""Reverts: one hides places from one on that existed when it was opened, until it is cleared or made final."""

from __future__ import annotations

from turnwire import errors, v1
from turnwire.log import living
from turnwire.log.draft import Admitted, Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import HEADER_SLOT, PART, SUMMARY_SLOT, Name, RevertSpan


def hides(span: RevertSpan, place: bytes, slot: bytes, born: int) -> bool:
    """Tell whether an open revert hides what has this place and slot since the revision ``born``.

    Any put of a message makes a revert final, so that every message behind its place existed when it was opened. Parts
    that were added since to the message in which it starts are shown.
    """
    if place != span.place or span.slot == HEADER_SLOT:
        return place >= span.place
    return slot != SUMMARY_SLOT and slot >= span.slot and born <= span.start


def open(draft: Draft, entry: Prepared) -> Admitted:
    revert = entry.message
    assert isinstance(revert, v1.Revert)
    if draft.session.revert:
        raise errors.RevertAlreadyOpen(f"the revert of revision {draft.session.revert} is open", path=entry.path)
    header = living.message(draft, revert.message_id, f"{entry.path}.message_id")
    slot = HEADER_SLOT
    if revert.HasField("part_id"):
        part = draft.live(draft.name(PART, revert.part_id))
        if part is None:
            raise living.gone(draft, PART, revert.part_id, f"{entry.path}.part_id")
        if part.place != header.place:
            text = "the message has no such part"
            raise errors.UnknownPart(text, path=f"{entry.path}.part_id", part_id=revert.part_id)
        slot = part.slot
    revision = draft.add(entry)
    draft.set_span(RevertSpan(revision, 0, header.place, slot))
    return Admitted(revision=revision)


def clear(draft: Draft, entry: Prepared) -> Admitted:
    start = draft.session.revert
    if not start:
        raise errors.NoOpenRevert("no revert is open", path=entry.path)
    revision = draft.add(entry)
    draft.set_span(draft.span(start)._replace(end=revision))
    return Admitted(revision=revision)


def finish(draft: Draft) -> None:
    """Remove what the open revert hides, as of the entry that comes next."""
    span = draft.span(draft.session.revert)
    nodes = [node for node in draft.nodes_from(span.place, span.slot) if hides(span, node.place, node.slot, node.born)]
    draft.end(nodes, draft.next)
    for node in nodes:
        if node.place == span.place and span.slot != HEADER_SLOT:  # parts of a message that stays
            draft.set_name(Name(PART, living.part_of(draft, node).id, draft.next))
    draft.set_span(span._replace(end=draft.next))
