"""Looks at a store's file from outside, for those who want to know whether it is sound: nothing is ever written.

The store itself reads what it is asked for; here damage is looked for, and sessions are found however much of the file
is damaged beside them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from struct import error as struct_error
from threading import Event
from typing import Final, NamedTuple
from urllib.parse import quote

from turnwire import errors
from turnwire.store import sqlite_schema
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_schema import APPLICATION_ID, REVISION_BITS

_MAGIC: Final = b"SQLite format 3\x00"
_STAMP: Final = slice(68, 72)  # where a database keeps its application's number; see SQLite's file format
_FIRST_PAGE: Final = 64 * 1024  # of a database at most
_TABLES: Final = (b"CREATE TABLE session (", b"CREATE TABLE sqlite_sequence")
_MOST_FAULTS: Final = 100
_BUSY_SECONDS: Final = 10.0
_PAGE: Final = 1000
_STEPS: Final = 100_000  # of SQLite's machine, between two looks at whether to go on
#: By table the column whose first bits are a session's key, and how many bits come behind those.
_OF_SESSIONS: Final = {
    "entry": ("pos", REVISION_BITS),
    **dict.fromkeys(
        ("detail", "label", "node", "past", "name", "series", "listed", "span", "reply", "fresh_reply"), ("session", 0)
    ),
}


class Found(NamedTuple):
    """A session of a file: its id, and the head that its row has (0: none), behind which there may be a few entries."""

    id: str
    head: int
    key: int


def is_store(path: Path) -> bool:
    """Whether a file is a store of Turnwire, by its stamp. Raises OSError."""
    with path.open("rb") as file:
        header = file.read(_STAMP.stop)
    return header.startswith(_MAGIC) and int.from_bytes(header[_STAMP], "big") == APPLICATION_ID


def damaged_database(path: Path) -> bool:
    """Whether a file that is no store looks like a database whose first page is damaged, or of no known program.

    It begins as one, or has the description of tables where one has it. Raises OSError.
    """
    with path.open("rb") as file:
        first = file.read(_FIRST_PAGE)
    return first.startswith(_MAGIC) or any(table in first for table in _TABLES)


def faults(path: Path, stopped: Event | None = None) -> list[str]:
    """What SQLite's own check of all pages says is wrong, the first hundred; it never quotes content.

    Of a large file it takes long. It ends early, and says nothing that counts, once ``stopped`` is set.
    """
    try:
        with closing(connect(path)) as db:
            if stopped is not None:
                db.set_progress_handler(stopped.is_set, _STEPS)
            rows = db.execute(f"PRAGMA integrity_check({_MOST_FAULTS})").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    except UnicodeDecodeError:  # the binding's, of SQLite's own words
        return ["malformed database schema"]
    told = [line for (text,) in rows for line in str(text).splitlines() if not line.startswith("***")]
    return [] if told == ["ok"] else told[:_MOST_FAULTS]


class Schema(NamedTuple):
    """What a store does not have of the schema, or not as it is, each with what it is: ``table node``."""

    missing: list[str]
    changed: list[str]


def schema(path: Path) -> Schema:
    """Compare a store's description of its tables with that of this build. Raises sqlite3.Error, UnicodeDecodeError."""
    named = "sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_'"
    query = f"SELECT type || ' ' || name, sql FROM sqlite_master WHERE {named}"
    with closing(sqlite3.connect(":memory:")) as made, closing(connect(path)) as db:
        sqlite_schema.migrate(made, 0)
        there = dict(db.execute(query))
        right = dict(made.execute(f"{query} ORDER BY rowid"))
    changed = [what for what, text in right.items() if what in there and there[what] != text]
    return Schema([what for what in right if what not in there], changed)


def sessions(path: Path, tenant: str = "") -> Iterator[Found]:
    """The sessions of a tenant whose rows can be read, in the order in which they were made.

    Behind a damaged page they are looked for from the other end. An id may be anything that a damaged file holds.
    """
    return (found for owner, found in _sessions(path) if owner == tenant)


def of_others(path: Path, tenant: str = "") -> int:
    """How many sessions other tenants have."""
    return sum(owner != tenant for owner, _ in _sessions(path))


def orphans(path: Path) -> dict[int, list[str]]:
    """Tables with rows whose session has no row, by the key that it had; of each table the first hundred of those.

    Only keys are looked at, one for each session. What cannot be read is left out.
    """
    found: dict[int, list[str]] = {}
    with closing(connect(path)) as db:
        for table, (column, bits) in _OF_SESSIONS.items():
            keys = (key for key in _keys(db, table, column, bits) if not _may_be_there(db, key))
            for key in islice(keys, _MOST_FAULTS):
                found.setdefault(key, []).append(table)
    return found


def resurrected(path: Path, tenant: str = "") -> Iterator[str]:
    """The ids of sessions that are there, and noted as deleted as well. Raises sqlite3.Error."""
    with closing(connect(path)) as db:
        query = "SELECT id FROM deleted JOIN session USING (tenant, id) WHERE tenant = ? ORDER BY key"
        yield from (id for (id,) in db.execute(query, (tenant,)))


