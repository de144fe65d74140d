"""What the processes of ``test_sqlite_processes`` run: ``python -m tests.store.worker COMMAND PATH …``.

Each prints a line per fact that its parent waits for, and nothing else.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.builders import CALLER, append, turn, user
from tests.builders import text as text_part
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.store.sqlite import SqliteStore


def say(line: str) -> None:
    print(line, flush=True)


async def open_only(path: Path) -> None:
    """At every line that comes in, open the file of that name, write one session and close."""
    say("ready")
    for name in sys.stdin:
        engine = Engine(SqliteStore.open(path / name.strip()))
        await append(engine, f"s{sys.argv[3]}", turn(), create=True)
        await engine.close()
        say("done")


async def load(path: Path) -> None:
    """Append messages to one session, one after another, and say each one that was acknowledged."""
    name, count = sys.argv[3], int(sys.argv[4])
    engine = Engine(SqliteStore.open(path))
    say("ready")
    sys.stdin.readline()
    for number in range(count):
        id = f"{name}.{number}"
        response = await append(engine, "s", turn(), user(id, text_part("", "x" * 500)), create=True)
        say(f"{id} {response.head.revision}")
    await engine.close()
    say("done")


async def fill(path: Path) -> None:
    """Append until there is no room, then make room and append again."""
    store = SqliteStore.open(path)
    engine = Engine(store)
    await append(engine, "s", turn(), create=True)
    done = 0
    for number in range(100_000):
        try:
            await append(engine, "s", user(f"u{number}", text_part("", "x" * 30_000)))
        except errors.StoreFull:
            break
        done += 1
    say(f"full {done}")
    sys.stdin.readline()
    await append(engine, "s", user("after", text_part("", "x" * 30_000)))
    verified = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))
    await engine.close()
    say(f"sound {verified.sound} {verified.head.revision}")


async def tail(path: Path) -> None:
    """Say the ids of the messages of a session as they come, until one is called ``last``."""
    engine = Engine(SqliteStore.open(path))
    async for raw in engine.tail(CALLER, v1.TailRequest(session_id="s", after_revision=2)):
        response = v1.TailResponse.FromString(raw)
        if response.HasField("caught_up"):
            say("caught_up")
        for entry in response.entries:
            say(entry.user.user.id)
            if entry.user.user.id == "last":
                await engine.close()
                return


async def turns(path: Path) -> None:
    """At every line that comes in, append a message with its text to one session."""
    engine = Engine(SqliteStore.open(path, inline=True))
    say("ready")
    for line in sys.stdin:
        response = await append(engine, "s", user(line.strip(), text_part("", "x" * 100)))
        say(str(response.head.revision))
    await engine.close()


COMMANDS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "open": open_only,
    "load": load,
    "fill": fill,
    "tail": tail,
    "turns": turns,
}

if __name__ == "__main__":
    asyncio.run(COMMANDS[sys.argv[1]](Path(sys.argv[2])))  # type: ignore[arg-type]  # they are all coroutines
