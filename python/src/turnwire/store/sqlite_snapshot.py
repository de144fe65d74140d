"""One state of a session for a reader, and above all its versions in order, fast: replay is made of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from turnwire import errors
from turnwire.store.base import HEADER_SLOT, LAST_FIELD, EntryRow, Name, Node, RevertSpan, SessionRow, Version
from turnwire.store.sqlite_pack import unpack_run
from turnwire.store.sqlite_rows import END, Rows, base
from turnwire.store.sqlite_schema import REVISION_BITS

# Payloads longer than this are fetched once, not once for each version in them.
_LONG = 64 * 1024

_VERSION = "place, slot, mark >> 1, revision - back, ifnull(revision - turn, 0), iif(delta, revision + delta, 0)"
_WITHIN = "session = ? AND (place, slot) >= (?, ?) AND (place, slot) < (?, ?) AND revision <= ?"
# The bytes are NULL where the payload is long; with a run behind it a header needs the whole payload.
_LIVE = f"""
    SELECT {_VERSION}, (
        SELECT iif(length(payload) > {_LONG}, NULL, iif(run IS NULL, substr(payload, start + 1, length), payload))
        FROM entry WHERE pos = (session << {REVISION_BITS}) + revision
    ), run, revision, start, length
    FROM node WHERE {_WITHIN} ORDER BY place, slot
"""
_PAST = f"""
    SELECT {_VERSION}, NULL, NULL, revision, start, length FROM past
    WHERE {_WITHIN} AND ended > ? ORDER BY place, slot
"""
_BYTES, _RUN, _REVISION, _START, _LENGTH = range(6, 11)

_Row = tuple[Any, ...]
_POSITION = itemgetter(0, 1)


class SqliteSnapshot:
    """Asks over a connection that is inside a transaction."""

    def __init__(self, rows: Rows, session: SessionRow) -> None:
        self._rows = rows
        self._session = session
        self._fetched: tuple[int, bytes] = (0, b"")
        self._open: list[sqlite3.Cursor] = []

    def close(self) -> None:
        """End what is still being read, so that the transaction can end too."""
        for cursor in self._open:
            cursor.close()

    def versions(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version]:
        end = last if last is not None else (END, b"")
        within = (self._session.key, *first, *end, revision)
        live = self._rows.db.execute(_LIVE, within)
        self._open.append(live)
        found = self._expanded(live, self._begun(revision, first), end)
        past = self._rows.db.execute(_PAST, (*within, revision)).fetchall()
        if past:
            return merge(found, map(self._with_bytes, past), key=_POSITION)
        return found

    def headers_back(self, revision: int, before: bytes | None, limit: int) -> list[Node]:
        return self._rows.headers_back(self._session.key, revision, before, limit)

    def entry(self, revision: int) -> EntryRow:
        row = self._rows.entry(self._session, revision)
        if row is None:
            raise errors.CorruptData("an entry of the log is missing", revision=revision)
        return row

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

    def _begun(self, revision: int, first: tuple[bytes, bytes]) -> list[Version]:
        """What comes first of a run whose header, the row that has it, lies before the start."""
        if first[1] == HEADER_SLOT:
            return []
        run = self._rows.run(self._session.key, first[0])
        return [self._part(part) for part in run if part.slot >= first[1] and part.revision <= revision]

    def _expanded(self, rows: Iterable[_Row], run: list[Version], end: tuple[bytes, bytes]) -> Iterator[Version]:
        """Live versions from rows and the runs that are packed in them; ``run`` is what precedes the first row."""
        for row in rows:
            while run and run[0][:2] < row[:2]:
                yield run.pop(0)
            if row[_RUN] is not None:
                yield self._with_bytes(row)
                start, length = row[_START], row[_LENGTH]
                header = Node(row[0], HEADER_SLOT, 0, row[_REVISION], 0, 0, start, length, False, 0, 0)
                run = [self._part(part, row[_BYTES]) for part in unpack_run(header, row[_RUN])]
            elif row[_BYTES] is None:
                yield self._with_bytes(row)
            else:
                yield row[:_RUN]
        for part in run:
            if part[:2] >= end:
                break
            yield part

    def _part(self, node: Node, payload: bytes | None = None) -> Version:
        stored = self._cut(payload, node.revision, node.offset, node.length)
        return node.place, node.slot, node.kind, node.born, node.turn, node.delta, stored

    def _with_bytes(self, row: _Row) -> Version:
        stored = self._cut(row[_BYTES], row[_REVISION], row[_START], row[_LENGTH])
        return *row[:_BYTES], stored

    def _cut(self, payload: bytes | None, revision: int, start: int, length: int) -> bytes:
        if payload is None:
            if self._fetched[0] != revision:
                self._fetched = (revision, self.entry(revision).payload)
            payload = self._fetched[1]
        return payload[start : start + length]
