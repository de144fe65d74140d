"""What a disk would hold if the power failed: a layer between SQLite and its files that forgets what was not synced.

``install(folder)`` changes SQLite's own way to its files in this process. All goes on as before, and beside it each
database and each journal has a copy in ``folder`` that gets what was written to it only when SQLite has had it synced
successfully. A process that is killed leaves its last writes with the operating system; the copies do without those.

It needs no compiler and no rights: SQLite's table of functions is found through ctypes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

_READWRITE = 0x2
_MAIN_DB, _MAIN_JOURNAL, _WAL = 0x100, 0x800, 0x80000
_KEPT = _MAIN_DB | _MAIN_JOURNAL | _WAL

_I, _L, _P = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_OPEN = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)
_DELETE = ctypes.CFUNCTYPE(_I, _P, _P, _I)
_WRITE = ctypes.CFUNCTYPE(_I, _P, _P, _I, _L)
_TRUNCATE = ctypes.CFUNCTYPE(_I, _P, _L)
_SYNC = ctypes.CFUNCTYPE(_I, _P, _I)


_installed: list[Platter] = []  # SQLite calls it until the process ends


class _Vfs(ctypes.Structure):
    """The beginning of ``sqlite3_vfs``."""

    _fields_ = (
        ("version", _I),
        ("file_bytes", _I),
        ("path_bytes", _I),
        ("next", _P),
        ("name", _P),
        ("data", _P),
        ("open", _P),
        ("delete", _P),
    )


class _Methods(ctypes.Structure):
    """``sqlite3_io_methods``, version 3."""

    _fields_ = (
        ("version", _I),
        ("close", _P),
        ("read", _P),
        ("write", _P),
        ("truncate", _P),
        ("sync", _P),
        ("rest", _P * 13),
    )


class Platter:
    """The copies, and how often each file was synced, by name."""

    def __init__(self, folder: Path) -> None:
        self.syncs: Counter[str] = Counter()
        self._folder = folder
        self._files: dict[int, str] = {}  # by the address of SQLite's file
        self._waiting: dict[str, list[tuple[int, bytes | None]]] = {}  # what was written at an offset; None: cut there
        self._lock = threading.Lock()
        self._kept_alive: list[Any] = []
        self._tables: dict[int, _Methods] = {}

    def wrap(self, vfs: _Vfs) -> None:
        """Come between SQLite and its files."""
        real_open, real_delete = _OPEN(vfs.open), _DELETE(vfs.delete)

        def open(own: int, name: int | None, file: int, flags: int, out: int | None) -> int:
            code: int = real_open(own, name, file, flags, out)
            if code == 0 and name and flags & _READWRITE and flags & _KEPT:
                self._opened(Path(os.fsdecode(ctypes.string_at(name))), file)
            return code

        def delete(own: int, name: int, sync_folder: int) -> int:
            code: int = real_delete(own, name, sync_folder)
            if code == 0:
                path = Path(os.fsdecode(ctypes.string_at(name)))
                with self._lock:
                    self._waiting.pop(path.name, None)
                    (self._folder / path.name).unlink(missing_ok=True)
            return code

        vfs.open, vfs.delete = self._pointer(_OPEN, open), self._pointer(_DELETE, delete)

    def _opened(self, path: Path, file: int) -> None:
        with self._lock:
            self._files[file] = path.name
            copy = self._folder / path.name
            if not copy.exists():  # what is there already is taken to be on the disk
                copy.write_bytes(path.read_bytes())
        table = ctypes.cast(file, ctypes.POINTER(_P))
        table[0] = ctypes.addressof(self._wrapped(int(table[0])))

    def _wrapped(self, address: int) -> _Methods:
        """A table of functions like the one at an address, but for what is written, cut and synced."""
        if address in self._tables:
            return self._tables[address]
        if any(address == ctypes.addressof(each) for each in self._tables.values()):
            return _Methods.from_address(address)
        real = _Methods.from_address(address)
        write, truncate, sync = _WRITE(real.write), _TRUNCATE(real.truncate), _SYNC(real.sync)

        def on_write(file: int, data: int, size: int, offset: int) -> int:
            self._note(file, offset, ctypes.string_at(data, size))
            return int(write(file, data, size, offset))

        def on_truncate(file: int, size: int) -> int:
            self._note(file, size, None)
            return int(truncate(file, size))

        def on_sync(file: int, flags: int) -> int:
            with self._lock:
                name = self._files[file]
                waiting = self._waiting.pop(name, [])
            code = int(sync(file, flags))
            if code == 0:
                self._keep(name, waiting)
            return code

        made = _Methods.from_buffer_copy(real)
        made.write = self._pointer(_WRITE, on_write)
        made.truncate = self._pointer(_TRUNCATE, on_truncate)
        made.sync = self._pointer(_SYNC, on_sync)
        self._tables[address] = made
        return made

    def _note(self, file: int, offset: int, data: bytes | None) -> None:
        with self._lock:
            self._waiting.setdefault(self._files[file], []).append((offset, data))

    def _keep(self, name: str, written: list[tuple[int, bytes | None]]) -> None:
        with self._lock:
            descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT)
            try:
                for offset, data in written:
                    if data is None:
                        os.ftruncate(descriptor, offset)
                    else:
                        os.pwrite(descriptor, data, offset)
            finally:
                os.close(descriptor)
            self.syncs[name] += 1

    def _pointer(self, kind: Any, function: Callable[..., int]) -> int | None:
        made = kind(function)
        self._kept_alive.append(made)
        return ctypes.cast(made, _P).value


def install(folder: Path) -> Platter:
    """Keep copies in a folder of all that this process has SQLite write from now on.

    Raises OSError where this Python's SQLite can not be reached, being linked into it without names.
    """
    import _sqlite3

    try:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        find = library.sqlite3_vfs_find
    except AttributeError as error:
        raise OSError("this Python's SQLite has no names to find it by") from error
    find.restype = ctypes.POINTER(_Vfs)
    made = Platter(folder)
    _installed.append(made)
    made.wrap(find(None).contents)
    return made


def possible() -> bool:
    """Whether ``install`` works with this Python."""
    import _sqlite3

    with contextlib.suppress(OSError):
        return hasattr(ctypes.CDLL(getattr(_sqlite3, "__file__", None)), "sqlite3_vfs_find")
    return False


def serve(folder: str, path: str) -> None:
    """``turnwire serve`` on such a disk."""
    install(Path(folder))
    from turnwire.cli import main

    sys.argv = ["turnwire", "--json", "--db", path, "serve", "--port", "0", "--log-format", "none"]
    main()


if __name__ == "__main__":
    serve(*sys.argv[1:])
