"""Checks sessions of other programs through their importers: what would be refused or repaired, and what comes out.

A session that would be imported is checked like a log, entry by entry, although nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from turnwire import v1
from turnwire.formats import IMPORTERS
from turnwire.formats.base import EVERYTHING, Importer, SessionImport, Source, Wanted
from turnwire.formats.report import Note, Outcome, Report
from turnwire.log.raw import RawEntry
from turnwire.validation.files import Step
from turnwire.validation.findings import Findings
from turnwire.validation.registry import Selection
from turnwire.validation.session import SessionCheck

_RULES: Final = {
    Outcome.REFUSED: "storage.import.refused",
    Outcome.REPAIRED: "storage.import.repaired",
    Outcome.LEFT: "storage.import.left",
}


class Import:
    """The sources of one program at a path."""

    def __init__(self, importer: Importer[Any], sources: Sequence[Source]) -> None:
        self._importer = importer
        self._sources = sources

    @classmethod
    def at(cls, path: Path) -> Import | None:
        """What of a known program is at a path; None if nothing is. Raises OSError."""
        for importer in IMPORTERS.values():
            sources = importer.sources(path, Report())
            if sources:
                return cls(importer, sources)
        return None

    def has(self, path: Path) -> bool:
        """Whether a path is one of the sources, lies in one, or holds or accompanies one.

        What lies beside a program's database or tree is that program's.
        """
        path = path.resolve()
        for source in self._sources:
            around = source.path.parent if self._importer.is_store(source) else source.path
            if path.is_relative_to(around) or source.path.is_relative_to(path):
                return True
        return False

    def count(self) -> int:
        """How many sessions there are, as far as that can be told quickly."""
        return sum(self._importer.count(source) for source in self._sources)

    def check(self, selection: Selection, wanted: Wanted = EVERYTHING) -> Iterator[Step]:
        """Check the sessions, one a step. ``done`` counts them. Raises OSError if a source cannot be read at all."""
        step = Step([])
        for source in self._sources:
            report = Report()
            for record in self._importer.read(source, report, wanted):
                session = self._importer.map(record, report)
                notes = _notes(report)
                findings = _told(notes, selection, session.session_id if session is not None else "")
                there = {note.id for note in notes}
                if session is not None:
                    there.add(session.session_id)
                step.seen |= there & (wanted.session_ids or frozenset())
                step.done += 1
                if session is not None:
                    step.sessions += 1
                    step.entries += len(session.entries) + 1
                    findings += _checked(session, selection)
                yield Step(findings, step.done, step.sessions, step.entries, seen=step.seen)
            yield Step(_told(_notes(report), selection, ""), step.done, step.sessions, step.entries, seen=step.seen)


def _notes(report: Report) -> list[Note]:
    """The remarks since this was last asked."""
    notes, report.notes = report.notes, []
    return notes


def _told(notes: Sequence[Note], selection: Selection, session_id: str) -> list[v1.Finding]:
    told: list[v1.Finding] = []
    for note in notes:
        if note.outcome in _RULES:
            about = "" if note.kind in ("file", "table") else session_id
            found = Findings(selection, session_id=about, source=note.source)
            what = f"{note.kind} {note.id}".strip()
            found.add(_RULES[note.outcome], path=note.path + note.pointer, text=note.reason, place=what)
            told += found.take()
    return told


def _checked(session: SessionImport, selection: Selection) -> list[v1.Finding]:
    run = SessionCheck(session.session_id, selection=selection, source=session.source, enveloped=False)
    try:
        for entry in entries(session):
            run.entry(entry)
        run.end()
        return run.take()
    finally:
        run.close()


def entries(session: SessionImport) -> Iterator[RawEntry]:
    """The entries that a session would have, without times of recording and digests."""
    for revision, entry in enumerate([v1.EntryInput(session=session.properties), *session.entries], 1):
        name = entry.WhichOneof("payload")
        assert name is not None
        payload: bytes = getattr(entry, name).SerializeToString(deterministic=True)
        field = v1.Entry.DESCRIPTOR.fields_by_name[name].number
        yield RawEntry(revision, 0, b"", entry.ignorable, field, payload)
