"""Listing sessions by filters."""

from __future__ import annotations

import sqlite3
from typing import Any

from turnwire.store.base import SessionQuery, SessionRow
from turnwire.store.sqlite_rows import SESSION_COLUMNS


def sessions(
    db: sqlite3.Connection, tenant: str, query: SessionQuery, limit: int, after: tuple[int, str] | None
) -> list[SessionRow]:
    """A page of sessions by (recorded_us descending, id ascending). All values are bound, never written into SQL."""
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
    found = db.execute(
        f"SELECT {SESSION_COLUMNS} FROM session WHERE {' AND '.join(conditions)} ORDER BY recorded_us DESC, id LIMIT ?",
        (*values, limit),
    )
    return [SessionRow._make(row) for row in found.fetchall()]
