"""opencode and openAgent: their sessions in and out.

Every form of the storage is a reader that gives `SessionRecord`; the mapper and the exporter know the records only.
There are three forms: the files of ``opencode export``, the SQLite database of 1.2 to 1.18, and the JSON tree of the
versions before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from turnwire.formats.base import EVERYTHING, History, SessionImport, Source, Wanted
from turnwire.formats.opencode import database, export_file, found, tree
from turnwire.formats.opencode.exporter import export
from turnwire.formats.opencode.mapper import map_record
from turnwire.formats.opencode.records import MessageRecord, PartRecord, SessionRecord
from turnwire.formats.opencode.session import PROGRAM
from turnwire.formats.report import Report

__all__ = ["OPENCODE", "MessageRecord", "Opencode", "PartRecord", "SessionRecord", "export", "map_record"]


class Opencode:
    """opencode's importer and exporter; see `turnwire.formats.base`."""

    program = PROGRAM

    def detect(self, path: Path) -> str | None:
        """The name of the form that a path is in by itself; None if it is not opencode's."""
        return found.form_of(path)

    def sources(self, path: Path, report: Report) -> list[Source]:
        """The exports, databases and trees at a path. Raises OSError if it cannot be read at all."""
        return found.sources(path, report)

    def count(self, source: Source, wanted: Wanted = EVERYTHING) -> int:
        """How many sessions a source has."""
        match source.form:
            case database.NAME:
                return database.count(source.path, wanted)
            case tree.NAME:
                return tree.count(source.path, wanted)
            case _:
                return 1

    def read(self, source: Source, report: Report, wanted: Wanted = EVERYTHING) -> Iterator[SessionRecord]:
        """The sessions of a source. Raises OSError if it cannot be read."""
        match source.form:
            case database.NAME:
                return database.read(source.path, report, wanted)
            case tree.NAME:
                return tree.read(source.path, report, wanted, database.session_ids(source.beside))
            case _:
                return export_file.read(source.path, report, wanted, source.beside)

    def is_store(self, source: Source) -> bool:
        """Databases and trees are; an export is a copy of one session."""
        return source.form != export_file.NAME

    def id_of(self, record: SessionRecord) -> str:
        """The session's id as its ``info`` has it."""
        return record.id

    def map(self, record: SessionRecord, report: Report) -> SessionImport | None:
        """A session as a pure value."""
        return map_record(record, report)

    def export(self, history: History) -> str:
        """The text of an export file."""
        return export(history)


OPENCODE = Opencode()
