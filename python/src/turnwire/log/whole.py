"""Messages that were put whole: most are never touched again, and are kept in short until someone asks.

A put that brings a message and its parts, all of them new, says by itself which names and nodes come of it; they are
made when one of them is looked up or changed, and when they are written.
"""

from __future__ import annotations

from turnwire.log import places
from turnwire.store.base import CALL, HEADER_SLOT, MESSAGE, PART, Change, Name, Node, Put


def names(put: Put) -> list[Name]:
    """The names of a message, its parts and their calls."""
    place, revision = put.place, put.revision
    slots = places.firsts(len(put.parts))
    found = [Name(MESSAGE, put.id, revision, place, HEADER_SLOT)]
    found += [Name(PART, part.id, revision, place, slot) for part, slot in zip(put.parts, slots, strict=True)]
    return found + calls(put)


def calls(put: Put) -> list[Name]:
    """The names of the calls in the parts of a message. The rules have seen to it that no two parts have the same."""
    if not any(part.call_id for part in put.parts):
        return []
    slots = places.firsts(len(put.parts))
    return [
        Name(CALL, call(put.place, part.call_id), put.revision, put.place, slot)
        for part, slot in zip(put.parts, slots, strict=True)
        if part.call_id
    ]


def nodes(put: Put) -> list[Node]:
    """The nodes of a message: header and parts in their order."""
    _, place, kind, revision, offset, length, sealed, turn, parts = put
    found = [Node(place, HEADER_SLOT, kind, revision, revision, 0, offset, length, sealed, turn, 0)]
    for part, slot in zip(parts, places.firsts(len(parts)), strict=True):
        found.append(Node(place, slot, part.kind, revision, revision, 0, part.offset, part.length, part.sealed, 0, 0))
    return found


def call(place: bytes, call_id: str) -> str:
    """What a call id of a message is looked up by."""
    return f"{place.hex()}:{call_id}"


def spelled_out(change: Change) -> Change:
    """The same change with names and nodes in place of puts."""
    if change.puts:
        for put in change.puts:
            change.live.update({(node.place, node.slot): node for node in nodes(put)})
            change.names += names(put)
        change.puts = []
    return change
