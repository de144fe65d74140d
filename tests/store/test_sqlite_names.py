"""Names in series and in rows of their own: whatever was written is found, at every revision, and by its order."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import made, refused
from turnwire import errors, ids
from turnwire.log import places, whole
from turnwire.store import sqlite_names, sqlite_schema, sqlite_series
from turnwire.store.base import CALL, HEADER_SLOT, MESSAGE, PART, TURN, Name, Put, PutPart
from turnwire.store.sqlite_pack import pack_id, unpack_made
from turnwire.store.sqlite_series import Series, find, groups_of, series

_LAST = 1 << 31
_ABSENT = (made(ids.MESSAGE, 77_777), made(ids.PART, 77_777), "x", "msg_0")


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(_empty()) as made:
        yield made


def _empty() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    sqlite_schema.migrate(db, 0)
    return db


def counts(db: sqlite3.Connection) -> tuple[int, int]:
    """Rows of single names, and series."""
    return db.execute("SELECT (SELECT count(*) FROM name), (SELECT count(*) FROM series)").fetchone()  # type: ignore[no-any-return]


def put(number: int, parts: int = 2, *, revision: int = 0, call: str = "") -> Put:
    """A message whose ids are made one after another."""
    first = number * 100
    of = [PutPart(made(ids.PART, first + 1 + at), 1, 0, 1, True, f"{call}{at}" if call else "") for at in range(parts)]
    revision = revision or number + 1
    return Put(made(ids.MESSAGE, first), places.firsts(number + 1)[number], 2, revision, 0, 1, True, 1, of)


class Model:
    """All names that were written."""

    def __init__(self) -> None:
        self.names: list[Name] = []

    def holds(self, db: sqlite3.Connection, key: int, last: int = _LAST) -> None:
        """Every id has the names that it had, at each revision."""
        there = [name for name in self.names if name.born <= last]
        births = sorted({name.born for name in there})
        for space, id in {(name.space, name.id) for name in self.names} | {(PART, id) for id in _ABSENT}:
            mine = sorted((name for name in there if (name.space, name.id) == (space, id)), key=lambda name: name.born)
            for revision in [*births, _LAST] if len(mine) > 1 else [*(name.born for name in mine), _LAST, 1]:
                expected = [name for name in mine if name.born <= revision]
                assert sqlite_names.name(db, key, space, id, revision) == (expected[-1] if expected else None)
        rows = [(*pack_id(name.space, name.id), *(name.space, *name[2:])) for name in there]
        assert [*sqlite_names.rows(db, key)] == sorted(rows, key=lambda row: (row[0], row[1], row[2], row[3]))
        ours = [row[1] for row in rows if not row[0]]
        assert sqlite_names.last_id(db, key) == max(ours, default=b"")
        for space in (MESSAGE, PART, CALL):
            found = sqlite_names.names(db, key, space, 3, 1000)
            assert sorted(found) == sorted(name for name in there if name.space == space and name.born > 3)
            assert [name.born for name in found] == sorted(name.born for name in found)


@st.composite
def written(draw: st.DrawFn) -> list[tuple[list[Name], list[Put]]]:
    """Changes one after another: messages put whole, parts put one by one, names that come again."""
    changes: list[tuple[list[Name], list[Put]]] = []
    used: list[Name] = []
    taken: set[str] = set()
    revision = 0
    for at in range(draw(st.integers(1, 8))):
        names: list[Name] = []
        puts: list[Put] = []
        spread = draw(st.sampled_from([1, 1, 3, 50]))  # how far ids of one time lie in disorder
        shuffled = random.Random(draw(st.integers(0, 99)))

        def new(prefix: str, at: int = at, spread: int = spread, shuffled: random.Random = shuffled) -> str:
            while True:
                number = (at * 100 + len(taken)) if spread == 1 else max(0, at * 100 + shuffled.randrange(100 * spread))
                id = made(prefix, number)
                if draw(st.integers(0, 9)) == 0:
                    id = f"{prefix[0]}{number}"
                if id not in taken:
                    taken.add(id)
                    return id
                taken.add(f"{at}.{len(taken)}")

        for _ in range(draw(st.integers(1, 6))):
            revision += draw(st.sampled_from([1, 1, 1, 2, 70_000]))
            place = draw(
                st.sampled_from([bytes((0x80 + revision % 64,)), b"\xc1" + bytes((revision % 256, 7)), b"z" * 130])
            )
            match draw(st.integers(0, 3)):
                case 0:
                    parts = [
                        PutPart(new(ids.PART), 1, 0, 1, True, "") for _ in range(draw(st.sampled_from([0, 1, 3, 70])))
                    ]
                    puts.append(Put(new(ids.MESSAGE), place, 2, revision, 0, 1, True, 1, parts))
                case 1:
                    names.append(Name(MESSAGE, new(ids.MESSAGE), revision, place, HEADER_SLOT))
                    for slot in places.firsts(draw(st.sampled_from([1, 4, 66]))):
                        revision += draw(st.sampled_from([0, 1, 1, 1, 2]))
                        names.append(Name(PART, new(ids.PART), revision, place, slot))
                case 2 if used:
                    again = draw(st.sampled_from(used))
                    names.append(again._replace(born=revision, place=place))
                case _:
                    part = next((name for name in reversed(used) if name.space == PART), None)
                    if part is not None:
                        names.append(Name(PART, part.id, revision))
        used += names
        for each in puts:
            used += whole.names(each)
        changes.append((names, puts))
    return changes


@settings(deadline=None)
@given(changes=written(), cut=st.integers(1, 40))
def test_every_name_is_found(changes: list[tuple[list[Name], list[Put]]], cut: int) -> None:
    model = Model()
    with closing(_empty()) as db:
        for names, puts in changes:
            sqlite_names.write(db, 1, names, puts)
            model.names += names
            for put in puts:
                model.names += whole.names(put)
        sqlite_names.write(db, 2, [Name(PART, _ABSENT[1], 1, b"\x80", b"\x80")], [])  # another session has it
        model.holds(db, 1)
        births = sorted({name.born for name in model.names})
        if births:
            at = births[cut % len(births)]
            sqlite_names.copy(db, 1, 3, at)
            model.holds(db, 3, at)
            following = Put(made(ids.MESSAGE, 10**9), b"\xbf", 2, births[-1] + 9, 0, 1, True, 1, [])
            sqlite_names.write(db, 3, [], [following])
            found = sqlite_names.name(db, 3, MESSAGE, following.id, _LAST)
            assert found == Name(MESSAGE, following.id, following.revision, b"\xbf", HEADER_SLOT)


def test_messages_share_rows(db: sqlite3.Connection) -> None:
    """Counted: with ids that ascend there is no name in a row of its own, and the rows are few."""
    for at in range(0, 60, 20):
        sqlite_names.write(db, 1, [], [put(number, 8) for number in range(at, at + 20)])
    assert counts(db) == (0, 3)
    sizes = [size for (size,) in db.execute("SELECT length(names) FROM series")]
    assert sum(sizes) < 60 * 9 * 17


def test_parts_put_one_by_one_share_what_is_said_of_them(db: sqlite3.Connection) -> None:
    names = [Name(MESSAGE, made(ids.MESSAGE, 0), 5, b"\x80", HEADER_SLOT)]
    names += [Name(PART, made(ids.PART, 1 + at), 6 + at, b"\x80", slot) for at, slot in enumerate(places.firsts(60))]
    sqlite_names.write(db, 1, names, [])
    (row,) = db.execute("SELECT first, last, born, reach, names FROM series").fetchall()
    assert [len(group.ids) for group in groups_of(Series(*row))] == [61]
    assert len(row[-1]) < 61 * 15 + 20


def test_ids_of_one_millisecond_are_in_no_order(db: sqlite3.Connection) -> None:
    """A series that begins before the end of the one before it goes beside that; for a third there is no room."""
    low, high = [put(at, revision=at + 1) for at in (0, 1, 2, 3, 4)], [put(at, revision=at + 9) for at in (5, 6, 9)]
    sqlite_names.write(db, 1, [], [low[0], low[2]])
    sqlite_names.write(db, 1, [], [low[1], low[4]])
    assert counts(db) == (0, 2)
    sqlite_names.write(db, 1, [], [low[3], high[0]])  # one of the two lies behind what one of the lanes has
    assert counts(db) == (0, 3)
    sqlite_names.write(db, 1, [], [put(-0, 1, revision=70)._replace(id=made(ids.MESSAGE, 150)), high[1]])
    assert counts(db) == (2, 4)
    sqlite_names.write(db, 1, [], [high[2]])
    assert counts(db) == (2, 5)
    for each in (*low, *high):
        for name in whole.names(each):
            if name.born != 70:
                assert sqlite_names.name(db, 1, name.space, name.id, _LAST)


def test_calls_and_turns_have_rows_of_their_own(db: sqlite3.Connection) -> None:
    sqlite_names.write(db, 1, [Name(TURN, made(ids.TURN, 5), 1, b"\x80")], [put(1, 3, call="c")])
    assert counts(db) == (4, 1)
    assert sqlite_names.name(db, 1, CALL, whole.call(put(1).place, "c1"), _LAST) == Name(
        CALL, "81:c1", 2, b"\x81", b"\x81"
    )
    assert unpack_made(sqlite_names.last_id(db, 1)) == made("", 103)


def test_an_id_is_found_by_its_bytes_where_ids_begin_only() -> None:
    """What looks like an id between two others is none, and what comes before it does not hide one."""
    left, right = b"\x00" * 8 + b"ABCDEFG", b"HIJKLMNO" + b"\x01" * 7
    group = sqlite_series.Group(4, 0, b"\x80", HEADER_SLOT, [left, right, b"ABCDEFGHIJKLMNO"])
    made = series([group])
    assert [each.slot for each in find(made, b"ABCDEFGHIJKLMNO")] == [b"\x81"]
    assert find(made._replace(names=made.names), b"BCDEFGHIJKLMNO\x01") == []


@given(cut=st.integers(0, 200), flip=st.integers(0, 200), to=st.integers(0, 255))
def test_a_damaged_series_is_told(cut: int, flip: int, to: int) -> None:
    """Never by another error than that."""
    whole_one = series(
        [sqlite_series.Group(at, 0, b"\x80", HEADER_SLOT, [bytes((at,)) * 15] * 2) for at in range(1, 5)]
    )
    damaged = bytearray(whole_one.names)
    damaged[flip % len(damaged)] = to
    for names in (whole_one.names[: cut % len(whole_one.names)], bytes(damaged)):
        for read in (groups_of, lambda of: find(of, b"\x03" * 15)):
            with contextlib.suppress(errors.CorruptData):
                read(whole_one._replace(names=names))
    with refused(errors.CorruptData, revision=1):
        groups_of(whole_one._replace(names=whole_one.names[:-1]))
