"""The writer: one thread that runs all writes of a process, many to a commit.

A commit costs one fsync, however many writes it holds. While one is on its way to the disk the next writes gather;
they are taken together once the file's write lock is held. No timer makes anyone wait for company.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from turnwire import errors
from turnwire.store import sqlite_errors, sqlite_view
from turnwire.store.base import Change, SessionRow, View
from turnwire.store.sqlite_file import File
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_view import SqliteView

T = TypeVar("T")
At = tuple[str, str]
Step = Callable[[View], tuple[Change | None, T]]

_BATCH = 256
_FIRST_WAIT_S = 0.0005
_LONGEST_WAIT_S = 0.01


class _HalfDone(Exception):
    """A write failed after it had changed rows, so that the transaction is of no use."""


class Job(Generic[T]):
    """A write that someone waits for. ``run`` does it inside the transaction, and may do so again if that failed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Callable[[Batch], T]) -> None:
        self.run = run
        self.future: asyncio.Future[T] = loop.create_future()
        self.loop = loop
        self.queued = time.monotonic()
        self.result: T
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Hand over the outcome; on the caller's event loop."""
        if self.future.done():  # cancelled while the write was on its way
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Batch:
    """What the writes of one transaction share."""

    def __init__(self, db: sqlite3.Connection, rows: Rows) -> None:
        self.db = db
        self.rows = rows
        self.changed: set[At] = set()
        self._sessions: dict[At, SessionRow] = {}

    def write(self, at: At, step: Step[T]) -> T:
        """Run a step on a session and write its change."""
        session = self._sessions.get(at) or self.rows.session(*at)
        # A deleted session has no row, so that only a missing one has to be looked for among the deleted.
        view = SqliteView(self.rows, session, session is None and self.rows.deleted(*at))
        change, result = step(view)
        if change is not None:
            self.changed.add(at)
            self._sessions.pop(at, None)
            self._sessions[at] = sqlite_view.apply(self.db, self.rows, change)
        return result

    def touch(self, at: At) -> None:
        """Note that a session was changed otherwise."""
        self.changed.add(at)
        self._sessions.pop(at, None)


class Writer:
    """The thread, its connection and its queue. ``changed`` is called with the sessions of every commit."""

    def __init__(self, file: File, changed: Callable[[set[At]], None]) -> None:
        self._file = file
        self._changed = changed
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._closing = False
        self._gate = threading.Lock()
        self._db = file.connect(write=True)
        self._db.execute("PRAGMA busy_timeout = 0")  # _begin waits by itself
        self._rows = Rows(self._db)
        self._thread = threading.Thread(target=self._run, name="turnwire-writer", daemon=True)
        self._thread.start()

    async def submit(self, run: Callable[[Batch], T]) -> T:
        """Have ``run`` done and made durable.

        When the caller is cancelled before its turn has come nothing is written; after that the write lands.
        """
        job = Job(asyncio.get_running_loop(), run)
        with self._gate:
            if self._closing:
                raise errors.ShuttingDown("the store is closed")
            self._queue.put(job)
        return await job.future

    def close(self) -> None:
        """Do what is queued, then end. Blocks; may be called again."""
        with self._gate:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (job := self._queue.get()) is not None:
                jobs = [job]
                last = False
                try:
                    last = self._commit(jobs, gather=True)
                except Exception as error:  # a fault of the program: those who wait must hear of it
                    for each in jobs:
                        each.error = errors.InternalError("the store failed")
                        each.error.__cause__ = error
                    self._roll_back()
                _settle(jobs)
                if last:
                    break
        finally:
            self._db.close()

    def _commit(self, jobs: list[Job[Any]], *, gather: bool) -> bool:
        """Do jobs in one transaction, adding those that have come meanwhile. Returns whether the end was queued."""
        last = False
        batch = Batch(self._db, self._rows)
        try:
            self._begin(jobs[0].queued + self._file.busy_timeout)
            at = 0
            while at < len(jobs):
                self._do(jobs[at], batch)
                at += 1
                if gather and not last and at == len(jobs) < _BATCH:
                    last = self._gather(jobs)
            self._db.execute("COMMIT")
        except (sqlite3.Error, _HalfDone) as error:
            self._roll_back()
            full = isinstance(error, sqlite3.Error) and isinstance(sqlite_errors.translate(error), errors.StoreFull)
            if gather and full:
                self._make_room()
            if len(jobs) > 1 or (gather and full):  # one of them may be at fault, for all that is known
                for job in jobs:
                    self._commit([job], gather=False)
            elif isinstance(error, sqlite3.Error):
                jobs[0].error = sqlite_errors.translate(error)
            return last
        if batch.changed:
            self._changed(batch.changed)
        return last

    def _begin(self, deadline: float) -> None:
        """Take the file's write lock. SQLite's own waiting is coarse and unfair among many processes."""
        wait = _FIRST_WAIT_S
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if sqlite_errors.code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT_S)

    def _gather(self, jobs: list[Job[Any]]) -> bool:
        while len(jobs) < _BATCH:
            try:
                job = self._queue.get_nowait()
            except Empty:
                return False
            if job is None:
                return True
            jobs.append(job)
        return False

    def _do(self, job: Job[Any], batch: Batch) -> None:
        job.error = None
        if job.future.cancelled():
            job.error = asyncio.CancelledError()
            return
        before = self._db.total_changes
        try:
            job.result = job.run(batch)
        except sqlite3.Error:
            raise
        except Exception as error:
            job.error = error
            if self._db.total_changes != before:
                raise _HalfDone from error

    def _make_room(self) -> None:
        """Copy the WAL back and cut it off: it holds many versions of the pages that the file needs once."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _settle(jobs: list[Job[Any]]) -> None:
    """Hand over the outcomes, with one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, done in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, so that no one waits
            loop.call_soon_threadsafe(_settle_here, done)


def _settle_here(jobs: list[Job[Any]]) -> None:
    for job in jobs:
        job.settle()