def tombstones(path: Path) -> Iterator[str]:
    """The ids of the sessions that were deleted, of whatever tenant; "" for one that no look-up can find.

    Raises sqlite3.Error.
    """
    with closing(connect(path)) as db:
        query = "SELECT iif(typeof(tenant) = 'text' AND typeof(id) = 'text', id, '') FROM deleted"
        yield from (id for (id,) in db.execute(query))


class Digests:
    """The digests of a session's log, as they are kept or follow from those that are. Close it at the end."""

    def __init__(self, path: Path, id: str, tenant: str = "") -> None:
        """Raises sqlite3.Error."""
        self._db = connect(path)
        self._rows = Rows(self._db)
        self._at = (tenant, id)
        self._known = (0, b"")  # what was told last: mostly the next one comes soon behind it

    def at(self, revision: int) -> bytes:
        """The digest at a revision; b"" for one that cannot be told. Raises sqlite3.Error."""
        try:
            found = self._rows.stored(*self._at)
            if found is None:
                return b""
            if self._known[0] != revision:
                for row in self._rows.chained(found[0], revision, revision, self._known):
                    self._known = (row.revision, row.digest)
        except (errors.TurnwireError, struct_error, ValueError):  # a damaged log, which who reads it tells of
            return b""
        return self._known[1] if self._known[0] == revision else b""

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


class KeptReply(NamedTuple):
    """The reply to a request id as a row has it; damage may bring other types than a table has."""

    request_id: object
    method: object
    sha256: object
    response: object


def replies(path: Path, key: int) -> Iterator[KeptReply]:
    """The replies that are kept in a session, by its key. Raises sqlite3.Error."""
    with closing(connect(path)) as db:
        for table in ("reply", "fresh_reply"):
            query = f"SELECT request_id, method, sha256, response FROM {table} WHERE session = ?"
            yield from map(KeptReply._make, db.execute(query, (key,)))


def without_digest(path: Path, id: str, tenant: str = "") -> tuple[int, int] | None:
    """The first and last entry of which, and behind which, no digest is kept; None if there is none.

    Raises sqlite3.Error.
    """
    with closing(connect(path)) as db:
        rows = Rows(db)
        found = rows.stored(tenant, id)
        if found is None or not found[1]:
            return None
        session, _ = found
        last = rows.last(session)
        kept, _ = rows.digest_before(session, last + 1)
        kept = max(kept, session.head)
        return (kept + 1, last) if kept < last else None


def _keys(db: sqlite3.Connection, table: str, column: str, bits: int) -> Iterator[int]:
    """The keys of the sessions that a table has rows of."""
    query = f"SELECT min({column}) >> {bits} FROM {table} WHERE {column} >= ?"
    least = -(2**63)
    try:
        while True:
            ((key,),) = db.execute(query, (least,))
            if key is None:
                return
            yield key
            least = (key + 1) << bits
            if least >= 2**63:
                return
    except sqlite3.DatabaseError:
        return


def _may_be_there(db: sqlite3.Connection, key: int) -> bool:
    """Whether a session has a row, or has it where nothing can be read."""
    try:
        return db.execute("SELECT 1 FROM session WHERE key = ?", (key,)).fetchone() is not None
    except sqlite3.DatabaseError:
        return True


def _sessions(path: Path) -> Iterator[tuple[str, Found]]:
    """All that can be read with the tenants that own them, page by page, so that no transaction stays open."""
    last = 0
    with closing(connect(path)) as db:
        while True:
            page, whole = _rows(db, f"key > ? ORDER BY key LIMIT {_PAGE}", last)
            if not whole:
                last = page[-1][1].key if page else last
                page += _rows(db, "key > ? ORDER BY key DESC", last)[0][::-1]
            yield from page
            if not whole or len(page) < _PAGE:
                return
            last = page[-1][1].key


def _rows(db: sqlite3.Connection, where: str, after: int) -> tuple[list[tuple[str, Found]], bool]:
    """Rows until one cannot be read, and whether all could."""
    found: list[tuple[str, Found]] = []
    query = f"SELECT key, CAST(tenant AS BLOB), CAST(id AS BLOB), head FROM session WHERE {where}"
    try:
        for key, owner, id, head in db.execute(query, (after,)):
            if owner is None:  # which no one is
                owner, id = b"", None
            found.append((_text(owner), Found(_text(id), head if isinstance(head, int) else 0, key)))
    except sqlite3.DatabaseError:
        return found, False
    return found, True


def _text(stored: bytes | None) -> str:
    """A text of a file that may be damaged, with what is no UTF-8 spelt out."""
    return (stored or b"").decode(errors="backslashreplace")


def connect(path: Path) -> sqlite3.Connection:
    """A connection that only reads. Raises sqlite3.Error."""
    db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    db.text_factory = _text
    db.execute("PRAGMA query_only = ON")
    return db
