"""Reads opencode's SQLite database, of versions 1.2 to 1.18: tables ``session``, ``message``, ``part`` and what hangs
on them. Rows of the tables of the coming version (``session_message``, ``event``) are counted and not read.

One session is read in one transaction, so that opencode may go on writing. Texts stay bytes until they are mapped, so
that a session takes about its own size. A row that is damaged, or that SQLite cannot read, costs itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

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
from turnwire.formats.opencode.rows import Cell, Row, plain, row_of, session_info
from turnwire.formats.report import Report

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


class _Table(NamedTuple):
    """The queries of a table of a session's rows: all, their ids, and one by its id."""

    all: str
    ids: str
    one: str


_MESSAGES: Final = _Table(
    "SELECT * FROM message WHERE session_id = CAST(? AS TEXT) ORDER BY time_created, id",
    "SELECT id FROM message WHERE session_id = CAST(? AS TEXT)",
    "SELECT * FROM message WHERE id = CAST(? AS TEXT)",
)
_PARTS: Final = _Table(
    "SELECT * FROM part WHERE session_id = CAST(? AS TEXT) ORDER BY id",
    "SELECT id FROM part WHERE session_id = CAST(? AS TEXT)",
    "SELECT * FROM part WHERE id = CAST(? AS TEXT)",
)


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
        return len(_wanted(base.db, wanted))
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
            tables = _tables(base.db)
            names = _wanted(base.db, wanted)
        except sqlite3.Error as error:
            report.refused("file", "/session", f"the list of sessions cannot be read: {error}", source=source)
            return
        reader = _Reader(path, base, tables, report)
        reader.note_coming()
        for name in names:
            record = reader.session(name)
            if record is not None:
                yield record
        if wanted == EVERYTHING:
            reader.note_orphans()


def session_ids(paths: Iterable[Path]) -> frozenset[str]:
    """The ids of all sessions of some databases, as far as they can be read."""
    found: set[str] = set()
    for path in paths:
        with suppress(sqlite3.Error, OSError), Database(path) as base:
            found |= {text_of(name) for name in _wanted(base.db, EVERYTHING)}
    return frozenset(found)


