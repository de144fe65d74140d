"""Opening the file of a SQLite store: what it is, making it once, and connections to it.

A file is looked at without locks and without side effects before anything is done to it, so that one that is not ours,
or is of a later version, is left as it was. The schema is made in rollback mode, and only then is the file switched to
WAL: whatever a file is can so be read off its first page alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sqlite3
import threading
import time
from pathlib import Path
from urllib.parse import quote

from turnwire import errors
from turnwire.store import sqlite_errors, sqlite_schema

_CACHE_KIB = 16 * 1024
#: Pages of a WAL from which on a commit copies it back, so that it is written anew from its beginning: 4 MiB. An fsync
#: of what overwrites a file takes half as long as one of what makes it grow, and SQLite's own 1,000 pages are more than
#: most programs that embed a store write before they end, and the WAL with them.
WAL_PAGES = 256
_WAL_LEFT_BYTES = 64 * 1024 * 1024  # what a WAL keeps of its size once it has been copied back
_LOOKS = 3
_GZIP = b"\x1f\x8b"
_FOREIGN = "the file is not a store of Turnwire"
_LOOK_AGAIN_S = 0.05

# POSIX locks of a file go when any of its descriptors in the process is closed; so that making a file does not take
# the locks of another store in this process, one opens at a time.
_opening = threading.Lock()


class File:
    """The file of one store: ``connect`` gives connections to it. Made by ``open_file``."""

    def __init__(self, path: Path, *, busy_timeout: float, read_only: bool, immutable: bool = False) -> None:
        self.path = path
        self.busy_timeout = busy_timeout
        self.read_only = read_only
        self._immutable = immutable

    def connect(self, *, write: bool = False) -> sqlite3.Connection:
        """A connection for one thread at a time, for reading or for writing."""
        options = "?mode=rw" if not self.read_only else "?mode=ro"
        db = sqlite3.connect(
            _uri(self.path) + (options + "&immutable=1" if self._immutable else options),
            uri=True,
            timeout=self.busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            if write:
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA secure_delete = ON")
                db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
                db.execute(f"PRAGMA journal_size_limit = {_WAL_LEFT_BYTES}")
            else:
                db.execute("PRAGMA query_only = ON")
        except BaseException:
            db.close()
            raise
        return db


def open_file(path: str | os.PathLike[str], *, busy_timeout: float, read_only: bool) -> File:
    """Open or make the file of a store.

    A file that may not be written is opened for reading. Raises ``FileNotFoundError`` for a directory that is missing
    (and, read-only, for the file), ``IsADirectoryError``, ``PermissionError``; ``StoreForeign``, ``StoreTooNew``,
    ``StoreBusy``, ``StoreReadOnly``, ``StoreFull``, ``CorruptData``.
    """
    at = Path(path).absolute()
    with _opening:
        try:
            return _open(at, busy_timeout, read_only)
        except sqlite3.Error as error:
            raise sqlite_errors.translate(error) from error


def _open(path: Path, busy_timeout: float, read_only: bool) -> File:
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the directory of the store does not exist", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "the path of the store is a directory", str(path))
    exists = path.exists()
    if not exists and read_only:
        raise FileNotFoundError(errno.ENOENT, "the store does not exist", str(path))
    if exists and not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, "the store may not be read", str(path))
    writable = os.access(path, os.W_OK) if exists else True
    if read_only or not writable or (exists and not os.access(path.parent, os.W_OK)):
        return _open_to_read(path, busy_timeout)
    if not exists:
        _create(path)
    if path.stat().st_size:
        _look(path)
    file = File(path, busy_timeout=busy_timeout, read_only=False)
    _prepare(file)
    return file


def _create(path: Path) -> None:
    """Make the empty file, for its owner alone. SQLite gives the files beside it the same mode."""
    with contextlib.suppress(FileExistsError):  # another process was first
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _open_to_read(path: Path, busy_timeout: float) -> File:
    if not path.stat().st_size:
        raise errors.StoreReadOnly("the store is empty and can not be written")
    _look(path)
    file = File(path, busy_timeout=busy_timeout, read_only=True)
    try:
        _check(*_look_at(path, "?mode=ro"))
    except sqlite3.OperationalError:
        # SQLite wants to make the files beside it and may not. Without a WAL the file itself is all there is.
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise errors.StoreReadOnly(
                "the store was not closed and can not be written; open it once where it can be"
            ) from None
        file = File(path, busy_timeout=busy_timeout, read_only=True, immutable=True)
    return file


def _look(path: Path) -> None:
    """Refuse a file that is not ours or of a later version, by its first page, without locks or side effects.

    Raises ``StoreForeign``, ``StoreTooNew``.
    """
    for look in range(1, _LOOKS + 1):
        try:
            # Through SQLite, for the sake of the locks of other connections in this process.
            _check(*_look_at(path, "?mode=ro&immutable=1"))
            return
        except sqlite3.DatabaseError as error:
            if sqlite_errors.code(error) == sqlite3.SQLITE_CORRUPT:
                # Without its WAL a file may be shorter than its first page says.
                _check(*_look_at(path, "?mode=ro"))
                return
            if look == _LOOKS:
                raise errors.StoreForeign(_no_database(path)) from error
        except errors.StoreForeign:
            if look == _LOOKS:
                raise
        time.sleep(_LOOK_AGAIN_S)  # another process may be writing the first page just now


def _no_database(path: Path) -> str:
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return "the file is compressed with gzip; a store is opened unpacked" if packed else _FOREIGN


def _look_at(path: Path, options: str) -> tuple[int, int]:
    db = sqlite3.connect(_uri(path) + options, uri=True)
    try:
        return _stamps(db)
    finally:
        db.close()


def _stamps(db: sqlite3.Connection) -> tuple[int, int]:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return application, version


def _check(application: int, version: int) -> None:
    if application != sqlite_schema.APPLICATION_ID:
        raise errors.StoreForeign(_FOREIGN)
    if version > sqlite_schema.VERSION:
        raise errors.StoreTooNew(
            f"the store has schema version {version}; this build knows up to {sqlite_schema.VERSION}",
            version=version,
            known=sqlite_schema.VERSION,
        )


def _prepare(file: File) -> None:
    """Make or migrate the schema, once among all processes, and switch the file to WAL."""
    deadline = time.monotonic() + file.busy_timeout
    db = file.connect(write=True)
    try:
        while True:
            try:
                _bring_up(db)
                return
            except sqlite3.OperationalError as error:
                # The switch to WAL asks for the whole file at once and does not wait by itself.
                if sqlite_errors.code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.002, 0.02))
    finally:
        db.close()


def _bring_up(db: sqlite3.Connection) -> None:
    application, version = _stamps(db)
    if application == sqlite_schema.APPLICATION_ID:
        _check(application, version)
    if version != sqlite_schema.VERSION or application != sqlite_schema.APPLICATION_ID:
        db.execute(f"PRAGMA page_size = {sqlite_schema.PAGE_BYTES}")
        db.execute("BEGIN EXCLUSIVE")
        try:
            application, version = _stamps(db)
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application or version or tables:
                _check(application, version)
            sqlite_schema.migrate(db, version)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        db.execute("PRAGMA journal_mode = WAL")


def _uri(path: Path) -> str:
    return "file:" + quote(str(path))
