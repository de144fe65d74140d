"""Replies to request ids: found while they are fresh and when they are sorted in, by every process, until deleted."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders import append, delete, opened, refused, turn, user
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.store import sqlite_replies, sqlite_schema
from turnwire.store.base import Reply, Request
from turnwire.store.sqlite import SqliteStore
from turnwire.store.sqlite_replies import Replies


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_replies, "MOST", 4)


@pytest.fixture
async def engines(tmp_path: Path) -> AsyncIterator[tuple[Engine, Engine]]:
    """Two stores on one file, as two processes have them."""
    one, other = (Engine(SqliteStore.open(tmp_path / "t.db")) for _ in range(2))
    await opened(one, "s")
    yield one, other
    await one.close()
    await other.close()


def counted(path: Path) -> tuple[int, int]:
    """How many replies are fresh, and how many are sorted in."""
    db = sqlite3.connect(path / "t.db")
    (fresh,), (sorted_in,) = (db.execute(f"SELECT count(*) FROM {table}").fetchone() for table in TABLES)
    db.close()
    return fresh, sorted_in


TABLES = ("fresh_reply", "reply")


@pytest.mark.parametrize("order", ["rising", "falling", "any"])
async def test_a_retry_gets_the_first_reply_wherever_it_is(
    engines: tuple[Engine, Engine], tmp_path: Path, order: str
) -> None:
    ids = [f"r{number:02d}" for number in range(14)]
    if order == "falling":
        ids.reverse()
    elif order == "any":
        random.Random(7).shuffle(ids)
    given: dict[str, v1.AppendResponse] = {}
    for at, id in enumerate(ids):
        writer = engines[at // 3 % 2]
        given[id] = await append(writer, "s", user(f"u{id}"), request_id=id)
        for reader in engines:
            for before, reply in given.items():
                assert await append(reader, "s", user(f"u{before}"), request_id=before) == reply
    fresh, sorted_in = counted(tmp_path)
    assert (fresh + sorted_in, fresh < 4, sorted_in >= 8) == (14, True, True)
    with refused(errors.RequestIdReused):
        await append(engines[0], "s", user("other"), request_id=ids[0])


async def test_calls_that_look_a_reply_up_find_it_too(engines: tuple[Engine, Engine]) -> None:
    for number in range(6):
        await append(engines[0], "s", user(f"u{number}"), request_id=f"r{number}")
    for engine in engines:
        found = [await engine.store.reply("", "s", "Append", f"r{number}") for number in range(7)]
        assert [each is not None for each in found] == [True] * 6 + [False]
        assert await engine.store.reply("", "s", "UpdateSession", "r1") is None


async def test_one_that_was_deleted_leaves_no_reply(engines: tuple[Engine, Engine], tmp_path: Path) -> None:
    one, other = engines
    await append(one, "gone", turn(), create=True, request_id="first")
    for number in range(5):
        await append(one, "gone", user(f"u{number}"), request_id=f"r{number}")
    await append(other, "s", user("u"), request_id="mine")
    await append(one, "gone", user("u"), request_id="last")
    await delete(one, "gone")
    assert sum(counted(tmp_path)) == 1
    # Whoever knew the rows that are gone goes on behind those that there are.
    for number, engine in enumerate((other, one, other, one)):
        await append(engine, "s", user(f"v{number}"), request_id=f"v{number}")
    for engine in engines:
        reply = await append(engine, "s", user("u"), request_id="mine")
        assert reply.head.revision == 3


async def test_other_processes_read_again_when_what_they_knew_is_gone(
    engines: tuple[Engine, Engine], tmp_path: Path
) -> None:
    one, other = engines
    await append(other, "gone", turn(), create=True, request_id="g")
    await append(one, "s", user("u"), request_id="a")
    for number in range(4):  # which are sorted in, so that numbers begin again in a process that starts now
        await append(other, "s", user(f"u{number}"), request_id=f"r{number}")
    third = Engine(SqliteStore.open(tmp_path / "t.db"))
    given = [await append(third, "s", user(f"v{number}"), request_id=f"v{number}") for number in range(3)]
    await third.close()
    for engine in (one, other):
        again = [await append(engine, "s", user(f"v{number}"), request_id=f"v{number}") for number in range(3)]
        assert again == given


def test_what_a_failed_transaction_had_kept_is_forgotten() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    sqlite_schema.migrate(db, 0)
    replies = Replies(db)
    for kept, ending in (("a", "COMMIT"), ("b", "ROLLBACK")):
        db.execute("BEGIN IMMEDIATE")
        replies.begin(changed=False)
        replies.keep(1, Request("Append", kept, Reply(b"", kept.encode())))
        replies.end()
        db.execute(ending)
        if ending == "ROLLBACK":
            replies.clear()
    db.execute("BEGIN IMMEDIATE")
    replies.begin(changed=False)
    assert replies.find(1, "Append", "a") == Reply(b"", b"a")
    assert replies.find(1, "Append", "b") is None
    replies.keep(1, Request("Append", "c", Reply(b"", b"c")))
    replies.end()
    db.execute("COMMIT")
    assert db.execute("SELECT number, request_id FROM fresh_reply").fetchall() == [(1, "a"), (2, "c")]
