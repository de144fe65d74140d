"""Importers and exporters of other programs' sessions, one folder a program.

`IMPORTERS` and `EXPORTERS` list them by the program's name; `turnwire.formats.base` says what each one looks like.
"""

from __future__ import annotations

from typing import Any

from turnwire.formats.base import (
    EVERYTHING,
    Exporter,
    History,
    Importer,
    SessionImport,
    Source,
    Wanted,
    history,
    sessions,
)
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.report import Note, Outcome, Report

#: The importers by program. Each takes the records that it reads itself, so that their type is its own affair.
IMPORTERS: dict[str, Importer[Any]] = {OPENCODE.program: OPENCODE}

#: The exporters by program.
EXPORTERS: dict[str, Exporter] = {OPENCODE.program: OPENCODE}

__all__ = [
    "EVERYTHING",
    "EXPORTERS",
    "IMPORTERS",
    "Exporter",
    "History",
    "Importer",
    "Note",
    "Outcome",
    "Report",
    "SessionImport",
    "Source",
    "Wanted",
    "history",
    "sessions",
]
