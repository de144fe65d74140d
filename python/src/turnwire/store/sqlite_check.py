"""Looks at a store's file from outside, for those who want to know whether it is sound: nothing is ever written.

The store itself reads what it is asked for; here damage is looked for, and sessions are found however much of the file
is damaged beside them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from turnwire.store.sqlite_schema import APPLICATION_ID

_MAGIC: Final = b"SQLite format 3\x00"
_STAMP: Final = slice(68, 72)  # where a database keeps its application's number; see SQLite's file format
_MOST_FAULTS: Final = 100
_BUSY_SECONDS: Final = 10.0


class Found(NamedTuple):
    """A session of a file: its id, and the head that its row has, behind which there may be a few entries more."""

    id: str
    head: int


def is_store(path: Path) -> bool:
    """Whether a file is a store of Turnwire, by its stamp. Raises OSError."""
    with path.open("rb") as file:
        header = file.read(_STAMP.stop)
    return header.startswith(_MAGIC) and int.from_bytes(header[_STAMP], "big") == APPLICATION_ID


def faults(path: Path) -> list[str]:
    """What SQLite's own check of all pages says is wrong, the first hundred; it never quotes content."""
    try:
        with closing(_connect(path)) as db:
            rows = db.execute(f"PRAGMA quick_check({_MOST_FAULTS})").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    told = [line for (text,) in rows for line in str(text).splitlines() if not line.startswith("***")]
    return [] if told == ["ok"] else told[:_MOST_FAULTS]


def sessions(path: Path, tenant: str = "") -> list[Found]:
    """All sessions of a tenant whose rows can be read, in the order in which they were made.

    Around a damaged page they are looked for from both ends.
    """
    with closing(_connect(path)) as db:
        first = dict(_rows(db, tenant, ">", 0, "ASC"))
        last = dict(_rows(db, tenant, "<", 2**63 - 1, "DESC"))
    return [found for _, found in sorted((first | last).items())]


def _rows(db: sqlite3.Connection, tenant: str, sign: str, start: int, order: str) -> Iterator[tuple[int, Found]]:
    """Rows by their keys, until one cannot be read."""
    query = f"SELECT key, tenant, id, head FROM session WHERE key {sign} ? ORDER BY key {order}"
    try:
        for key, owner, id, head in db.execute(query, (start,)):
            if owner == tenant:
                yield key, Found(id, head)
    except sqlite3.DatabaseError:
        return


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    db.execute("PRAGMA query_only = ON")
    return db
