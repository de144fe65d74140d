"""Proves that a stretch of the index is what its block has, byte by byte: a replay sends those bytes as they are.

No digest holds for all that a replay sends: what an index says of a stretch, and in the block the frames of messages
and the tags and lengths of parts, stand in no payload. They are made again here from the versions of the stretch, which
are compared with those that the log comes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import error as struct_error
from typing import Any

from turnwire import errors
from turnwire.log import frames, wire
from turnwire.store import sqlite_block
from turnwire.store.base import HEADER_SLOT
from turnwire.store.sqlite_block import STRETCH, Block, Item
from turnwire.store.sqlite_rows import Rows, stretched

_QUERY = """
    SELECT place, slot, mark, revision, 0, 0, start, length, 0, ifnull(revision - turn, 0), run, back, delta, grown
    FROM node WHERE session = ? AND mark < 0 ORDER BY revision
"""
_MARK, _REVISION = 2, 3
_REST = slice(-3, None)  # columns that say nothing of a stretch


def wrong(rows: Rows, key: int, first_us: int) -> Iterator[int]:
    """The revisions of the blocks of the stretches of a session that are wrong. Inside a transaction only."""
    block: Block | None = None
    for row in rows.db.execute(_QUERY, (key,)):
        revision = row[_REVISION]
        try:
            if block is None or block.first != revision:
                found = rows.stored_at(key, first_us, revision)
                block = found if isinstance(found, Block) and found.first == revision else None
            right = block is not None and _right(row, block)
        except (errors.CorruptData, struct_error, LookupError, OverflowError, TypeError, ValueError):
            right = False
        if not right:
            yield revision


def _right(row: tuple[Any, ...], block: Block) -> bool:
    """Whether a row says of a block what is there."""
    stored = stretched(row[: _REST.start])
    items = sqlite_block.versions(stored)
    return (
        row[_MARK] == STRETCH
        and row[_REST] == (0, 0, 0)
        and sqlite_block.stretch(items, block.first) == stored
        and all(_lies_there(item, block) for item in items)
        and _framed(items, block.payload) == block.payload[stored.start : stored.start + stored.length]
    )


def _lies_there(item: Item, block: Block) -> bool:
    """Whether a version lies where the block has the content of its entry."""
    node, at = item
    if node.revision not in block:
        return False
    offset, start, length = block.content(node.revision)
    return offset <= node.offset <= node.offset + node.length <= offset + length and at == start + node.offset - offset


def _framed(items: Sequence[Item], stored: bytes) -> bytes:
    """The versions of a stretch with what a replay sends around them."""
    pieces: list[bytes] = []
    behind = items[-1].at + items[-1].node.length  # the message that is gone through, from its end
    for node, at in reversed(items):
        pieces.append(stored[at : at + node.length])
        if node.slot == HEADER_SLOT:
            pieces.append(frames.opening(node.kind, behind - at))
            behind = at - len(pieces[-1])
        else:
            pieces.append(wire.part_prefix(node.length))
    return b"".join(reversed(pieces))
