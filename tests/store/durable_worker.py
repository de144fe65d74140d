"""What the processes of ``test_durability`` run: ``python -m tests.store.durable_worker COMMAND FOLDER PATH``."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import turnwire
from tests.builders import text, turn, user
from tests.store import platter
from turnwire.embedded import Embedded
from turnwire.store import sqlite_file


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


async def one_by_one(store: Embedded, syncs: Callable[[], int]) -> list[int]:
    """How often the log was synced during each of many appends."""
    counted: list[int] = []
    for number in range(100):
        before = syncs()
        await store.append("s", [user(f"one.{number}", text("", "x" * 500))])
        counted.append(syncs() - before)
    return counted


async def together(store: Embedded, syncs: Callable[[], int]) -> int:
    """How often the log was synced for sixty-four appends at once."""
    before = syncs()
    await asyncio.gather(*(store.append("s", [user(f"many.{number}")]) for number in range(64)))
    return syncs() - before


async def count(folder: Path, path: Path) -> None:
    """Count syncs where SQLite asks for them."""
    made = platter.install(folder)
    async with turnwire.open(path) as store:
        await store.append("s", [turn()], create=True)

        def syncs() -> int:
            return made.syncs[f"{path.name}-wal"]

        say([await one_by_one(store, syncs), await together(store, syncs)])


async def calls(folder: Path, path: Path) -> None:
    """Count the process's own calls of fsync and fdatasync, with a library that was loaded before the C library."""
    counter = ctypes.CDLL(os.environ["LD_PRELOAD"]).turnwire_syncs
    async with turnwire.open(path) as store:
        await store.append("s", [turn()], create=True)
        say([await one_by_one(store, counter), await together(store, counter)])


async def load(folder: Path, path: Path) -> None:
    """Append by several callers, say what was acknowledged, and never stop."""
    platter.install(folder)
    store = await turnwire.open(path)
    await asyncio.gather(*(_caller(store, caller) for caller in range(8)))


async def relaxed(folder: Path, path: Path) -> None:
    """The same, in a mode that does not wait for the disk; the product has none, so that SQLite is asked for it."""
    connect = sqlite_file.File.connect

    def lazily(file: sqlite_file.File, *, write: bool = False) -> sqlite3.Connection:
        db = connect(file, write=write)
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    sqlite_file.File.connect = lazily  # type: ignore[method-assign]
    await load(folder, path)


async def _caller(store: Embedded, caller: int) -> None:
    await store.append(f"s{caller}", [turn()], create=True)
    for number in range(1_000_000):
        id = f"m{number}"
        await store.append(f"s{caller}", [user(id, text("", "x" * 2000))])
        say([f"s{caller}", id])


COMMANDS: dict[str, Callable[[Path, Path], Awaitable[None]]] = {
    "count": count,
    "calls": calls,
    "load": load,
    "relaxed": relaxed,
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(COMMANDS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3])))  # type: ignore[arg-type]
