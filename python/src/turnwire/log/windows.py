"""Windows of a history: where the last turns begin, and where a message has its place."""

from __future__ import annotations

from bisect import insort

from turnwire import errors, v1
from turnwire.log import reverts
from turnwire.log.frames import late_turn
from turnwire.store.base import HEADER_SLOT, MESSAGE, TURN, Node, Snapshot

_PAGE = 32


def place(snapshot: Snapshot, id: str, revision: int, path: str) -> bytes:
    """The place of a message that the history shows at a revision. Raises ``MessageNotFound``."""
    name = snapshot.name(MESSAGE, id, revision)
    if name is not None:
        first = (name.place, HEADER_SLOT)
        span = snapshot.span(revision)
        for found, slot, _, born, *_ in snapshot.versions(revision, first, (name.place, HEADER_SLOT + b"\x00")):
            if born == name.born and (span is None or not reverts.hides(span, found, slot, born)):
                return name.place
    raise errors.MessageNotFound("the history has no such message", path=path, message_id=id)


def last_turns(snapshot: Snapshot, revision: int, count: int) -> bytes:
    """The place of the first message of the ``count``-last turn; turns are in the order of their first messages."""
    span = snapshot.span(revision)
    before = None
    if span is not None:
        before = span.place if span.slot == HEADER_SLOT else span.place + b"\x00"
    bounds: dict[int | str, bytes] = {}  # turn -> the place before which it has no message
    unsettled: dict[int | str, bytes] = {}  # turn -> its first place so far, where an earlier one may follow
    firsts: list[bytes] = []  # first places of the other turns, sorted
    while True:
        headers = snapshot.headers_back(revision, before, _PAGE)
        for header in headers:
            turn = header.turn or _late_turn(snapshot, header, revision)
            if turn not in bounds:
                bounds[turn] = _bound(snapshot, turn)
            unsettled[turn] = header.place
            for settled in [turn for turn in unsettled if bounds[turn] >= header.place]:
                insort(firsts, unsettled.pop(settled))
            if len(firsts) >= count and all(place < firsts[-count] for place in unsettled.values()):
                return firsts[-count]
        if not headers:
            firsts = sorted([*firsts, *unsettled.values()])
            return firsts[-count] if len(firsts) >= count else b""
        before = headers[-1].place


def _late_turn(snapshot: Snapshot, header: Node, revision: int) -> int | str:
    payload = snapshot.entry(header.revision).payload
    return late_turn(snapshot, header.kind, payload[header.offset : header.offset + header.length], revision)


def _bound(snapshot: Snapshot, turn: int | str) -> bytes:
    if isinstance(turn, str):
        return b""
    id = v1.Turn.FromString(snapshot.entry(turn).payload).id
    name = snapshot.name(TURN, id, 1 << 62)
    return name.place if name is not None else b""
