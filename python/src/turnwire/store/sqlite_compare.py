"""Compares what a store's file keeps of a session beside its log with what the log comes to.

The index is made again from the entries, by the code that made it, in a temporary database that SQLite keeps in memory
while it is small and else in a file of its own; then both are read in order, row beside row. So memory is bounded, and
it takes about as long as the session's entries took to be written. Nothing is written to the store.

How versions share rows (``sqlite_pack``, ``sqlite_block``) depends on which entries were written together, so that of
these what the rows say is compared, and of stretches that their blocks have it too (``sqlite_stretches``). Replies to
request ids (``reply``, ``fresh_reply``) and the tombstones of sessions (``deleted``) follow from no entry and cannot be
compared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from turnwire import errors
from turnwire.log import digest, plan, prepare, raw
from turnwire.log.draft import Draft
from turnwire.store import sqlite_check, sqlite_names, sqlite_schema, sqlite_stretches
from turnwire.store.base import LAST_FIELD, TURN, EntryRow, Node, SessionRow
from turnwire.store.sqlite_block import SMALL_BYTES
from turnwire.store.sqlite_index import write_index
from turnwire.store.sqlite_pack import pack_id
from turnwire.store.sqlite_rows import Rows, base
from turnwire.store.sqlite_schema import REVISION_MASK
from turnwire.store.sqlite_view import SqliteView, create

_ENTRIES: Final = 512
_BYTES: Final = 4 * 1024 * 1024
_ROWS: Final = 4096  # that are compared between two steps
_CACHE_KIB: Final = 32 * 1024
_MAKING: Final = 0.85  # of the time, about, is spent on making the index
_DIGEST_BYTES: Final = 32
_NODE: Final = "live versions"
_Row = tuple[Any, ...]
#: By table what is compared row by row, in the order of its key, and what it holds.
_TABLES: Final = {
    "past": (
        "SELECT ended, place, slot, mark, revision, back, start, length, turn, delta, grown FROM past "
        "WHERE session = ? ORDER BY ended, place, slot",
        "ended versions",
    ),
    "listed": (
        "SELECT space, born, id FROM listed WHERE session = ? ORDER BY space, born",
        "ids of turns and prompts in order",
    ),
    "span": ("SELECT start, ended, place, slot FROM span WHERE session = ? ORDER BY start", "reverts"),
    "detail": ("SELECT directory, parent, archived FROM detail WHERE session = ?", "what sessions are filtered by"),
    "label": ("SELECT key, value FROM label WHERE session = ? ORDER BY key", "labels"),
}


class Difference(NamedTuple):
    """Rows of one table that are not what the log comes to: how many, and in words which they are."""

    table: str
    rows: int
    text: str


class Step(NamedTuple):
    """How far a comparison has come, as a share of all there is to do, and what was found since the step before."""

    done: float
    found: list[Difference]


class Unfit(Exception):
    """The log itself is damaged, so that it comes to nothing that could be compared."""


def compare(path: Path, id: str, tenant: str = "") -> Iterator[Step]:
    """Compare a session's rows with its log; nothing for a session that is gone.

    At most one `Difference` is found for each table, and none where the digest of the log does not hold. Raises
    `Unfit`, and sqlite3.Error for a file that cannot be read.
    """
    with closing(sqlite_check.connect(path)) as db, closing(sqlite3.connect("", isolation_level=None)) as made:
        db.isolation_level = None
        db.execute("BEGIN")  # one state of log and index
        rows = Rows(db)
        found = rows.stored(tenant, id)
        if found is None:
            return
        stored, ahead = found
        made.execute("PRAGMA journal_mode = OFF")
        made.execute("PRAGMA synchronous = OFF")
        made.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        sqlite_schema.migrate(made, 0)
        again = _Again(Rows(made), stored)
        for page in _pages(rows, stored):
            again.take(page)
            yield Step(_MAKING * again.session.head / max(stored.head, 1), [])
        if again.session.head != stored.head:
            raise Unfit
        if again.session.digest != stored.digest:  # one of both is damaged, which who follows the digests tells
            return
        if of_session := _session_row(rows, stored, ahead, again):
            yield Step(_MAKING, of_session)
        comparisons = _comparisons(rows, stored, again)
        for index, (table, text, there, right) in enumerate(comparisons):
            difference = _Differing(there, right)
            with closing(difference.shares(again.count(table))) as shares:
                for share in shares:
                    yield Step(_MAKING + (1 - _MAKING) * (index + share) / len(comparisons), [])
            if difference.rows:
                unread = ", of which some cannot be read" if difference.unread else ""
                yield Step(1, [Difference(table, difference.rows, text + unread)])


class _Again:
    """A session that is made again in a database of its own."""

    def __init__(self, rows: Rows, stored: SessionRow) -> None:
        self.rows = rows
        start = digest.start(stored.id)
        self.session = SessionRow(stored.tenant, stored.id, 0, 0, start, stored.first_us, stored.first_us, 0, 0)
        self.deltas = 0  # entries that name another delta before them than the log has
        self.late: set[tuple[int, object]] = set()  # ids, as names have them, of turns that their messages came before
        self._awaited: dict[str, bytes] = {}

    def without_late(self, names: Iterable[_Row]) -> Iterator[_Row]:
        """Rows of names, without the places of late turns: a fork that ended before the turn has lost that."""
        for row in names:
            form, id, space, born, place, slot = row
            yield (form, id, space, born, b"" if space == TURN and (form, id) in self.late else place, slot)

    def count(self, table: str) -> int:
        """About how many rows of a table the session has, or names."""
        if table == "name":
            return sqlite_names.count(self.rows.db, self.session.key)
        ((rows,),) = self.rows.db.execute(f"SELECT count(*) FROM {table}")
        return int(rows)

    def take(self, page: list[EntryRow]) -> None:
        """Index entries. Raises `Unfit`."""
        self.rows.db.execute("BEGIN")
        first = not self.session.head
        draft = _Draft(SqliteView(self.rows, None if first else self.session, False), self.session)
        draft.awaited = self._awaited  # a message and its turn, of one request, may lie in two pages
        try:
            for row in page:
                late = draft.again(row)
                if late:
                    self.late.add(pack_id(TURN, late))
        except (ValueError, LookupError, errors.TurnwireError) as error:
            raise Unfit from error
        change = draft.change(None)
        self.deltas += sum(one.previous != other.previous for one, other in zip(change.entries, page, strict=True))
        if first:
            self.session = create(self.rows.db, self.rows, change)
        else:
            small = [row for row in change.entries if len(row.payload) <= SMALL_BYTES]
            write_index(self.rows.db, self.rows, change, small)
            self.session = change.session
        self.rows.db.execute("COMMIT")


class _Draft(Draft):
    """A draft whose entries get the times that they had."""

    def __init__(self, view: SqliteView, session: SessionRow) -> None:
        super().__init__(view, session, session.recorded_us)

    def again(self, row: EntryRow) -> str:
        """Admit an entry as it was admitted before. Returns the id of a turn that its messages came before."""
        self._now_us = row.recorded_us
        late = ""
        if row.field <= LAST_FIELD:
            one = raw.RawEntry(row.revision, row.recorded_us, b"", row.ignorable, row.field, row.payload)
            entry = raw.prepared(one)
            if entry.field == prepare.TURN and entry.id in self.awaited:
                late = entry.id
            plan.admit(self, entry)
        else:
            self.record(row.field, row.payload, ignorable=row.ignorable)
        if self.session.head != row.revision:
            raise Unfit
        return late


def _pages(rows: Rows, session: SessionRow) -> Iterator[list[EntryRow]]:
    page: list[EntryRow] = []
    size = 0
    try:
        for row in rows.entries(session, 1, session.head):
            page.append(row)
            size += len(row.payload)
            if len(page) >= _ENTRIES or size >= _BYTES:
                yield page
                page, size = [], 0
    except errors.CorruptData as error:
        raise Unfit from error
    if page:
        yield page


def _session_row(rows: Rows, stored: SessionRow, ahead: bool, again: _Again) -> list[Difference]:
    """What is wrong with the session's own row, and with what entries keep beside their payloads."""
    found: list[Difference] = []
    wrong = [
        name
        for name, there, right in zip(SessionRow._fields, stored, again.session, strict=True)
        if name != "key" and there != right
    ]
    ((kept,),) = rows.db.execute("SELECT ahead FROM session WHERE key = ?", (stored.key,))
    if kept not in (0, 1) or (not ahead and rows.last(stored) > stored.head):
        wrong.append("ahead")
    if wrong:
        found.append(Difference("session", 1, f"its row has another {', '.join(wrong)}"))
    at = base(stored.key)
    ((digests,),) = rows.db.execute(
        f"SELECT count(*) FROM entry WHERE pos BETWEEN ? AND ? AND length(digest) <> {_DIGEST_BYTES}",
        (at, at + REVISION_MASK),
    )
    if again.deltas or digests:
        what = ("of deltas the delta before" * bool(again.deltas), "digests" * bool(digests))
        found.append(Difference("entry", again.deltas + digests, " and ".join(filter(None, what))))
    return found


