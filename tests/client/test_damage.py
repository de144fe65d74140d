"""Stored bytes that are no message any more are CORRUPT_DATA however they are read, in this process and over gRPC."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import turnwire
from tests.client.flow import turn, user
from turnwire import errors
from turnwire.calls import Service
from turnwire.engine import Engine
from turnwire.server import Options, Server
from turnwire.store.sqlite import SqliteStore


@pytest.fixture(params=["embedded", "server"])
async def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    """A store whose session "ses_1" has a message of which every byte is 0xff; "ses_2" is as it was."""
    path = tmp_path / "turnwire.db"
    async with turnwire.open(path) as tw:
        for session_id in ("ses_1", "ses_2"):
            await tw.append(session_id, [turn(), user("msg_1", "SECRET")], create=True)
    db = sqlite3.connect(path, isolation_level=None)
    last = "pos = (SELECT max(pos) FROM entry WHERE pos >> 32 = 1)"
    ((length,),) = db.execute(f"SELECT length(payload) FROM entry WHERE {last}")
    db.execute(f"UPDATE entry SET payload = ? WHERE {last}", (b"\xff" * length,))
    db.close()
    async with AsyncExitStack() as stack:
        if request.param == "embedded":
            yield await stack.enter_async_context(turnwire.open(path))
        else:
            options = Options(address=f"unix:{tmp_path / 's'}", grace=2)
            server = await stack.enter_async_context(Server(Engine(SqliteStore.open(path)), options))
            yield await stack.enter_async_context(turnwire.Client.connect(server.address))


async def entries(tw: Service, session_id: str) -> object:
    return [entry async for entry in tw.read_entries(session_id)]


async def prompt(tw: Service, session_id: str) -> object:
    return await tw.mutate_prompt(session_id, "trn_1", dry_run=True)


async def rendering(tw: Service, session_id: str) -> object:
    return await tw.render_prompt(session_id, "openai-chat", turn_id="trn_1")


async def history(tw: Service, session_id: str) -> object:
    return await tw.history(session_id)


@pytest.mark.parametrize("read", [entries, history, prompt, rendering])
async def test_what_cannot_be_read_is_named(
    damaged: Service, read: Callable[[Service, str], Awaitable[object]]
) -> None:
    with pytest.raises(errors.CorruptData, match="verify the session") as failed:
        await read(damaged, "ses_1")
    assert "SECRET" not in str(failed.value)
    assert await read(damaged, "ses_2")
    assert not (await damaged.verify_session("ses_1")).sound
