"""Finds the JSON files of a tree, and none that is outside: a symbolic link that leads out of the tree is not followed.

A tree may come from anywhere, and what a link in it names may be any file that the importing user can read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

SUFFIXES: Final = (".json", ".json.gz")

#: Told of what is not taken: where it is, and why.
Told = Callable[[Path, str], None]


class TreeFiles:
    """The files and folders below a root. ``told`` is called with each that is not taken."""

    def __init__(self, root: Path, told: Told | None = None) -> None:
        self._root = root
        self._real = os.path.realpath(root)
        self._told = told

    def folders(self, *names: str) -> list[Path]:
        """The folders in a folder, which is named by its path from the root."""
        return sorted(path for path, is_file in self._entries(self._root.joinpath(*names)) if not is_file)

    def files(self, *names: str) -> list[Path]:
        """The JSON files in a folder by the ids that their names say."""
        found = [path for path, is_file in self._entries(self._root.joinpath(*names)) if is_file]
        return sorted((path for path in found if path.name.endswith(SUFFIXES)), key=stem)

    def file(self, folder: str, name: str) -> Path | None:
        """The JSON file of an id in a folder; None if there is none."""
        for suffix in SUFFIXES:
            file = self._root / folder / f"{name}{suffix}"
            if file.parent == self._root / folder and file.is_file() and self._is_inside(file):
                return file
        return None

    def _entries(self, folder: Path) -> list[tuple[Path, bool]]:
        """What is in a folder, and whether it is a file; anything else than files and folders is left out."""
        if not folder.is_dir() or not self._is_inside(folder):
            return []
        found: list[tuple[Path, bool]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    path = folder / entry.name
                    if not entry.is_symlink() or self._is_inside(path):
                        if entry.is_file() or entry.is_dir():
                            found.append((path, entry.is_file()))
                        elif entry.name.endswith(SUFFIXES):
                            self._tell(path, "neither a file nor a link to one")
        except OSError as error:
            self._tell(folder, error.strerror or "cannot be read")
        return found

    def _is_inside(self, path: Path) -> bool:
        real = os.path.realpath(path)
        if real == self._real or real.startswith(os.path.join(self._real, "")):
            return True
        self._tell(path, "a symbolic link that leads out of the tree, which is not followed")
        return False

    def _tell(self, path: Path, reason: str) -> None:
        if self._told is not None:
            self._told(path, reason)


def stem(file: Path) -> str:
    """The id that a file's name says."""
    for suffix in reversed(SUFFIXES):
        if file.name.endswith(suffix):
            return file.name.removesuffix(suffix)
    return file.name
