"""A file with damaged entries: what is damaged is told, everything else can be read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.builders import append, get_session, opened, read, refused, replay, text, user
from turnwire import errors, v1
from turnwire.engine import Caller, Engine
from turnwire.store.sqlite import SqliteStore

CALLER = Caller()


async def damaged(path: Path, *statements: str) -> Engine:
    """Two sessions of six entries, the first of which is then damaged behind the store's back."""
    engine = Engine(SqliteStore.open(path))
    for id in ("bad", "good"):
        await opened(engine, id, *(user(f"u{at}", text(f"p{at}", f"text {at}")) for at in range(4)))
    await engine.close()
    db = sqlite3.connect(path)
    ((key,),) = db.execute("SELECT key FROM session WHERE id = 'bad'")
    for statement in statements:
        db.execute(statement.replace(":at", str(key << 32)))
    db.commit()
    db.close()
    return Engine(SqliteStore.open(path))


async def verify(engine: Engine, id: str) -> v1.VerifySessionResponse:
    return await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id=id))


async def check_good(engine: Engine) -> None:
    """The other session is whole and can be written."""
    assert (await verify(engine, "good")).sound
    assert (await replay(engine, "good")).ids == ["u0", "u1", "u2", "u3"]
    await append(engine, "good", user("more"))
    listed = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
    assert sorted(session.id for session in listed.sessions) == ["bad", "good"]


async def test_a_flipped_byte(tmp_path: Path) -> None:
    flip = "UPDATE entry SET payload = CAST(replace(payload, 'text 2', 'text X') AS BLOB) WHERE pos = :at + 5"
    engine = await damaged(tmp_path / "t.db", flip)
    found = await verify(engine, "bad")
    assert not found.sound
    assert [finding.revision for finding in found.findings] == [6]
    assert found.entries == 6
    await check_good(engine)
    await engine.close()


@pytest.mark.parametrize("revision", [3, 6])
async def test_an_entry_is_missing(tmp_path: Path, revision: int) -> None:
    engine = await damaged(tmp_path / "t.db", f"DELETE FROM entry WHERE pos = :at + {revision}")
    found = await verify(engine, "bad")
    assert not found.sound
    assert revision in [finding.revision for finding in found.findings]
    with refused(errors.CorruptData, revision=revision):
        await read(engine, "bad")
    await check_good(engine)
    await engine.close()


async def test_a_damaged_session_can_be_deleted(tmp_path: Path) -> None:
    engine = await damaged(tmp_path / "t.db", "DELETE FROM entry WHERE pos BETWEEN :at + 2 AND :at + 4")
    await engine.delete_session(CALLER, v1.DeleteSessionRequest(session_id="bad"))
    with refused(errors.SessionDeleted):
        await verify(engine, "bad")
    assert (await verify(engine, "good")).sound
    await engine.close()


@pytest.mark.parametrize("damage", ["x'ff'", "x''", "x'0a05'"])
async def test_torn_properties_cost_the_list_only_themselves(tmp_path: Path, damage: str) -> None:
    engine = await damaged(tmp_path / "t.db", f"UPDATE entry SET payload = {damage} WHERE pos = :at + 1")
    await check_good(engine)
    if damage != "x''":  # which is a message without fields
        with refused(errors.CorruptData, session_id="bad"):
            await get_session(engine, "bad")
    await engine.close()
