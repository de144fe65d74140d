"""Reads opencode's SQLite database, of versions 1.2 to 1.18: tables ``session``, ``message``, ``part`` and what hangs
on them. Rows of the tables of the coming version (``session_message``, ``event``) are counted and not read.

One session is read in one transaction, so that opencode may go on writing. Texts stay bytes until they are mapped, so
that a session takes about its own size. A row that is damaged, or that SQLite cannot read, costs itself; see
`turnwire.formats.opencode.tables`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from turnwire import faults
from turnwire.formats.base import EVERYTHING, Wanted
from turnwire.formats.jsonlit import Damage, Json, Node, dumps
from turnwire.formats.opencode import tree
from turnwire.formats.opencode.links import task_session
from turnwire.formats.opencode.opened import MAGIC, Database
from turnwire.formats.opencode.packed import head
from turnwire.formats.opencode.records import (
    MessageRecord,
    PartRecord,
    SessionRecord,
    json_of,
    member,
    text_of,
    with_members,
)
from turnwire.formats.opencode.rows import Cell, Row, plain, session_info
from turnwire.formats.opencode.shape_parts import DIFFS
from turnwire.formats.opencode.tables import HIDDEN, Table, Tables, queries
from turnwire.formats.report import Outcome, Report
from turnwire.formats.undecoded import decode, shown

NAME: Final = "database"

_TABLES: Final = frozenset({"session", "message", "part"})
#: Tables of the coming version, whose rows the export does not hold either.
_COMING: Final = {
    "session_message": "SELECT count(*) FROM session_message",
    "session_input": "SELECT count(*) FROM session_input",
    "session_context_epoch": "SELECT count(*) FROM session_context_epoch",
    "event": "SELECT count(*) FROM event",
}
_PROJECT: Final = ("id", "worktree", "vcs", "name")
_SHARE: Final = ("id", "url")
_TRIES: Final = 5


_SESSIONS: Final = queries("session", "id", "time_created", "id", witnesses=("id",))
_MESSAGES: Final = queries("message", "session_id", "time_created", "id", witnesses=("session_id", "id"))
_PARTS: Final = queries("part", "session_id", "id", witnesses=("session_id", "id", "message_id"))
_TODOS: Final = queries("todo", "session_id", "position", witnesses=("session_id",))
_SHARES: Final = queries("session_share", "session_id", "session_id", witnesses=("session_id",))
_PROJECTS: Final = queries("project", "id", "id", witnesses=("id",))


def detect(path: Path) -> bool:
    """Whether a path is a database, plain or gzipped, with opencode's tables."""
    if not head(path, len(MAGIC)).startswith(MAGIC):
        return False
    try:
        with Database(path) as base:
            return _tables(base.db) >= _TABLES
    except (sqlite3.Error, OSError):
        return False


def count(path: Path, wanted: Wanted = EVERYTHING) -> int:
    """How many sessions there are to be read."""
    with suppress(sqlite3.Error, OSError), Database(path) as base:
        return len(_wanted(base.db, Tables(base), wanted).names)
    return 0


def read(path: Path, report: Report, wanted: Wanted = EVERYTHING) -> Iterator[SessionRecord]:
    """The sessions of a database. Raises OSError if it cannot be opened."""
    source = str(path)
    try:
        base = Database(path)
    except sqlite3.Error as error:
        report.refused("file", "", f"the database cannot be opened: {error}", source=source)
        return
    with base:
        try:
            present = _tables(base.db)
            tables = Tables(base)
            found = _wanted(base.db, tables, wanted)
        except sqlite3.Error as error:
            report.refused("file", "/session", f"the list of sessions cannot be read: {error}", source=source)
            return
        reader = _Reader(path, base, present, tables, found.lost, report)
        reader.note_coming()
        for name in found.names:
            record = reader.session(name)
            if record is not None:
                yield record
        reader.note_gaps()
        if wanted == EVERYTHING and not found.lost:
            reader.note_orphans()


