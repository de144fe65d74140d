"""The frames of a replay: versions in, serialized responses out.

A message's frame stays open while its parts come, until the response has reached ``FRAME_BYTES``; the parts that are
left follow as further parts. One part may go over the limit, nothing else.
"""

from __future__ import annotations

from turnwire import v1
from turnwire.log import deltas, prepare, reverts, wire
from turnwire.store.base import HEADER_SLOT, SUMMARY_SLOT, TURN, Snapshot

#: Where a streamed response is closed. With the largest part that a server takes by default it stays below the 4 MiB
#: that a gRPC client takes by default.
FRAME_BYTES = 1_000_000

_OVERHEAD = 16  # at most: the tags and lengths around a frame or a part
_FULL = FRAME_BYTES - _OVERHEAD
_NUMBER = {name: field.number for name, field in v1.HistoryFrame.DESCRIPTOR.fields_by_name.items()}
_ROLE_NUMBER = {prepare.USER: _NUMBER["user"], prepare.ASSISTANT: _NUMBER["assistant"]}
_MORE = _NUMBER["parts"]

#: A position in a history: place and slot.
Position = tuple[bytes, bytes]


class Frames:
    """Makes the responses of one replay, one at a time, from a position to before another (None: the end)."""

    def __init__(self, revision: int, first: Position, last: Position | None, summaries: bool) -> None:
        self.done = False
        self._revision = revision
        self._next = first
        self._last = last
        self._summaries = summaries
        self._turns: frozenset[int | str] = frozenset()  # those that were sent
        self._message: tuple[int, bytes] = (0, b"")  # the message that is under way: kind and header

    def response(self, snapshot: Snapshot) -> bytes:
        """The next response, serialized; empty when there is nothing more. Changes nothing if it fails."""
        # Every part of a history passes through this loop: it calls as little as it can.
        revision = self._revision
        span = snapshot.span(revision)
        turns = set(self._turns)
        message = self._message
        closed: list[bytes] = []  # frames
        pieces: list[bytes] = []  # header and parts of the message whose frame is open
        number = 0  # of that frame; 0: none is open
        size = 0
        position: Position | None = None
        for place, slot, kind, born, turn, delta, stored in snapshot.versions(revision, self._next, self._last):
            if size >= _FULL:
                position = (place, slot)
                break
            if span is not None and reverts.hides(span, place, slot, born):
                continue
            if slot == HEADER_SLOT:
                if number:
                    closed.append(_framed(number, b"".join(pieces)))
                    number = 0
                found = turn or late_turn(snapshot, kind, stored, revision)
                if found not in turns and isinstance(found, int):
                    turns.add(found)
                    payload = snapshot.entry(found).payload
                    closed.append(_framed(_NUMBER["turn"], payload))
                    size += len(payload) + _OVERHEAD
                    if size >= _FULL:
                        position = (place, slot)
                        break
                message = (kind, stored)
                number = _ROLE_NUMBER[kind]
                pieces = [stored]
                size += len(stored) + _OVERHEAD
            elif slot != SUMMARY_SLOT:
                if not number:  # the response before ended in this message
                    number = _MORE
                    pieces = [wire.field(1, parse_header(*message).id.encode())]
                    size += len(pieces[0]) + _OVERHEAD
                if delta:
                    stored = built(snapshot, delta, stored, revision)
                length = len(stored)
                pieces.append(_PREFIXES.get(length) or _prefix(length))
                pieces.append(stored)
                size += length + 6
            elif self._summaries:
                if number:
                    closed.append(_framed(number, b"".join(pieces)))
                    number = 0
                closed.append(_framed(_NUMBER["summary"], stored))
                size += len(stored) + _OVERHEAD
        if number:
            closed.append(_framed(number, b"".join(pieces)))
        self._turns, self._message = frozenset(turns), message
        if position is None:
            self.done = True
        else:
            self._next = position
        return b"".join(closed)


def head(message: v1.Head) -> bytes:
    """A response with nothing but the head's frame."""
    return _framed(_NUMBER["head"], message.SerializeToString())


def parse_header(kind: int, stored: bytes) -> v1.User | v1.Assistant:
    """The header of a message, without parts."""
    return v1.User.FromString(stored) if kind == prepare.USER else v1.Assistant.FromString(stored)


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


def _framed(number: int, value: bytes) -> bytes:
    return wire.field(1, wire.field(number, value))


_PREFIXES: dict[int, bytes] = {}


def _prefix(length: int) -> bytes:
    """Tag and length of a part; those of usual lengths are kept."""
    made = wire.PARTS_TAG + wire.varint(length)
    if length < 16_384:
        _PREFIXES[length] = made
    return made
