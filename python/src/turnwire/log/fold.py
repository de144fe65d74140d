"""The fold: from entries to the history, by the rules alone.

This is the plain form of what the index of a store does: every entry of a log is applied, in order, to lists in memory.
It serves readers of exported entries, and the tests as the oracle of every store. It takes the entries as admitted and
checks nothing again. An entry costs the size of what it carries, whatever came before it; only a revert, and what ends
it, pass over all messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from turnwire import errors, v1
from turnwire.log import deltas

T = TypeVar("T")


class _Link(Generic[T]):
    __slots__ = ("after", "before", "item")

    def __init__(self, item: T) -> None:
        self.item = item
        self.before: _Link[T] | None = None
        self.after: _Link[T] | None = None


class Places(Generic[T]):
    """Things in an order, by id: a new one goes to the end or before another. Iterates over the things."""

    def __init__(self) -> None:
        self._links: dict[str, _Link[T]] = {}
        self._first: _Link[T] | None = None
        self._last: _Link[T] | None = None

    def __iter__(self) -> Iterator[T]:
        link = self._first
        while link is not None:
            yield link.item
            link = link.after

    def __len__(self) -> int:
        return len(self._links)

    def get(self, id: str) -> T | None:
        link = self._links.get(id)
        return link.item if link is not None else None

    def insert(self, id: str, item: T, before_id: str) -> None:
        """Put a thing before another, or at the end if there is no such other."""
        link = self._links[id] = _Link(item)
        link.after = self._links.get(before_id) if before_id != id else None
        link.before = self._last if link.after is None else link.after.before
        self._join(link.before, link)
        self._join(link, link.after)

    def remove(self, id: str) -> T:
        link = self._links.pop(id)
        self._join(link.before, link.after)
        return link.item

    def _join(self, one: _Link[T] | None, other: _Link[T] | None) -> None:
        if one is None:
            self._first = other
        else:
            one.after = other
        if other is None:
            self._last = one
        else:
            other.before = one


@dataclass(slots=True, eq=False)
class FoldedPart:
    """A part in its place: ``born`` is the revision at which the place came into being."""

    id: str
    born: int
    put: v1.PromptPart
    deltas: list[v1.PartDelta] = field(default_factory=list)
    hidden: bool = False  # by the open revert, which starts before it in its message

    def built(self) -> v1.PromptPart:
        """The part with its open deltas."""
        if not self.deltas:
            return self.put
        part = v1.PromptPart()
        part.CopyFrom(self.put)
        deltas.apply(part, self.deltas)
        return part


@dataclass(slots=True, eq=False)
class FoldedMessage:
    """A message in its place. ``header`` has no parts."""

    id: str
    born: int
    header: v1.User | v1.Assistant
    places: Places[FoldedPart] = field(default_factory=Places)  # hidden ones included
    summary: v1.MessageSummary | None = None
    hidden: bool = False  # by the open revert

    @property
    def parts(self) -> list[FoldedPart]:
        """The parts that are shown, in order."""
        return [part for part in self.places if not part.hidden]

    def built(self) -> v1.User | v1.Assistant:
        """The whole message, as it is shown."""
        message = _copy(self.header)
        message.parts.extend(part.built() for part in self.parts)
        return message


@dataclass(slots=True)
class Folded:
    """The state of a session at a revision."""

    revision: int = 0
    properties: v1.SessionProperties = field(default_factory=v1.SessionProperties)
    turns: dict[str, v1.Turn] = field(default_factory=dict)
    prompts: dict[str, v1.PromptRecord] = field(default_factory=dict)
    revert: v1.OpenRevert | None = None
    places: Places[FoldedMessage] = field(default_factory=Places)  # hidden ones included
    owners: dict[str, FoldedMessage] = field(default_factory=dict)  # part id -> the message that holds it
    retired: set[str] = field(default_factory=set)  # ids of parts that were removed by themselves: used up

    def messages(self) -> list[FoldedMessage]:
        """The messages that are shown, in order."""
        return [message for message in self.places if not message.hidden]


def fold(entries: Iterable[v1.Entry], revision: int | None = None) -> Folded:
    """Apply entries 1 to ``revision`` (None: all of them) in order.

    Raises ``UnknownPayload`` at an entry whose payload this build does not know, unless it says that it is ignorable.
    """
    state = Folded()
    for entry in entries:
        if revision is not None and entry.revision > revision:
            break
        _apply(state, entry)
        state.revision = entry.revision
    return state


def _apply(state: Folded, entry: v1.Entry) -> None:
    match entry.WhichOneof("payload"):
        case "session":
            state.properties = entry.session
        case "turn":
            state.turns[entry.turn.id] = entry.turn
        case "user":
            _put_message(state, entry.user.user, entry.user.before_id, entry.revision)
        case "assistant":
            _put_message(state, entry.assistant.assistant, entry.assistant.before_id, entry.revision)
        case "part":
            message = _message(state, entry.part.message_id)
            _put_part(state, message, entry.part.part, entry.part.before_id, entry.revision)
        case "delta":
            _part(state, entry.delta.part_id).deltas.append(entry.delta)
        case "summary":
            _message(state, entry.summary.message_id).summary = entry.summary
        case "removal":
            _remove(state, entry.removal)
        case "revert":
            state.revert = v1.OpenRevert(revision=entry.revision, revert=entry.revert)
            _hide(state, entry.revert)
        case "revert_clear":
            _show(state)
        case "prompt":
            state.prompts[entry.prompt.id] = entry.prompt
        case "context" | "rendering":
            pass
        case _:
            if not entry.ignorable:
                text = f"entry {entry.revision} has a payload of a later schema"
                raise errors.UnknownPayload(text, revision=entry.revision)


def _put_message(state: Folded, message: v1.User | v1.Assistant, before_id: str, revision: int) -> None:
    if state.revert is not None:
        _finish(state)
    header = _copy(message)
    del header.parts[:]
    there = state.places.get(message.id)
    if there is None:
        there = FoldedMessage(message.id, revision, header)
        state.places.insert(message.id, there, before_id)
    else:
        there.header = header
    for part in message.parts:
        _put_part(state, there, part, "", revision)


def _put_part(state: Folded, message: FoldedMessage, part: v1.PromptPart, before_id: str, revision: int) -> None:
    there = message.places.get(part.id)
    if there is not None:
        there.put, there.deltas = part, []
        return
    message.places.insert(part.id, FoldedPart(part.id, revision, part), before_id)
    state.owners[part.id] = message


def _remove(state: Folded, removal: v1.Removal) -> None:
    if removal.WhichOneof("target") == "message_id":
        state.places.remove(removal.message_id)
    else:
        state.owners.pop(removal.part_id).places.remove(removal.part_id)
        state.retired.add(removal.part_id)


def _hide(state: Folded, revert: v1.Revert) -> None:
    """Hide what is there from a place on. No message comes into being while a revert is open."""
    behind = False
    for message in state.places:
        if behind:
            message.hidden = True
        elif message.id == revert.message_id:
            behind = True
            if revert.HasField("part_id"):
                _hide_parts(message, revert.part_id)
            else:
                message.hidden = True


def _hide_parts(message: FoldedMessage, part_id: str) -> None:
    behind = False
    for part in message.places:
        behind = behind or part.id == part_id
        part.hidden = behind


def _show(state: Folded) -> None:
    state.revert = None
    for message in state.places:
        message.hidden = False
        for part in message.places:
            part.hidden = False


def _finish(state: Folded) -> None:
    """Take out what the open revert hides."""
    state.revert = None
    for message in list(state.places):
        if message.hidden:
            state.places.remove(message.id)
        for part in [part for part in message.places if part.hidden]:
            message.places.remove(part.id)
            state.retired.add(part.id)


def _message(state: Folded, id: str) -> FoldedMessage:
    message = state.places.get(id)
    assert message is not None, f"a log that was admitted has message {id}"
    return message


def _part(state: Folded, id: str) -> FoldedPart:
    part = state.owners[id].places.get(id)
    assert part is not None, f"a log that was admitted has part {id}"
    return part


def _copy(message: v1.User | v1.Assistant) -> v1.User | v1.Assistant:
    if isinstance(message, v1.User):
        user = v1.User()
        user.CopyFrom(message)
        return user
    assistant = v1.Assistant()
    assistant.CopyFrom(message)
    return assistant
