"""One state of a session for a reader, and above all its versions in order, fast: replay is made of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from heapq import merge
from operator import itemgetter
from typing import Any

from turnwire import errors
from turnwire.store.base import (
    HEADER_SLOT,
    LAST_FIELD,
    EntryRow,
    Name,
    Node,
    RevertSpan,
    SessionRow,
    Stretch,
    Version,
)
from turnwire.store.sqlite_block import BLOCK, STRETCH, Block, Stretched, outline, shown
from turnwire.store.sqlite_pack import unpack_run
from turnwire.store.sqlite_rows import END, Rows, as_block, base
from turnwire.store.sqlite_schema import REVISION_BITS

# Payloads longer than this are fetched once, not once for each version in them.
_LONG = 64 * 1024

_VERSION = (
    "place, slot, node.mark >> 1, revision - node.back, ifnull(revision - turn, 0), iif(delta, revision + delta, 0)"
)
_WITHIN = "session = ? AND (place, slot) >= (?, ?) AND (place, slot) < (?, ?) AND revision <= ?"
# The bytes are NULL where they have to be looked for: in a long payload, and in a block. With a run behind it a header
# needs the whole payload.
_BYTES_OF = f"""
    CASE
        WHEN entry.mark = {BLOCK} OR length(payload) > {_LONG} THEN NULL
        WHEN run IS NULL THEN substr(payload, start + 1, length)
        ELSE payload
    END
"""
_LIVE = f"""
    SELECT {_VERSION}, iif(node.mark = {STRETCH}, NULL, (
        SELECT {_BYTES_OF} FROM entry WHERE pos = (session << {REVISION_BITS}) + revision
    )), run, revision, start, length
    FROM node WHERE {_WITHIN} ORDER BY place, slot
"""
_PAST = f"""
    SELECT {_VERSION.replace("node.", "")}, NULL, NULL, revision, start, length FROM past
    WHERE {_WITHIN} AND ended > ? ORDER BY place, slot
