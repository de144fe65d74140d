"""The folded history at a revision, as assembling takes it, and what became of ids that it does not show."""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Protocol

from turnwire import v1
from turnwire.prompt.parts import Part


class Fate(enum.Enum):
    """What became of a message or part in a history."""

    LIVE = "live"
    #: Live, but a compaction stands in its place in the prompt.
    COMPACTED = "compacted"
    #: Taken out by a removal, or hidden by a revert.
    REMOVED = "removed"
    #: The session never had it, at that revision.
    UNKNOWN = "unknown"


class Fates(Protocol):
    """What a mutation asks about an anchor that it does not find in the prompt."""

    def message_fate(self, message_id: str) -> Fate:
        """What became of a message."""
        ...

    def part_fate(self, part_id: str) -> Fate:
        """What became of a part."""
        ...


class NothingKnown:
    """The fates where there is no history to ask: every id that the prompt does not show is unknown."""

    def message_fate(self, message_id: str) -> Fate:
        return Fate.UNKNOWN

    def part_fate(self, part_id: str) -> Fate:
        return Fate.UNKNOWN


class Message:
    """A stored message: its header, and its parts in order. Never changed.

    ``Message(header)`` takes the parts that the message carries. ``Message(header, parts)`` takes parts kept
    apart from the header, as a store has them; what ``header`` carries is then not looked at.
    """

    __slots__ = ("_parts", "header", "id", "role", "turn_id")

    def __init__(self, header: v1.User | v1.Assistant, parts: Sequence[Part] | None = None) -> None:
        self.header = header
        self.id = header.id
        self.turn_id = header.turn_id
        self.role = v1.Role.ROLE_USER if isinstance(header, v1.User) else v1.Role.ROLE_ASSISTANT
        self._parts = None if parts is None else tuple(parts)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in order."""
        if self._parts is None:
            self._parts = tuple(map(Part, self.header.parts))
        return self._parts

    def __repr__(self) -> str:
        return f"Message(id={self.id!r}, role={v1.Role.Name(self.role)})"


class History:
    """A folded history at ``revision``: the live messages in place order, and the turns.

    The messages are held by reference and must not be changed while the history is in use. Constructing costs
    about a microsecond a message; nothing is copied, parsed or indexed before somebody asks.

    ``removed_messages`` and ``removed_parts`` tell which ids the session once had and has no longer (removed,
    or hidden by a revert; the parts of such messages count as removed too). Only ``in`` is used on them, and
    only to choose the right error, so a caller may pass just the ids that it was asked about; see
    ``anchors``. A live id is never looked up there. Without them such an id is unknown.
    """

    __slots__ = ("_index", "_owners", "messages", "removed_messages", "removed_parts", "revision", "turns")

    def __init__(
        self,
        messages: Iterable[Message | v1.User | v1.Assistant],
        *,
        turns: Iterable[v1.Turn] = (),
        revision: int = 0,
        removed_messages: Container[str] = (),
        removed_parts: Container[str] = (),
    ) -> None:
        self.messages: tuple[Message, ...] = tuple(
            message if isinstance(message, Message) else Message(message) for message in messages
        )
        self.turns: Mapping[str, v1.Turn] = {turn.id: turn for turn in turns}
        self.revision = revision
        self.removed_messages = removed_messages
        self.removed_parts = removed_parts
        self._index: dict[str, int] | None = None
        self._owners: dict[str, int] | None = None

    def place(self, message_id: str) -> int | None:
        """The place of a live message, from 0; None when no live message has that id."""
        if self._index is None:
            self._index = {message.id: place for place, message in enumerate(self.messages)}
        return self._index.get(message_id)

    def place_of_part(self, part_id: str) -> int | None:
        """The place of the live message that holds a part; None when no live message does."""
        if self._owners is None:
            self._owners = {part.id: place for place, message in enumerate(self.messages) for part in message.parts}
        return self._owners.get(part_id)

    def message_fate(self, message_id: str) -> Fate:
        """LIVE, REMOVED or UNKNOWN; only a prompt can tell COMPACTED."""
        if self.place(message_id) is not None:
            return Fate.LIVE
        return Fate.REMOVED if message_id in self.removed_messages else Fate.UNKNOWN

    def part_fate(self, part_id: str) -> Fate:
        """LIVE, REMOVED or UNKNOWN; only a prompt can tell COMPACTED."""
        if self.place_of_part(part_id) is not None:
            return Fate.LIVE
        return Fate.REMOVED if part_id in self.removed_parts else Fate.UNKNOWN
