"""The writer: runs all writes of a process, many to a commit.

A commit costs one fsync, however many writes it holds. While one is on its way to the disk the next writes gather;
they are taken together once the file's write lock is held. No timer makes anyone wait for company.

A thread does that. To hand a write over to it and back costs as much as the commit itself, so that a store may allow it
to be done on the event loop (``inline``): by a caller who finds the connection free and only few others beside, after
all who were ready to write have had their turn to join. Nothing there ever waits for the lock of another process, nor
goes on when the disk turns out to be slow; that is left to the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from turnwire import errors
from turnwire.store import sqlite_errors
from turnwire.store.base import SessionRow
from turnwire.store.sqlite_batch import At, Batch, HalfDone, Job
from turnwire.store.sqlite_file import File
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_tail import Tails

T = TypeVar("T")

_BATCH = 256
_FEW = 8  # that the event loop does by itself
_SLOW_S = 0.004  # what the event loop may stand still for a commit, on average over about so many:
_SMOOTHED = 16
_TURN_S = 0.005
_FIRST_WAIT_S = 0.0005
_LONGEST_WAIT_S = 0.01
_LAST_WAIT_S = 1.0  # for the file's lock when the store is closed


class Writer:
    """The thread, its connection and its queue. ``changed`` is called with the sessions of every commit."""

    def __init__(self, file: File, changed: Callable[[set[At]], None], *, inline: bool) -> None:
        self._file = file
        self._changed = changed
        self._inline = inline
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._waiting: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}  # that the first of them will take along
        self._closing = False
        self._last = False  # the end has come out of the queue
        self._ended = False  # and nothing more may go in
        self._gate = threading.Lock()  # of what goes into these
        self._db = file.connect(write=True)
        self._db.execute("PRAGMA busy_timeout = 0")  # _begin waits by itself
        self._execute = self._db.cursor().execute  # one for all that returns no rows
        self._rows = Rows(self._db)
        self._tails = Tails(self._rows)
        self._begun = False
        self._alone: asyncio.Task[Any] | None = None  # who wrote last, with nobody beside,
        self._until = 0.0  # and until when it may write on before others have their turn
        self._took = 0.0  # seconds of a commit, about
        self._using = threading.Lock()  # the connection, and all that goes with it
        self._thread = threading.Thread(target=self._run, name="turnwire-writer", daemon=True)
        self._thread.start()

    async def submit(self, run: Callable[[Batch], T], *, short: bool = False) -> T:
        """Have ``run`` done and made durable; on the event loop at best if it is ``short``.

        When the caller is cancelled before its turn has come nothing is written; after that the write lands.
        """
        inline = short and self._inline and self._took < _SLOW_S
        if inline and not self._waiting and asyncio.current_task() is self._alone and time.monotonic() < self._until:
            done = self._do_alone(run)
            if done is not None:
                return done[0]
        job = Job(asyncio.get_running_loop(), run)
        with self._gate:
            if self._closing:
                raise errors.ShuttingDown("the store is closed")
            if inline:
                waiting = self._waiting.setdefault(job.loop, [])
                waiting.append(job)
                inline = len(waiting) == 1
            else:
                self._queue.put(job)
        if inline:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                job.future.cancel()
                self._hand_over(self._take(job.loop))
                raise
            jobs = self._take(job.loop)
            if not self._do_here(jobs):
                self._hand_over(jobs)
            elif len(jobs) == 1:
                self._alone, self._until = asyncio.current_task(), time.monotonic() + _TURN_S
        return await job.future

    def newest(self, key: int) -> SessionRow | None:
        """The row of a session at its head by the session's key, if this process knows it; on any thread."""
        return self._tails.newest(key)

    def close(self) -> None:
        """Do what is there to be done, then end. Blocks; may be called again."""
        with self._gate:
            if not self._closing:
                self._closing = True
                for jobs in self._waiting.values():
                    for job in jobs:
                        self._queue.put(job)
                self._waiting.clear()
                self._queue.put(None)
        self._thread.join()

    # On the event loop

    def _take(self, loop: asyncio.AbstractEventLoop) -> list[Job[Any]]:
        with self._gate:
            return self._waiting.pop(loop, [])

    def _hand_over(self, jobs: list[Job[Any]]) -> None:
        """Leave jobs to the thread."""
        with self._gate:
            if not self._ended:
                for job in jobs:
                    self._queue.put(job)
                return
        for job in jobs:
            job.error = errors.ShuttingDown("the store is closed")
            job.settle()

    def _do_alone(self, run: Callable[[Batch], T]) -> tuple[T] | None:
        """Do a single write, as the one before it was by the same task just now; None: it has to be done otherwise.

        Raises what it is refused with.
        """
        if not self._queue.empty() or not self._using.acquire(blocking=False):
            return None
        try:
            if self._closing:
                return None
            batch = Batch(self._rows, self._tails)
            self._begin(0.0)
            begun = time.perf_counter()
            before = self._db.total_changes
            try:
                result = run(batch)
            except errors.TurnwireError:
                if self._db.total_changes != before:
                    raise HalfDone from None
                self._end()
                raise
            self._end()
            self._note_time(begun)
        except (sqlite3.Error, HalfDone):
            self._roll_back()
            return None
        except errors.TurnwireError:
            raise
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._using.release()
        self._changed(batch.changed)
        return (result,)

    def _do_here(self, jobs: list[Job[Any]]) -> bool:
        """Do jobs in one transaction if that can be done at once. Otherwise, and if it fails, nothing is done."""
        if not 0 < len(jobs) <= _FEW or not self._queue.empty() or not self._using.acquire(blocking=False):
            return False
        try:
            if self._ended:
                return False
            changed = self._transact(jobs, 0.0, gather=False)
        except Exception:  # on the thread it is tried again, and told
            self._roll_back()
            return False
        except BaseException:  # a signal's handler: the program is about to end
            self._roll_back()
            for each in jobs:
                each.future.cancel()
            raise
        finally:
            self._using.release()
        self._changed(changed)
        for each in jobs:
            each.settle()
        return True

    # On the thread

    def _run(self) -> None:
        try:
            while not self._last:
                self._serve(self._queue.get())
            with self._gate:
                self._ended = True
            while not self._queue.empty():  # handed over after the end had been queued
                self._serve(self._queue.get())
        finally:
            with self._using:
                self._index_all()
                self._db.close()

    def _serve(self, job: Job[Any] | None) -> None:
        if job is None:
            self._last = True
            return
        jobs = [job]
        with self._using:
            try:
                self._commit(jobs, gather=True)
            except Exception as error:  # a fault of the program: those who wait must hear of it
                for each in jobs:
                    each.error = errors.InternalError("the store failed")
                    each.error.__cause__ = error
                self._roll_back()
        _settle(jobs)

    def _commit(self, jobs: list[Job[Any]], *, gather: bool) -> None:
        """Do jobs in one transaction, adding those that have come meanwhile."""
        try:
            changed = self._transact(jobs, jobs[0].queued + self._file.busy_timeout, gather=gather)
        except (sqlite3.Error, HalfDone) as error:
            self._roll_back()
            full = isinstance(error, sqlite3.Error) and isinstance(sqlite_errors.translate(error), errors.StoreFull)
            if gather and full:
                self._make_room()
            if len(jobs) > 1 or (gather and full):  # one of them may be at fault, for all that is known
                for job in jobs:
                    self._commit([job], gather=False)
            elif isinstance(error, sqlite3.Error):
                jobs[0].error = sqlite_errors.translate(error)
            return
        self._changed(changed)

    # On either

    def _transact(self, jobs: list[Job[Any]], deadline: float, *, gather: bool) -> set[At]:
        """Do jobs in one transaction. Returns the sessions that changed."""
        batch = Batch(self._rows, self._tails)
        self._begin(deadline)
        begun = time.perf_counter()
        at = 0
        while at < len(jobs):
            jobs[at].do(batch)
            at += 1
            if gather and not self._last and at == len(jobs):
                self._gather(jobs)
        self._end()
        self._note_time(begun)
        return batch.changed

    def _note_time(self, begun: float) -> None:
        took = min(time.perf_counter() - begun, 2 * _SLOW_S)  # a single one says little
        self._took += (took - self._took) / _SMOOTHED

    def _begin(self, deadline: float) -> None:
        """Take the file's write lock. SQLite's own waiting is coarse and unfair among many processes."""
        wait = _FIRST_WAIT_S
        while True:
            try:
                self._execute("BEGIN IMMEDIATE")
                self._begun = True
                self._tails.begin()
                return
            except sqlite3.OperationalError as error:
                if sqlite_errors.code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT_S)

    def _index_all(self) -> None:
        """Leave nothing behind the index; what fails is left to the next who needs it."""
        batch = Batch(self._rows, self._tails)
        with contextlib.suppress(sqlite3.Error, errors.TurnwireError):
            tails = self._tails.all()
            if tails:
                self._begin(time.monotonic() + min(self._file.busy_timeout, _LAST_WAIT_S))
                for at in tails:
                    with contextlib.suppress(errors.TurnwireError):
                        batch.index(at)
                self._end()
        self._roll_back()

    def _gather(self, jobs: list[Job[Any]]) -> None:
        while len(jobs) < _BATCH:
            try:
                job = self._queue.get_nowait()
            except Empty:
                return
            if job is None:
                self._last = True
                return
            jobs.append(job)

    def _make_room(self) -> None:
        """Copy the WAL back and cut it off: it holds many versions of the pages that the file needs once."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _end(self) -> None:
        self._rows.replies.end()
        self._execute("COMMIT")
        self._begun = False

    def _roll_back(self) -> None:
        if self._begun:
            self._begun = False
            self._tails.clear()  # before others may write again
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
