"""Tails: appends that the index does not have yet are read, gone on with and made again as if it had them."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import (
    CALLER,
    append,
    assistant,
    clear,
    delete,
    delta,
    fork,
    get_session,
    opened,
    properties,
    put,
    read,
    refused,
    remove,
    replay,
    revert,
    text,
    turn,
    user,
)
from tests.store.test_reads import Choices, Stores, check_reads, choices, replayed, shown
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.log.fold import fold
from turnwire.store import sqlite_tail
from turnwire.store.memory import MemoryStore
from turnwire.store.sqlite import SqliteStore


def indexed(path: Path, id: str = "s") -> tuple[int, bool]:
    """Up to which revision the file has the index of a session, and whether it says that there is more."""
    db = sqlite3.connect(path)
    head, ahead = db.execute("SELECT head, ahead FROM session WHERE id = ?", (id,)).fetchone()
    db.close()
    return head, bool(ahead)


def forget(engine: Engine) -> None:
    """Leave the store as a process that has just started; nothing may be under way."""
    store: Any = engine.store
    store._writer._tails.clear()


async def head(engine: Engine, id: str = "s") -> tuple[int, bytes]:
    found = (await get_session(engine, id)).head
    return found.revision, found.digest


@pytest.fixture(params=[False, True], ids=["thread", "inline"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return Engine(SqliteStore.open(tmp_path / "t.db", inline=request.param))


async def test_an_append_writes_entries_and_the_64th_the_index(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await opened(engine)
    assert indexed(path) == (2, False)
    for at in range(sqlite_tail.MOST_ENTRIES - 1):
        await append(engine, "s", user(f"u{at}"))
        assert indexed(path) == (2, True)
    await append(engine, "s", user("last"))
    assert indexed(path) == (66, False)
    await append(engine, "s", user("next"))
    assert indexed(path) == (66, True)
    await engine.close()
    assert indexed(path) == (67, False)


async def test_many_bytes_are_indexed_sooner(engine: Engine, tmp_path: Path) -> None:
    await opened(engine)
    for at in range(3):
        await append(engine, "s", user(f"u{at}", text("", "x" * 400_000)))
    assert indexed(tmp_path / "t.db") == (5, False)
    await engine.close()


async def test_what_needs_no_index_leaves_it_alone(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await opened(engine)
    await append(engine, "s", user("u"), request_id="r")
    revision, chain = await head(engine)
    assert revision == 3
    assert [entry.revision for entry in await read(engine, "s")] == [1, 2, 3]
    assert (await read(engine, "s"))[-1].digest == chain
    assert (await append(engine, "s", user("u"), request_id="r")).head.revision == 3
    assert indexed(path) == (2, True)
    # A process that did not write them sees the same.
    forget(engine)
    assert await head(engine) == (3, chain)
    other = Engine(SqliteStore.open(path))
    assert await head(other) == (3, chain)
    assert indexed(path) == (2, True)
    # What was there before them is read without them, and they are indexed for whoever reads them.
    assert (await replay(other, "s")).ids == ["u"]
    assert indexed(path) == (3, False)
    await other.close()
    await engine.close()


async def test_properties_and_reverts_are_indexed_at_once(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await opened(engine, "s", user("u"), user("v"))
    for at, entry in enumerate((v1.EntryInput(session=properties(title="x")), revert("v"), clear(), revert("u"))):
        await append(engine, "s", turn(f"t{at}"))
        assert indexed(path)[1]
        await append(engine, "s", entry)
        assert indexed(path) == (4 + 2 * at + 2, False)
    await append(engine, "s", user("w"))  # makes the revert final
    assert indexed(path) == (13, False)
    assert (await replay(engine, "s")).ids == ["w"]
    await engine.close()


async def test_a_refused_append_leaves_the_tail_right(engine: Engine) -> None:
    await opened(engine)
    await append(engine, "s", assistant("a", text("p", "ab")))
    with refused(errors.UnknownTurn):
        await append(engine, "s", user("x", text("y")), put("a", text("p", "no")), user("z", turn="unknown"))
    with refused(errors.DeltaOffsetMismatch):
        await append(engine, "s", delta("p", 2, "c"), delta("p", 7, "d"))
    await append(engine, "s", delta("p", 2, "c"))
    await append(engine, "s", user("x", text("y")))
    entries = await read(engine, "s")
    assert [entry.revision for entry in entries] == [1, 2, 3, 4, 5]
    history = await replay(engine, "s")
    assert history.shape == {"a": ["p"], "x": ["y"]}
    assert history.part("p").text.text == "abc"
    await engine.close()


async def test_a_failed_commit_leaves_nothing_in_memory(engine: Engine) -> None:
    """What a transaction had put into a tail goes with it."""
    await opened(engine)
    await append(engine, "s", user("u1"))
    store: Any = engine.store
    writer = store._writer
    end, failures = writer._end, [sqlite3.OperationalError("disk I/O error")] * 2

    def fail() -> None:
        if failures:
            raise failures.pop()
        end()

    writer._end = fail
    outcomes = await asyncio.gather(append(engine, "s", user("u2")), return_exceptions=True)
    failures.clear()
    await append(engine, "s", user("u3"))
    kept = ["u2"] if isinstance(outcomes[0], v1.AppendResponse) else []
    assert (await replay(engine, "s")).ids == ["u1", *kept, "u3"]
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))).sound
    await engine.close()


async def test_whole_sessions_with_a_tail(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    await opened(engine, "s", user("u"))
    await append(engine, "s", user("v"))
    await append(engine, "s", user("w"))
    await fork(engine, "s", "f", 4)
    assert indexed(path) == (5, False)
    assert (await replay(engine, "f")).ids == ["u", "v"]
    await append(engine, "f", user("x"))
    assert await delete(engine, "f") == ["f"]
    with refused(errors.SessionDeleted):
        await append(engine, "f", user("y"))
    await append(engine, "s", user("y"))
    assert (await replay(engine, "s")).ids == ["u", "v", "w", "y"]
    await engine.close()


async def test_sessions_are_listed_by_their_last_entry(engine: Engine, tmp_path: Path) -> None:
    clock = iter(range(1_700_000_000_000_000, 1_700_001_000_000_000, 1_000_000))
    engine.now_us = lambda: next(clock)  # type: ignore[method-assign]
    for id in "abc":
        await opened(engine, id)
    for id in "bca":
        await append(engine, id, turn("t2"))
    reading = Engine(SqliteStore.open(tmp_path / "t.db", read_only=True))
    for each in (engine, reading):
        listed = (await each.list_sessions(CALLER, v1.ListSessionsRequest())).sessions
        assert [(session.id, session.head.revision) for session in listed] == [("a", 3), ("c", 3), ("b", 3)]
        since = v1.SessionFilter()
        since.recorded_from.FromMicroseconds(1_700_000_004_000_000)
        listed = (await each.list_sessions(CALLER, v1.ListSessionsRequest(filter=since))).sessions
        assert [session.id for session in listed] == ["a", "c"]
    assert indexed(tmp_path / "t.db", "a") == (2, True)
    await reading.close()
    await engine.close()


async def test_more_sessions_than_are_kept(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_tail, "SESSIONS", 3)
    for number in range(8):
        await opened(engine, f"s{number}")
    for step in range(4):
        for number in range(8):
            await append(engine, f"s{number}", user(f"u{step}"))
    ahead = [number for number in range(8) if indexed(tmp_path / "t.db", f"s{number}")[1]]
    assert ahead == [5, 6, 7]
    for number in range(8):
        assert (await replay(engine, f"s{number}")).ids == ["u0", "u1", "u2", "u3"]
    await engine.close()


async def test_two_stores_take_turns_on_one_session(tmp_path: Path) -> None:
    """Each goes on with what the other has appended, indexed or not."""
    path = tmp_path / "t.db"
    engines = [Engine(SqliteStore.open(path, inline=inline)) for inline in (True, False)]
    await opened(engines[0], "s", assistant("a", text("p", "")))
    for at in range(200):
        one = engines[at % 3 % 2]
        response = await append(one, "s", delta("p", 2 * at, f"{at % 100:02}"), user(f"u{at}", text(f"q{at}")))
        assert response.head.revision == 2 * at + 5
        if at % 50 == 17:
            assert (await replay(engines[at % 2], "s", last_turns=1)).ids[-1] == f"u{at}"
    entries = await read(engines[0], "s")
    for engine in engines:
        assert await replayed(engine, "s", entries[-1].revision) == shown(fold(entries))
        await engine.close()
    assert indexed(path) == (entries[-1].revision, False)


async def test_readers_do_not_wait_for_the_index(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    engine = Engine(SqliteStore.open(path))
    await opened(engine, "s", user("u"), turn("t2"))
    await append(engine, "s", assistant("a", text("p", "hi")), remove("u"))
    await append(engine, "s", user("v", turn="t2"), delta("p", 2, "!"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for each in (engine, Engine(SqliteStore.open(path, read_only=True))):
        history = await replay(each, "s")
        assert history.shape == {"a": ["p"], "v": []}
        assert history.part("p").text.text == "hi!"
        assert (await replay(each, "s", 4)).ids == ["u"]
        assert (await replay(each, "s", last_turns=1)).ids == ["v"]
        assert [name.id for name in await each.store.names(await each.store.session("", "s"), 1, 0, 9)] == ["t", "t2"]
    other.execute("ROLLBACK")
    other.close()
    assert indexed(path) == (4, True)
    await engine.close()


async def test_an_entry_that_contradicts_the_log(tmp_path: Path) -> None:
    """Damage behind the index is found by who needs it, and stops neither other sessions nor raw reading."""
    path = tmp_path / "t.db"
    engine = Engine(SqliteStore.open(path))
    await opened(engine, "s", assistant("a", text("p", "ab")))
    await opened(engine, "sound")
    await append(engine, "s", delta("p", 2, "c"))
    await append(engine, "sound", user("u"))
    db = sqlite3.connect(path, isolation_level=None)
    wrong = v1.PartDelta(part_id="p", offset=7, text="c").SerializeToString()
    db.execute("UPDATE entry SET payload = ? WHERE pos = (SELECT key << 32 | 4 FROM session WHERE id = 's')", (wrong,))
    db.close()
    forget(engine)
    with refused(errors.CorruptData, revision=4):
        await append(engine, "s", user("v"))
    with refused(errors.CorruptData, revision=4):
        await replay(engine, "s")
    assert len(await read(engine, "s")) == 4
    assert (await replay(engine, "sound")).ids == ["u"]
    await append(engine, "sound", user("w"))
    await engine.close()
    assert indexed(path, "sound") == (4, False)
    assert indexed(path, "s") == (3, True)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    writes=st.lists(st.tuples(st.lists(choices, min_size=1, max_size=3), st.integers(0, 5)), min_size=4, max_size=20),
    most=st.integers(2, 30),
)
def test_every_read_over_a_tail_is_the_fold(writes: list[tuple[list[Choices], int]], most: int) -> None:
    """Stores that index at any time, that forget what they had in memory, and one that reads over the tail alone."""

    async def run() -> None:
        with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite_tail, "MOST_ENTRIES", most)
            files = [Path(directory, name) for name in ("index.db", "forget.db", "unread.db")]
            stores = Stores([Engine(MemoryStore()), *(Engine(SqliteStore.open(path)) for path in files)])
            _, indexing, forgetting, _ = stores.engines
            for engine in stores.engines:
                engine.now_us = lambda: 1_700_000_000_000_000  # type: ignore[method-assign]  # one clock for all
                await append(engine, "s", *map(turn, ["t", "t1", "t2"]), create=properties())
            for serial, (chosen, then) in enumerate(writes):
                await stores.choose("s", chosen, serial)
                if then == 0:
                    await replay(indexing, "s")
                elif then < 3:
                    forget(forgetting)
            forget(forgetting)
            reading = Engine(SqliteStore.open(files[-1], read_only=True))
            await check_reads(Stores([*stores.engines[:-1], reading]))
            for engine in (*stores.engines, reading):
                await engine.close()

    asyncio.run(run())
