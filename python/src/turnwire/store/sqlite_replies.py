"""The replies to request ids, by which a retry gets the reply that was given before.

Request ids come in no order, so that to write each to its place would make every append rewrite a page beside the one
that it appends to. New ones are put one behind the other instead, those of one commit mostly on one page for all its
sessions (table ``fresh_reply``), and are sorted in when there are many (table ``reply``). Who writes has those that are
not sorted in yet in memory; who reads looks through them, which only few calls do.
"""

from __future__ import annotations

import sqlite3

from turnwire.store.base import Reply, Request

#: Fresh replies from which on they are sorted in.
MOST = 1024

_COLUMNS = "session, request_id, method, sha256, response"
_Row = tuple[int, int, str, str, bytes, bytes]


class Replies:
    """The replies in a file, over one connection. Only its writer knows the fresh ones without looking."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known = False  # whether the following is what the file has
        self._fresh: dict[tuple[int, str, str], Reply] = {}  # by session's key, request id and method
        self._last = 0  # number of the last fresh one
        self._greatest: dict[int, str] = {}  # by session's key: the greatest request id of those sorted in
        self._unwritten: list[_Row] = []

    def find(self, key: int, method: str, request_id: str) -> Reply | None:
        """The reply that was given to a request id of a session."""
        if not self._known:
            # In this order: it may be sorted in meanwhile.
            asked = key, method, request_id
            return self._look_up("fresh_reply", *asked) or self._look_up("reply", *asked)
        found = self._fresh.get((key, request_id, method))
        if found is not None:
            return found
        greatest = self._greatest.get(key)
        if greatest is None:
            (there,) = self._db.execute("SELECT max(request_id) FROM reply WHERE session = ?", (key,)).fetchone()
            greatest = self._greatest[key] = there or ""
        # Ids that tell their time, as those of the client do, need not be looked for.
        return self._look_up("reply", key, method, request_id) if request_id <= greatest else None

    def _look_up(self, table: str, key: int, method: str, request_id: str) -> Reply | None:
        row = self._db.execute(
            f"SELECT sha256, response FROM {table} WHERE session = ? AND request_id = ? AND method = ?",
            (key, request_id, method),
        ).fetchone()
        return Reply._make(row) if row is not None else None

    # Of the writer, inside a transaction

    def begin(self, *, changed: bool) -> None:
        """Take in what is in the file; ``changed``: others have written since the last transaction."""
        if self._known and not changed:
            return
        if not self._known or not self._last_is_there():
            self._fresh.clear()
            self._last = 0
        query = f"SELECT number, {_COLUMNS} FROM fresh_reply WHERE number > ? ORDER BY number"
        for number, key, request_id, method, *reply in self._db.execute(query, (self._last,)):
            self._fresh[key, request_id, method] = Reply._make(reply)
            self._last = number
        self._greatest.clear()
        self._known = True

    def _last_is_there(self) -> bool:
        """Whether the last row known is still there, so that all that are not known come behind it."""
        if not self._fresh:
            return False
        query = "SELECT session, request_id, method FROM fresh_reply WHERE number = ?"
        there: object = self._db.execute(query, (self._last,)).fetchone()
        return there == next(reversed(self._fresh))

    def keep(self, key: int, request: Request) -> None:
        """Keep a reply while the session lives. It is written when the transaction ends."""
        method, id, reply = request
        self._fresh[key, id, method] = reply
        self._last += 1
        self._unwritten.append((self._last, key, id, method, reply.sha256, reply.response))

    def end(self) -> None:
        """Write what is to be kept."""
        if self._unwritten:
            self._db.executemany("INSERT INTO fresh_reply VALUES (?, ?, ?, ?, ?, ?)", self._unwritten)
            self._unwritten.clear()
            if len(self._fresh) >= MOST:
                self._sort_in()

    def _sort_in(self) -> None:
        self._db.execute(f"REPLACE INTO reply SELECT {_COLUMNS} FROM fresh_reply ORDER BY session, request_id")
        self._db.execute("DELETE FROM fresh_reply")
        self._fresh.clear()
        self._greatest.clear()

    def delete(self, key: int) -> None:
        """Delete the replies of a session."""
        self.end()
        self._db.execute("DELETE FROM reply WHERE session = ?", (key,))
        self._db.execute("DELETE FROM fresh_reply WHERE session = ?", (key,))
        self._fresh = {at: reply for at, reply in self._fresh.items() if at[0] != key}

    def clear(self) -> None:
        """Forget everything, since the transaction has failed."""
        self._known = False
        self._fresh.clear()
        self._greatest.clear()
        self._unwritten.clear()
