"""Reads the rows of opencode's tables, also where pages of the file are damaged.

Rows are found through an index, and counted beside that in the table itself. Where an index cannot be read or does not
tell as many rows as the table has, they are looked for in the table: it is walked by rowid, past what cannot be read.
A row that is known of, by whatever way, and cannot be read is told to the caller, and costs itself alone. That is so
too for a row that an index lists and the table does not have: a damaged page may be readable, and hide what is on it.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from string import Template
from typing import Final, NamedTuple

from turnwire.formats.opencode.opened import Database
from turnwire.formats.opencode.records import text_of
from turnwire.formats.opencode.rows import Cell, Row, row_of

#: Beyond it there is no rowid.
_LAST: Final = 2**63 - 1
#: What of an error code is its kind, and the kinds that tell nothing of the file's state.
_PRIMARY: Final = 0xFF
_PASSING: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT})
#: How fine the steps over what cannot be read are: each is this part of the way from its beginning, and one at least.
_FINE: Final = 64

#: Why a row cannot be read that an index lists.
HIDDEN: Final = "an index lists it, and its table does not have it"

#: Told of a row that cannot be read: what names it (its id, or its rowid), and why.
Lost = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Table:
    """The queries for a table whose rows belong to what a column (``key``) names; see `queries`."""

    name: str
    key: str
    order: tuple[str, ...]
    by_key: str
    rowids: str
    keys: str
    onward: str
    by_rowid: str
    ids: str
    owners: str
    witnesses: tuple[Witness, ...]


class Witness(NamedTuple):
    """What one index tells of a table: how many rows it has, and those that the table has not."""

    rows: str
    hidden: str


def queries(name: str, key: str, *order: str, witnesses: tuple[str, ...] = ()) -> Table:
    """The queries for a table. The names are those of this package, and never come from a file.

    ``witnesses`` are the columns with which an index of the table begins.
    """
    columns = ", ".join(order)

    def query(text: str, witness: str = "") -> str:
        return Template(text).substitute(name=name, key=key, order=columns, witness=witness)

    return Table(
        name,
        key,
        order,
        by_key=query("SELECT * FROM $name WHERE $key = CAST(? AS TEXT) ORDER BY $order"),
        rowids=query("SELECT rowid FROM $name WHERE $key = CAST(? AS TEXT)"),
        keys=query("SELECT $key FROM $name NOT INDEXED"),
        onward=query("SELECT rowid, $key FROM $name NOT INDEXED WHERE rowid >= ? ORDER BY rowid"),
        by_rowid=query("SELECT * FROM $name NOT INDEXED WHERE rowid = ?"),
        ids=query("SELECT rowid, id FROM $name"),
        owners=query("SELECT rowid, $key FROM $name WHERE $key >= ''"),
        # Every text is one, so that the condition takes nothing away, and has the query answered by the index alone.
        witnesses=tuple(
            Witness(
                rows=query("SELECT count(*) FROM $name WHERE $witness >= ''", each),
                hidden=query(
                    "SELECT rowid FROM $name WHERE $witness >= '' EXCEPT SELECT rowid FROM $name NOT INDEXED", each
                ),
            )
            for each in witnesses
        ),
    )


class Found(NamedTuple):
    """The rows of one key that can be read, in order; ``complete``: there are no others, so far as can be told."""

    rows: list[Row]
    complete: bool


@dataclass(slots=True)
class _Walk:
    """Where the rows of each key are in a table, by a walk over it at one version of the file."""

    db: sqlite3.Connection
    version: int
    rowids: dict[bytes, array[int]] = field(default_factory=dict[bytes, "array[int]"])
    gaps: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Hidden:
    """The rows that an index lists and the table does not have: the keys of which there are such, and the others."""

    db: sqlite3.Connection
    keys: set[bytes] = field(default_factory=set[bytes])
    unowned: set[int] = field(default_factory=set[int])


class Tables:
    """The tables of an open database. Only one session is read at a time."""

    def __init__(self, base: Database) -> None:
        self._base = base
        self._counts: dict[str, Counter[bytes] | None] = {}
        self._walks: dict[str, _Walk] = {}
        self._ids: dict[str, dict[int, str]] = {}
        self._hidden: dict[str, _Hidden] = {}

    def of(self, table: Table, key: Cell, lost: Lost) -> Found:
        """The rows of a key. Raises `sqlite3.DatabaseError` where that is no matter of damage."""
        try:
            rows = self._rows(table.by_key, key)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & _PRIMARY in _PASSING:
                raise
            return self._salvage(table, key, lost)
        count = self._count(table)
        hidden = self._hidden_in(table)
        if (
            count is not None
            and count[key] == len(rows)  # type: ignore[index]
            and key not in hidden.keys
            and all(row[table.key] == key for row in rows)
        ):
            return Found(rows, complete=not hidden.unowned)
        return self._salvage(table, key, lost)

    def keys(self, table: Table) -> set[bytes]:
        """The keys of all rows that can be read."""
        count = self._count(table)
        return set(count if count is not None else self._walk(table).rowids)

    def gaps(self, table: Table) -> list[str]:
        """Where a table cannot be read, for people; empty if it has not been walked, or is whole."""
        walk = self._walks.get(table.name)
        return walk.gaps if walk is not None else []

    def unowned(self, table: Table) -> list[str]:
        """What names the rows that are hidden, and of which no index that can be read tells whose they are."""
        hidden = self._hidden.get(table.name)
        return sorted(self._name(table, rowid) for rowid in hidden.unowned) if hidden is not None else []

    def _hidden_in(self, table: Table) -> _Hidden:
        """The rows that an index lists and the table does not have; looked for if an index counts more than it has."""
        found = self._hidden.get(table.name)
        if found is not None and found.db is self._base.db:
            return found
        found = self._hidden[table.name] = _Hidden(self._base.db)
        count = self._count(table)
        if count is None:  # each key is looked for by itself, see `_salvage`
            return found
        rowids: set[int] = set()
        for witness in table.witnesses:
            with suppress(sqlite3.DatabaseError):
                (listed,) = self._base.db.execute(witness.rows).fetchone()
                if listed > count.total():
                    rowids |= {rowid for (rowid,) in self._base.db.execute(witness.hidden)}
        if rowids:
            found.unowned = rowids
            with suppress(sqlite3.DatabaseError):
                for rowid, key in self._base.db.execute(table.owners):
                    if rowid in rowids and isinstance(key, bytes):
                        found.keys.add(key)
                        found.unowned.discard(rowid)
        return found

    def _rows(self, query: str, value: Cell) -> list[Row]:
        cursor = self._base.db.execute(query, (value,))
        return [row_of(cursor, row) for row in cursor]

    def _count(self, table: Table) -> Counter[bytes] | None:
        """How many rows each key has, counted once and without an index; None if the table cannot be read whole."""
        if table.name not in self._counts:
            try:
                self._counts[table.name] = Counter(key for (key,) in self._base.db.execute(table.keys))
            except sqlite3.DatabaseError:
                self._counts[table.name] = None
        return self._counts[table.name]

    def _salvage(self, table: Table, key: Cell, lost: Lost) -> Found:
        """The rows of a key by what the table itself and the index tell, one by one."""
        walk = self._walk(table)
        known = set(walk.rowids.get(key, ())) if isinstance(key, bytes) else set[int]()
        try:
            listed = {rowid for (rowid,) in self._base.db.execute(table.rowids, (key,))}
            indexed = True
        except sqlite3.DatabaseError:
            listed, indexed = set[int](), False
        rows: list[Row] = []
        for rowid in sorted(known | listed):
            try:
                there = self._rows(table.by_rowid, rowid)
            except sqlite3.DatabaseError as error:
                lost(self._name(table, rowid), str(error))
                continue
            if not there and rowid in listed:
                lost(self._name(table, rowid), HIDDEN)
            rows += (row for row in there if row[table.key] == key)
        rows.sort(key=lambda row: [_sortable(row.get(column)) for column in table.order])
        return Found(rows, complete=(indexed or not walk.gaps) and not self._hidden_in(table).unowned)

    def _name(self, table: Table, rowid: int) -> str:
        """The id of a row that cannot be read, by what an index tells of it; else its rowid."""
        if table.name not in self._ids:
            self._ids[table.name] = found = {}
            with suppress(sqlite3.DatabaseError):
                for each, name in self._base.db.execute(table.ids):
                    found[each] = text_of(name) if isinstance(name, bytes) else str(name)
        return self._ids[table.name].get(rowid, f"rowid {rowid}")

    def _walk(self, table: Table) -> _Walk:
        (version,) = self._base.db.execute("PRAGMA data_version").fetchone()
        walk = self._walks.get(table.name)
        if walk is None or (walk.db, walk.version) != (self._base.db, version):
            walk = self._walks[table.name] = _Walk(self._base.db, version)
            start: int | None = 0
            while start is not None:
                start = self._walk_on(table, start, walk)
        return walk

    def _walk_on(self, table: Table, start: int, walk: _Walk) -> int | None:
        """Walk on up to what cannot be read; returns from where on it can be again, None for the end of the table."""
        at = start
        try:
            for rowid, key in self._base.db.execute(table.onward, (start,)):
                if isinstance(key, bytes):
                    walk.rowids.setdefault(key, array("q")).append(rowid)
                at = rowid + 1
        except sqlite3.DatabaseError as error:
            onward = self._past(table, at)
            walk.gaps.append(f"{f'rows {at} to {onward - 1}' if onward else f'rows from {at} on'}: {error}")
            return onward
        return None

    def _past(self, table: Table, begin: int) -> int | None:
        """The first rowid behind ``begin`` from which on rows can be read again, or are said to be none; None: nowhere.

        A damaged page holds rowids in a row, so that what is behind it is found by steps, and then by halving the last.
        """
        low, high = begin, begin + 1
        while not self._readable(table, high):
            low, high = high, high + max(1, (high - begin) // _FINE)
            if high > _LAST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._readable(table, middle) else (middle, high)
        return high

    def _readable(self, table: Table, start: int) -> bool:
        try:
            self._base.db.execute(table.onward, (start,)).fetchone()
        except sqlite3.DatabaseError:
            return False
        return True


def _sortable(value: Cell) -> tuple[int, float, bytes]:
    """A key by which cells sort as SQLite sorts them: NULL, numbers, texts."""
    if value is None:
        return 0, 0, b""
    return (2, 0, value) if isinstance(value, bytes) else (1, value, b"")
