"""One session as a writer sees it inside the transaction, and how a change is written.

Most appends go to the end of a session, where nothing is live yet, and bring new ids, which sort behind all others if
they were made here; what lies behind the last live place and the last id is known to be empty without asking.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from turnwire import errors, ids, v1
from turnwire.log import places, whole
from turnwire.store.base import (
    CALL,
    HEADER_SLOT,
    MESSAGE,
    PART,
    Change,
    EntryRow,
    Name,
    Node,
    Put,
    Reply,
    Request,
    RevertSpan,
    SessionRow,
)
from turnwire.store.sqlite_pack import made_digits, made_here, pack_id, pack_ids, pack_put, pack_run, unpack_made
from turnwire.store.sqlite_rows import LISTED, Rows, base
from turnwire.store.sqlite_schema import DIGEST_EVERY

_UNKNOWN = b""  # no place is empty
_NAMES = 256
_PREFIX = len(ids.MESSAGE)  # which is as long as that of parts
_FORM = itemgetter(1, 2)


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
        return self._rows.reply(self._key, method, request_id) if self._key else None

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

    def fresh(self, message_id: str, part_ids: Sequence[str]) -> bool:
        if made_here(message_id, part_ids):
            least = min(message_id[_PREFIX:], min(part_ids)[_PREFIX:] if part_ids else "~")
            if least > self._last_made():
                return True
        return self.name(MESSAGE, message_id) is None and all(self.name(PART, id) is None for id in part_ids)

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
    insert_entries(db, session, change.entries)
    write_index(db, rows, change)
    if change.request is not None:
        keep_reply(db, session.key, change.request)
    return session


def write_index(db: sqlite3.Connection, rows: Rows, change: Change) -> None:
    """Bring the session's row and the index up to a change, inside a transaction. Its entries are written already."""
    session = change.session
    key = session.key
    db.execute(
        "UPDATE session SET head = ?, digest = ?, recorded_us = ?, properties = ?, revert = ?, ahead = 0 WHERE key = ?",
        (session.head, session.digest, session.recorded_us, session.properties, session.revert, key),
    )
    if change.ended or change.live:
        _apply_nodes(db, rows, key, change)
    names: list[tuple[Any, ...]] = []
    for space, id, born, place, slot in change.names:
        names.append((key, *pack_id(space, id), space, born, place, slot))
    if change.puts:
        _write_nodes(db, [row for put in change.puts for row in _nodes_of(key, put)])
        names += _names_of(key, change.puts)
    if names:
        names.sort(key=_FORM)  # SQLite is faster where it goes on behind the last row
        db.executemany("REPLACE INTO name VALUES (?, ?, ?, ?, ?, ?, ?)", names)
        listed = [(key, name.space, name.born, name.id) for name in change.names if name.space in LISTED]
        if listed:
            db.executemany("REPLACE INTO listed VALUES (?, ?, ?, ?)", listed)
    if change.spans:
        db.executemany("REPLACE INTO span VALUES (?, ?, ?, ?, ?)", [(key, *span) for span in change.spans])
    if change.properties is not None:
        set_properties(db, key, change.properties)


def _apply_nodes(db: sqlite3.Connection, rows: Rows, key: int, change: Change) -> None:
    touched: dict[bytes, set[bytes]] = {}
    for place, slot in change.live:
        touched.setdefault(place, set()).add(slot)
    for node in change.ended:
        touched.setdefault(node.place, set()).add(node.slot)
    runs: dict[bytes, bytes] = {}
    own = dict(change.live)  # what gets a row of its own
    for place, slots in touched.items():
        header = change.live.get((place, HEADER_SLOT))
        if header is None or header.born != header.revision or change.ended:
            _unpack(db, rows, key, place, slots)
        if header is not None and header.born == header.revision:
            parts = [change.live[place, slot] for slot in sorted(slots) if slot and (place, slot) in change.live]
            run, count = pack_run(header, parts)
            if run is not None:
                runs[place] = run
                for part in parts[:count]:
                    del own[place, part.slot]
    if change.ended:
        gone = [(key, node.place, node.slot) for node in change.ended if (node.place, node.slot) not in own]
        db.executemany("DELETE FROM node WHERE session = ? AND place = ? AND slot = ?", gone)
        db.executemany(
            "INSERT INTO past VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(key, node.ended, *_node(node)) for node in change.ended],
        )
    _write_nodes(db, [(key, *_node(node), None if slot else runs.get(place)) for (place, slot), node in own.items()])


