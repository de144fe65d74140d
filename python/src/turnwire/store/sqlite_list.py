"""Listing sessions by filters."""

from __future__ import annotations

from typing import Any

from turnwire import errors
from turnwire.store.base import SessionQuery, SessionRow
from turnwire.store.sqlite_rows import EARLIEST_US, LATEST_US, SESSION_COLUMNS, Rows, sound
from turnwire.store.sqlite_schema import REVISION_BITS

# What entries behind the row have moved: only their time is filtered and sorted by. One that is damaged is a time too,
# so that pages go on behind it.
_SESSIONS = f"""(
    SELECT tenant, id, key, head, digest, first_us, max({EARLIEST_US}, min({LATEST_US}, ifnull(CAST(iif(ahead, (
        SELECT first_us + recorded FROM entry WHERE pos < (key + 1) << 32 ORDER BY pos DESC LIMIT 1
    ), recorded_us) AS INTEGER), 0))) AS recorded_us, properties, revert, ahead
    FROM session
)"""


def sessions(
    rows: Rows, tenant: str, query: SessionQuery, limit: int, after: tuple[int, str] | None
) -> list[SessionRow]:
    """A page of sessions by (recorded_us descending, id ascending). Inside a transaction only.

    All values are bound, never written into SQL. A session whose row is damaged has a head of 0 and
    its first properties here, so that the others are listed, and it with them; without a key it has no properties.
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
    return [_listed(rows, row) for row in found]


def _listed(rows: Rows, row: tuple[Any, ...]) -> SessionRow:
    if not sound(row):
        tenant, id, key, *_ = row
        known = key if key.__class__ is int and 0 <= key < 1 << 63 - REVISION_BITS else 0  # no session has 0
        return SessionRow(tenant, str(id), known, 0, b"", 0, row[6], 1, 0)
    stored = SessionRow._make(row[:-1])
    try:
        return rows.at_head(stored) if row[-1] else stored
    except errors.CorruptData:
        return stored
