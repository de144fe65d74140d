"""Tails: the end of a log that the index does not have yet.

An append writes its entries and nothing else. What it changes in the index is kept in memory, laid over the index as it
is in the file, and written for many appends at once: a commit then dirties one page in place of four. The session's row
tells in the file up to which revision it and the index are current (``head``) and whether entries lie behind that
(``ahead``); those are the session's tail.

Nothing is lost with a process that dies, since a tail can be made again by whoever needs it: its entries were admitted
before, in the very state that the index has, and what the admission does depends on nothing else
(``turnwire.log.plan.admit``). A tail in memory holds as long as the file says that no one else has written; after that
it is looked at again, and goes on with what others have appended or gives way to what they have indexed.

Properties and reverts are rare and are indexed at once, so that the session's row is current but for what every entry
moves: head, digest and time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from turnwire import errors
from turnwire.log import plan, raw
from turnwire.log.draft import Draft
from turnwire.store.base import LAST_FIELD, Change, EntryRow, Name, Node, SessionRow
from turnwire.store.sqlite_block import SMALL_BYTES
from turnwire.store.sqlite_index import write_index
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_view import SqliteView

At = tuple[str, str]

#: Entries from which on a tail is indexed.
MOST_ENTRIES = 64
#: The same in bytes of payloads: a tail may have to be made again.
MOST_BYTES = 1024 * 1024
#: Sessions whose tails are kept in memory.
SESSIONS = 512


class Tail(Draft):
    """A session at its head: the index in the file, and over it what the tail changes. A ``View``."""

    def __init__(self, rows: Rows, stored: SessionRow, ahead: bool) -> None:
        """``stored`` is the session's row as it is in the file, ``ahead`` whether there is a tail already."""
        self._index = SqliteView(rows, stored, False)
        super().__init__(self._index, stored, stored.recorded_us)
        self.ahead = ahead
        self.stored = stored
        self.bytes = 0
        self.checked = 0  # when it was last compared with the file, in changes of the file by others
        self._small: list[EntryRow] = []  # its small entries, which may go into blocks
        self._rows = rows

    def __len__(self) -> int:
        return self.session.head - self.stored.head

    @property
    def full(self) -> bool:
        """Whether it is time to index."""
        return self.session.head - self.stored.head >= MOST_ENTRIES or self.bytes >= MOST_BYTES

    def entry(self, revision: int) -> EntryRow:
        return self._view.entry(revision)  # entries are in the file, also those of the tail

    def absorb(self, change: Change) -> None:
        super().absorb(change)
        self._take()

    def catch_up(self, last: int) -> None:
        """Take in the entries up to a revision, as far as they are not there yet. Raises ``CorruptData``."""
        if last <= self.session.head:
            return
        for row in self._rows.entries(self.stored, self.session.head + 1, last):
            self._again(row)
        if self.session.head != last:
            raise errors.CorruptData("an entry of the log is missing", revision=self.session.head + 1)

    def _again(self, row: EntryRow) -> None:
        """Admit an entry as it was admitted before."""
        self._now_us = row.recorded_us
        try:
            stored = raw.RawEntry(row.revision, row.recorded_us, b"", row.ignorable, row.field, row.payload)
            entry = raw.prepared(stored)
            if row.field <= LAST_FIELD:
                plan.admit(self, entry)
            else:  # a later build's: this one can only keep it
                self.record(row.field, row.payload, ignorable=row.ignorable)
        except (ValueError, errors.TurnwireError) as error:
            raise errors.CorruptData("an entry contradicts the log before it", revision=row.revision) from error
        if self.session.head != row.revision:
            raise errors.CorruptData("an entry of the log is missing", revision=self.session.head + 1)
        self._take()

    def _take(self) -> None:
        """Keep of the entries that were added what is needed later."""
        for row in self._entries:
            size = len(row.payload)
            self.bytes += size
            if size <= SMALL_BYTES:
                self._small.append(row)
        self._entries.clear()

    def index(self, fresh: Sequence[EntryRow]) -> None:
        """Write everything to the file, inside a transaction. The tail is then of no use.

        ``fresh`` are the last of its entries, which are not in the file yet.
        """
        change = self.change(None)
        change.entries = list(fresh)
        write_index(self._rows.db, self._rows, change, self._small)

    # For readers

    def versions(self) -> list[Node]:
        """All versions that the tail has put, changed or ended."""
        self._look_into_all()
        return [*self._ended, *(node for slots in self._nodes.values() for node in slots.values() if node is not None)]

    def named(self, space: int, id: str, revision: int) -> Name | None:
        """The row of an id that the tail has made and that was in force at a revision."""
        self._look_into_all()
        return next((row for row in reversed(self._names.get(space, {}).get(id, [])) if row.born <= revision), None)

    def names_of(self, space: int, after: int) -> list[Name]:
        """The rows of a space that the tail has made or changed, of those born after a revision."""
        self._look_into_all()
        return [row for rows in self._names.get(space, {}).values() for row in rows if row.born > after]