"""
_KIND, _TURN = 2, 4
_MARK = 2  # of an entry's row
_BYTES, _RUN, _REVISION, _START, _LENGTH = range(6, 11)

_Row = tuple[Any, ...]
_POSITION = itemgetter(0, 1)


class SqliteSnapshot:
    """Asks over a connection that is inside a transaction."""

    def __init__(self, rows: Rows, session: SessionRow) -> None:
        self._rows = rows
        self._session = session
        self._fetched: EntryRow | None = None
        self._block: Block | None = None
        self._behind: sqlite3.Cursor | None = None  # the rows behind the block that was last read
        self._open: list[sqlite3.Cursor] = []

    def close(self) -> None:
        """End what is still being read, so that the transaction can end too."""
        for cursor in self._open:
            cursor.close()
        if self._behind is not None:
            self._behind.close()

    def versions(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version]:
        for piece in self.pieces(revision, first, last):
            if isinstance(piece, Stretch):
                yield from piece.versions()
            else:
                yield piece

    def pieces(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version | Stretch]:
        end = last if last is not None else (END, b"")
        within = (self._session.key, *first, *end, revision)
        live = self._rows.db.execute(_LIVE, (self._session.key, *self._begin(first), *end, revision))
        self._open.append(live)
        found = self._expanded(live, revision, first, last)
        past = self._rows.db.execute(_PAST, (*within, revision)).fetchall()
        if past:
            return merge(found, map(self._with_bytes, past), key=_POSITION)
        return found

    def headers_back(self, revision: int, before: bytes | None, limit: int) -> list[Node]:
        return self._rows.headers_back(self._session.key, revision, before, limit)

    def entry(self, revision: int) -> EntryRow:
        if self._block is not None and revision in self._block:
            return self._block.entry(revision)
        found = self._rows.stored_at(self._session.key, self._session.first_us, revision)
        if found is None:
            raise errors.CorruptData("an entry of the log is missing", revision=revision)
        if isinstance(found, Block):
            self._block = found
            return found.entry(revision)
        return found

    def name(self, space: int, id: str, revision: int) -> Name | None:
        return self._rows.name(self._session.key, space, id, revision)

    def names(self, space: int, after: int, limit: int) -> list[Name]:
        return self._rows.names(self._session.key, space, after, limit)

    def span(self, revision: int) -> RevertSpan | None:
        return self._rows.span_at(self._session.key, revision)

    def foreign(self, revision: int) -> int | None:
        at = base(self._session.key)
        found = self._rows.db.execute(
            "SELECT min(pos) FROM entry WHERE mark >= 44 AND (mark & 1) = 0 AND mark >> 1 > ? AND pos BETWEEN ? AND ?",
            (LAST_FIELD, at, at + revision),
        ).fetchone()[0]
        return found - at if found is not None else None

    def _begin(self, first: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Where the row is that has the first version, alone or among others."""
        stretch = self._rows.stretch(self._session.key, *first)
        return (stretch.place, stretch.slot) if stretch is not None else (first[0], HEADER_SLOT)

    def _expanded(
        self, rows: Iterable[_Row], revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version | Stretch]:
        """Live versions from a position on, from rows and what is packed in them."""
        run: list[Version] = []  # what is still to come of the row before
        held: Stretch | None = None  # the same, until it is known that all of it lies before the end
        for row in rows:
            if held is not None:
                yield held
                held = None
            at = row[:2]
            while run and run[0][:2] < at:
                yield run.pop(0)
            if row[_KIND] == STRETCH:
                stretch = self._stretch(row, revision)
                if isinstance(stretch, Stretch) and at >= first:
                    if last is None:
                        yield stretch
                    else:
                        held = stretch
                else:
                    found = stretch.versions() if isinstance(stretch, Stretch) else stretch
                    run = [version for version in found if version[:2] >= first]
            elif row[_RUN] is not None:
                if at >= first:
                    yield self._with_bytes(row)
                start, length = row[_START], row[_LENGTH]
                header = Node(row[0], HEADER_SLOT, 0, row[_REVISION], 0, 0, start, length, False, 0, 0)
                run = [self._version(part, row[_BYTES]) for part in unpack_run(header, row[_RUN]) if part[:2] >= first]
            elif at >= first:
                yield self._with_bytes(row) if row[_BYTES] is None else row[:_RUN]
        if held is not None:
            run = held.versions()
        for part in run:
            if last is not None and part[:2] >= last:
                break
            yield part

    def _stretch(self, row: _Row, revision: int) -> Stretch | list[Version]:
        """A stretch; the versions of it that there were at a revision, if it has later ones too."""
        place, slot, _, _, turn, _, _, run, first, start, length = row
        if not first.__class__ is start.__class__ is length.__class__ is int:
            raise errors.CorruptData("a row of the index is damaged")
        block = self._block
        if block is None or block.first != first:
            block = self._block = self._block_at(first)
        stored = block.payload
        end = start + length
        if not 0 <= start <= end <= len(stored):
            raise errors.CorruptData("a block of entries is damaged", revision=first)
        ahead, whole, frame, header, kind = outline(run)

        each = partial(shown, Stretched(place, slot, first, start, length, turn, run), stored, revision)
        if first + ahead > revision:
            return each()
        whole += start
        return Stretch(
            place,
            slot,
            turn,
            stored[start:whole],
            stored[whole : start + frame],
            kind,
            stored[start + header : end],
            each,
        )

    def _block_at(self, first: int) -> Block:
        """The block whose first entry has a revision. Mostly it is the next row, which costs less than to look for."""
        key, first_us = self._session.key, self._session.first_us
        row = None
        if self._behind is not None:
            with suppress(sqlite3.DatabaseError):  # it may be of a row that nobody wants
                row = next(self._behind, None)
            if row is not None and row[0] == first and row[_MARK] == BLOCK:
                return as_block(row, first_us)
            self._behind.close()
            self._behind = None
        found = self._rows.stored_at(key, first_us, first)
        if not isinstance(found, Block) or found.first != first:
            raise errors.CorruptData("an entry of the log is missing", revision=first)
        with suppress(sqlite3.DatabaseError):
            self._behind = self._rows.rows_from(key, found.last + 1)
        return found

    def _version(self, node: Node, payload: bytes | None = None) -> Version:
        stored = self._cut(payload, node.revision, node.offset, node.length)
        return node.place, node.slot, node.kind, node.born, node.turn, node.delta, stored

    def _with_bytes(self, row: _Row) -> Version:
        stored = self._cut(row[_BYTES], row[_REVISION], row[_START], row[_LENGTH])
        return *row[:_BYTES], stored

    def _cut(self, payload: bytes | None, revision: int, start: int, length: int) -> bytes:
        if payload is None:
            if self._fetched is None or self._fetched.revision != revision:
                self._fetched = self.entry(revision)
            payload = self._fetched.payload
        return payload[start : start + length]
