"""Listing sessions by filters."""

from __future__ import annotations

from typing import Any

from turnwire.store.base import SessionQuery, SessionRow
from turnwire.store.sqlite_rows import SESSION_COLUMNS, Rows

# What entries behind the row have moved: only their time is filtered and sorted by.
_SESSIONS = """(
    SELECT tenant, id, key, head, digest, first_us, iif(ahead, (
        SELECT first_us + recorded FROM entry WHERE pos < (key + 1) << 32 ORDER BY pos DESC LIMIT 1
    ), recorded_us) AS recorded_us, properties, revert, ahead
    FROM session
)"""


def sessions(
    rows: Rows, tenant: str, query: SessionQuery, limit: int, after: tuple[int, str] | None
) -> list[SessionRow]:
    """A page of sessions by (recorded_us descending, id ascending). Inside a transaction only.

    All values are bound, never written into SQL.
    """
    conditions = ["tenant = ?"]
    values: list[Any] = [tenant]

    def where(condition: str, *bound: object) -> None:
        conditions.append(condition)
        values.extend(bound)

    for key, value in query.labels:
        where("key IN (SELECT session FROM label AS l WHERE l.key = ? AND l.value = ?)", key, value)
    if query.directory is not None:
        where("key IN (SELECT session FROM detail WHERE directory = ?)", query.directory)
    if query.parent is not None:
        where("key IN (SELECT session FROM detail WHERE parent = ?)", query.parent)
    if query.archived is not None:
        where("(SELECT archived FROM detail WHERE session = key) = ?", query.archived)
    if query.recorded_from_us is not None:
        where("recorded_us >= ?", query.recorded_from_us)
    if query.recorded_before_us is not None:
        where("recorded_us < ?", query.recorded_before_us)
    if after is not None:
        where("(recorded_us < ? OR (recorded_us = ? AND id > ?))", after[0], *after)
    found = rows.db.execute(
        f"SELECT {SESSION_COLUMNS}, ahead FROM {_SESSIONS} WHERE {' AND '.join(conditions)} "
        "ORDER BY recorded_us DESC, id LIMIT ?",
        (*values, limit),
    ).fetchall()
    return [rows.at_head(SessionRow._make(row[:-1])) if row[-1] else SessionRow._make(row[:-1]) for row in found]
