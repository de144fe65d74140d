"""What became of the objects of an import: counts, and a note for each one that was not taken as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of an object."""

    IMPORTED = "imported"
    """It is new in the store."""
    UNCHANGED = "unchanged"
    """The store has it already, with the same content."""
    UPDATED = "updated"
    """The store had it with other content and now has this."""
    REPAIRED = "repaired"
    """A value of it had no legal place in a field; the original is kept in ``extra_json``."""
    REFUSED = "refused"
    """It could not be taken. Its neighbours were."""
    REMOVED = "removed"
    """It was brought from this source before, is gone from it, and was taken out of the history."""
    LEFT = "left"
    """It is left where it is, and why is no fault of the source's."""


KINDS = ("file", "table", "session", "entry", "turn", "message", "part", "summary", "revert")


@dataclass(frozen=True, slots=True)
class Note:
    """One remark: ``path`` is the place of the object in ``source``, ``pointer`` a JSON pointer inside the object.

    A reason never holds content of a message.
    """

    outcome: Outcome
    kind: str
    source: str
    path: str
    pointer: str
    reason: str
    id: str = ""

    def to_json(self) -> dict[str, str]:
        """The note as a JSON object; empty fields are left out."""
        fields = {
            "outcome": self.outcome.value,
            "kind": self.kind,
            "source": self.source,
            "path": self.path + self.pointer,
            "id": self.id,
            "reason": self.reason,
        }
        return {key: value for key, value in fields.items() if value}

    def __str__(self) -> str:
        where = f"{self.source}#{self.path}{self.pointer}" if self.source else f"{self.path}{self.pointer}"
        name = f" {self.id}" if self.id else ""
        return f"{self.outcome}: {self.kind}{name} ({where}): {self.reason}"


class Report:
    """Collects what becomes of the objects of one or more sources.

    An object is imported, unchanged, updated, removed or refused, or left, and counts once; beside that it can be
    repaired, which counts once an object however many of its values were. A session that is refused as a whole counts
    as one, and nothing in it does.
    """

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self._counts: Counter[tuple[Outcome, str]] = Counter()
        self._repaired: set[tuple[str, str, str]] = set()

    def add(self, other: Report) -> None:
        """Take in what another report has."""
        self.notes += other.notes
        self._counts += other._counts
        self._repaired |= other._repaired

    def take(self) -> list[object]:
        """What it has, as JSON for `give`; it is then empty."""
        notes = [[getattr(note, name) for name in Note.__slots__] for note in self.notes]
        counts = [[outcome, kind, number] for (outcome, kind), number in self._counts.items()]
        repaired = sorted(map(list, self._repaired))
        self.notes, self._counts, self._repaired = [], Counter(), set()
        return [notes, counts, repaired]

    def give(self, taken: list[list[list[str]]]) -> None:
        """Take in what `take` gave."""
        notes, counts, repaired = taken
        self.notes += [Note(Outcome(note[0]), *note[1:]) for note in notes]
        for outcome, kind, number in counts:
            self._counts[Outcome(outcome), kind] += int(number)
        self._repaired.update((kind, source, path) for kind, source, path in repaired)

    def count(self, outcome: Outcome, kind: str, number: int = 1) -> None:
        """Count objects that need no note."""
        self._counts[outcome, kind] += number

    def repaired(self, kind: str, path: str, pointer: str, reason: str, *, source: str = "", id: str = "") -> None:
        """Note that the value at ``pointer`` of an object was repaired."""
        self.notes.append(Note(Outcome.REPAIRED, kind, source, path, pointer, reason, id))
        if (kind, source, path) not in self._repaired:
            self._repaired.add((kind, source, path))
            self._counts[Outcome.REPAIRED, kind] += 1

    def refused(self, kind: str, path: str, reason: str, *, pointer: str = "", source: str = "", id: str = "") -> None:
        """Note that an object was refused."""
        self.notes.append(Note(Outcome.REFUSED, kind, source, path, pointer, reason, id))
        self._counts[Outcome.REFUSED, kind] += 1

    def left(self, kind: str, path: str, reason: str, *, source: str = "", id: str = "") -> None:
        """Note that an object was left where it is."""
        self.notes.append(Note(Outcome.LEFT, kind, source, path, "", reason, id))
        self._counts[Outcome.LEFT, kind] += 1

    def remark(self, kind: str, path: str, reason: str, *, source: str = "", id: str = "") -> None:
        """Note what is left as it is of an object that counts as something else."""
        self.notes.append(Note(Outcome.LEFT, kind, source, path, "", reason, id))

    def total(self, outcome: Outcome, kind: str | None = None) -> int:
        """How many objects, of one kind or of all, had an outcome."""
        return sum(
            number for (had, what), number in self._counts.items() if had is outcome and (kind is None or what == kind)
        )

    @property
    def complete(self) -> bool:
        """Whether nothing was refused."""
        return self.total(Outcome.REFUSED) == 0

    def to_json(self) -> dict[str, object]:
        """The report for scripts: ``{"counts": {outcome: {kind: number}}, "notes": [...]}``."""
        counts: dict[str, dict[str, int]] = {}
        for outcome in Outcome:
            by_kind = {kind: self.total(outcome, kind) for kind in KINDS if self.total(outcome, kind)}
            counts[outcome.value] = by_kind
        return {"counts": counts, "notes": [note.to_json() for note in self.notes]}

    def lines(self) -> Iterator[str]:
        """The report for people: a line an outcome, then a line a note."""
        for outcome in Outcome:
            found = [(kind, self.total(outcome, kind)) for kind in KINDS]
            shown = ", ".join(f"{number} {_plural(kind, number)}" for kind, number in found if number)
            if shown:
                yield f"{outcome}: {shown}"
        for note in self.notes:
            yield str(note)


def _plural(kind: str, number: int) -> str:
    if number == 1:
        return kind
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
