"""LangGraph's `SqliteSaver`. Run in the peers' environment.

A checkpoint holds the whole state, so that an append writes all messages of the session again; this is how a graph
over a messages channel uses the saver.
"""

from __future__ import annotations

import asyncio
import sqlite3
from importlib.metadata import version
from itertools import count
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.peers.base import Locked


class LangGraph:
    """Threads on one saver. The saver is synchronous: it is called on threads, as a program with many callers must."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, timeout=10)
        self._db.execute("PRAGMA synchronous = FULL")
        self._saver = SqliteSaver(self._db)
        self._states: dict[str, tuple[dict[str, Any], list[Any]]] = {}
        self._numbers = count()

    def version(self) -> str:
        return f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}"

    async def journal(self) -> str:
        self._saver.setup()
        (mode,), (level,) = (self._db.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous"))
        return f"journal_mode={mode}, synchronous={level}, set on the connection that it is given"

    async def open(self, session: str) -> None:
        self._states[session] = ({"configurable": {"thread_id": session, "checkpoint_ns": ""}}, [])

    def message(self, texts: list[str]) -> Any:
        content: list[Any] = [{"type": "text", "text": text} for text in texts]
        return AIMessage(id=f"msg_{next(self._numbers):020d}", content=content)

    async def append(self, session: str, messages: list[Any]) -> None:
        try:
            await asyncio.to_thread(self._put, session, messages)
        except sqlite3.OperationalError as error:
            raise Locked from error

    def _put(self, session: str, messages: list[Any]) -> None:
        config, before = self._states[session]
        state = [*before, *messages]
        step = len(state)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": state}
        checkpoint["channel_versions"] = {"messages": step}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        config = self._saver.put(config, checkpoint, metadata, {"messages": step})
        self._states[session] = (dict(config), state)

    async def fill(self, session: str, messages: list[Any]) -> None:
        await self.append(session, messages)

    async def read(self, session: str, last: int | None) -> int:
        config: Any = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        found = await asyncio.to_thread(self._saver.get_tuple, config)
        assert found is not None
        messages = found.checkpoint["channel_values"]["messages"]
        return len(messages if last is None else messages[-last:])

    async def close(self) -> None:
        self._db.close()


make = LangGraph
