"""Databases and trees as opencode writes them, made from export documents."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from bench.opencode_db import TABLES

MORE_TABLES = (
    """CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text,
        time_created integer NOT NULL, time_updated integer NOT NULL, sandboxes text NOT NULL)""",
    """CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL, priority text NOT NULL,
        position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL)""",
    """CREATE TABLE session_share (session_id text PRIMARY KEY, id text NOT NULL, secret text NOT NULL,
        url text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL)""",
)


def database(path: Path, *documents: str) -> sqlite3.Connection:
    """A database with the sessions of some exports; the connection is open, and commits by itself."""
    db = sqlite3.connect(path, isolation_level=None)
    for statement in (*TABLES, *MORE_TABLES):
        db.execute(statement)
    for document in documents:
        add(db, document)
    return db


def add(db: sqlite3.Connection, document: str) -> None:
    """Add the session of an export."""
    whole = json.loads(document)
    info = whole["info"]
    time = info.get("time", {})
    row = {
        "id": info["id"],
        "project_id": info.get("projectID", "global"),
        "parent_id": info.get("parentID"),
        "slug": info.get("slug", "slug"),
        "directory": info.get("directory", "/"),
        "title": info.get("title", ""),
        "version": info.get("version", ""),
        "share_url": info.get("share", {}).get("url"),
        "revert": json.dumps(info["revert"]) if "revert" in info else None,
        "time_created": time.get("created", 0),
        "time_updated": time.get("updated", 0),
    }
    insert(db, "session", row)
    for message in whole["messages"]:
        add_message(db, info["id"], message)


def add_message(db: sqlite3.Connection, session_id: str, message: dict[str, Any]) -> None:
    """Add a message with its parts."""
    head = dict(message["info"])
    name, created = head.pop("id"), head.get("time", {}).get("created", 0)
    head.pop("sessionID", None)
    row = {"id": name, "session_id": session_id, "time_created": created, "time_updated": 0, "data": json.dumps(head)}
    insert(db, "message", row)
    for part in message["parts"]:
        own = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
        row = {
            "id": part["id"],
            "message_id": name,
            "session_id": session_id,
            "time_created": created,
            "time_updated": 0,
            "data": json.dumps(own),
        }
        insert(db, "part", row)


def insert(db: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    """Insert a row."""
    names, marks = ",".join(row), ",".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def tree(storage: Path, *documents: str) -> Path:
    """A storage tree with the sessions of some exports."""
    for document in documents:
        whole = json.loads(document)
        info = whole["info"]
        write(storage / "session" / info.get("projectID", "global") / f"{info['id']}.json", info)
        (storage / "message").mkdir(exist_ok=True)
        for message in whole["messages"]:
            head = message["info"]
            write(storage / "message" / info["id"] / f"{head['id']}.json", head)
            for part in message["parts"]:
                write(storage / "part" / head["id"] / f"{part['id']}.json", part)
    return storage


def write(path: Path, value: Any) -> None:
    """Write JSON as opencode does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: time of change and content by path."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}
