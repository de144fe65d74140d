"""The file of a SQLite store: what it is made like, what it refuses, and what it does about damage."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tests.builders import CALLER, append, assistant, delete, fork, opened, put, read, refused, replay, text, user
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.store.sqlite import SqliteStore
from turnwire.store.sqlite_schema import APPLICATION_ID, VERSION


def files(directory: Path) -> dict[str, str]:
    """The files of a directory with their contents."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


async def made(path: Path, *entries: v1.EntryInput) -> None:
    engine = Engine(SqliteStore.open(path))
    await opened(engine, "s", *entries)
    await engine.close()


async def test_settings_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    store = SqliteStore.open(path)
    await opened(Engine(store))
    for name in ("t.db", "t.db-wal", "t.db-shm"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    with sqlite3.connect(path) as db:
        settings = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "page_size", "application_id", "user_version")
        }
    db.close()
    assert settings == {
        "journal_mode": "wal",
        "page_size": 16384,
        "application_id": APPLICATION_ID,
        "user_version": VERSION,
    }
    await store.close()
    assert int.from_bytes(b"TWIR", "big") == APPLICATION_ID
    # The last to close puts everything into the one file.
    assert [each.name for each in tmp_path.iterdir()] == ["t.db"]


async def test_the_wal_is_written_anew_before_it_has_grown_large(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    engine = Engine(SqliteStore.open(path))
    await opened(engine, "s")
    for _ in range(600):
        await append(engine, "s", user())
    wal = (tmp_path / "t.db-wal").stat().st_size
    await engine.close()
    # 600 commits of at least a page each; a commit that finds 256 of them still adds its own.
    assert 4 * 1024 * 1024 < wal < 5 * 1024 * 1024


async def test_c83_a_request_id_survives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path)
    replies = []
    for _ in range(2):
        engine = Engine(SqliteStore.open(path))
        replies.append(await append(engine, "s", user("", text("", "once")), request_id="r1"))
        await engine.close()
    assert replies[0] == replies[1]
    assert replies[1].head.revision == 3
    engine = Engine(SqliteStore.open(path))
    with refused(errors.RequestIdReused):
        await append(engine, "s", user("other"), request_id="r1")
    await engine.close()


async def test_c48_nul_and_emoji_come_back(tmp_path: Path) -> None:
    contents = ["PK\x03\x04\x00", "\0", "a\0b", r"\u0000", "😀 \U0010ffff", ""]
    path = tmp_path / "t.db"
    await made(path, *(user(f"u{at}", text(f"p{at}", content)) for at, content in enumerate(contents)))
    engine = Engine(SqliteStore.open(path))
    history = await replay(engine, "s")
    assert [history.part(f"p{at}").text.text for at in range(len(contents))] == contents
    await engine.close()


async def test_c20_vacuum_keeps_the_order(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(
        path,
        assistant("a", *(text(f"p{at}", "x" * at) for at in (3, 1, 2)), completed=True),
        user("u9", text("z"), text("b")),
        user("u1", before="a"),
    )
    engine = Engine(SqliteStore.open(path))
    before = [response async for response in engine.replay(CALLER, v1.ReplayRequest(session_id="s"))]
    await engine.close()
    db = sqlite3.connect(path)
    db.execute("VACUUM")
    db.close()
    engine = Engine(SqliteStore.open(path))
    for _ in range(100):
        assert [r async for r in engine.replay(CALLER, v1.ReplayRequest(session_id="s"))] == before
    assert (await replay(engine, "s")).shape == {"u1": [], "a": ["p3", "p1", "p2"], "u9": ["z", "b"]}
    await engine.close()


# What is not ours


@pytest.mark.parametrize(
    "content", [b"x", b"hello, this is a text file\n" * 1000, b"SQLite format 3\0" + b"\xff" * 5000, bytes(4096)]
)
async def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(content)
    before = files(tmp_path)
    for read_only in (False, True):
        with refused(errors.StoreForeign):
            SqliteStore.open(path, read_only=read_only)
    assert files(tmp_path) == before


async def test_a_store_that_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(4096)))
    for read_only in (False, True):
        with pytest.raises(errors.StoreForeign, match="compressed with gzip"):
            SqliteStore.open(path, read_only=read_only)


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("application_id", [0, 0x0F055112])
async def test_a_database_of_another_program(tmp_path: Path, mode: str, application_id: int) -> None:
    path = tmp_path / "t.db"
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute(f"PRAGMA application_id = {application_id}")
    db.execute("CREATE TABLE session (id TEXT)")
    db.commit()
    before = files(tmp_path)
    with refused(errors.StoreForeign):
        SqliteStore.open(path)
    assert files(tmp_path) == before
    db.close()