def _comparisons(
    rows: Rows, stored: SessionRow, again: _Again
) -> list[tuple[str, str, Iterable[_Row], Iterable[_Row]]]:
    """By table what it holds, its rows as they are there, and as they are right, both in one order."""
    made = again.session
    names: Iterable[_Row] = sqlite_names.rows(rows.db, stored.key)
    right_names: Iterable[_Row] = sqlite_names.rows(again.rows.db, made.key)
    if again.late:
        names, right_names = again.without_late(names), again.without_late(right_names)
    stretches = ((stretch,) for stretch in sqlite_stretches.wrong(rows, stored.key, stored.first_us))
    live = chain(_live(rows, stored.key), stretches)
    found: list[tuple[str, str, Iterable[_Row], Iterable[_Row]]] = [
        ("node", _NODE, live, _live(again.rows, made.key)),
        ("name", "ids", names, right_names),
    ]
    for table, (query, what) in _TABLES.items():
        there: Iterable[_Row] = rows.db.execute(query, (stored.key,))
        right: Iterable[_Row] = again.rows.db.execute(query, (made.key,))
        found.append((table, what, there, right))
    return found


class _Differing:
    """How many rows of two sides in the same order differ, and whether one side could not be read to its end."""

    def __init__(self, there: Iterable[_Row], right: Iterable[_Row]) -> None:
        self.rows = 0
        self.unread = False
        self._there = there
        self._right = iter(right)

    def shares(self, total: int) -> Generator[float]:
        """Compare them; yields how far it has come, of about so many rows."""
        try:
            for number, row in enumerate(self._there):
                self.rows += row != next(self._right, None)
                if not number % _ROWS:
                    yield min(number / max(total, 1), 1.0)
        except (errors.CorruptData, ValueError, LookupError, OverflowError, TypeError, struct_error):
            # What is packed into a row of the index is damaged.
            self.rows, self.unread = max(self.rows, 1), True
        else:
            self.rows += sum(1 for _ in self._right)
        finally:
            for side in (self._there, self._right):
                if isinstance(side, Generator):  # before the database is closed from which it reads
                    side.close()


def _live(rows: Rows, key: int) -> Iterator[Node]:
    """All live versions in order, each by itself."""
    held: list[Node] = []  # a heap: between what is packed into one row others may have got their places
    for begin, found in rows.live(key):
        while held and held[0][:2] < begin:
            yield heappop(held)
        for node in found:
            heappush(held, node)
    yield from sorted(held)
