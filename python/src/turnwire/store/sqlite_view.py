"""One session as a writer sees it inside the transaction, and how a change is written.

Most appends go to the end of a session, where nothing is live yet, and bring new ids, which sort behind all others if
they were made here; what lies behind the last live place and the last id is known to be empty without asking.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from turnwire import errors, ids
from turnwire.store.base import (
    MESSAGE,
    PART,
    Change,
    EntryRow,
    Name,
    Node,
    Reply,
    RevertSpan,
    SessionRow,
)
from turnwire.store.sqlite_block import SMALL_BYTES
from turnwire.store.sqlite_index import write_index
from turnwire.store.sqlite_pack import made_digits, made_here, unpack_made
from turnwire.store.sqlite_rows import Rows

_UNKNOWN = b""  # no place is empty
_NAMES = 256
_PREFIX = len(ids.MESSAGE)  # which is as long as that of parts


class SqliteView:
    """The ``View`` of a session as its index is. Good until that changes."""

    def __init__(self, rows: Rows, session: SessionRow | None, deleted: bool) -> None:
        self._rows = rows
        self._key = session.key if session is not None else 0
        self.session = session
        self.deleted = deleted
        self._last: bytes | None = _UNKNOWN if session is not None else None
        self._last_id: str | None = None
        self._names: dict[tuple[int, str], Name | None] = {}  # the last that were asked for

    def reply(self, method: str, request_id: str) -> Reply | None:
        return self._rows.replies.find(self._key, method, request_id) if self._key else None

    def name(self, space: int, id: str) -> Name | None:
        try:
            return self._names[space, id]
        except KeyError:
            pass
        if not self._key:
            return None
        digits = made_digits(space, id)
        if digits is not None and digits > self._last_made():
            return None
        if len(self._names) >= _NAMES:
            self._names.clear()
        found = self._names[space, id] = self._rows.name(self._key, space, id)
        return found

    def fresh(self, message_ids: Sequence[str], part_ids: Sequence[str]) -> bool:
        first = min(message_ids)
        if made_here(first, part_ids) and all(made_here(id, ()) for id in message_ids if id is not first):
            least = min(first[_PREFIX:], min(part_ids)[_PREFIX:] if part_ids else "~")
            if least > self._last_made():
                return True
        unknown = all(self.name(MESSAGE, id) is None for id in message_ids)
        return unknown and all(self.name(PART, id) is None for id in part_ids)

    def _last_made(self) -> str:
        """The digits of the greatest of the ids that were made here; "" for none."""
        if self._last_id is None:
            self._last_id = unpack_made(self._rows.last_id(self._key))
        return self._last_id

    def node(self, place: bytes, slot: bytes) -> Node | None:
        return None if self._behind(place) else self._rows.node(self._key, place, slot)

    def message_nodes(self, place: bytes) -> Sequence[Node]:
        return [] if self._behind(place) else self._rows.message_nodes(self._key, place)

    def nodes_from(self, place: bytes, slot: bytes) -> Sequence[Node]:
        return [] if self._behind(place) else self._rows.nodes_from(self._key, place, slot)

    def last_place(self) -> bytes | None:
        if self._last == _UNKNOWN:
            self._last = self._rows.place_before(self._key)
        return self._last

    def place_before(self, place: bytes) -> bytes | None:
        return self._rows.place_before(self._key, place) if self._key else None

    def last_slot(self, place: bytes) -> bytes | None:
        return None if self._behind(place) else self._rows.slot_before(self._key, place)

    def slot_before(self, place: bytes, slot: bytes) -> bytes | None:
        return None if self._behind(place) else self._rows.slot_before(self._key, place, slot)

    def entry(self, revision: int) -> EntryRow:
        row = self._rows.entry(self.session, revision) if self.session is not None else None
        if row is None:
            raise errors.CorruptData("an entry of the log is missing", revision=revision)
        return row

    def span(self, start: int) -> RevertSpan:
        row = self._rows.span(self._key, start)
        if row is None:
            raise errors.CorruptData("a revert of the log is missing", revision=start)
        return row

    def _behind(self, place: bytes) -> bool:
        """Whether nothing live is at or behind a place, as far as that is known."""
        last = self._last
        return last is None or (last != _UNKNOWN and place > last)


def create(db: sqlite3.Connection, rows: Rows, change: Change) -> SessionRow:
    """Write a new session, inside a transaction. Returns its row with its key."""
    session = _insert_session(db, change.session)
    change.session = session
    write_index(db, rows, change, [row for row in change.entries if len(row.payload) <= SMALL_BYTES])
    return session


def _insert_session(db: sqlite3.Connection, session: SessionRow) -> SessionRow:
    key = db.execute(
        "INSERT INTO session (tenant, id, head, digest, first_us, recorded_us, properties, revert, ahead) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (session.tenant, session.id, *session[3:]),
    ).lastrowid
    assert key is not None
    return session._replace(key=key)


def insert_session(db: sqlite3.Connection, tenant: str, id: str) -> int:
    """Make the row of a session that is still to be filled, and return its key."""
    return _insert_session(db, SessionRow(tenant, id, 0, 0, b"", 0, 0, 0, 0)).key