async def test_a_later_version(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = files(tmp_path)
    for read_only in (False, True):
        with refused(errors.StoreTooNew, version=VERSION + 1, known=VERSION):
            SqliteStore.open(path, read_only=read_only)
    assert files(tmp_path) == before


async def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="directory of the store does not exist"):
        SqliteStore.open(tmp_path / "missing" / "t.db")
    with pytest.raises(IsADirectoryError):
        SqliteStore.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        SqliteStore.open(tmp_path / "t.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b.db", "a?b#c%41.db", "ü😀.db"])
async def test_any_file_name(tmp_path: Path, name: str) -> None:
    await made(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == [name]


# Reading only


async def test_opened_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path, user("u", text("p", "hi")))
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    store = SqliteStore.open(path, read_only=True)
    engine = Engine(store)
    assert store.read_only
    assert (await replay(engine, "s")).ids == ["u"]
    for writing in (append(engine, "s", user("v")), delete(engine, "s"), fork(engine, "s", "f")):
        with refused(errors.StoreReadOnly):
            await writing
    await engine.close()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


async def test_a_reader_sees_what_another_store_writes(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    writing = Engine(SqliteStore.open(path))
    await opened(writing)
    reading = Engine(SqliteStore.open(path, read_only=True))
    await append(writing, "s", user("u"))
    assert (await replay(reading, "s")).ids == ["u"]
    await writing.close()
    assert (await replay(reading, "s")).ids == ["u"]
    await reading.close()


async def test_a_copy_of_a_closed_file_needs_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.db"
    await made(path, user("u"))
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    allowed = os.access

    def access(at: Path, mode: int) -> bool:  # the user of a test may be one to whom everything is allowed
        return allowed(at, mode) and not (mode & os.W_OK and tmp_path in (at, *Path(at).parents))

    monkeypatch.setattr(os, "access", access)
    engine = Engine(SqliteStore.open(path))
    assert (await replay(engine, "s")).ids == ["u"]
    with refused(errors.StoreReadOnly):
        await append(engine, "s", user("v"))
    await engine.close()
    tmp_path.chmod(0o700)


# Damage


async def test_a_flipped_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path, *(user(f"u{at}", text("", f"text {at} " + "x" * 1000)) for at in range(200)))
    db = sqlite3.connect(path, isolation_level=None)
    (pos, payload) = db.execute("SELECT pos, payload FROM entry WHERE pos & 0xffffffff = 100").fetchone()
    db.execute("UPDATE entry SET payload = ? WHERE pos = ?", (payload.replace(b"text 97", b"text 98"), pos))
    db.close()
    engine = Engine(SqliteStore.open(path))
    await opened(engine, "sound", user("u"))
    found = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))
    # Digests are stored at multiples of 64; the damage lies between two of them.
    assert (found.sound, [each.revision for each in found.findings]) == (False, [128])
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="sound"))).sound
    await engine.close()


async def test_an_entry_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path, *(user(f"u{at}", text("", "x" * 1000)) for at in range(10)))
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DELETE FROM entry WHERE pos & 0xffffffff = 5")
    db.close()
    engine = Engine(SqliteStore.open(path))
    found = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))
    assert not found.sound
    assert found.findings[0].revision == 5
    with refused(errors.CorruptData, revision=5):
        await read(engine, "s", 5, 5)
    with refused(errors.CorruptData, revision=5):
        await fork(engine, "s", "f")
    # The failed fork has left nothing.
    with refused(errors.SessionNotFound):
        await replay(engine, "f")
    await engine.close()


