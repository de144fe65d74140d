"""What a peer has to offer to be measured."""

from __future__ import annotations

from typing import Any, Protocol


class Locked(Exception):
    """The peer gave up since its file was locked by another process."""


class Peer(Protocol):
    """A session store over one SQLite file, reached through its public face alone."""

    def version(self) -> str:
        """The version of its distribution."""
        ...

    async def journal(self) -> str:
        """Make the tables; returns the journal mode and the level of synchronous that its writes run with."""
        ...

    async def open(self, session: str) -> None:
        """Make a session, or forget what was kept of it, so that appends can follow."""

    def message(self, texts: list[str]) -> Any:
        """A new assistant message with a text part for each text, in the peer's own form."""

    async def append(self, session: str, messages: list[Any]) -> None:
        """Append messages, durably. Raises `Locked`."""

    async def fill(self, session: str, messages: list[Any]) -> None:
        """Append many messages, as fast as can be."""

    async def read(self, session: str, last: int | None) -> int:
        """Read all messages of a session, or the last ones; returns how many came."""
        ...

    async def close(self) -> None:
        """Let go of the file."""
