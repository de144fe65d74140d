"""Watching a session, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tests.builders import append, delete, opened, user
from turnwire.engine import Engine
from turnwire.store.base import Store

#: What a wake-up may take, and a little for a busy machine.
SOON_S = 0.1 + 0.4


class Watch:
    """A watch of session ``s`` that can be asked whether it wakes."""

    def __init__(self, store: Store) -> None:
        self._watch: AsyncIterator[None] = store.watch("", "s")
        self._next: asyncio.Future[None] | None = None

    async def wakes(self, within: float = SOON_S) -> bool:
        self._next = self._next or asyncio.ensure_future(anext(self._watch))
        done, _ = await asyncio.wait([self._next], timeout=within)
        if not done:
            return False
        await self._next
        self._next = None
        return True

    async def settle(self) -> None:
        """Wait until it has woken for everything that was."""
        while await self.wakes(0.2):
            pass


async def test_the_first_comes_at_once(engine: Engine, store: Store) -> None:
    await opened(engine)
    assert await Watch(store).wakes(0.05)


async def test_a_write_and_a_deletion_wake(engine: Engine, store: Store) -> None:
    await opened(engine)
    watch = Watch(store)
    await watch.settle()
    await append(engine, "s", user("u"))
    assert await watch.wakes()
    await watch.settle()
    await delete(engine, "s")
    assert await watch.wakes()


async def test_a_write_before_the_reader_came_back_is_not_lost(engine: Engine, store: Store) -> None:
    await opened(engine)
    watch = Watch(store)
    await watch.settle()
    await append(engine, "s", user("u1"))
    await append(engine, "s", user("u2"))
    assert await watch.wakes()
    await append(engine, "s", user("u3"))
    assert await watch.wakes()


async def test_other_sessions_do_not_wake(engine: Engine, store: Store) -> None:
    await opened(engine)
    await opened(engine, "other")
    watch = Watch(store)
    await watch.settle()
    await append(engine, "other", user("u"))
    assert not await watch.wakes(0.2)


async def test_many_watch_one_session(engine: Engine, store: Store) -> None:
    await opened(engine)
    watches = [Watch(store) for _ in range(5)]
    for watch in watches:
        await watch.settle()
    await append(engine, "s", user("u"))
    for watch in watches:
        assert await watch.wakes()
