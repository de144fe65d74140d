"""The embedded store: one SQLite file, used by any number of processes at once.

Writes go through one thread of the process that commits many together (``sqlite_writer``), reads through a few others,
each with a connection of its own and transactions that end with the call, so that a slow reader never holds up the
WAL. Whatever several processes must agree on is settled by SQLite's write lock and nothing else.

Listing reads the small rows of all sessions of a tenant: there is no index on the time of the last entry, since every
append would have to rewrite it. That takes about 50 ms for 100,000 sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from turnwire import errors
from turnwire.store import sqlite_copy, sqlite_errors, sqlite_list
from turnwire.store.base import (
    Change,
    EntryRow,
    Name,
    Reply,
    Request,
    SessionQuery,
    SessionRow,
    Snapshot,
    View,
)
from turnwire.store.sqlite_batch import Batch
from turnwire.store.sqlite_file import File, open_file
from turnwire.store.sqlite_overlay import Indexed, TailSnapshot
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_snapshot import SqliteSnapshot
from turnwire.store.sqlite_watch import Watchers
from turnwire.store.sqlite_writer import Writer

T = TypeVar("T")

_READERS = 3
_FEW = 8  # writes in one that the caller's event loop may stand still for
_CHAINS = 1024
_INDEXING_S = 0.05  # for which a read waits for the index


class _Behind(Exception):
    """The index lacks what is read."""


class SqliteStore:
    """A store in a file. Made by ``open``."""

    def __init__(self, file: File, part_bytes: int, *, inline: bool = False) -> None:
        self.part_bytes = part_bytes
        self._file = file
        self._watchers = Watchers(file)
        self._writer = None if file.read_only else Writer(file, self._watchers.wake, inline=inline)
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="turnwire-read")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False
        # The end of what was last read of a session, so that a reader who goes on does not compute it again.
        self._chains: dict[int, tuple[int, bytes]] = {}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        busy_timeout: float = 10.0,
        read_only: bool = False,
        part_bytes: int = 64 * 1024 * 1024,
        inline: bool = False,
    ) -> SqliteStore:
        """Open the store at a path, or make it. Blocks; at most for about ``busy_timeout`` seconds.

        ``busy_timeout`` is also how long a write waits for other processes before ``StoreBusy``. A file that may not
        be written is opened for reading; every write then raises ``StoreReadOnly``. ``inline`` lets writes run on the
        caller's event loop, which then stands still for a commit to the disk. Raises ``FileNotFoundError`` for a
        directory that does not exist (and read-only for the file), ``IsADirectoryError``, ``PermissionError``;
        ``StoreForeign`` for a file of another program and ``StoreTooNew`` for a later version, both left untouched.
        """
        return cls(open_file(path, busy_timeout=busy_timeout, read_only=read_only), part_bytes, inline=inline)

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._file.read_only

    # Writing

    def write(
        self, tenant: str, session_id: str, step: Callable[[View], tuple[Change | None, T]]
    ) -> Coroutine[Any, Any, T]:
        if self._writer is None:
            raise _read_only()
        run: Callable[[Batch], T] = partial(Batch.write, at=(tenant, session_id), step=step)
        return self._writer.submit(run, short=True)

    def write_each(
        self, tenant: str, session_id: str, steps: Sequence[Callable[[View], tuple[Change | None, T]]]
    ) -> Coroutine[Any, Any, list[T | Exception]]:
        if self._writer is None:
            raise _read_only()
        run: Callable[[Batch], list[T | Exception]] = partial(Batch.write_each, at=(tenant, session_id), steps=steps)
        return self._writer.submit(run, short=len(steps) <= _FEW)

    async def fork(
        self,
        source: SessionRow,
        revision: int,
        session_id: str,
        adapt: Callable[[EntryRow], bytes],
        finish: Callable[[SessionRow, bytes, bytes], Request | None],
    ) -> SessionRow:
        def run(batch: Batch) -> SessionRow:
            batch.index((source.tenant, source.id))
            child = sqlite_copy.fork(batch.db, batch.rows, source, revision, session_id, adapt, finish)
            batch.touch((source.tenant, session_id))
            return child

        return await self._submit(run)

    async def delete(self, tenant: str, session_id: str, *, children: bool) -> list[str]:
        def run(batch: Batch) -> list[str]:
            ids = sqlite_copy.delete(batch.db, batch.rows, tenant, session_id, children=children)
            for id in ids:
                batch.touch((tenant, id))
            return ids

        return await self._submit(run)

    async def _submit(self, run: Callable[[Batch], T]) -> T:
        if self._writer is None:
            raise _read_only()
        return await self._writer.submit(run)

    # Reading

    async def session(self, tenant: str, session_id: str) -> SessionRow:
        return await self._read(lambda rows: rows.living(tenant, session_id))

    async def sessions(
        self, tenant: str, query: SessionQuery, limit: int, after: tuple[int, str] | None
    ) -> list[SessionRow]:
        return await self._read(lambda rows: sqlite_list.sessions(rows, tenant, query, limit, after), together=True)

    async def reply(self, tenant: str, session_id: str, method: str, request_id: str) -> Reply | None:
        return await self._read(lambda rows: rows.replies.find(rows.living(tenant, session_id).key, method, request_id))

    async def entries(self, session: SessionRow, first: int, last: int, limit_bytes: int) -> list[EntryRow]:
        known = self._chains.get(session.key, (0, b""))

        def run(rows: Rows) -> list[EntryRow]:
            found: list[EntryRow] = []
            size = 0
            for row in rows.chained(session, first, last, known):
                found.append(row)
                size += len(row.payload)
                if size >= limit_bytes:
                    break
            return _there(rows, session, found)

        found = await self._read(run)
        if not found:
            raise errors.CorruptData("entries of the log are missing", revision=first, last=last)
        if len(self._chains) >= _CHAINS:
            self._chains.clear()
        self._chains[session.key] = (found[-1].revision, found[-1].digest)
        return found

    async def entry(self, session: SessionRow, revision: int) -> EntryRow:
        return await self._read(lambda rows: _entry(rows, session, revision))

    async def properties(self, sessions: Sequence[SessionRow]) -> list[tuple[bytes, bytes] | None]:
        def run(rows: Rows) -> list[tuple[bytes, bytes] | None]:
            found: list[tuple[bytes, bytes] | None] = []
            for session in sessions:
                in_force = rows.payload(session.key, session.properties)
                first = rows.payload(session.key, 1)
                found.append((in_force, first) if in_force is not None and first is not None else None)
            return found

        return await self._read(run)

    async def name(self, session: SessionRow, space: int, id: str, revision: int) -> Name | None:
        return await self._read_index(session, lambda snapshot: snapshot.name(space, id, revision))

    async def names(self, session: SessionRow, space: int, after: int, limit: int) -> list[Name]:
        return await self._read_index(session, lambda snapshot: snapshot.names(space, after, limit))

    async def read(self, session: SessionRow, use: Callable[[Snapshot], T]) -> T:
        return await self._read_index(session, use)

    def watch(self, tenant: str, session_id: str) -> AsyncIterator[None]:
        return self._watchers.watch((tenant, session_id))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._watchers.close()
        self._pool.shutdown()
        for db in self._connections:
            db.close()

    async def _read_index(self, session: SessionRow, use: Callable[[Indexed], T]) -> T:
        """Ask what only the index can tell, up to the session's head.

        Where it lacks the end of the log, it is brought up to the head once for all readers; but nobody waits for that
        where others hold the file or it can not be written: then what is lacking is made again, for this read alone.
        """

        def ask(rows: Rows, made: bool) -> T:
            found = rows.stored(session.tenant, session.id)
            if found is None:
                rows.living(session.tenant, session.id)
                raise errors.SessionNotFound("there is no such session", session_id=session.id)
            stored, ahead = found
            snapshot = SqliteSnapshot(rows, session)
            try:
                if not ahead or session.head <= stored.head:
                    return use(snapshot)
                if not made:
                    raise _Behind
                return use(TailSnapshot(snapshot, rows, stored, session.head))
            finally:
                snapshot.close()

        with contextlib.suppress(_Behind):
            return await self._read(lambda rows: ask(rows, made=False), together=True)
        if self._writer is not None:
            at = (session.tenant, session.id)
            with contextlib.suppress(errors.TurnwireError, TimeoutError):
                async with asyncio.timeout(_INDEXING_S):
                    await self._writer.submit(lambda batch: batch.index(at))
        return await self._read(lambda rows: ask(rows, made=True), together=True)

    async def _read(self, ask: Callable[[Rows], T], *, together: bool = False) -> T:
        """Ask on a thread for reading; ``together``: several questions of one state."""
        if self._closed:
            raise errors.ShuttingDown("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(self._ask, ask, together))

    def _ask(self, ask: Callable[[Rows], T], together: bool) -> T:
        try:
            rows = self._rows()
            if not together:
                return ask(rows)
            rows.db.execute("BEGIN")
            try:
                return ask(rows)
            finally:
                rows.db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise sqlite_errors.translate(error) from error

    def _rows(self) -> Rows:
        rows: Rows | None = getattr(self._local, "rows", None)
        if rows is None:
            db = self._file.connect()
            self._connections.append(db)
            rows = self._local.rows = Rows(db, self._writer.newest) if self._writer is not None else Rows(db)
        return rows


def _read_only() -> errors.StoreReadOnly:
    return errors.StoreReadOnly("the store was opened for reading")


def _entry(rows: Rows, session: SessionRow, revision: int) -> EntryRow:
    row = _there(rows, session, rows.entry(session, revision))
    if row is None:
        raise errors.CorruptData("an entry of the log is missing", revision=revision)
    return row


def _there(rows: Rows, session: SessionRow, found: T) -> T:
    """What was found; for nothing, make sure that this is not because the session was deleted meanwhile."""
    if not found:
        rows.living(session.tenant, session.id)
    return found
