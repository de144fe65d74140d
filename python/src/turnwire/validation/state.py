"""What is kept of a session while it is validated: one small row for each message, part, call and record.

`State` answers whether something is part of the history. Places are texts whose order is the order of the history:
a path of revisions, so that a message put before another sorts directly before it and no neighbour has to be known.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from turnwire.validation.spill import Spill, Table

Row = TypeVar("Row")

#: Sorts behind every number of a path.
_LAST: Final = "~"
#: The most steps of a path. Behind it a place is not known, and what depends on the order is not checked.
_DEEPEST: Final = 32

#: Cost in US dollars, then tokens: input, output, reasoning, cache read, cache write.
Amounts = list[float]


@dataclass(slots=True)
class MessageRow:
    """A message in its place. ``born``: the revision at which it came into it; ``header``: of its last header."""

    role: int
    born: int
    place: str
    turn: str = ""
    parent: str = ""
    header: int = 0
    sealed: bool = False
    removed: bool = False
    summary: bool = False
    compactions: int = 0
    open_calls: int = 0
    usage: Amounts | None = None
    steps: int = 0
    spent: Amounts | None = None  # the sum of its steps
    last: Amounts | None = None  # of the step that was put last
    cut: bool = False  # a revert took some of its parts, so that the sums are not known


@dataclass(slots=True)
class PartRow:
    """A part in its place; ``owner_born`` tells which life of its message it belongs to. ``put``: its last revision."""

    message: str
    owner_born: int
    slot: str
    born: int
    put: int
    kind: int
    sealed: bool = False
    removed: bool = False
    state: int = 0
    call: str = ""
    text: int = 0  # bytes of the text, or of a tool's raw input, deltas included
    output: int = 0
    usage: Amounts | None = None  # of a step


class Span(NamedTuple):
    """A revert that was made final: it took what existed at ``start`` from (place, slot) on; slot "": the message."""

    start: int
    place: str
    slot: str


def step(revision: int, index: int = 0) -> str:
    """A number of a path: a revision, and the index within its entry."""
    return f"{revision:011x}{index:05x}"


def at_end(number: str) -> str:
    """The place of what is put at the end."""
    return number + _LAST


def before(place: str, number: str) -> str:
    """The place directly before another; "": not known, since the other is not, or lies too deep."""
    if not place or len(place) > _DEEPEST * len(number):
        return ""
    return place.removesuffix(_LAST) + number + _LAST


def _table(spill: Spill, name: str, cls: type[Row]) -> Table[Row]:
    get = attrgetter(*(field.name for field in fields(cls)))  # type: ignore[arg-type]
    return Table(spill, name, lambda row: list(get(row)), lambda packed: cls(*packed))


class State:
    """The rows, and what was taken out of the history."""

    def __init__(self) -> None:
        self._spill = Spill()
        self.messages = _table(self._spill, "message", MessageRow)
        self.parts = _table(self._spill, "part", PartRow)
        #: Call ids by (message, its birth, call id): the part that has it.
        self.calls: Table[str] = Table(self._spill, "call", lambda part: [part], _first)
        #: Turns, prompt records, contexts and renderings by a letter and their id: the revision.
        self.records: Table[int] = Table(self._spill, "record", lambda revision: [revision], _first)
        self._spans = _Spans()
        self._inside: dict[str, _Spans] = {}  # those that took parts of a message, by its place

    def take_out(self, span: Span) -> None:
        """Take what a revert hid out of the history; later ones began later."""
        self._spans.add(span)
        if span.slot:
            self._inside.setdefault(span.place, _Spans()).add(span)

    def live_message(self, id: str) -> MessageRow | None:
        """A message that is part of the history."""
        row = self.messages.get(id)
        return row if row is not None and self.is_live(row) else None

    def is_live(self, row: MessageRow) -> bool:
        """Whether a message is part of the history."""
        return not row.removed and not self._spans.took(row.born, row.place, "")

    def part_owner(self, row: PartRow) -> MessageRow | None:
        """The message of a part that is part of the history; None: the part is not."""
        owner = self.live_message(row.message)
        if owner is None or owner.born != row.owner_born or self.removed_alone(row, owner):
            return None
        return owner

    def removed_alone(self, row: PartRow, owner: MessageRow) -> bool:
        """Whether a part was taken out by itself, and not with its message, so that its id is never used again."""
        inside = self._inside.get(owner.place)
        return row.removed or (inside is not None and inside.took(row.born, owner.place, row.slot))

    def trim(self) -> None:
        """Hold memory to its bound; rows that were got before are not to be changed after."""
        self.messages.trim()
        self.parts.trim()
        self.calls.trim()
        self.records.trim()

    def close(self) -> None:
        """Let go of what was spilled."""
        self._spill.close()


class _Spans:
    """Reverts that were made final, of which those that took more than any after them count."""

    def __init__(self) -> None:
        self._spans: list[Span] = []  # in their order, and so in that of what they took from on

    def add(self, span: Span) -> None:
        while self._spans and self._spans[-1][1:] >= span[1:]:
            self._spans.pop()
        self._spans.append(span)

    def took(self, born: int, place: str, slot: str) -> bool:
        """Whether one took what is in a position since a revision. Of all since then the first took most."""
        at = bisect_left(self._spans, born, key=attrgetter("start"))
        return at < len(self._spans) and (place, slot) >= self._spans[at][1:]


def _first(packed: list[Any]) -> Any:
    return packed[0]