def _tables(db: sqlite3.Connection) -> set[str]:
    return {text_of(name) for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _wanted(db: sqlite3.Connection, wanted: Wanted) -> list[bytes]:
    """The ids of the sessions that are wanted, the oldest first."""
    rows = db.execute("SELECT id, time_updated FROM session ORDER BY time_created, id")
    return [
        name
        for name, updated in rows
        if isinstance(name, bytes) and wanted.takes(text_of(name), updated if isinstance(updated, int) else None)
    ]


class _Reader:
    """Reads one session after the other from an open database."""

    def __init__(self, path: Path, base: Database, tables: set[str], report: Report) -> None:
        self._path = path
        self._base = base
        self._tables = tables
        self._report = report
        self._source = str(path)

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
            if not self._base.moved():
                self._report.add(notes)
                return record
        reason = "the file changes while it is read"
        self._report.refused("session", f"/session/{text_of(name)}", reason, source=self._source, id=text_of(name))
        return None

    def note_coming(self) -> None:
        """Say how many rows the tables of the coming version hold."""
        for table, query in _COMING.items():
            with suppress(sqlite3.Error):
                rows = self._number(query, ()) if table in self._tables else 0
                if rows:
                    reason = f"{rows} rows of a table of the coming version, which are not read"
                    self._report.left("table", f"/{table}", reason, source=self._source)

    def note_orphans(self) -> None:
        """Refuse the rows whose session is not there."""
        messages = "SELECT id FROM message WHERE session_id NOT IN (SELECT id FROM session)"
        parts = "SELECT id FROM part WHERE session_id NOT IN (SELECT id FROM session)"
        self._orphans("message", messages, "its session is missing")
        self._orphans("part", parts, "its session is missing")

    def _orphans(self, kind: str, query: str, reason: str) -> None:
        with suppress(sqlite3.Error):
            for (name,) in self._base.db.execute(query):
                path = f"/{kind}/{text_of(name)}"
                self._report.refused(kind, path, reason, source=self._source, id=text_of(name))

    def _session(self, name: bytes, notes: Report) -> SessionRecord | None:
        rows = self._rows("SELECT * FROM session WHERE id = CAST(? AS TEXT)", (name,))
        if not rows:
            return None
        session_id = text_of(name)
        path = f"/session/{session_id}"

        def damaged(column: str, reason: str) -> None:
            notes.repaired("session", path, f"/{column}", reason, source=self._source, id=session_id)

        info, beside = session_info(rows[0], damaged)
        self._add_beside(rows[0], name, beside)
        messages = self._messages(name, notes)
        if not messages and "session_message" in self._tables:
            coming = self._number("SELECT count(*) FROM session_message WHERE session_id = CAST(? AS TEXT)", (name,))
            if coming:
                reason = f"its {coming} messages are in session_message only, a table of the coming version"
                notes.left("session", path, reason, source=self._source, id=session_id)
        record = SessionRecord(info, messages, self._source, path, beside=beside)
        record.parent_part = self._parent_part(rows[0], session_id)
        record.diffs = tree.session_diff(self._path.parent / tree.STORAGE, session_id)
        record.whole = notes.complete
        return record

    def _messages(self, name: bytes, notes: Report) -> list[MessageRecord]:
        parts = self._parts(name, notes)
        messages: list[MessageRecord] = []
        for row in self._each("message", _MESSAGES, name, notes):
            message_id = _text(row, "id")
            path = f"/message/{message_id}"
            members = f"{member('id', message_id)},{member('sessionID', _text(row, 'session_id'))}"
            try:
                info = Node.parse(with_members(_bytes(row, "data"), members))
            except Damage as damage:
                notes.refused("message", path, f"no JSON: {damage}", source=self._source, id=message_id)
                for part in parts.pop(message_id, []):
                    notes.refused("part", part.path, "its message is damaged", source=self._source, id=part.id)
                continue
            messages.append(MessageRecord(info, parts.pop(message_id, []), path))
        for orphans in parts.values():
            for part in orphans:
                notes.refused("part", part.path, "the session has no such message", source=self._source, id=part.id)
        return messages

    def _parts(self, name: bytes, notes: Report) -> dict[str, list[PartRecord]]:
        """The parts of a session by the ids of their messages, in order."""
        found: dict[str, list[PartRecord]] = {}
        owners: dict[tuple[str, str], str] = {}
        for row in self._each("part", _PARTS, name, notes):
            part_id, message_id, session_id = _text(row, "id"), _text(row, "message_id"), _text(row, "session_id")
            owner = owners.get((session_id, message_id))
            if owner is None:
                owner = f"{member('sessionID', session_id)},{member('messageID', message_id)}"
                owners[session_id, message_id] = owner
            members = f"{member('id', part_id)},{owner}"
            record = PartRecord(None, f"/part/{part_id}", part_id, _bytes(row, "data"), members)
            found.setdefault(message_id, []).append(record)
        for records in found.values():
            records.sort(key=lambda one: one.id)
        return found

    def _each(self, kind: str, table: _Table, name: bytes, notes: Report) -> Iterator[Row]:
        """The rows of a session in a table. Where SQLite cannot read on, each row is tried by itself."""
        try:
            yield from self._rows(table.all, (name,))
            return
        except sqlite3.DatabaseError as error:
            trouble = str(error)
        ids: list[bytes] = []
        with suppress(sqlite3.DatabaseError):
            for (found,) in self._base.db.execute(table.ids, (name,)):
                ids.append(found)
        if not ids:
            path = f"/session/{text_of(name)}"
            notes.refused(kind, path, f"its rows cannot be read: {trouble}", source=self._source)
        for one in ids:
            try:
                yield from self._rows(table.one, (one,))
            except sqlite3.DatabaseError as error:
                notes.refused(kind, f"/{kind}/{text_of(one)}", str(error), source=self._source, id=text_of(one))

    def _add_beside(self, session: Row, name: bytes, beside: dict[str, str]) -> None:
        """What hangs on a session and stands in no export: todos, the share's names, the project's."""
        if "todo" in self._tables:
            todos = self._rows("SELECT * FROM todo WHERE session_id = CAST(? AS TEXT) ORDER BY position", (name,))
            left_out = {"session_id", "position", "time_created", "time_updated"}
            listed: list[Json] = [_object(row, [key for key in row if key not in left_out]) for row in todos]
            if listed:
                beside["todo"] = dumps(listed)
        if "session_share" in self._tables:
            # Its secret is a credential, and stays where it is.
            for row in self._rows("SELECT * FROM session_share WHERE session_id = CAST(? AS TEXT)", (name,)):
                beside["share"] = dumps(_object(row, _SHARE))
        if "project" in self._tables:
            for row in self._rows("SELECT * FROM project WHERE id = CAST(? AS TEXT)", (session.get("project_id"),)):
                beside["project"] = dumps(_object(row, _PROJECT))

    def _parent_part(self, session: Row, session_id: str) -> str | None:
        """The task part of the parent session that made this one."""
        if session.get("parent_id") is None:
            return None
        query = (
            "SELECT id, data FROM part WHERE session_id = CAST(? AS TEXT) AND instr(data, CAST(? AS TEXT)) ORDER BY id"
        )
        for part, data in self._base.db.execute(query, (session["parent_id"], json.dumps(session_id))):
            with suppress(Damage):
                if task_session(Node.parse(json_of(data)).value) == session_id:
                    return text_of(part)
        return None

    def _rows(self, query: str, values: Sequence[Cell]) -> list[Row]:
        cursor = self._base.db.execute(query, values)
        return [row_of(cursor, row) for row in cursor]

    def _number(self, query: str, values: Sequence[Cell]) -> int:
        (number,) = self._base.db.execute(query, values).fetchone()
        return int(number)


def _object(row: Row, columns: Sequence[str]) -> Json:
    return {column: plain(row[column]) for column in columns if row.get(column) is not None}


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    return text_of(value) if isinstance(value, bytes) else "" if value is None else str(value)


def _bytes(row: Row, column: str) -> bytes:
    value = row.get(column)
    return value if isinstance(value, bytes) else dumps(plain(value)).encode()