def _nodes_of(key: int, put: Put) -> list[tuple[Any, ...]]:
    """The rows of the nodes of a message that is as it was put."""
    _, place, kind, revision, offset, length, sealed, turn, parts = put
    run, count = pack_put(put)
    back = revision - turn if turn else None
    found: list[tuple[Any, ...]] = [
        (key, place, HEADER_SLOT, kind << 1 | sealed, revision, 0, offset, length, back, 0, 0, run)
    ]
    if count < len(parts):
        found += [(key, *_node(part), None) for part in whole.nodes(put)[1 + count :]]
    return found


def _names_of(key: int, puts: Sequence[Put]) -> list[tuple[Any, ...]]:
    """The rows of the names of messages that are as they were put."""
    packed = pack_ids(MESSAGE, [put.id for put in puts])
    found: list[tuple[Any, ...]] = [
        (key, form, id, MESSAGE, put.revision, put.place, HEADER_SLOT)
        for (form, id), put in zip(packed, puts, strict=True)
    ]
    packed = pack_ids(PART, [part.id for put in puts for part in put.parts])
    where = [(put.revision, put.place, slot) for put in puts for slot in places.firsts(len(put.parts))]
    found += [(key, form, id, PART, *at) for (form, id), at in zip(packed, where, strict=True)]
    for put in puts:
        for name in whole.calls(put):
            found.append((key, *pack_id(CALL, name.id), CALL, *name[2:]))
    return found


def _unpack(db: sqlite3.Connection, rows: Rows, key: int, place: bytes, touched: set[bytes]) -> None:
    """Give the parts that are packed behind a header rows of their own, if one of them or the header changes."""
    run = rows.run(key, place)
    if run and (HEADER_SLOT in touched or any(part.slot in touched for part in run)):
        db.execute("UPDATE node SET run = NULL WHERE session = ? AND place = ? AND slot = x''", (key, place))
        _write_nodes(db, [(key, *_node(part), None) for part in run])


def _write_nodes(db: sqlite3.Connection, written: list[tuple[Any, ...]]) -> None:
    db.executemany("REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", written)


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


def insert_entries(db: sqlite3.Connection, session: SessionRow, entries: Sequence[EntryRow]) -> None:
    """Write entries that have their digests."""
    at, first_us = base(session.key), session.first_us
    db.executemany(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                at + row.revision,
                row.recorded_us - first_us,
                row.field << 1 | row.ignorable,
                row.revision - row.previous if row.previous else 0,
                None if row.revision % DIGEST_EVERY else row.digest,
                row.payload,
            )
            for row in entries
        ],
    )


def set_properties(db: sqlite3.Connection, key: int, properties: v1.SessionProperties) -> None:
    """Keep what sessions are filtered by."""
    db.execute(
        "REPLACE INTO detail VALUES (?, ?, ?, ?)",
        (
            key,
            properties.directory if properties.HasField("directory") else None,
            properties.parent.session_id if properties.HasField("parent") else None,
            properties.HasField("archived"),
        ),
    )
    db.execute("DELETE FROM label WHERE session = ?", (key,))
    db.executemany("INSERT INTO label VALUES (?, ?, ?)", [(key, *label) for label in properties.labels.items()])


def keep_reply(db: sqlite3.Connection, key: int, request: Request) -> None:
    """Keep the reply to a request id while the session lives."""
    db.execute("REPLACE INTO reply VALUES (?, ?, ?, ?, ?)", (key, request.id, request.method, *request.reply))


def _node(node: Node) -> tuple[bytes, bytes, int, int, int, int, int, int | None, int, int]:
    """The columns of a node from its place on."""
    place, slot, kind, revision, born, _, offset, length, sealed, turn, delta, grown = node
    return (
        place,
        slot,
        kind << 1 | sealed,
        revision,
        revision - born,
        offset,
        length,
        revision - turn if turn else None,
        delta - revision if delta else 0,
        grown,
    )
