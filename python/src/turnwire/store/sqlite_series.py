"""Series: the names of many messages and parts in one row.

A name in a row of its own costs more to write than most of what its message costs otherwise. Ids that are made here
ascend in time, so that the names of entries that are indexed together lie together among all. A *series* has them in
one row, with the least and the greatest of their ids: who looks for an id looks for the last series that begins at or
before it, and in that. Series are written once and never changed.

Ids made in the same millisecond are in no order, so that a series often begins a little before the end of the one
before it. For that there are two *lanes*: in each, every series begins behind the end of the one before. Names that fit
in neither have rows of their own (table ``name``), as have ids in other forms and what is not a message or a part. So
an id may be in each lane and have rows of its own, if it has named several things one after another; when each was born
tells them apart.

In the row stand the ids, each in the same number of bytes, so that one is found by its bytes; behind them what is said
of each *group*, names of one message that differ in nothing but what can be counted; and last the keys of the groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from turnwire import errors
from turnwire.store.base import MESSAGE, PART
from turnwire.store.sqlite_pack import MADE_BYTES

#: How many lanes there are; a look-up asks each.
LANES = 2
#: So that the row fits beside others into a page of the file.
MOST_BYTES = 4000
#: Names that a group has at most: that of a message, and those of parts whose slots are one byte.
MOST_NAMES = 65
#: A longer slot or place is for a row of its own.
MOST_KEY_BYTES = 0x7F

_HEAD = Struct("<HH")  # names, groups
_END = Struct("<H")  # where the names of a group end
# Of a group: revisions from the first birth of the series; where its key ends; how many bytes of the key are the slot,
# and _ASCENDING.
_GROUP = Struct("<HHB")
_ASCENDING = 0x80  # no slot is as long
_GREATEST = 0xFFFF
_FIRST_SLOT = 0x80  # of the first part of a message, by turnwire.log.places; 64 follow in one byte
_LAST_SLOT = 0xBF


class Named(NamedTuple):
    """A name, by the columns of a row of its own."""

    id: bytes
    space: int
    born: int
    place: bytes
    slot: bytes


class Group(NamedTuple):
    """Names of one message: perhaps its own, and those of parts in slots one after another."""

    born: int  # of the first name
    step: int  # revisions from each name's birth to the next one's: 0 or 1
    place: bytes
    slot: bytes  # of the first name
    ids: Sequence[bytes]  # as they are stored

    def named(self) -> list[Named]:
        """Name by name. Raises ``CorruptData``."""
        born, step, place, slot, ids = self
        return [_named(id, index, born, step, place, slot) for index, id in enumerate(ids)]


class Series(NamedTuple):
    """A series, by the columns of its row behind the lane."""

    first: bytes  # the least id
    last: bytes  # the greatest id
    born: int  # revision of the first birth
    reach: int  # revisions on to the last birth
    names: bytes


def following(slot: bytes, steps: int) -> bytes | None:
    """The slot so many steps behind another, by which a group counts; None: there is none."""
    if not steps:
        return slot
    byte = (slot[0] if slot else _FIRST_SLOT - 1) + steps
    return bytes((byte,)) if len(slot) <= 1 and _FIRST_SLOT <= byte <= _LAST_SLOT else None


def _named(id: bytes, index: int, born: int, step: int, place: bytes, slot: bytes) -> Named:
    """The name at an index of a group, by the fields of that. Raises ``CorruptData``."""
    at = following(slot, index)
    if at is None:
        raise errors.CorruptData("a row of the index is damaged", revision=born)
    return Named(id, PART if at else MESSAGE, born + step * index, place, at)


def grouped(named: Iterable[Named]) -> list[Group]:
    """Names in as few groups as possible, in the order of their births."""
    found: list[Group] = []
    ids: list[bytes] = []
    place = slot = b""
    born = step = 0
    for id, _, revision, at, to in sorted(named, key=_POSITION):
        count = len(ids)
        if count == 1:
            step = min(revision - born, 1)
        if not ids or (revision, at, to) != (born + step * count, place, following(slot, count)):
            ids = [id]
            born, step, place, slot = revision, 0, at, to
            found.append(Group(born, step, place, slot, ids))
            continue
        if count == 1:
            found[-1] = Group(born, step, place, slot, ids)
        ids.append(id)
    return found


def portioned(groups: Iterable[Group]) -> Iterator[list[Group]]:
    """Groups, in the order of their births, as many together as go into a series."""
    portion: list[Group] = []
    size = first = 0
    for group in groups:
        born, _, place, slot, ids = group
        more = len(ids) * MADE_BYTES + _END.size + _GROUP.size + len(place) + len(slot)
        if portion and (size + more > MOST_BYTES or born - first > _GREATEST):
            yield portion
            portion, size = [], 0
        if not portion:
            first = born
        portion.append(group)
        size += more
    if portion:
        yield portion


def series(groups: Sequence[Group]) -> Series:
    """The row of groups that go together."""
    ids: list[bytes] = []
    ends: list[int] = []
    said: list[bytes] = []
    keys: list[bytes] = []
    first = min(group.born for group in groups)
    last = end = 0
    for born, step, place, slot, of in groups:
        ids += of
        ends.append(len(ids))
        keys.append(place + slot)
        end += len(place) + len(slot)
        said.append(_GROUP.pack(born - first, end, len(slot) | _ASCENDING if step else len(slot)))
        last = max(last, born + step * (len(of) - 1))
    head = _HEAD.pack(len(ids), len(groups))
    names = b"".join((head, *ids, pack(f"<{len(ends)}H", *ends), *said, *keys))
    return Series(min(ids), max(ids), first, last - first, names)


def groups_of(of: Series) -> list[Group]:
    """The groups of a series. Raises ``CorruptData``."""
    names = of.names
    ends, said, keys = _outline(of)
    found: list[Group] = []
    at, key = _HEAD.size, keys
    for end, (ahead, key_end, size) in zip(ends, _GROUP.iter_unpack(names[said:keys]), strict=True):
        behind = _HEAD.size + end * MADE_BYTES
        ids = [names[each : each + MADE_BYTES] for each in range(at, behind, MADE_BYTES)]
        slot = keys + key_end - (size & ~_ASCENDING)
        found.append(Group(of.born + ahead, size // _ASCENDING, names[key:slot], names[slot : keys + key_end], ids))
        at, key = behind, keys + key_end
    return found


def find(of: Series, id: bytes) -> list[Named]:
    """The names that an id has in a series. Raises ``CorruptData``."""
    names = of.names
    found: list[Named] = []
    at = names.find(id, _HEAD.size)
    if at < 0:
        return found
    ends, said, keys = _outline(of)
    behind = _HEAD.size + ends[-1] * MADE_BYTES
    at = names.find(id, at, behind)
    while at >= 0:
        index, beside = divmod(at - _HEAD.size, MADE_BYTES)
        if not beside:
            group = bisect_right(ends, index)
            begin = key = 0
            row = said + group * _GROUP.size
            if group:
                begin, (_, key, _) = ends[group - 1], _GROUP.unpack_from(names, row - _GROUP.size)
            ahead, key_end, size = _GROUP.unpack_from(names, row)
            slot = keys + key_end - (size & ~_ASCENDING)
            at_slot = names[slot : keys + key_end]
            born = of.born + ahead
            found.append(_named(id, index - begin, born, size // _ASCENDING, names[keys + key : slot], at_slot))
        at = names.find(id, at + 1, behind)
    return found


def _outline(of: Series) -> tuple[tuple[int, ...], int, int]:
    """Where the names of each group of a series end, and where in the row it has what is said of groups, and the keys.

    Raises ``CorruptData``.
    """
    names = of.names
    if len(names) >= _HEAD.size:
        count, groups = _HEAD.unpack_from(names)
        ends = _HEAD.size + count * MADE_BYTES
        said = ends + groups * _END.size
        keys = said + groups * _GROUP.size
        if groups and len(names) >= keys:
            found = unpack_from(f"<{groups}H", names, ends)
            _, key_end, _ = _GROUP.unpack_from(names, keys - _GROUP.size)
            if found[-1] == count and keys + key_end == len(names):
                return found, said, keys
    raise errors.CorruptData("a row of the index is damaged", revision=of.born)


_POSITION = itemgetter(2, 3, 4)
