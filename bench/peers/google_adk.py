"""Google ADK's `DatabaseSessionService` on SQLite. Run in the peers' environment."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers.base import Locked

_OF = {"app_name": "bench", "user_id": "bench"}


class GoogleAdk:
    """Sessions of one service, whose engine is ours so that its file can be durable and in WAL mode."""

    def __init__(self, path: str) -> None:
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 10})
        event.listen(self._engine.sync_engine, "connect", _settings)
        self._service = DatabaseSessionService(db_engine=self._engine)
        self._sessions: dict[str, Session] = {}

    def version(self) -> str:
        return f"google-adk {version('google-adk')}"

    async def journal(self) -> str:
        await self._service.prepare_tables()
        async with self._engine.connect() as db:
            mode = (await db.execute(text("PRAGMA journal_mode"))).scalar()
            level = (await db.execute(text("PRAGMA synchronous"))).scalar()
        return f"journal_mode={mode}, synchronous={level}, set on the engine that it is given"

    async def open(self, session: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = await self._service.create_session(session_id=session, **_OF)

    def message(self, texts: list[str]) -> Any:
        content = types.Content(role="model", parts=[types.Part(text=text) for text in texts])
        return Event(author="bench", invocation_id="bench", content=content)

    async def append(self, session: str, messages: list[Any]) -> None:
        for each in messages:
            try:
                await self._service.append_event(self._sessions[session], each)
            except OperationalError as error:
                raise Locked from error

    async def fill(self, session: str, messages: list[Any]) -> None:
        await self.append(session, messages)

    async def read(self, session: str, last: int | None) -> int:
        config = GetSessionConfig(num_recent_events=last) if last is not None else None
        found = await self._service.get_session(session_id=session, config=config, **_OF)
        assert found is not None
        return len(found.events)

    async def close(self) -> None:
        await self._engine.dispose()


def _settings(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    # The last is what the service sets on engines of its own.
    for each in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {each}")
    cursor.close()


make = GoogleAdk
