"""The names of the index: written in series and in rows of their own, looked up, copied for a fork."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge, nsmallest
from itertools import chain
from operator import itemgetter
from typing import Any, TypeGuard

from turnwire import errors
from turnwire.log import places, whole
from turnwire.store.base import HEADER_SLOT, MESSAGE, PART, PROMPT, TURN, Name, Put
from turnwire.store.sqlite_pack import MADE, MADE_BYTES, pack_id, pack_ids, pack_puts, unpack_id
from turnwire.store.sqlite_series import (
    LANES,
    MOST_KEY_BYTES,
    MOST_NAMES,
    Group,
    Named,
    Series,
    find,
    grouped,
    groups_of,
    portioned,
    series,
)

#: Spaces whose names are listed in the order of the log.
LISTED = (TURN, PROMPT)
_IN_SERIES = (MESSAGE, PART)

_SERIES = "first, last, born, reach, names"
_LANES = range(LANES)
_OWN = """
    SELECT born, place, slot FROM name WHERE session = ?1 AND form = ?2 AND id = ?3 AND space = ?4 AND born <= ?5
    ORDER BY born DESC LIMIT 1
"""
# The last row of its own that an id has, and of each lane the series that may have it.
_ANY = " UNION ALL ".join(
    (
        f"SELECT NULL, NULL, born, place, slot FROM ({_OWN})",
        *(
            f"SELECT * FROM (SELECT {_SERIES} FROM series WHERE session = ?1 AND lane = {lane} AND first <= ?3 "
            "ORDER BY first DESC LIMIT 1) WHERE last >= ?3"
            for lane in _LANES
        ),
    )
)
_ENDS = " UNION ALL ".join(
    f"SELECT * FROM (SELECT {lane}, last FROM series WHERE session = ?1 AND lane = {lane} ORDER BY first DESC LIMIT 1)"
    for lane in _LANES
)
_COUNT = f"""
    SELECT (SELECT count(*) FROM name WHERE session = ?1)
    + (SELECT ifnull(sum(length(names)), 0) / {MADE_BYTES + 1} FROM series WHERE session = ?1)
"""
_INSERT = "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?)"
_CUT = f"""
    SELECT lane, {_SERIES} FROM series
    WHERE session = :parent AND born <= :revision AND born + reach > :revision
