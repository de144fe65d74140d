"""Waking those who watch sessions: at once after a commit of this process, by polling for those of others.

SQLite tells in ``PRAGMA data_version``, for the price of a look at shared memory, whether another connection has
committed. One thread asks while anyone watches, and looks at the heads of the watched sessions only when it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterable

from turnwire.store.sqlite_file import File
from turnwire.store.sqlite_rows import Rows

_EVERY_S = 0.04

At = tuple[str, str]


class _Watcher:
    """One watch: an event on the event loop of its reader."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.event = asyncio.Event()

    def wake(self) -> None:
        if self.event.is_set():  # its reader has not looked since, and will
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.event.set)


class Watchers:
    """All watches of one store."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._watched: dict[At, set[_Watcher]] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._fresh: set[At] = set()  # watched since the heads were last looked at

    async def watch(self, at: At) -> AsyncIterator[None]:
        """Yield at once and then whenever the session may have changed. Ends when the store is closed."""
        watcher = _Watcher()
        with self._lock:
            self._watched.setdefault(at, set()).add(watcher)
            # A write may have come between what the reader saw and this watch: it is woken once more.
            self._fresh.add(at)
            self._wanted.set()
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._poll, name="turnwire-watch", daemon=True)
                self._thread.start()
        try:
            while not self._closed.is_set():
                watcher.event.clear()
                yield
                await watcher.event.wait()
        finally:
            with self._lock:
                watchers = self._watched[at]
                watchers.discard(watcher)
                if not watchers:
                    del self._watched[at]
                if not self._watched:
                    self._wanted.clear()

    def wake(self, changed: Iterable[At]) -> None:
        """Wake the watches of sessions; on any thread."""
        if not self._watched:
            return
        with self._lock:
            for at in changed:
                for watcher in self._watched.get(at, ()):
                    watcher.wake()

    def close(self) -> None:
        """End all watches. Blocks until the thread has ended."""
        self._closed.set()
        self._wanted.set()
        with self._lock:
            thread = self._thread
            everyone = list(self._watched)
        self.wake(everyone)
        if thread is not None:
            thread.join()

    def _poll(self) -> None:
        db: sqlite3.Connection | None = None
        version = -1
        heads: dict[At, int] = {}
        while not self._closed.wait(_EVERY_S):
            self._wanted.wait()
            # Busy, out of descriptors, damaged: it is tried again, and those who read are told.
            with contextlib.suppress(sqlite3.Error):
                db = db or self._file.connect()
                (now,) = db.execute("PRAGMA data_version").fetchone()
                if now != version or self._fresh:
                    heads = self._look(Rows(db), heads)
                    version = now
        if db is not None:
            db.close()

    def _look(self, rows: Rows, heads: dict[At, int]) -> dict[At, int]:
        """Wake the watches of the sessions whose heads are not those seen before; returns the heads now."""
        with self._lock:
            watched = list(self._watched)
            fresh, self._fresh = self._fresh, set()
        found: dict[At, int] = {}
        for at in watched:
            found[at] = rows.head(*at)
        self.wake([at for at, head in found.items() if heads.get(at) != head or at in fresh])
        return found
