"""The limit of everything that is stored: SQLite itself, with the embedded store's file, durability and one table.

What else the store sets is its own doing. Of that, when the WAL is copied back counts most; ``wal_pages`` sets it here.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from bench.rounds import Round


def connect(path: Path, wal_pages: int | None = None) -> sqlite3.Connection:
    """Open a file with the settings of the embedded store's.

    ``wal_pages``: those from which on a commit copies the WAL back; None: as SQLite has it.
    """
    db = sqlite3.connect(path, isolation_level=None)
    for setting in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        db.execute(f"PRAGMA {setting}")
    if wal_pages is not None:
        db.execute(f"PRAGMA wal_autocheckpoint={wal_pages}")
    return db


class Raw:
    """A file of rows that are bytes."""

    def __init__(self, path: Path, *, wal_pages: int | None = None) -> None:
        """``wal_pages`` as `connect` takes them."""
        self._db = connect(path, wal_pages)
        self._db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")

    def singles(self, sizes: Sequence[int]) -> Round:
        """A transaction for each row."""
        rows = [(b"x" * size,) for size in sizes]
        marks = [time.perf_counter()]
        for row in rows:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT INTO entry (payload) VALUES (?)", row)
            self._db.execute("COMMIT")
            marks.append(time.perf_counter())
        return Round.between(marks, len(sizes))

    def batches(self, sizes: Sequence[int], batch: int) -> Round:
        """A transaction and one ``executemany`` for each ``batch`` rows."""
        rows = [(b"x" * size,) for size in sizes]
        marks = [time.perf_counter()]
        for at in range(0, len(rows), batch):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT INTO entry (payload) VALUES (?)", rows[at : at + batch])
            self._db.execute("COMMIT")
            marks.append(time.perf_counter())
        return Round.between(marks, len(sizes))

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
