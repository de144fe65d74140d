"""The entries of an import, in an order in which every reference points to what was put before."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire import v1
from turnwire.formats.base import Message

# What one put carries at most; further parts follow one by one, so that no entry is too large for a request.
_PUT_PARTS = 1000
_PUT_BYTES = 1024 * 1024


@dataclass(slots=True)
class Mapped:
    """A message that is ready but for its parts, which stand beside it."""

    message: Message
    turn: v1.Turn
    created: Timestamp
    summary: v1.MessageSummary | None = None
    parts: list[v1.PromptPart] = field(default_factory=list[v1.PromptPart])


def in_order(mapped: list[Mapped], revert: v1.Revert | None) -> list[v1.EntryInput]:
    """The entries for messages that are given in the order that they shall have.

    A message that refers to a later one (an assistant whose client's clock ran ahead of its user's) is put after that
    one and takes its place by ``before_id``.
    """
    order = _Order(mapped)
    for place in range(len(mapped)):
        order.arrive(place)
    order.finish()
    if revert is not None:
        order.entries.append(v1.EntryInput(revert=revert))
    return order.entries


class _Order:
    """Puts messages as soon as what they refer to is put."""

    def __init__(self, mapped: list[Mapped]) -> None:
        self.entries: list[v1.EntryInput] = []
        self._mapped = mapped
        self._places = {one.message.id: place for place, one in enumerate(mapped)}
        self._turns: set[str] = set()
        self._done: list[int] = []
        self._waiting: defaultdict[int, list[int]] = defaultdict(list)
        self._put = [False] * len(mapped)

    def arrive(self, place: int) -> None:
        """Put a message, or let it wait for the one that it refers to."""
        found = _refers_to(self._mapped[place], self._places)
        lacking = next((other for other in found if not self._put[other]), None)
        if lacking is None:
            self._emit(place)
        else:
            self._waiting[lacking].append(place)

    def finish(self) -> None:
        """Put the messages that refer to each other in a ring."""
        for place, put in enumerate(self._put):
            if not put:
                self._waiting.clear()
                self._emit(place)

    def _emit(self, place: int) -> None:
        one = self._mapped[place]
        if one.turn.id not in self._turns:
            self._turns.add(one.turn.id)
            self.entries.append(v1.EntryInput(turn=one.turn))
        after = bisect_right(self._done, place)
        before = self._mapped[self._done[after]].message.id if after < len(self._done) else None
        self.entries.extend(_puts(one, before))
        insort(self._done, place)
        self._put[place] = True
        for follower in self._waiting.pop(place, ()):
            self.arrive(follower)


def _refers_to(one: Mapped, places: dict[str, int]) -> Iterator[int]:
    if isinstance(one.message, v1.Assistant) and one.message.HasField("parent_id"):
        yield places[one.message.parent_id]
    for part in one.parts:
        if part.compaction.HasField("tail_start_id"):
            yield places[part.compaction.tail_start_id]


def _puts(one: Mapped, before: str | None) -> Iterator[v1.EntryInput]:
    message = one.message
    size = 0
    taken = 0
    for part in one.parts[:_PUT_PARTS]:
        size += part.ByteSize()
        if size > _PUT_BYTES and taken:
            break
        taken += 1
    message.parts.extend(one.parts[:taken])
    if isinstance(message, v1.User):
        yield v1.EntryInput(user=v1.UserPut(user=message, before_id=before))
    else:
        yield v1.EntryInput(assistant=v1.AssistantPut(assistant=message, before_id=before))
    for part in one.parts[taken:]:
        yield v1.EntryInput(part=v1.PartPut(message_id=message.id, part=part))
    if one.summary is not None:
        yield v1.EntryInput(summary=one.summary)
