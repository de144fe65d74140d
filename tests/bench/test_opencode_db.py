"""The databases that imports are measured with."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from bench.opencode_db import add_session, make_database
from tests.formats.opencode.stores import MORE_TABLES, TABLES


def test_every_message_and_part_has_an_id_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    messages = make_database(path, 300_000, rounds=4)
    db = sqlite3.connect(path)
    assert messages == db.execute("SELECT count(*) FROM message").fetchone()[0]
    sessions = db.execute("SELECT count(*) FROM session").fetchone()[0]
    assert messages == sessions * 4 * 9
    (size,) = db.execute("SELECT sum(length(data)) FROM (SELECT data FROM message UNION ALL SELECT data FROM part)")
    assert size[0] >= 300_000
    db.close()


def test_one_long_session_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    db = sqlite3.connect(path)
    for statement in (*TABLES, *MORE_TABLES):
        db.execute(statement)
    db.close()
    session, messages = add_session(path, 100)
    assert messages == 108
    db = sqlite3.connect(path)
    rows = db.execute("SELECT session_id, data FROM message ORDER BY time_created, id").fetchall()
    assert {id for id, _ in rows} == {session}
    roles = [json.loads(data)["role"] for _, data in rows]
    assert roles == roles[:9] * 12
    db.close()
