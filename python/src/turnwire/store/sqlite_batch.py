"""Writes, and what those of one transaction share."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from turnwire.store import sqlite_index, sqlite_view
from turnwire.store.base import Change, View
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_tail import Tail, Tails
from turnwire.store.sqlite_view import SqliteView

T = TypeVar("T")
At = tuple[str, str]
Step = Callable[[View], tuple[Change | None, T]]


class HalfDone(Exception):
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

    def do(self, batch: Batch) -> None:
        """Do it in a transaction. What it is refused with is kept; raises ``HalfDone`` and errors of SQLite."""
        self.error = None
        if self.future.cancelled():
            self.error = asyncio.CancelledError()
            return
        before = batch.db.total_changes
        try:
            self.result = self.run(batch)
        except sqlite3.Error:
            raise
        except Exception as error:
            self.error = error
            if batch.db.total_changes != before:
                raise HalfDone from error

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

    def __init__(self, rows: Rows, tails: Tails) -> None:
        self.db = rows.db
        self.rows = rows
        self.changed: set[At] = set()
        self._tails = tails

    def write(self, at: At, step: Step[T]) -> T:
        """Run a step on a session and write its change."""
        tail = self._tails.get(at)
        # A deleted session has no row, so that only a missing one has to be looked for among the deleted.
        view = tail if tail is not None else SqliteView(self.rows, None, self.rows.deleted(*at))
        change, result = step(view)
        if change is not None:
            self.changed.add(at)
            if tail is None:
                self._tails.put(at, sqlite_view.create(self.db, self.rows, change))
            else:
                self._append(at, tail, change)
            self._tails.shrink()
            if change.request is not None:
                self.rows.replies.keep(change.session.key, change.request)
        return result

    def write_each(self, at: At, steps: Sequence[Step[T]]) -> list[T | Exception]:
        """Run steps on a session one after the other, and write their changes. Returns what each comes to."""
        found: list[T | Exception] = []
        for step in steps:
            before = self.db.total_changes
            try:
                found.append(self.write(at, step))
            except sqlite3.Error:
                raise
            except Exception as error:
                if self.db.total_changes != before:  # half done, so that all are given up
                    raise
                found.append(error)
        return found

    def _append(self, at: At, tail: Tail, change: Change) -> None:
        tail.absorb(change)
        if change.spans or change.properties is not None or tail.full:
            self._tails.index(at, tail, change.entries)
            return
        sqlite_index.insert_entries(self.db, change.session, change.entries)
        self._tails.note(tail)
        if not tail.ahead and change.entries:
            self.db.execute("UPDATE session SET ahead = 1 WHERE key = ?", (tail.session.key,))
            tail.ahead = True

    def index(self, at: At) -> None:
        """Bring the index of a session up to its head."""
        tail = self._tails.get(at)
        if tail is not None:
            self._tails.index(at, tail)

    def touch(self, at: At) -> None:
        """Note that a session was changed otherwise."""
        self.changed.add(at)
        self._tails.drop(at)