def session_ids(paths: Iterable[Path]) -> frozenset[str]:
    """The ids of all sessions of some databases, as far as they can be read."""
    found: set[str] = set()
    for path in paths:
        with suppress(sqlite3.Error, OSError), Database(path) as base:
            found |= {text_of(name) for name in _wanted(base.db, Tables(base), EVERYTHING).names}
    return frozenset(found)


def _tables(db: sqlite3.Connection) -> set[str]:
    return {text_of(name) for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


class _Names(NamedTuple):
    """The ids of sessions, the oldest first, and those among them whose rows cannot be read."""

    names: list[bytes]
    lost: frozenset[bytes]


def _wanted(db: sqlite3.Connection, tables: Tables, wanted: Wanted) -> _Names:
    """The sessions that are wanted. Where the table is damaged, messages and indexes tell which there are."""
    lost: set[bytes] = set()
    try:
        rows: list[tuple[Cell, Cell]] = db.execute(
            "SELECT id, time_updated FROM session ORDER BY time_created, id"
        ).fetchall()
    except sqlite3.DatabaseError:
        known = tables.keys(_SESSIONS)
        read = [row for key in sorted(known) for row in tables.of(_SESSIONS, key, _quiet).rows]
        read.sort(key=lambda row: (_whole(row.get("time_created")), _text(row, "id")))
        rows = [(row["id"], row.get("time_updated")) for row in read]
        lost = tables.keys(_MESSAGES) | tables.keys(_PARTS)
    # The index by id may list rows that the table hides, or that cannot be read.
    with suppress(sqlite3.DatabaseError):
        lost |= {name for (name,) in db.execute("SELECT id FROM session WHERE id >= ''") if isinstance(name, bytes)}
    lost -= {name for name, _ in rows if isinstance(name, bytes)}
    rows += ((name, None) for name in sorted(lost))
    names = [
        name
        for name, updated in rows
        if isinstance(name, bytes) and wanted.takes(text_of(name), updated if isinstance(updated, int) else None)
    ]
    return _Names(names, frozenset(lost))


def _quiet(name: str, reason: str) -> None:
    """For a row whose loss is told when its session is read."""


class _Reader:
    """Reads one session after the other from an open database."""

    def __init__(
        self, path: Path, base: Database, present: set[str], tables: Tables, lost: frozenset[bytes], report: Report
    ) -> None:
        self._path = path
        self._base = base
        self._present = present
        self._tables = tables
        self._lost = lost
        self._report = report
        self._source = str(path)
        #: Tables in which rows may be of a session that they are not known to be of.
        self._incomplete: dict[str, Table] = {}
        self._unsure = False  # whether one of them counts for the session that is being read

    def session(self, name: bytes) -> SessionRecord | None:
        """One session as it was at one moment; None if it cannot be read, or is gone by now."""
        for _ in range(_TRIES):
            # What a try that is of no use has noted must not stay.
            notes = Report()
            try:
                self._base.db.execute("BEGIN")
                try:
                    record = self._session(name, notes)
                finally:
                    with suppress(sqlite3.Error):
                        self._base.db.execute("COMMIT")
            except sqlite3.Error as error:
                if self._base.moved():
                    continue
                self._report.refused(
                    "session", f"/session/{text_of(name)}", str(error), source=self._source, id=text_of(name)
                )
                return None
            except Exception as error:
                if self._base.moved():  # it may have been read half
                    continue
                reason = faults.reason(error)
                self._report.refused(
                    "session", f"/session/{text_of(name)}", reason, source=self._source, id=text_of(name)
                )
                return None
            if not self._base.moved():
                self._report.add(notes)
                return record
        reason = "the file changes while it is read"
        self._report.refused("session", f"/session/{text_of(name)}", reason, source=self._source, id=text_of(name))
        return None

    def note_coming(self) -> None:
        """Say how many rows the tables of the coming version hold."""
        for name, query in _COMING.items():
            with suppress(sqlite3.Error):
                rows = self._number(query, ()) if name in self._present else 0
                if rows:
                    reason = f"{rows} rows of a table of the coming version, which are not read"
                    self._report.left("table", f"/{name}", reason, source=self._source)

    def note_gaps(self) -> None:
        """Refuse what cannot be read and of which nothing tells whose it is."""
        for name, damaged in self._incomplete.items():
            for gap in self._tables.gaps(damaged):
                self._report.refused("table", f"/{name}", gap, source=self._source)
            kind = name if name in _TABLES else "table"
            for each in self._tables.unowned(damaged):
                self._report.refused(kind, f"/{name}/{each}", HIDDEN, source=self._source, id=each)

    def note_orphans(self) -> None:
        """Refuse the rows whose session is not there."""
        known = self._tables.keys(_SESSIONS)
        for table in (_MESSAGES, _PARTS):
            for key in sorted(self._tables.keys(table) - known):
                for row in self._tables.of(table, key, _quiet).rows:
                    name = _text(row, "id")
                    path = f"/{table.name}/{name}"
                    self._report.refused(table.name, path, "its session is missing", source=self._source, id=name)

    def _session(self, name: bytes, notes: Report) -> SessionRecord | None:
        session_id = text_of(name)
        path = f"/session/{session_id}"
        self._unsure = False
        rows = self._rows(_SESSIONS, name, "session", notes)
        if not rows and name not in self._lost:
            return None
        if rows:
            session = rows[0]

            def damaged(column: str, reason: str) -> None:
                notes.repaired("session", path, f"/{column}", reason, source=self._source, id=session_id)

            info, beside = session_info(session, damaged)
        else:
            session, info, beside = {}, Node.parse(f"{{{member('id', session_id)}}}"), {}
            if notes.complete:
                notes.refused("session", path, "its row cannot be read", source=self._source, id=session_id)
        record = SessionRecord(info, [], self._source, path, beside=beside, headless=not rows)
        self._add_beside(session, name, record, notes)
        record.messages = self._messages(name, notes)
        if not record.messages and "session_message" in self._present:
            coming = self._number("SELECT count(*) FROM session_message WHERE session_id = CAST(? AS TEXT)", (name,))
            if coming:
                reason = f"its {coming} messages are in session_message only, a table of the coming version"
                notes.remark("session", path, reason, source=self._source, id=session_id)
        record.parent_part = self._parent_part(session, session_id)
        self._add_diffs(record, session_id, notes)
        record.whole = notes.complete and not self._unsure
        return record

    def _rows(self, table: Table, key: Cell, kind: str, notes: Report) -> list[Row]:
        """The rows of a key; those that cannot be read are refused."""

        def lost(name: str, reason: str) -> None:
            named = "" if name.startswith("rowid ") else name
            notes.refused(kind, f"/{table.name}/{name}", reason, source=self._source, id=named)

        found = self._tables.of(table, key, lost)
        if not found.complete:
            self._incomplete[table.name] = table
            self._unsure = True
        return found.rows

    def _messages(self, name: bytes, notes: Report) -> list[MessageRecord]:
        parts = self._parts(name, notes)
        messages: list[MessageRecord] = []
        for row in self._rows(_MESSAGES, name, "message", notes):
            key, message_id = _key(row, "id"), _text(row, "id")
            path = f"/message/{message_id}"
            members = f"{member('id', key)},{member('sessionID', _key(row, 'session_id'))}"
            try:
                info = Node.parse(with_members(_bytes(row, "data"), members))
            except Damage as damage:
                notes.refused("message", path, f"no JSON: {damage}", source=self._source, id=message_id)
                for part in parts.pop(key, []):
                    notes.refused("part", part.path, "its message is damaged", source=self._source, id=part.id)
                continue
            messages.append(MessageRecord(info, parts.pop(key, []), path))
        for orphans in parts.values():
            for part in orphans:
                notes.refused("part", part.path, "the session has no such message", source=self._source, id=part.id)
        return messages

    def _parts(self, name: bytes, notes: Report) -> dict[str, list[PartRecord]]:
        """The parts of a session by the ids of their messages, in order."""
        found: dict[str, list[PartRecord]] = {}
        owners: dict[tuple[str, str], str] = {}
        for row in self._rows(_PARTS, name, "part", notes):
            part_id, message_key, session_key = _text(row, "id"), _key(row, "message_id"), _key(row, "session_id")
            owner = owners.get((session_key, message_key))
            if owner is None:
                owner = f"{member('sessionID', session_key)},{member('messageID', message_key)}"
                owners[session_key, message_key] = owner
            members = f"{member('id', _key(row, 'id'))},{owner}"
            record = PartRecord(None, f"/part/{part_id}", part_id, _bytes(row, "data"), members)
            found.setdefault(message_key, []).append(record)
        for records in found.values():
            records.sort(key=lambda one: one.id)
        return found

    def _add_beside(self, session: Row, name: bytes, record: SessionRecord, notes: Report) -> None:
        """What hangs on a session and stands in no export: todos, the share's names, the project's."""
        left_out = {"session_id", "position", "time_created", "time_updated"}
        todos = self._rows_beside(_TODOS, name, "todo", record, notes)
        listed: list[Json] = [_object(row, [key for key in row if key not in left_out]) for row in todos]
        if listed:
            record.beside["todo"] = dumps(listed)
        # Its secret is a credential, and stays where it is.
        for row in self._rows_beside(_SHARES, name, "share", record, notes):
            record.beside["share"] = dumps(_object(row, _SHARE))
        for row in self._rows_beside(_PROJECTS, session.get("project_id"), "project", record, notes):
            record.beside["project"] = dumps(_object(row, _PROJECT))

    def _rows_beside(self, table: Table, key: Cell, member: str, record: SessionRecord, notes: Report) -> list[Row]:
        """The rows beside a session. What is lost of them is noted, and that its member is not known whole."""
        if table.name not in self._present:
            return []
        state = notes.total(Outcome.REFUSED), self._unsure
        rows = self._rows(table, key, "table", notes)
        if (notes.total(Outcome.REFUSED), self._unsure) != state or record.headless:
            record.unread += (member,)
        return rows

    def _add_diffs(self, record: SessionRecord, session_id: str, notes: Report) -> None:
        storage = self._path.parent / tree.STORAGE
        record.diffs, complete = tree.session_diff(storage, session_id, notes, self._source)
        if not complete:
            record.unread += (DIFFS,)

    def _parent_part(self, session: Row, session_id: str) -> str | None:
        """The task part of the parent session that made this one."""
        parent = session.get("parent_id")
        if parent is None:
            return None
        query = (
            "SELECT id, data FROM part WHERE session_id = CAST(? AS TEXT) AND instr(data, CAST(? AS TEXT)) ORDER BY id"
        )
        try:
            found: list[tuple[Cell, Cell]] = self._base.db.execute(query, (parent, json.dumps(session_id))).fetchall()
        except sqlite3.DatabaseError:
            found = [(row["id"], row["data"]) for row in self._tables.of(_PARTS, parent, _quiet).rows]
        for part, data in found:
            with suppress(Damage):
                if not isinstance(data, bytes) or not isinstance(part, bytes):
                    continue
                if task_session(Node.parse(json_of(data)).value) == session_id:
                    return text_of(part)
        return None

    def _number(self, query: str, values: tuple[Cell, ...]) -> int:
        (number,) = self._base.db.execute(query, values).fetchone()
        return int(number)


def _object(row: Row, columns: Sequence[str]) -> Json:
    return {column: plain(row[column]) for column in columns if row.get(column) is not None}


def _text(row: Row, column: str) -> str:
    """A column for people, and as an id."""
    return shown(_key(row, column))


def _key(row: Row, column: str) -> str:
    """A column as what is to be equal to what refers to it."""
    value = row.get(column)
    return decode(value) if isinstance(value, bytes) else "" if value is None else str(value)


def _bytes(row: Row, column: str) -> bytes:
    value = row.get(column)
    return value if isinstance(value, bytes) else dumps(plain(value)).encode()


def _whole(value: Cell) -> int:
    return value if isinstance(value, int) else 0