"""
_COPY = (
    """
    INSERT INTO name SELECT :child, form, id, space, born, place, slot FROM name
    WHERE session = :parent AND born <= :revision
    """,
    """
    INSERT INTO listed SELECT :child, space, born, id FROM listed
    WHERE session = :parent AND born <= :revision
    """,
    f"""
    INSERT INTO series SELECT :child, lane, {_SERIES} FROM series
    WHERE session = :parent AND born + reach <= :revision
    """,
)
_KEY = itemgetter(0, 1, 2, 3)
_BORN = itemgetter(2)
_BEGUN = itemgetter(0)
_Row = tuple[Any, ...]


# Looking up


def name(db: sqlite3.Connection, key: int, space: int, id: str, revision: int) -> Name | None:
    """The row of an id that was in force at a revision. Raises ``CorruptData``."""
    form, packed = pack_id(space, id)
    asked = (key, form, packed, space, revision)
    if not _may_share(packed, form, space):
        row = db.execute(_OWN, asked).fetchone()
        return Name(space, id, *row) if row is not None else None
    newest: Name | None = None
    for first, *rest in db.execute(_ANY, asked).fetchall():
        if first is None:
            _, *at = rest
            found = [Named(packed, space, *at)]
        else:
            found = find(Series(first, *rest), packed)
        for each in found:
            if each.space == space and each.born <= revision and (newest is None or each.born > newest.born):
                newest = Name(space, id, *each[2:])
    return newest


def _may_share(id: bytes | str, form: int, space: int) -> TypeGuard[bytes]:
    """Whether the name of an id, as it is stored, may be in a series."""
    return form == MADE and len(id) == MADE_BYTES and space in _IN_SERIES


def last_id(db: sqlite3.Connection, key: int) -> bytes:
    """The greatest of the ids that were made here, packed; b"" for none."""
    row = db.execute("SELECT id FROM name WHERE session = ? AND form = 0 ORDER BY id DESC LIMIT 1", (key,)).fetchone()
    own: bytes = row[0] if row is not None else b""
    return max(own, *_ends(db, key))


def names(db: sqlite3.Connection, key: int, space: int, after: int, limit: int) -> list[Name]:
    """The rows of a space that were born after a revision, by revision. Inside a transaction only."""
    if space in LISTED:
        listed = db.execute(
            "SELECT id, born FROM listed WHERE session = ? AND space = ? AND born > ? ORDER BY born LIMIT ?",
            (key, space, after, limit),
        ).fetchall()
        return [found for id, born in listed if (found := name(db, key, space, id, born)) is not None]
    rows = db.execute(
        "SELECT form, id, born, place, slot FROM name WHERE session = ? AND space = ? AND born > ? "
        "ORDER BY born LIMIT ?",
        (key, space, after, limit),
    )
    own = (Name(space, unpack_id(space, form, id), *row) for form, id, *row in rows)
    if space not in _IN_SERIES:
        return [*own]
    shared = (
        Name(space, unpack_id(space, MADE, each.id), *each[2:])
        for lane in _LANES
        for each in _of_lane(db, key, lane)
        if each.space == space and each.born > after
    )
    return nsmallest(limit, chain(own, shared), key=_BORN)


def rows(db: sqlite3.Connection, key: int) -> Iterator[_Row]:
    """All names of a session by form, id, space and birth, and these columns with place and slot.

    Raises ``CorruptData``.
    """
    own = db.execute(
        "SELECT form, id, space, born, place, slot FROM name WHERE session = ? ORDER BY form, id, space, born", (key,)
    )
    return merge(own, *(((MADE, *each) for each in _of_lane(db, key, lane)) for lane in _LANES), key=_KEY)


def count(db: sqlite3.Connection, key: int) -> int:
    """About how many names a session has."""
    ((found,),) = db.execute(_COUNT, (key,))
    return int(found)


def _of_lane(db: sqlite3.Connection, key: int, lane: int) -> Iterator[Named]:
    """The names in the series of a lane, in order. Raises ``CorruptData``."""
    end = b""
    for row in db.execute(f"SELECT {_SERIES} FROM series WHERE session = ? AND lane = ? ORDER BY first", (key, lane)):
        stored = Series(*row)
        groups = groups_of(stored)
        if stored.first <= end or series(groups) != stored:
            raise errors.CorruptData("a row of the index is damaged", revision=stored.born)
        end = stored.last
        yield from sorted(each for group in groups for each in group.named())


def _ends(db: sqlite3.Connection, key: int) -> list[bytes]:
    """The greatest id of each lane; b"" for none."""
    ends = [b""] * LANES
    for lane, last in db.execute(_ENDS, (key,)):
        ends[lane] = last
    return ends


# Writing


def write(db: sqlite3.Connection, key: int, names: Sequence[Name], puts: Sequence[Put]) -> None:
    """Write new names, and those of messages that are as they were put, inside a transaction."""
    names = [*names]
    groups = [*_of_puts(puts, names)]
    own: list[_Row] = []
    if names:
        shared: list[Named] = []
        for space, of in _by_space(names):
            for (form, id), each in zip(pack_ids(space, [each.id for each in of]), of, strict=True):
                _, _, born, place, slot = each
                if (
                    _may_share(id, form, space)
                    and bool(slot) == (space == PART)  # not so: a part that was removed
                    and max(len(place), len(slot)) <= MOST_KEY_BYTES
                ):
                    shared.append(Named(id, space, born, place, slot))
                else:
                    own.append((form, id, space, born, place, slot))
        groups += grouped(shared)
        listed = [(key, each.space, each.born, each.id) for each in names if each.space in LISTED]
        if listed:
            db.executemany("REPLACE INTO listed VALUES (?, ?, ?, ?)", listed)
    if groups:
        own += ((MADE, *each) for each in _write_series(db, key, groups))
    if own:
        own.sort(key=_KEY)  # SQLite is faster where it goes on behind the last row
        db.executemany("REPLACE INTO name VALUES (?, ?, ?, ?, ?, ?, ?)", [(key, *row) for row in own])


def _by_space(names: Iterable[Name]) -> Iterable[tuple[int, list[Name]]]:
    found: dict[int, list[Name]] = {}
    for each in names:
        found.setdefault(each.space, []).append(each)
    return found.items()


def _of_puts(puts: Sequence[Put], names: list[Name]) -> Iterator[Group]:
    """The groups of messages with their parts; their other names are added to ``names``."""
    packed = pack_puts(puts)
    if packed is None:
        if len(puts) == 1:
            names += whole.names(puts[0])
        else:
            for put in puts:
                yield from _of_puts([put], names)
        return
    at = 0
    for put in puts:
        place, revision, parts = put.place, put.revision, put.parts
        begin, at = at, at + 1 + len(parts)
        names += whole.calls(put)
        yield Group(revision, 0, place, HEADER_SLOT, packed[begin : min(at, begin + MOST_NAMES)])
        if len(parts) >= MOST_NAMES:
            slots = places.firsts(len(parts))
            for index in range(MOST_NAMES, at - begin):
                yield Group(revision, 0, place, slots[index - 1], packed[begin + index : begin + index + 1])


def _write_series(db: sqlite3.Connection, key: int, groups: list[Group]) -> list[Named]:
    """Write groups in series. Returns the names of those that fit in no lane."""
    groups.sort(key=_BEGUN)
    ends = _ends(db, key)
    written: list[_Row] = []
    left: list[Named] = []
    for portion in portioned(groups):
        made = series(portion)
        if made.first <= min(ends):
            fit = [group for group in portion if min(group.ids) > min(ends)]
            left += (each for group in portion if min(group.ids) <= min(ends) for each in group.named())
            if not fit:
                continue
            made = series(fit)
        # The lane with the least room between, so that the other stays open to ids that are less.
        lane = max((end, lane) for lane, end in enumerate(ends) if end < made.first)[1]
        ends[lane] = made.last
        written.append((key, lane, *made))
    db.executemany(_INSERT, written)
    return left


# Forks


def copy(db: sqlite3.Connection, parent: int, child: int, revision: int) -> None:
    """Copy the names that a session had at a revision, inside a transaction. Raises ``CorruptData``."""
    asked = {"child": child, "parent": parent, "revision": revision}
    for statement in _COPY:
        db.execute(statement, asked)
    for lane, *row in db.execute(_CUT, asked).fetchall():
        kept = grouped(each for group in groups_of(Series(*row)) for each in group.named() if each.born <= revision)
        if kept:
            db.execute(_INSERT, (child, lane, *series(kept)))