async def test_pages_of_noise_are_corrupt_data_and_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path, *(user(f"u{at}", text("", "x" * 3000)) for at in range(300)))
    content = bytearray(path.read_bytes())
    for at in range(25 * 16384, len(content), 16384):
        content[at : at + 200] = b"\xa5" * 200
    path.write_bytes(content)
    engine = Engine(SqliteStore.open(path))
    with refused(errors.CorruptData):
        await replay(engine, "s")
    await engine.close()


# Compactness, as the design sets it


async def test_bytes_on_disk(tmp_path: Path) -> None:
    """Whole messages of 2 KB take at most 1.4 times their bytes; a delta takes its text and 80 bytes."""
    path = tmp_path / "t.db"
    engine = Engine(SqliteStore.open(path))
    await opened(engine, "s")
    for _ in range(20):
        await append(engine, "s", *(user("", *(text("", "x" * 210) for _ in range(8))) for _ in range(50)))
    entries = await read(engine, "s")
    await append(engine, "s", assistant("a", text("prt_0VcShhMLXoa1TzcXwzKN")))
    await engine.close()
    payloads = sum(entry.user.ByteSize() for entry in entries)
    assert payloads > 2000 * 1000
    size = path.stat().st_size
    assert size < 1.4 * payloads
    engine = Engine(SqliteStore.open(path))
    part = v1.PartDelta(part_id="prt_0VcShhMLXoa1TzcXwzKN", text="ten bytes.")
    for batch in range(20):
        deltas = [v1.EntryInput(delta=part) for _ in range(500)]
        for at, each in enumerate(deltas):
            each.delta.offset = 10 * (500 * batch + at)
        await append(engine, "s", *deltas)
    await engine.close()
    assert (path.stat().st_size - size) / 10_000 < 10 + 80


async def test_forks_and_deletes_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await made(path, user("u", text("p", "a secret of somebody")))
    engine = Engine(SqliteStore.open(path))
    await append(engine, "s", put("u", text("p", "and another secret")), request_id="r")
    await fork(engine, "s", "f")
    assert await delete(engine, "s") == ["s"]
    assert (await replay(engine, "f")).ids == ["u"]
    assert await delete(engine, "f") == ["f"]
    await engine.close()
    content = path.read_bytes()
    assert b"secret" not in content
    db = sqlite3.connect(path)
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    db.close()
    assert {name for name, count in rows.items() if count} == {"deleted", "sqlite_sequence"}
    assert rows["deleted"] == 2


# One process


async def test_callers_on_several_event_loops(tmp_path: Path) -> None:
    engine = Engine(SqliteStore.open(tmp_path / "t.db"))
    await opened(engine)

    def other(name: str) -> None:
        async def run() -> None:
            await asyncio.gather(*(append(engine, "s", user(f"{name}{at}")) for at in range(20)))
            assert (await replay(engine, "s")).ids

        asyncio.run(run())

    threads = [threading.Thread(target=other, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert len((await replay(engine, "s")).ids) == 60
    await engine.close()


async def test_after_close(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "t.db")
    engine = Engine(store)
    await opened(engine)
    watch = store.watch("", "s")
    await anext(watch)
    pending = [asyncio.ensure_future(append(engine, "s", user(f"u{at}"))) for at in range(10)]
    await asyncio.sleep(0)
    await engine.close()
    await engine.close()
    assert [response.head.revision for response in await asyncio.gather(*pending)] == list(range(3, 13))
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    with refused(errors.ShuttingDown):
        await append(engine, "s", user("late"))
    with refused(errors.ShuttingDown):
        await replay(engine, "s")


async def test_c73_busy_beyond_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    store = SqliteStore.open(path, busy_timeout=0.2)
    engine = Engine(store)
    await opened(engine)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    outcomes = await asyncio.gather(*(append(engine, "s", user(f"u{at}")) for at in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [errors.StoreBusy] * 5
    # Readers are not held up by a writer.
    assert (await replay(engine, "s")).ids == []
    other.execute("ROLLBACK")
    other.close()
    await append(engine, "s", user("u"))
    assert (await replay(engine, "s")).ids == ["u"]
    await engine.close()
