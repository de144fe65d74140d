"""Importing a database of opencode: messages a second into the embedded store, and the memory that it takes."""

from __future__ import annotations

import json
import re
import resource
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Imported:
    """One import: messages, the seconds it took, those of processors in both processes together (a machine that does
    other things too gives them late), bytes of the source, and the most resident memory in bytes."""

    messages: int
    seconds: float
    processor_seconds: float
    source_bytes: int
    resident: int

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds


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
        renamed = _renamed(text, number)
        info = renamed["info"]
        _insert_session(db, info)
        for again in range(rounds):
            for message in _renamed(text, number, again)["messages"] if again else renamed["messages"]:
                head = message["info"] | {"sessionID": info["id"]}
                written += _insert_message(db, info["id"], head, message["parts"])
                messages += 1
        number += 1
    db.execute("COMMIT")
    db.close()
    return messages


def _renamed(text: str, number: int, again: int = 0) -> Any:
    """The session with other ids of the same length, in the same order."""
    mark = f"{number:06d}{again:03d}"
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
    names = ",".join(columns)
    db.execute(f"INSERT INTO session ({names}) VALUES ({','.join('?' * len(columns))})", tuple(columns.values()))


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


async def imports(folder: Path, size: int = 64_000_000) -> Imported:
    """Import a database of about ``size`` bytes, in a process of its own whose memory counts from nothing."""
    source = folder / "opencode.db"
    messages = make_database(source, size)
    code = "import asyncio, sys; from bench import imports; asyncio.run(imports.run(*sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(source), str(folder / "imported.db")]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    seconds, processor, resident, found = ran.stdout.split()
    assert int(found) == messages, (found, messages)
    return Imported(messages, float(seconds), float(processor), source.stat().st_size, int(resident))


async def run(source: str, target: str) -> None:
    """Import one database, and print seconds, processor seconds, resident bytes and how many messages came."""
    import turnwire
    from turnwire.formats import Outcome, Report
    from turnwire.formats.opencode import OPENCODE
    from turnwire.formats.pipeline import bring

    report = Report()
    begun = time.perf_counter()
    async with turnwire.open(target) as store:
        async for _ in bring(store, OPENCODE, OPENCODE.sources(Path(source), report), report):
            pass
    seconds = time.perf_counter() - begun
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(one.ru_utime + one.ru_stime for one in used)
    # The larger of the two processes counts twice, so that it is no less than what both took at any time.
    resident = 2 * max(one.ru_maxrss for one in used) * 1024
    print(seconds, processor, resident, report.total(Outcome.IMPORTED, "message"))
