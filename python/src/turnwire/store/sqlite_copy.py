"""Whole sessions at once: the fork of one at a revision, and its deletion. Both run inside a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from turnwire import errors, v1
from turnwire.log import deltas, digest
from turnwire.store import sqlite_names
from turnwire.store.base import EntryRow, Request, SessionRow
from turnwire.store.sqlite_block import STRETCH, Block, versions
from turnwire.store.sqlite_index import (
    insert_block,
    insert_entries,
    set_properties,
    write_versions,
)
from turnwire.store.sqlite_rows import Rows, base
from turnwire.store.sqlite_schema import REVISION_MASK
from turnwire.store.sqlite_view import insert_session

_PROPERTIES_FIELD = v1.Entry.SESSION_FIELD_NUMBER

_REST = "mark, revision, back, start, length, turn"
_COPY_INDEX = (
    # Versions that had ended, versions that have ended since, and versions that are still live, but for those in the
    # block of which the fork has only the beginning.
    f"""
    INSERT INTO past SELECT :child, ended, place, slot, {_REST}, delta, grown FROM past
    WHERE session = :parent AND ended <= :revision
    """,
    f"""
    INSERT INTO node SELECT :child, place, slot, {_REST}, delta, grown, NULL FROM past
    WHERE session = :parent AND ended > :revision AND revision <= :revision
    """,
    f"""
    INSERT INTO node SELECT :child, place, slot, {_REST}, delta, grown, run FROM node
    WHERE session = :parent AND revision <= :revision AND NOT (mark = {STRETCH} AND revision = :cut)
    """,
    """
    INSERT INTO span SELECT :child, start, iif(ended <= :revision, ended, 0), place, slot FROM span
    WHERE session = :parent AND start <= :revision
    """,
)
_TABLES = ("node", "past", "name", "series", "listed", "span", "label", "detail")
_PAGE_BYTES = 4 * 1024 * 1024


def fork(
    db: sqlite3.Connection,
    rows: Rows,
    source: SessionRow,
    revision: int,
    session_id: str,
    adapt: Callable[[EntryRow], bytes],
    finish: Callable[[SessionRow, bytes, bytes], Request | None],
) -> SessionRow:
    """Copy a session whose index is up to its head; see the method of the store."""
    parent = rows.living(source.tenant, source.id)
    if rows.deleted(source.tenant, session_id):
        raise errors.SessionDeleted("the session was deleted", session_id=session_id)
    if rows.session(source.tenant, session_id) is not None:
        raise errors.SessionAlreadyExists("the session exists", path="new_session_id", session_id=session_id)
    key = insert_session(db, source.tenant, session_id)
    child = SessionRow(
        source.tenant, session_id, key, 0, digest.start(session_id), parent.first_us, parent.first_us, 0, 0
    )
    child = _copy_entries(db, rows, parent, revision, adapt, child)
    last = rows.stored_at(parent.key, parent.first_us, revision)
    cut = last.first if isinstance(last, Block) and last.last > revision else 0
    for statement in _COPY_INDEX:
        db.execute(statement, {"child": key, "parent": parent.key, "revision": revision, "cut": cut})
    sqlite_names.copy(db, parent.key, key, revision)
    for stretch in rows.stretches(parent.key, cut) if cut else ():
        write_versions(db, key, [item for item in versions(stretch) if item.node.revision <= revision])
    _cut_deltas(db, rows, parent, child)
    span = rows.span_at(key, revision)
    child = child._replace(revert=span.start if span is not None else 0)
    db.execute(
        "UPDATE session SET head = ?, digest = ?, first_us = ?, recorded_us = ?, properties = ?, revert = ? "
        "WHERE key = ?",
        (*child[3:], key),
    )
    in_force = rows.payload(key, child.properties) or b""
    set_properties(db, key, v1.SessionProperties.FromString(in_force))
    request = finish(child, in_force, (rows.payload(key, child.revert) or b"") if child.revert else b"")
    if request is not None:
        rows.replies.keep(parent.key, request)
    return child


def _copy_entries(
    db: sqlite3.Connection,
    rows: Rows,
    parent: SessionRow,
    revision: int,
    adapt: Callable[[EntryRow], bytes],
    child: SessionRow,
) -> SessionRow:
    """Copy the entries with a chain of digests of their own, page by page. Blocks are copied as they are."""
    while child.head < revision:
        before = child.head
        page: list[EntryRow] = []
        size = 0
        for found in rows.rows_of(parent, child.head + 1, revision):
            if isinstance(found, Block) and child.head + 1 == found.first and found.last <= revision:
                insert_entries(db, child, page)
                page = []
                for row in found.entries(found.first, found.last):
                    child = _next(child, row)
                insert_block(db, child, found)
                continue
            for row in found.entries(child.head + 1, revision) if isinstance(found, Block) else (found,):
                if row.field == _PROPERTIES_FIELD:
                    row = row._replace(payload=adapt(row))
                child = _next(child, row)
                page.append(row._replace(digest=child.digest))
                size += len(row.payload)
            if size >= _PAGE_BYTES:
                break
        insert_entries(db, child, page)
        if child.head == before:
            raise errors.CorruptData("an entry of the log is missing", revision=before + 1)
    return child


def _next(child: SessionRow, row: EntryRow) -> SessionRow:
    """A session's row after one more entry. Raises ``CorruptData``."""
    if row.revision != child.head + 1:
        raise errors.CorruptData("an entry of the log is missing", revision=child.head + 1)
    chain = digest.link(child.digest, row.revision, row.recorded_us, row.field, row.payload)
    properties = row.revision if row.field == _PROPERTIES_FIELD else child.properties
    return child._replace(head=row.revision, digest=chain, recorded_us=row.recorded_us, properties=properties)


def _cut_deltas(db: sqlite3.Connection, rows: Rows, parent: SessionRow, child: SessionRow) -> None:
    """Let the live parts of a fork that have got deltas since end at the last one that was copied."""
    late = db.execute(
        "SELECT place, slot, revision, revision + delta, grown FROM node WHERE session = ? AND revision + delta > ?",
        (child.key, child.head),
    ).fetchall()
    for place, slot, put, last, grown in late:
        while last > child.head:  # these deltas lie in the parent only
            row = rows.entry(parent, last)
            if row is None:
                raise errors.CorruptData("an entry of the log is missing", revision=last)
            grown -= deltas.size(row.payload)
            last = row.previous
        db.execute(
            "UPDATE node SET delta = ?, grown = ? WHERE session = ? AND place = ? AND slot = ?",
            (last - put if last else 0, grown, child.key, place, slot),
        )


def delete(db: sqlite3.Connection, rows: Rows, tenant: str, session_id: str, *, children: bool) -> list[str]:
    """Delete a session, and on demand those that it started; returns the ids deleted."""
    rows.living(tenant, session_id)
    ids = [session_id]
    for id in ids if children else ():
        ids += [child for child in rows.children(tenant, id) if child not in ids]
    for id in ids:
        key = rows.living(tenant, id).key
        db.execute("DELETE FROM entry WHERE pos BETWEEN ? AND ?", (base(key), base(key) + REVISION_MASK))
        for table in _TABLES:
            db.execute(f"DELETE FROM {table} WHERE session = ?", (key,))
        rows.replies.delete(key)
        db.execute("DELETE FROM session WHERE key = ?", (key,))
        db.execute("INSERT INTO deleted VALUES (?, ?)", (tenant, id))
    return ids
