"""Reading rows: one method for each question, by statements that SQLite keeps prepared.

Most methods are one statement, so that they see one state; a caller that asks several questions opens a transaction
around them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from turnwire import errors
from turnwire.log import digest
from turnwire.rules.own import FIRST_SECOND, LAST_SECOND
from turnwire.store import sqlite_names
from turnwire.store.base import (
    HEADER_SLOT,
    SUMMARY_SLOT,
    EntryRow,
    Name,
    Node,
    RevertSpan,
    SessionRow,
)
from turnwire.store.sqlite_block import BLOCK, STRETCH, Block, Stretched, headers, versions
from turnwire.store.sqlite_pack import unpack_run
from turnwire.store.sqlite_replies import Replies
from turnwire.store.sqlite_schema import REVISION_BITS, REVISION_MASK

#: In the order of the fields of SessionRow.
SESSION_COLUMNS = "tenant, id, key, head, digest, first_us, recorded_us, properties, revert"
_SESSION_TYPES = (str, str, int, int, bytes, int, int, int, int, int)  # of these, and of ``ahead``
_SPAN_TYPES = (int, int, bytes, bytes)
#: The first and the last moment that the schema's timestamps have, µs.
EARLIEST_US, LATEST_US = FIRST_SECOND * 1_000_000, LAST_SECOND * 1_000_000 + 999_999
# In the order of the fields of Node; 1 and 0 stand for the booleans.
_NODE = (
    "place, slot, mark >> 1, revision, revision - back, {ended}, start, length, mark & 1, "
    "ifnull(revision - turn, 0), iif(delta, revision + delta, 0), grown"
)
_LIVE = _NODE.format(ended="0")
_PAST = _NODE.format(ended="ended")
_ENTRY = f"pos & {REVISION_MASK}, recorded, mark, payload, back, digest"
# The row that has a revision, if any has: that of the entry or of the block that it is in.
_AT = "FROM entry WHERE pos BETWEEN ? AND ? ORDER BY pos DESC LIMIT 1"

_KEY, _HEAD, _FIRST_US, _RECORDED_US = 2, 3, 5, 6  # of a session's row
_FIELDS = len(Node._fields)
_KIND = 2  # of a node's row
_MARK = 2  # of an entry's

_PAST_HEADERS = "FROM past WHERE session = ? AND place < ? AND slot = x'' AND revision <= ?"
_BEGUN = f"FROM node WHERE session = ? AND place < ? AND (slot = x'' OR mark = {STRETCH}) AND revision <= ?"
END = b"\xff" * 64  # behind every place: no number of a path has a lead byte as great

_Row = tuple[Any, ...]


def sound(row: _Row) -> bool:
    """Whether the row of a session, with ``ahead``, can be one, also by its values: a flipped bit changes no type."""
    return tuple(map(type, row)) == _SESSION_TYPES and (
        0 <= row[_KEY] < 1 << 63 - REVISION_BITS  # keys of entries are 63 bits
        and 0 <= row[_HEAD] <= REVISION_MASK
        and EARLIEST_US <= row[_FIRST_US] <= LATEST_US
        and EARLIEST_US <= row[_RECORDED_US] <= LATEST_US
    )


def base(key: int) -> int:
    """The key of an entry, without its revision."""
    return key << REVISION_BITS


def as_block(row: _Row, first_us: int) -> Block:
    """The block of a row of an entry. Raises ``CorruptData``."""
    revision, recorded, _, payload, back, chain = row
    _typed(row)
    return Block(revision, back + 1, first_us + recorded, payload, chain or b"")


def _entry(row: _Row, first_us: int) -> EntryRow:
    """The entry of a row. Raises ``CorruptData``."""
    revision, recorded, mark, payload, back, chain = row
    _typed(row)
    return EntryRow(
        revision, first_us + recorded, mark >> 1, payload, revision - back if back else 0, bool(mark & 1), chain or b""
    )


def _typed(row: _Row) -> None:
    """Raises ``CorruptData`` for a row of an entry that holds what only damage brings: SQLite does not look."""
    _, recorded, mark, payload, back, chain = row
    if not (
        recorded.__class__ is mark.__class__ is back.__class__ is int
        and payload.__class__ is bytes
        and (chain is None or chain.__class__ is bytes)
    ):
        raise errors.CorruptData("a row of an entry is damaged", revision=row[0])


def _node(row: _Row) -> Node:
    return Node._make(row[:_FIELDS])


def stretched(row: _Row) -> Stretched:
    """The stretch of a row of the index, by its columns as a node's and the run."""
    place, slot, _, revision, _, _, start, length, _, turn, *_, run = row
    return Stretched(place, slot, revision, start, length, turn, run)


