"""The floor of an append in Python: what no store of these messages can leave out, and nothing else.

A request is copied, a time filled in, the schema's rules are checked, each message is serialized and joins a chain of
digests, its row is written and is durable, and a reply is built. There are no sessions, no references, no index, no
retries and no other writers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from bench.raw import connect
from turnwire import rules, v1
from turnwire.store.sqlite_file import WAL_PAGES

_FIELD = v1.Entry.ASSISTANT_FIELD_NUMBER


class Floor:
    """A file of messages that can be appended to and not be read."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path, WAL_PAGES)
        self._db.execute(
            "CREATE TABLE entry (pos INTEGER PRIMARY KEY, recorded INTEGER NOT NULL, field INTEGER NOT NULL, "
            "digest BLOB, payload BLOB NOT NULL)"
        )
        self._revision = 0
        self._digest = bytes(32)

    async def append(self, entries: Sequence[v1.EntryInput]) -> v1.AppendResponse:
        """Append assistant messages; they are durable when this returns."""
        request = v1.AppendRequest(session_id="s")
        for entry in entries:
            request.entries.add().CopyFrom(entry)
        now_us = time.time_ns() // 1000
        rows: list[tuple[int, int, int, bytes, bytes]] = []
        response = v1.AppendResponse()
        for entry in request.entries:
            message = entry.assistant.assistant
            message.time.created.FromMicroseconds(now_us)
            rules.require(entry.assistant, "assistant", stored=True)
            payload = entry.assistant.SerializeToString(deterministic=True)
            self._revision += 1
            self._digest = sha256(self._digest + sha256(payload).digest()).digest()
            rows.append((self._revision, now_us, _FIELD, self._digest, payload))
            result = response.results.add(revision=self._revision, id=message.id)
            result.part_ids.extend(part.id for part in message.parts)
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", rows)
        self._db.execute("COMMIT")
        response.head.revision, response.head.digest = self._revision, self._digest
        response.head.recorded.FromMicroseconds(now_us)
        return response

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
