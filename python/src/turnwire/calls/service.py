"""All methods of the service over a transport."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from turnwire import errors
from turnwire.calls.log import LogCalls
from turnwire.calls.prompts import PromptCalls
from turnwire.calls.sessions import SessionCalls
from turnwire.calls.validation import ValidationCalls

if TYPE_CHECKING:
    from turnwire.handle.session import Session


class Service(SessionCalls, LogCalls, PromptCalls, ValidationCalls):
    """The methods that a `turnwire.Client` and an embedded store share.

    As an async context manager it is closed at the end of the block.
    """

    async def open_session(
        self,
        session_id: str = "",
        *,
        title: str | None = None,
        directory: str | None = None,
        labels: Mapping[str, str] | None = None,
        guarded: bool = False,
    ) -> Session:
        """A handle to work with a session, which is created if there is none of that id; see `turnwire.handle`.

        The properties count only if it is created. ``guarded``: appends expect the head that the handle knows, and
        raise `RevisionConflict` when another writer came first; ``refresh`` of the handle then takes the new head.
        Raises `SessionDeleted`, `RuleViolation`.
        """
        from turnwire.handle.session import Session  # handles are made of these methods

        try:
            if session_id:
                return Session(self, await self.get_session(session_id), guarded=guarded)
        except errors.SessionNotFound:
            pass
        try:
            shown = await self.create_session(session_id, title=title, directory=directory, labels=labels)
        except errors.SessionAlreadyExists:  # another was quicker
            shown = await self.get_session(session_id)
        return Session(self, shown, guarded=guarded)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
