"""The frames of a replay: versions in, serialized responses out.

A message's frame stays open while its parts come, until the response has reached ``FRAME_BYTES``; the parts that are
left follow as further parts. One part, or one stretch of small ones, may go over the limit, nothing else. Where exactly
a response ends depends on how the versions are stored, and is no part of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from turnwire import errors, v1
from turnwire.log import deltas, prepare, reverts, wire
from turnwire.store.base import HEADER_SLOT, SUMMARY_SLOT, TURN, RevertSpan, Snapshot, Stretch, Version

#: Where a streamed response is closed. With the largest part that a server takes by default it stays below the 4 MiB
#: that a gRPC client takes by default.
FRAME_BYTES = 1_000_000

_OVERHEAD = 16  # at most: the tags and lengths around a frame
_FULL = FRAME_BYTES - _OVERHEAD
_NUMBER = {name: field.number for name, field in v1.HistoryFrame.DESCRIPTOR.fields_by_name.items()}
_ROLE_NUMBER = {prepare.USER: _NUMBER["user"], prepare.ASSISTANT: _NUMBER["assistant"]}
_MORE = _NUMBER["parts"]
_FRAME_TAG = wire.tag(1)

#: A position in a history: place and slot.
Position = tuple[bytes, bytes]
#: From which position on, and before which (None: to the end).
Window = tuple[Position, Position | None]


class Frames:
    """Makes the responses of one replay, one at a time."""

    def __init__(self, revision: int, window: Callable[[Snapshot], Window], summaries: bool) -> None:
        """``window`` is asked when the first response is made; what it raises that response raises."""
        self.done = False
        self._revision = revision
        self._window = window
        self._next: Position | None = None  # None: nothing has been made yet
        self._last: Position | None = None
        self._summaries = summaries
        self._turns: frozenset[int | str] = frozenset()  # those that were sent
        self._message: tuple[int, bytes] = (0, b"")  # the message that is under way: kind and header

    def response(self, snapshot: Snapshot) -> bytes:
        """The next response, serialized; empty when there is nothing more. Changes nothing if it fails."""
        if self._next is None:
            self._next, self._last = self._window(snapshot)
        span = snapshot.span(self._revision)
        turns = set(self._turns)
        message = self._message
        out = _Response()
        position: Position | None = None
        for piece in snapshot.pieces(self._revision, self._next, self._last):
            if not isinstance(piece, Stretch):
                position, message = self._add(snapshot, (piece,), out, turns, message, span)
            elif span is None and out.size < _FULL:
                message = self._take(snapshot, piece, out, turns, message)
            else:  # some of it may be hidden
                position, message = self._add(snapshot, piece.versions(), out, turns, message, span)
            if position is not None:
                break
        out.close()
        self._turns, self._message = frozenset(turns), message
        if position is None:
            self.done = True
        else:
            self._next = position
        return b"".join(out.pieces)

    def _take(
        self, snapshot: Snapshot, stretch: Stretch, out: _Response, turns: set[int | str], message: tuple[int, bytes]
    ) -> tuple[int, bytes]:
        """Add a stretch. Returns the message that is then under way."""
        _, _, turn, parts, closed, kind, last, _ = stretch
        if parts:
            if not out.number:
                _go_on(out, message)
            out.add(parts)
        if not kind:
            return message
        out.close()
        if turn not in turns:
            turns.add(turn)
            out.add(_framed(_NUMBER["turn"], snapshot.entry(turn).payload))
        out.add(closed)
        out.begin(_role(kind))
        out.add(last)
        return kind, last

    def _add(
        self,
        snapshot: Snapshot,
        found: Iterable[Version],
        out: _Response,
        turns: set[int | str],
        message: tuple[int, bytes],
        span: RevertSpan | None,
    ) -> tuple[Position | None, tuple[int, bytes]]:
        """Add versions until the response is full. Returns where it goes on, and the message that is then under way."""
        revision = self._revision
        for place, slot, kind, born, turn, delta, stored in found:
            if out.size >= _FULL:
                return (place, slot), message
            if span is not None and reverts.hides(span, place, slot, born):
                continue
            if slot == HEADER_SLOT:
                out.close()
                of_turn = turn or late_turn(snapshot, kind, stored, revision)
                if of_turn not in turns and isinstance(of_turn, int):
                    turns.add(of_turn)
                    out.add(_framed(_NUMBER["turn"], snapshot.entry(of_turn).payload))
                    if out.size >= _FULL:
                        return (place, slot), message
                message = (kind, stored)
                out.begin(_role(kind))
                out.add(stored)
            elif slot != SUMMARY_SLOT:
                if not out.number:
                    _go_on(out, message)
                if delta:
                    stored = built(snapshot, delta, stored, revision)
                out.add(wire.part_prefix(len(stored)))
                out.add(stored)
            elif self._summaries:
                out.close()
                out.add(_framed(_NUMBER["summary"], stored))
        return None, message


class _Response:
    """The pieces of a response. What stands before a message is told when it is closed: it says how long that is."""

    __slots__ = ("_begun", "_opening", "number", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self.number = 0  # of the frame that is open; 0: none is
        self._opening = 0  # which piece stands before its message,
        self._begun = 0  # and where this begins

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def begin(self, number: int) -> None:
        self.number = number
        self._opening = len(self.pieces)
        self._begun = self.size
        self.pieces.append(b"")

    def close(self) -> None:
        if self.number:
            head = self.pieces[self._opening] = _opening(self.number, self.size - self._begun)
            self.size += len(head)
            self.number = 0


def _go_on(out: _Response, message: tuple[int, bytes]) -> None:
    """Begin a frame for more parts of a message in which the response before ended."""
    out.begin(_MORE)
    out.add(wire.field(1, parse_header(*message).id.encode()))


def head(message: v1.Head) -> bytes:
    """A response with nothing but the head's frame."""
    return _framed(_NUMBER["head"], message.SerializeToString())


