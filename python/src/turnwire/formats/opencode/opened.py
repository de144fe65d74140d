"""Opens opencode's database for reading so that nothing beside it, and nothing in it, is ever written.

SQLite writes even when it reads: a reader of a database in WAL mode makes or marks the ``-shm`` file. So:

* with a WAL and its ``-shm`` (opencode runs, or was killed) it is opened with ``readonly_shm``, which takes locks for
  reading only, or, if no one else has it open, reads the WAL into memory;
* with a WAL alone, or a rollback journal, both are copied into a directory of ours and opened there;
* with neither it is opened as ``immutable``. Should opencode begin to write meanwhile, `Database.moved` tells, and the
  caller reads again what it has just read;
* a gzipped one is unpacked into a directory of ours.
"""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from turnwire.formats.opencode.packed import GZIP

MAGIC: Final = b"SQLite format 3\x00"

_NAME: Final = "opencode.db"
_SUFFIXES: Final = ("-wal", "-journal")
_TRIES: Final = 5
_BUSY_SECONDS: Final = 5.0

_Stamp = tuple[tuple[int, int, int] | None, ...]


class Database:
    """A database opened for reading. ``db`` is its connection, whose texts come as bytes. Close it at the end."""

    def __init__(self, path: Path) -> None:
        """Raises `sqlite3.Error` or OSError if it cannot be opened."""
        self._path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._immutable = False
        self._stamp: _Stamp = ()
        self.db = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and take away what was copied. Idempotent."""
        self.db.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def moved(self) -> bool:
        """Whether someone may have written since it was opened without locks; it is then open anew."""
        if not self._immutable or _stamp(self._path) == self._stamp:
            return False
        self.db.close()
        self.db = self._open()
        return True

    def _open(self) -> sqlite3.Connection:
        self._immutable = False
        if _begins_with(self._path, GZIP):
            return self._copied(_unpack)
        if _has_content(_beside(self._path, "-journal")):
            return self._copied(_copy)
        if _beside(self._path, "-wal").exists() and _beside(self._path, "-shm").exists():
            with suppress(sqlite3.OperationalError):
                return _connect(self._path, "readonly_shm=1")
        if _has_content(_beside(self._path, "-wal")):
            return self._copied(_copy)
        self._stamp = _stamp(self._path)
        self._immutable = True
        return _connect(self._path, "immutable=1")

    def _copied(self, copy: Callable[[Path, Path], None]) -> sqlite3.Connection:
        """A copy in a directory of ours, made again when the original changed meanwhile."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="turnwire-opencode-")
        into = Path(self._folder.name) / _NAME
        for _ in range(_TRIES):
            before = _stamp(self._path)
            copy(self._path, into)
            if _stamp(self._path) == before:
                break
        return _connect(into, "")


def _connect(path: Path, option: str) -> sqlite3.Connection:
    mode = "&".join(filter(None, ["mode=ro" if option else "mode=rw", option]))
    address = f"file:{quote(str(path.resolve()))}?{mode}"
    # The reading thread may be another one than that which opened it, but only one reads at a time.
    db = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        db.text_factory = bytes
        db.execute("PRAGMA query_only = ON")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def _unpack(path: Path, into: Path) -> None:
    """Unpack a gzipped file. Raises OSError, also for one that is cut or damaged."""
    try:
        with gzip.open(path, "rb") as packed, into.open("wb") as file:
            shutil.copyfileobj(packed, file, 1024 * 1024)
    except (EOFError, zlib.error) as error:
        raise gzip.BadGzipFile("the compressed data is cut or damaged") from error


def _copy(path: Path, into: Path) -> None:
    for suffix in ("", *_SUFFIXES):
        target = _beside(into, suffix)
        target.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(_beside(path, suffix), target)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _stamp(path: Path) -> _Stamp:
    """What changes when someone writes: inode, size and time of the file and of those beside it."""
    found: list[tuple[int, int, int] | None] = []
    for suffix in ("", *_SUFFIXES):
        try:
            stat = _beside(path, suffix).stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)
