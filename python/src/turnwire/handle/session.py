"""The handle of a session: appends in order, turns with their defaults, the history."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnwire import errors, ids, v1
from turnwire.calls.entries import EntryLike
from turnwire.calls.given import built
from turnwire.calls.history import SessionHistory
from turnwire.calls.sessions import KEEP, Keep
from turnwire.handle.settings import merged
from turnwire.handle.times import now
from turnwire.handle.turn import Turn
from turnwire.modelref import ModelLike

if TYPE_CHECKING:
    from turnwire.calls.service import Service

_WINDOWS = (1, 8, 64, 512)  # turns to look through for the last one of an agent, before all of them


class Session:
    """A session to work with; made by ``open_session``.

    Appends of one handle are made one after the other, in the order of the calls.

    When another writer came first, a guarded handle raises `RevisionConflict` from then on, until `refresh` takes the
    new head: who read what was added can decide again, and nobody writes over it unseen::

        try:
            await turn.add_user("And now?")
        except errors.RevisionConflict:
            for entry in await session.refresh():
                ...
    """

    service: Service
    id: str
    #: The last revision that this handle knows of.
    revision: int
    #: Whether appends expect that revision to be the head.
    guarded: bool

    def __init__(self, service: Service, shown: v1.Session, *, guarded: bool) -> None:
        self.service = service
        self.id = shown.id
        self.revision = shown.head.revision
        self.guarded = guarded
        self._one_by_one = asyncio.Lock()
        self._started: dict[str, v1.Turn] = {}  # by agent, the last one last

    async def append(self, *entries: EntryLike, request_id: str | None = None) -> v1.AppendResponse:
        """Append entries, all or none; see ``append`` of the client, whose errors are raised.

        A guarded handle raises `RevisionConflict` when another writer came first; see `refresh`.
        """
        async with self._one_by_one:
            response = await self.service.append(
                self.id,
                entries,
                expected_revision=self.revision if self.guarded else None,
                request_id=request_id,
            )
            self.revision = response.head.revision
        return response

    async def refresh(self) -> list[v1.Entry]:
        """Take the head as it now is. Returns the entries up to it that this handle did not know of, in order.

        After a `RevisionConflict` these are what another writer added. Raises what ``tail`` raises.
        """
        async with self._one_by_one:
            entries = [entry async for entry in self.service.tail(self.id, self.revision, follow=False)]
            if entries:
                self.revision = entries[-1].revision
        return entries

    async def show(self) -> v1.Session:
        """The session as it now is: properties, head, open revert."""
        return await self.service.get_session(self.id)

    async def history(self, *, revision: int | None = None, last_turns: int | None = None) -> SessionHistory:
        """The folded history; see ``history`` of the client."""
        return await self.service.history(self.id, revision=revision, last_turns=last_turns)

    async def start_turn(
        self,
        agent: str | None = None,
        *,
        model: ModelLike | None = None,
        variant: str | Keep | None = KEEP,
        format: v1.OutputFormat | Keep | None = KEEP,
        system: str | Keep | None = KEEP,
        tools: Mapping[str, bool] | Keep = KEEP,
        turn_id: str = "",
    ) -> Turn:
        """Append a new turn. What is not given is as in the last turn of that agent (without an agent: the last turn).

        None takes a setting away. With another model the variant does not go on. The turns before never change. Raises
        ValueError when there is no such turn and no model is given.
        """
        complete = agent is not None and model is not None
        complete = complete and not any(isinstance(each, Keep) for each in (variant, format, system, tools))
        last = None if complete else await self._last_settings(agent)
        settings = merged(last, agent, model, variant, format, system, tools)
        turn = built(v1.Turn, id=turn_id or ids.new(ids.TURN), created=now(), request=settings)
        await self.append(turn)
        self._started.pop(settings.agent, None)
        self._started[settings.agent] = turn
        return Turn(self, turn)

    async def last_turn(self, agent: str | None = None) -> Turn | None:
        """The last turn that has messages, or the last one of an agent, to go on with it; None if there is none."""
        found = await self._find(agent)
        if found is None:
            return None
        history, turn = found
        users = [each.id for each in history.messages if isinstance(each, v1.User) and each.turn_id == turn.id]
        return Turn(self, turn, user_id=users[-1] if users else "")

    async def _last_settings(self, agent: str | None) -> v1.TurnRequest | None:
        """From the turns that this handle started, which may have no message yet, else from the history."""
        if agent is None and self._started:
            return next(reversed(self._started.values())).request
        if agent in self._started:
            return self._started[agent].request
        found = await self._find(agent)
        return found[1].request if found is not None else None

    async def _find(self, agent: str | None) -> tuple[SessionHistory, v1.Turn] | None:
        for window in (*_WINDOWS, None):
            history = await self.history(last_turns=window)
            for turn in reversed(history.turns.values()):
                if agent is None or turn.request.agent == agent:
                    return history, turn
            if window is None or len(history.turns) < window:
                return None
        return None

    async def recorded(self, head: v1.Head) -> None:
        """A prompt record moved the head. Raises `RevisionConflict` if something else did too and this is guarded."""
        if self.guarded:
            async for entry in self.service.read_entries(self.id, self.revision + 1, head.revision):
                if entry.WhichOneof("payload") not in ("prompt", "context"):
                    raise errors.RevisionConflict(
                        f"the head was {entry.revision}, not {self.revision}",
                        detail=v1.RevisionConflict(expected=self.revision, actual=entry.revision),
                    )
        self.revision = max(self.revision, head.revision)