@lru_cache(maxsize=8)  # puts into one message ask for its first and its last stretch again and again
def _by_position(row: _Row) -> dict[tuple[bytes, bytes], Node]:
    """The versions of a stretch by place and slot, in their order."""
    return {(item.node.place, item.node.slot): item.node for item in versions(stretched(row))}


def _expanded(row: _Row) -> list[Node]:
    """The versions that a row of the index has."""
    if row[_KIND] == STRETCH:
        return [*_by_position(row).values()]
    node = _node(row)
    return [node, *unpack_run(node, row[_FIELDS])] if row[_FIELDS] else [node]


class Rows:
    """The questions, asked over one connection."""

    def __init__(self, db: sqlite3.Connection, newest: Callable[[int], SessionRow | None] = lambda key: None) -> None:
        """``newest`` may know the row of a session at its head, by the session's key."""
        self.db = db
        self.replies = Replies(db)
        self._execute = db.execute
        self._newest = newest

    # Sessions

    def stored(self, tenant: str, id: str) -> tuple[SessionRow, bool] | None:
        """A session's row as it is in the file, and whether there are entries behind it. Raises ``CorruptData``."""
        row = self._execute(
            f"SELECT {SESSION_COLUMNS}, ahead FROM session WHERE tenant = ? AND id = ?", (tenant, id)
        ).fetchone()
        if row is None:
            return None
        if tuple(map(type, row)) != _SESSION_TYPES:
            raise errors.CorruptData("the row of the session is damaged", session_id=id)
        return SessionRow._make(row[:-1]), bool(row[-1])

    def session(self, tenant: str, id: str) -> SessionRow | None:
        """A session's row at its head."""
        found = self.stored(tenant, id)
        if found is None:
            return None
        stored, ahead = found
        return self.at_head(stored) if ahead else stored

    def at_head(self, stored: SessionRow) -> SessionRow:
        """The row of a session with entries behind it: they change nothing but head, digest and time."""
        head, chain, recorded_us = stored.head, stored.digest, stored.recorded_us
        last = self.last(stored)
        newest = self._newest(stored.key)  # asked only now: what a failed commit had put there is gone
        if newest is not None and newest.head == last:
            return newest
        for row in self.entries(stored, head + 1, REVISION_MASK):
            head, recorded_us = row.revision, row.recorded_us
            chain = digest.link(chain, head, recorded_us, row.field, row.payload)
        return stored._replace(head=head, digest=chain, recorded_us=recorded_us)

    def last(self, session: SessionRow) -> int:
        """The last revision that a session has in the file."""
        at = base(session.key)
        row = self._execute(f"SELECT pos, mark, back {_AT}", (at, at + REVISION_MASK)).fetchone()
        if row is None:
            return 0
        pos, mark, back = row
        last: int = pos if mark != BLOCK else pos + back
        return last - at

    def head(self, tenant: str, id: str) -> int:
        """The head of a session; 0: there is none."""
        found = self.stored(tenant, id)
        if found is None:
            return 0
        stored, ahead = found
        return self.last(stored) if ahead else stored.head

    def deleted(self, tenant: str, id: str) -> bool:
        found = self._execute("SELECT 1 FROM deleted WHERE tenant = ? AND id = ?", (tenant, id))
        return found.fetchone() is not None

    def living(self, tenant: str, id: str) -> SessionRow:
        """Raises ``SessionNotFound`` or ``SessionDeleted``."""
        row = self.session(tenant, id)
        if row is None:
            if self.deleted(tenant, id):
                raise errors.SessionDeleted("the session was deleted", session_id=id)
            raise errors.SessionNotFound("there is no such session", session_id=id)
        return row

    def children(self, tenant: str, id: str) -> list[str]:
        """The sessions that a session started."""
        found = self._execute(
            "SELECT id FROM detail JOIN session ON key = session WHERE parent = ? AND tenant = ? ORDER BY key",
            (id, tenant),
        )
        return [child for (child,) in found]

    # Entries

    def entry(self, session: SessionRow, revision: int) -> EntryRow | None:
        """An entry, without its digest unless it is one that is stored."""
        found = self.stored_at(session.key, session.first_us, revision)
        return found.entry(revision) if isinstance(found, Block) else found

    def stored_at(self, key: int, first_us: int, revision: int) -> EntryRow | Block | None:
        """The row that has an entry: its own, or that of a block."""
        if not 0 < revision <= REVISION_MASK:
            return None
        at = base(key)
        row = self._execute(f"SELECT {_ENTRY} {_AT}", (at, at + revision)).fetchone()
        if row is None:
            return None
        if row[_MARK] == BLOCK:
            block = as_block(row, first_us)
            return block if revision in block else None
        return _entry(row, first_us) if row[0] == revision else None

    def payload(self, key: int, revision: int) -> bytes | None:
        found = self.stored_at(key, 0, revision)
        if isinstance(found, Block):
            found = found.entry(revision)
        return found.payload if found is not None else None

    def rows_of(self, session: SessionRow, first: int, last: int) -> Iterator[EntryRow | Block]:
        """The rows that have the entries of a range, as they are stored."""
        if first > REVISION_MASK:
            return
        at = base(session.key)
        # A head that is damaged must not lead on into the entries of the next session.
        begin, end = at + first, at + min(last, REVISION_MASK)
        for row in self._execute(
            f"SELECT {_ENTRY} FROM entry WHERE pos BETWEEN "
            "ifnull((SELECT max(pos) FROM entry WHERE pos BETWEEN ? AND ?), ?) AND ? ORDER BY pos",
            (at, begin, begin, end),
        ):
            if row[_MARK] == BLOCK:
                yield as_block(row, session.first_us)
            elif row[0] >= first:
                yield _entry(row, session.first_us)

    def rows_from(self, key: int, first: int) -> sqlite3.Cursor:
        """The rows of entries from a revision on, as ``as_block`` takes them; payloads only of blocks."""
        at = base(key)
        return self._execute(
            f"SELECT pos & {REVISION_MASK}, recorded, mark, iif(mark = {BLOCK}, payload, x''), back, digest FROM entry "
            "WHERE pos BETWEEN ? AND ? ORDER BY pos",
            (at + first, at + REVISION_MASK),
        )

    def entries(self, session: SessionRow, first: int, last: int) -> Iterator[EntryRow]:
        """Entries of a range, with the digests that are stored."""
        for found in self.rows_of(session, first, last):
            if isinstance(found, Block):
                yield from found.entries(first, last)
            else:
                yield found

    def chained(self, session: SessionRow, first: int, last: int, known: tuple[int, bytes]) -> Iterator[EntryRow]:
        """Entries of a range with their digests: those stored, and between them those computed from what is stored.

        ``known`` is a revision before ``first`` with its digest from which to compute, if it is nearer than the
        stored one.
        """
        revision, chain = self.digest_before(session, first)
        if revision < known[0] < first:
            revision, chain = known
        for row in self.entries(session, revision + 1, last):
            if row.digest:
                chain = row.digest
            elif row.revision == session.head:
                chain = session.digest
            else:
                chain = digest.link(chain or bytes(32), row.revision, row.recorded_us, row.field, row.payload)
            if row.revision >= first:
                yield row._replace(digest=chain)

    def digest_before(self, session: SessionRow, revision: int) -> tuple[int, bytes]:
        """The last digest that is stored of a revision before this one."""
        at = base(session.key)
        row = self._execute(
            f"SELECT iif(mark = {BLOCK}, pos + back, pos), digest FROM entry WHERE pos > ? AND pos < ? "
            f"AND digest IS NOT NULL AND iif(mark = {BLOCK}, pos + back, pos) < ? ORDER BY pos DESC LIMIT 1",
            (at, at + revision, at + revision),
        ).fetchone()
        return (row[0] - at, row[1]) if row is not None else (0, digest.start(session.id))

    # Names and spans

    def name(self, key: int, space: int, id: str, revision: int = REVISION_MASK) -> Name | None:
        """The row of an id that was in force at a revision, by default the newest."""
        return sqlite_names.name(self.db, key, space, id, revision)

    def names(self, key: int, space: int, after: int, limit: int) -> list[Name]:
        """The rows of a space that were born after a revision. Inside a transaction only."""
        return sqlite_names.names(self.db, key, space, after, limit)

    def last_id(self, key: int) -> bytes:
        """The greatest of the ids that were made here, packed; b"" for none."""
        return sqlite_names.last_id(self.db, key)

    def span(self, key: int, start: int) -> RevertSpan | None:
        row = self._execute(
            "SELECT start, ended, place, slot FROM span WHERE session = ? AND start = ?", (key, start)
        ).fetchone()
        return RevertSpan._make(row) if row is not None else None

    def span_at(self, key: int, revision: int) -> RevertSpan | None:
        """The revert that was open at a revision. Only the last one opened until then can have been."""
        row = self._execute(
            "SELECT start, ended, place, slot FROM span WHERE session = ? AND start <= ? ORDER BY start DESC LIMIT 1",
            (key, revision),
        ).fetchone()
        if row is not None and tuple(map(type, row)) != _SPAN_TYPES:
            raise errors.CorruptData("a row of the index is damaged")
        span = RevertSpan._make(row) if row is not None else None
        return None if span is None or 0 < span.end <= revision else span

    # Nodes

    def node(self, key: int, place: bytes, slot: bytes) -> Node | None:
        row = self._floor(key, place, slot)
        if row is None:
            return None
        if row[_KIND] == STRETCH:
            return _by_position(row).get((place, slot))
        node = _node(row)
        if (node.place, node.slot) == (place, slot):
            return node
        return next((node for node in self.run(key, place) if node.slot == slot and node.place == place), None)

    def run(self, key: int, place: bytes) -> list[Node]:
        """The parts that are packed behind the header of a live message."""
        row = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND place = ? AND slot = x'' AND mark <> {STRETCH}",
            (key, place),
        ).fetchone()
        return unpack_run(_node(row), row[_FIELDS]) if row is not None and row[_FIELDS] else []

    def stretch(self, key: int, place: bytes, slot: bytes) -> Stretched | None:
        """The stretch that begins last before or at a position, if no other row does. It may end before."""
        row = self._floor(key, place, slot)
        return stretched(row) if row is not None and row[_KIND] == STRETCH else None

    def stretches(self, key: int, first: int) -> list[Stretched]:
        """The stretches in a block. Reads the index from end to end."""
        rows = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND mark = {STRETCH} AND revision = ?", (key, first)
        )
        return [stretched(row) for row in rows]

    def live(self, key: int) -> Iterator[tuple[tuple[bytes, bytes], list[Node]]]:
        """All live versions, row by row of the index, each with the position where it begins."""
        for row in self._execute(f"SELECT {_LIVE}, run FROM node WHERE session = ? ORDER BY place, slot", (key,)):
            yield row[:2], _expanded(row)

    def greatest(self, key: int) -> tuple[bytes, bytes] | None:
        """The last position of the index."""
        row = self._floor(key, END, b"")
        if row is None:
            return None
        found = _expanded(row)[-1]
        if row[1] == HEADER_SLOT:
            return found.place, found.slot
        # Parts that are packed behind the header may lie behind the last row.
        return found.place, max([found.slot, *(part.slot for part in self.run(key, found.place))])

    def message_nodes(self, key: int, place: bytes) -> list[Node]:
        rows = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND place = ? ORDER BY slot", (key, place)
        )
        return [node for node in self._unpacked(key, (place, HEADER_SLOT), rows) if node.place == place]

    def nodes_from(self, key: int, place: bytes, slot: bytes) -> list[Node]:
        rows = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND place >= ? ORDER BY place, slot", (key, place)
        )
        return [
            node for node in self._unpacked(key, (place, HEADER_SLOT), rows) if (node.place, node.slot) >= (place, slot)
        ]

    def _floor(self, key: int, place: bytes, slot: bytes) -> _Row | None:
        """The last row that begins at or before a position."""
        row: _Row | None = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND (place, slot) <= (?, ?) "
            "ORDER BY place DESC, slot DESC LIMIT 1",
            (key, place, slot),
        ).fetchone()
        return row

    def _unpacked(self, key: int, first: tuple[bytes, bytes], rows: Iterable[_Row]) -> list[Node]:
        """The nodes of rows, and of the stretch that goes on at the position from which on they are."""
        found: list[Node] = []
        before = self._floor(key, *first)
        if before is not None and before[_KIND] == STRETCH and before[:2] != first:
            found += (node for node in _expanded(before) if (node.place, node.slot) >= first)
        for row in rows:
            found += _expanded(row)
        found.sort()  # a part may have got its place between those that are packed behind a header
        return found

    def place_before(self, key: int, place: bytes = END) -> bytes | None:
        """The greatest place of a live message that is less than this one, by default of all."""
        row = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND place < ? ORDER BY place DESC, slot DESC LIMIT 1",
            (key, place),
        ).fetchone()
        return max(node.place for node in _expanded(row) if node.place < place) if row is not None else None

    def slot_before(self, key: int, place: bytes, slot: bytes = SUMMARY_SLOT) -> bytes | None:
        """The greatest slot of a live part that is less than this one, by default of all parts."""
        row = self._execute(
            f"SELECT {_LIVE}, run FROM node WHERE session = ? AND (place, slot) < (?, ?) "
            "ORDER BY place DESC, slot DESC LIMIT 1",
            (key, place, slot),
        ).fetchone()
        if row is None:
            return None
        found = _expanded(row)
        if row[_KIND] != STRETCH and row[1] != HEADER_SLOT:
            found += self.run(key, place)
        before = [node.slot for node in found if node.place == place and node.slot < slot]
        return max(before, default=HEADER_SLOT) or None

    def headers_back(self, key: int, revision: int, before: bytes | None, limit: int) -> list[Node]:
        """Headers valid at a revision, the last first. Inside a transaction only."""
        end = before if before is not None else END
        found: list[Node] = []
        for row in self._execute(f"SELECT {_LIVE}, run {_BEGUN} ORDER BY place DESC, slot DESC", (key, end, revision)):
            nodes = headers(stretched(row)) if row[_KIND] == STRETCH else [_node(row)]
            found += (node for node in nodes if node.place < end and node.revision <= revision)
            if len(found) >= limit:
                break
        rows = self._execute(
            f"SELECT {_PAST} {_PAST_HEADERS} AND ended > ? ORDER BY place DESC LIMIT ?",
            (key, end, revision, revision, limit),
        )
        found += map(Node._make, rows)
        found.sort(reverse=True)  # by place: of the versions of one header only one is valid
        return found[:limit]
