"""Tables of small rows by their ids that may become larger than memory: what is too much goes into a temporary file.

Rows that were used of late are objects in a dict; beyond a number they are written into a private SQLite database that
has no name and goes away with its connection. So a million messages take the memory that twenty thousand take.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

Row = TypeVar("Row")

#: How many rows of a table are kept as objects.
_HOT: Final = 20_000
_CACHE_KIB: Final = 16 * 1024


class Spill:
    """The temporary file. Tables share it; it is made when the first of them needs it."""

    def __init__(self) -> None:
        self._made: sqlite3.Connection | None = None

    def db(self) -> sqlite3.Connection:
        """The connection. It may be used by one thread after another."""
        if self._made is None:
            self._made = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
                self._made.execute(f"PRAGMA {setting}")
        return self._made

    def close(self) -> None:
        """Let go of the file."""
        if self._made is not None:
            self._made.close()
            self._made = None


class Table(Generic[Row]):
    """Rows by id. A row that was got may be changed until the next `trim`, which alone moves rows out of memory."""

    def __init__(
        self, spill: Spill, name: str, pack: Callable[[Row], list[Any]], unpack: Callable[[list[Any]], Row]
    ) -> None:
        """``name`` is an identifier; ``pack`` and ``unpack`` are between a row and what JSON can hold."""
        self._spill = spill
        self._name = name
        self._pack = pack
        self._unpack = unpack
        self._hot: dict[str, Row] = {}
        self._spilled = False

    def get(self, id: str) -> Row | None:
        """The row of an id."""
        row = self.look(id)
        if row is not None:
            self._hot[id] = row
        return row

    def look(self, id: str) -> Row | None:
        """The row of an id, not to be changed, and not kept in memory: for who asks while going through `rows`."""
        row = self._hot.get(id)
        if row is None and self._spilled:
            found = self._spill.db().execute(f"SELECT row FROM {self._name} WHERE id = ?", (id,)).fetchone()
            row = self._unpack(json.loads(found[0])) if found is not None else None
        return row

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def put(self, id: str, row: Row) -> None:
        """Set the row of an id."""
        self._hot[id] = row

    def trim(self) -> None:
        """Move rows into the file if there are too many in memory."""
        if len(self._hot) > _HOT:
            self._write()

    def rows(self) -> Iterator[tuple[str, Row]]:
        """All rows with their ids, in no order. Nothing may be put meanwhile."""
        if not self._spilled:
            yield from self._hot.items()
            return
        self._write()
        for id, packed in self._spill.db().execute(f"SELECT id, row FROM {self._name}"):
            yield id, self._unpack(json.loads(packed))

    def _write(self) -> None:
        db = self._spill.db()
        if not self._spilled:
            db.execute(f"CREATE TABLE {self._name} (id TEXT PRIMARY KEY, row TEXT) WITHOUT ROWID")
            self._spilled = True
        db.execute("BEGIN")
        db.executemany(
            f"INSERT OR REPLACE INTO {self._name} VALUES (?, ?)",
            ((id, json.dumps(self._pack(row), separators=(",", ":"))) for id, row in sorted(self._hot.items())),
        )
        db.execute("COMMIT")
        self._hot.clear()