class Tails:
    """The tails of the sessions that this process writes to, over the writing connection."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._tails: OrderedDict[At, Tail] = OrderedDict()
        self._heads: dict[int, SessionRow] = {}
        self._version = -1
        self._changes = 0

    def begin(self) -> None:
        """Ask, inside a transaction, whether others have written since the last one."""
        (version,) = self._rows.db.execute("PRAGMA data_version").fetchone()
        changed = version != self._version
        if changed:
            self._version = version
            self._changes += 1
        self._rows.replies.begin(changed=changed)

    def get(self, at: At) -> Tail | None:
        """A session at its head; None when there is no such session. Inside a transaction. Raises ``CorruptData``."""
        tail = self._tails.get(at)
        if tail is None or tail.checked != self._changes:
            tail = self._looked_up(at, tail)
            if tail is None:
                self.drop(at)
                return None
            tail.checked = self._changes
            self._tails[at] = tail
            self.note(tail)
        self._tails.move_to_end(at)
        return tail

    def note(self, tail: Tail) -> None:
        """Let readers know how far a session is."""
        self._heads[tail.session.key] = tail.session

    def newest(self, key: int) -> SessionRow | None:
        """The row of a session as this process knows it, perhaps of a commit that is under way; on any thread."""
        return self._heads.get(key)

    def index(self, at: At, tail: Tail, fresh: Sequence[EntryRow] = ()) -> None:
        """Bring the index of a session up to its head, inside a transaction; write its ``fresh`` entries too."""
        if tail.ahead or len(tail):
            tail.index(fresh)
            self.put(at, tail.session)

    def put(self, at: At, session: SessionRow) -> None:
        """Note a session that the file has up to its head."""
        tail = Tail(self._rows, session, False)
        tail.checked = self._changes
        self._tails[at] = tail
        self.note(tail)

    def drop(self, at: At) -> None:
        """Forget a session; what is in the file counts."""
        tail = self._tails.pop(at, None)
        if tail is not None:
            self._heads.pop(tail.session.key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._heads.clear()
        self._tails.clear()
        self._rows.replies.clear()

    def shrink(self) -> None:
        """Forget the sessions that were least recently written to, and index them before."""
        while len(self._tails) > SESSIONS:
            at, tail = next(iter(self._tails.items()))
            if tail.checked == self._changes:  # else others may have written to it: whoever needs it will see
                self.index(at, tail)
            self.drop(at)

    def all(self) -> list[At]:
        """The sessions that have tails in memory."""
        return [at for at, tail in self._tails.items() if len(tail)]

    def _looked_up(self, at: At, known: Tail | None) -> Tail | None:
        found = self._rows.stored(*at)
        if found is None:
            return None
        stored, ahead = found
        last = self._rows.last(stored) if ahead else stored.head
        tail = known
        if tail is None or tail.stored != stored or tail.session.head > last:
            tail = Tail(self._rows, stored, ahead)
        tail.ahead = ahead
        tail.catch_up(last)
        return tail
