"""The limit of everything that is stored: SQLite itself, with the settings of the embedded store and one table."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path


class Raw:
    """A file of rows that are bytes."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        for setting in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")

    def singles(self, sizes: Sequence[int]) -> None:
        """A transaction for each row."""
        for size in sizes:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT INTO entry (payload) VALUES (?)", (b"x" * size,))
            self._db.execute("COMMIT")

    def batches(self, sizes: Sequence[int], batch: int) -> None:
        """A transaction and one ``executemany`` for each ``batch`` rows."""
        for at in range(0, len(sizes), batch):
            self._db.execute("BEGIN IMMEDIATE")
            rows = ((b"x" * size,) for size in sizes[at : at + batch])
            self._db.executemany("INSERT INTO entry (payload) VALUES (?)", rows)
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
