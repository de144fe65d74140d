"""Databases of opencode: one recorded session over and over, with ids of its own each time."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

#: A session of three turns, written by opencode itself.
SESSION = Path(__file__).parents[1] / "tests" / "data" / "opencode" / "three-turns.json"

_ID = re.compile(r'"((?:ses|msg|prt)_[0-9A-Za-z]+)"')
TABLES = (
    """CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text,
        slug text NOT NULL, directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL,
        share_url text, summary_additions integer, summary_deletions integer, summary_files integer,
        summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
        tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
        tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL, revert text,
        permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
        time_compacting integer, time_archived integer)""",
    """CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
        time_updated integer NOT NULL, data text NOT NULL)""",
    """CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)""",
    "CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id)",
    "CREATE INDEX part_message_id_id_idx ON part (message_id, id)",
    "CREATE INDEX part_session_idx ON part (session_id)",
)

_LATER_MS = 3_600_000  # from one repetition of a session's messages to the next


def make_database(path: Path, size: int, *, rounds: int = 12) -> int:
    """Write a database of about ``size`` bytes: the session over and over, each time with ids of its own.

    The messages of the session are repeated ``rounds`` times within one. Returns how many messages it has.
    """
    text = SESSION.read_text()
    db = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", *TABLES, "BEGIN"):
        db.execute(statement)
    messages = number = written = 0
    while written < size:
        found, size_of = _insert(db, text, number, rounds)
        messages += found
        written += size_of
        number += 1
    db.execute("COMMIT")
    db.close()
    return messages


def add_session(path: Path, least: int) -> tuple[str, int]:
    """Write one session of at least so many messages into a database that opencode has made.

    Returns the session's id, and how many messages it has.
    """
    text = SESSION.read_text()
    document = json.loads(text)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN")
    info = document["info"]
    project = {"id": info["projectID"], "worktree": info["directory"], "sandboxes": "[]", "time_created": 0}
    _insert_row(db, "INSERT OR IGNORE", "project", project | {"time_updated": 0})
    messages, _ = _insert(db, text, 0, -(-least // len(document["messages"])))
    db.execute("COMMIT")
    db.close()
    return _renamed(text, 0)["info"]["id"], messages


def _insert(db: sqlite3.Connection, text: str, number: int, rounds: int) -> tuple[int, int]:
    """One session; returns how many messages it has, and their bytes."""
    info = _renamed(text, number)["info"]
    _insert_session(db, info)
    messages = written = 0
    for again in range(rounds):
        for message in _renamed(text, number, again)["messages"]:
            times = {name: time + again * _LATER_MS for name, time in message["info"]["time"].items()}
            head = message["info"] | {"sessionID": info["id"], "time": times}
            written += _insert_message(db, info["id"], head, message["parts"])
            messages += 1
    return messages, written


def _renamed(text: str, number: int, again: int = 0) -> Any:
    """The session with other ids of the same length, in the same order."""
    mark = f"{number:05d}{again:04d}"
    return json.loads(_ID.sub(lambda found: f'"{found[1][: -len(mark)]}{mark}"', text))


def _insert_session(db: sqlite3.Connection, info: dict[str, Any]) -> None:
    columns = {
        "id": info["id"],
        "project_id": info["projectID"],
        "slug": info["slug"],
        "directory": info["directory"],
        "title": info["title"],
        "version": info["version"],
        "permission": json.dumps(info.get("permission")),
        "time_created": info["time"]["created"],
        "time_updated": info["time"]["updated"],
    }
    _insert_row(db, "INSERT", "session", columns)


def _insert_row(db: sqlite3.Connection, how: str, table: str, columns: dict[str, Any]) -> None:
    names, marks = ",".join(columns), ",".join("?" * len(columns))
    db.execute(f"{how} INTO {table} ({names}) VALUES ({marks})", tuple(columns.values()))


def _insert_message(db: sqlite3.Connection, session_id: str, head: dict[str, Any], parts: list[dict[str, Any]]) -> int:
    name, created = head.pop("id"), head["time"]["created"]
    head.pop("sessionID")
    data = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (name, session_id, created, created, data))
    size = len(data)
    for part in parts:
        own = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
        data = json.dumps(own, ensure_ascii=False, separators=(",", ":"))
        db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", (part["id"], name, session_id, created, created, data))
        size += len(data)
    return size
