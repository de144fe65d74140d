"""The OpenAI Agents SDK's `SQLiteSession`. Run in the peers' environment."""

from __future__ import annotations

import sqlite3
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from agents import SQLiteSession

from bench.peers.base import Locked


class OpenAiAgents:
    """Sessions on one file, each an object of its own, as an agent has it."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._sessions: dict[str, SQLiteSession] = {}
        self._numbers = count()

    def version(self) -> str:
        return f"openai-agents {version('openai-agents')}"

    async def journal(self) -> str:
        await self.open("journal")
        # It gives nobody its connection; a new one of the same SQLite has the same default.
        db = sqlite3.connect(self._path)
        (mode,), (level,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous"))
        db.close()
        return f"journal_mode={mode}, synchronous={level}, its defaults"

    async def open(self, session: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = SQLiteSession(session, self._path)

    def message(self, texts: list[str]) -> Any:
        content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
        id = f"msg_{next(self._numbers):048d}"
        return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content}

    async def append(self, session: str, messages: list[Any]) -> None:
        try:
            await self._sessions[session].add_items(messages)
        except sqlite3.OperationalError as error:
            raise Locked from error

    async def fill(self, session: str, messages: list[Any]) -> None:
        await self.append(session, messages)

    async def read(self, session: str, last: int | None) -> int:
        await self.open(session)
        return len(await self._sessions[session].get_items(last))

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()


make = OpenAiAgents
