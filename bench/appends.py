"""Embedded appends against raw SQLite, their cost at the end of a long log, and the bytes that they take on disk."""

from __future__ import annotations

import sqlite3
import statistics
import time
from pathlib import Path

from bench import payloads
from bench.rounds import Compared, compare
from turnwire import v1
from turnwire.engine import EMBEDDED, Caller, Engine
from turnwire.store.sqlite import SqliteStore

_CALLER = Caller()
_SINGLES = 200
_ROUNDS = 9


def open_engine(path: Path) -> Engine:
    return Engine(SqliteStore.open(path, inline=True), limits=EMBEDDED)  # as turnwire.open does


async def begin(engine: Engine, session_id: str) -> None:
    await engine.append(
        _CALLER, v1.AppendRequest(session_id=session_id, create=v1.SessionProperties(), entries=[payloads.turn()])
    )


async def singles(folder: Path, parts: int) -> Compared:
    """One append after another, each durable, of whole 2 KB messages; the limit inserts the same stored bytes."""
    engine = open_engine(folder / "turnwire.db")
    await begin(engine, "s")
    requests = [
        v1.AppendRequest(session_id="s", entries=[payloads.message(parts)]) for _ in range(_SINGLES * (_ROUNDS + 1))
    ]
    sizes = [request.entries[0].assistant.ByteSize() for request in requests]
    raw = _raw(folder / "raw.db")

    async def ours(at: int) -> None:
        for request in requests[at * _SINGLES : (at + 1) * _SINGLES]:
            await engine.append(_CALLER, request)

    async def limit(at: int) -> None:
        for size in sizes[at * _SINGLES : (at + 1) * _SINGLES]:
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("INSERT INTO entry (payload) VALUES (?)", (b"x" * size,))
            raw.execute("COMMIT")

    try:
        return await compare(ours, limit, rounds=_ROUNDS, units=_SINGLES)
    finally:
        raw.close()
        await engine.close()


def _raw(path: Path) -> sqlite3.Connection:
    """A file with the settings of the embedded store and one table."""
    db = sqlite3.connect(path, isolation_level=None)
    for setting in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        db.execute(f"PRAGMA {setting}")
    db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")
    return db


async def growth(folder: Path, entries: int) -> Compared:
    """An append at entry ``entries`` of a session (ours) against one at entry 10 of other sessions (the limit)."""
    engine = open_engine(folder / "growth.db")
    await begin(engine, "long")
    for _ in range(entries // 1000):
        batch = [payloads.message(2) for _ in range(1000)]
        await engine.append(_CALLER, v1.AppendRequest(session_id="long", entries=batch))
    each = 100
    short = [f"short{at}" for at in range(each * (_ROUNDS + 1))]
    for session_id in short:
        batch = [payloads.turn(), *(payloads.message(2) for _ in range(8))]
        await engine.append(
            _CALLER, v1.AppendRequest(session_id=session_id, create=v1.SessionProperties(), entries=batch)
        )

    async def one(session_id: str) -> None:
        await engine.append(_CALLER, v1.AppendRequest(session_id=session_id, entries=[payloads.message(2)]))

    async def long(at: int) -> None:
        for _ in range(each):
            await one("long")

    async def at_ten(at: int) -> None:
        for session_id in short[at * each : (at + 1) * each]:
            await one(session_id)

    try:
        return await compare(long, at_ten, rounds=_ROUNDS, units=each)
    finally:
        await engine.close()


async def file_ratio(folder: Path, parts: int, count: int = 20_000) -> float:
    """Bytes of the file after a checkpoint over bytes of payloads, for whole 2 KB messages of so many parts."""
    path = folder / f"ratio{parts}.db"
    engine = open_engine(path)
    await begin(engine, "s")
    stored = 0
    for _ in range(count // 1000):
        batch = [payloads.message(parts) for _ in range(1000)]
        stored += sum(entry.assistant.ByteSize() for entry in batch)
        await engine.append(_CALLER, v1.AppendRequest(session_id="s", entries=batch))
    await engine.close()
    return path.stat().st_size / stored


async def delta_bytes(folder: Path, count: int = 20_000, size: int = 24) -> float:
    """Bytes that one delta takes in the file beside its text, each appended by itself."""
    path = folder / "deltas.db"
    engine = open_engine(path)
    await begin(engine, "s")
    opening = payloads.message(1, 400)
    part_id = opening.assistant.assistant.parts[0].id
    offset = len(opening.assistant.assistant.parts[0].text.text)
    await engine.append(_CALLER, v1.AppendRequest(session_id="s", entries=[opening]))
    await engine.close()
    before = path.stat().st_size
    engine = open_engine(path)
    for at in range(count):
        delta = v1.PartDelta(part_id=part_id, offset=offset + at * size, text="d" * size)
        await engine.append(_CALLER, v1.AppendRequest(session_id="s", entries=[v1.EntryInput(delta=delta)]))
    await engine.close()
    return (path.stat().st_size - before) / count - size


async def layers(parts: int) -> dict[str, float]:
    """Where the microseconds of an append go, but for the store: median of rounds over an in-memory store."""
    from turnwire.store.memory import MemoryStore

    engine = Engine(MemoryStore(), limits=EMBEDDED)
    await begin(engine, "s")
    seconds: list[float] = []
    for _ in range(_ROUNDS):
        requests = [v1.AppendRequest(session_id="s", entries=[payloads.message(parts)]) for _ in range(_SINGLES)]
        begun = time.perf_counter()
        for request in requests:
            await engine.append(_CALLER, request)
        seconds.append((time.perf_counter() - begun) / _SINGLES)
    return {"check, plan and serialize": statistics.median(seconds) * 1e6}
