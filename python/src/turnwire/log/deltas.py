"""Deltas: text that is appended to an open part while it streams.

A node knows its last delta and every delta the one before it, so that a part's deltas are found without looking at
anything else, however much was written between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from turnwire import errors, v1
from turnwire.log import prepare
from turnwire.log.draft import Admitted, Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import HEADER_SLOT, PART, EntryRow, Node

# The most bytes that the tags and lengths around the texts of a part can take beside those that it was put with.
_AROUND = 16
_TARGETS = {
    prepare.TEXT_KIND: {"text"},
    prepare.REASONING_KIND: {"text"},
    prepare.TOOL_KIND: {"raw_input", "output"},
}


def append(draft: Draft, entry: Prepared) -> Admitted:
    """Admit a delta: to a live, open part, at the end of what is there. One that is there already is ``existing``."""
    delta = entry.message
    assert isinstance(delta, v1.PartDelta)
    name = draft.name(PART, delta.part_id)
    path = f"{entry.path}.part_id"
    if name is None:
        raise errors.UnknownPart("the session has no such part", path=path, part_id=delta.part_id)
    node = draft.live(name)
    header = draft.node(name.place, HEADER_SLOT)
    if node is None:
        if not name.place:
            raise errors.PartRemoved("the part was removed", path=path, part_id=delta.part_id)
        raise errors.MessageRemoved("the message of the part was removed", path=path, part_id=delta.part_id)
    target = delta.WhichOneof("target") or ""
    if target not in _TARGETS.get(node.kind, ()):
        raise errors.InvalidDelta(f"a part of this kind takes no {target}", path=entry.path, part_id=delta.part_id)
    there = _same(draft.entry, node, delta)
    if there is not None:
        return Admitted(revision=there, existing=True)
    if node.sealed or (header is not None and header.sealed):
        raise errors.PartSealed("the part has ended", path=path, part_id=delta.part_id)
    length = _length(draft.entry, node, target)
    if delta.offset != length:
        raise errors.DeltaOffsetMismatch(
            f"the text there has {length} bytes, not {delta.offset}",
            detail=v1.OffsetMismatch(given=delta.offset, actual=length),
            path=f"{entry.path}.offset",
            part_id=delta.part_id,
        )
    grown = node.grown + len(getattr(delta, target).encode())
    if entry.limit and node.length + grown + _AROUND > entry.limit:
        detail = v1.SizeLimit(size=node.length + grown + _AROUND, limit=entry.limit, unit="bytes")
        text = f"the part would have more bytes than the limit of {entry.limit:,}"
        raise errors.PartTooLarge(text, detail=detail, path=f"{entry.path}.{target}", part_id=delta.part_id)
    revision = draft.record(entry.field, entry.payload, previous=node.delta, ignorable=entry.ignorable)
    draft.touch(node._replace(delta=revision, grown=grown))
    return Admitted(revision=revision)


def size(payload: bytes) -> int:
    """The bytes of text that a stored delta adds."""
    delta = v1.PartDelta.FromString(payload)
    return len(getattr(delta, delta.WhichOneof("target") or "text").encode())


def chain(entry: Callable[[int], EntryRow], last: int, revision: int) -> list[EntryRow]:
    """The deltas from the first to the last that is not after ``revision``, in order."""
    found = [row for row in _back(entry, last) if row.revision <= revision]
    found.reverse()
    return found


def apply(part: v1.PromptPart, found: list[v1.PartDelta]) -> None:
    """Append the texts of deltas, in order, to an open part."""
    texts: dict[str, list[str]] = {}
    for delta in found:
        target: str = delta.WhichOneof("target") or ""
        texts.setdefault(target, []).append(getattr(delta, target))
    for target, pieces in texts.items():
        if target == "raw_input":
            part.tool.raw_input += "".join(pieces)
        elif target == "output":
            part.tool.output += "".join(pieces)
        elif part.WhichOneof("kind") == "reasoning":
            part.reasoning.text += "".join(pieces)
        else:
            part.text.text += "".join(pieces)


def _back(entry: Callable[[int], EntryRow], last: int) -> Iterator[EntryRow]:
    while last:
        row = entry(last)
        yield row
        last = row.previous


def _same(entry: Callable[[int], EntryRow], node: Node, delta: v1.PartDelta) -> int | None:
    """The revision of the delta that a retry repeats: the same text at the same offset."""
    target = delta.WhichOneof("target") or ""
    for row in _back(entry, node.delta):
        there = v1.PartDelta.FromString(row.payload)
        if there.WhichOneof("target") != target:
            continue
        if there.offset < delta.offset:
            return None
        if there.offset == delta.offset:
            return row.revision if getattr(there, target) == getattr(delta, target) else None
    return None


def _length(entry: Callable[[int], EntryRow], node: Node, target: str) -> int:
    for row in _back(entry, node.delta):
        there = v1.PartDelta.FromString(row.payload)
        if there.WhichOneof("target") == target:
            return there.offset + len(getattr(there, target).encode())
    payload = entry(node.revision).payload
    part = v1.PromptPart.FromString(payload[node.offset : node.offset + node.length])
    if part.WhichOneof("kind") == "tool":
        return len(getattr(part.tool, target).encode())
    text = part.reasoning.text if part.WhichOneof("kind") == "reasoning" else part.text.text
    return len(text.encode())