def parse_header(kind: int, stored: bytes) -> v1.User | v1.Assistant:
    """The header of a message, without parts. Raises ``CorruptData``."""
    return v1.User.FromString(stored) if _role(kind) == _NUMBER["user"] else v1.Assistant.FromString(stored)


def _role(kind: int) -> int:
    """The number of the frame for a message of a kind, which a damaged index may not have, or have no message at all.

    Raises ``CorruptData``.
    """
    number = _ROLE_NUMBER.get(kind)
    if number is None:
        raise errors.CorruptData("a row of the index is damaged or missing")
    return number


def late_turn(snapshot: Snapshot, kind: int, header: bytes, revision: int) -> int | str:
    """The revision of a turn that came after its message in one request; its id, where the history lacks it yet."""
    id = parse_header(kind, header).turn_id
    name = snapshot.name(TURN, id, revision)
    return name.born if name is not None else id


def built(snapshot: Snapshot, last: int, stored: bytes, revision: int) -> bytes:
    """A part with its open deltas: strings do not concatenate by merging, so it is parsed and built anew."""
    rows = deltas.chain(snapshot.entry, last, revision)
    if not rows:
        return stored
    part = v1.PromptPart.FromString(stored)
    deltas.apply(part, [v1.PartDelta.FromString(row.payload) for row in rows])
    return part.SerializeToString(deterministic=True)


def opening(kind: int, length: int) -> bytes:
    """What stands in a response before a message of a kind and length in bytes."""
    return _opening(_ROLE_NUMBER[kind], length)


@lru_cache(16_384)
def _opening(number: int, length: int) -> bytes:
    field = wire.tag(number) + wire.varint(length)
    return _FRAME_TAG + wire.varint(len(field) + length) + field


def _framed(number: int, value: bytes) -> bytes:
    return _opening(number, len(value)) + value
