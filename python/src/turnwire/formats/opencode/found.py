"""Finds what is opencode's at a path: an export, a database, a tree, a data directory, a directory of any of these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnwire.formats.base import Source
from turnwire.formats.opencode import database, export_file, tree
from turnwire.formats.report import Report

_NOTHING: Final = "nothing of opencode's is there: no export, no database, no storage tree"
_NEVER: Final = frozenset({".git", "node_modules"})


def form_of(path: Path) -> str | None:
    """The name of the form that a path is in by itself; None if it is none."""
    if tree.detect(path):
        return tree.NAME
    if database.detect(path):
        return database.NAME
    return export_file.NAME if export_file.detect(path) else None


def sources(path: Path, report: Report) -> list[Source]:
    """What is at a path, by absolute paths in their order. Raises OSError if it cannot be read at all."""
    path = path.resolve()
    found: list[Source] = []
    if path.is_dir():
        _look_into(path, found)
        exports = tuple(source.path for source in found if source.form == export_file.NAME)
        found = [one._replace(beside=exports) if one.form == export_file.NAME else one for one in found]
    else:
        with path.open("rb"):
            pass
        form = form_of(path)
        if form is not None:
            found.append(Source(path, form))
    if not found:
        report.refused("file", "", _NOTHING, source=str(path))
    return found


def _look_into(folder: Path, found: list[Source]) -> None:
    if tree.detect(folder):
        found.append(Source(folder, tree.NAME))
        return
    files = [each for each in _entries(folder) if each.is_file()]
    databases = tuple(each for each in files if database.detect(each))
    storage = folder / tree.STORAGE
    found += (Source(each, database.NAME) for each in databases)
    if tree.detect(storage):
        # Since 1.2 the database has the sessions; the tree that it was made from stays beside it.
        found.append(Source(storage, tree.NAME, databases))
    elif not databases:
        found += (Source(each, export_file.NAME) for each in files if export_file.detect(each))
        for each in _entries(folder):
            if each.is_dir() and not each.is_symlink() and each.name not in _NEVER:
                _look_into(each, found)


def _entries(folder: Path) -> Iterator[Path]:
    try:
        return iter(sorted(folder.iterdir()))
    except OSError:
        return iter(())
