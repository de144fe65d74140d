"""Blocks: many small entries in one row, with what of them is history in the very form in which a replay sends it.

An entry of a few hundred bytes costs more to find than to read. When a tail is indexed, its small entries are put
together, as many as fill a page of the file, into one row in the place of their own. What of their payloads is part of
the history (the header of a message, a part) goes to the block's body: version after version in the order of the
history, parts with tag and length, messages in the frame of a replay. The rest of each payload stands before that, so
that every entry comes out byte for byte. Nothing is there twice.

A *stretch* is one row of the index for versions that follow one another both in the history and in the body of one
block. A replay takes its bytes as they are; who asks for one of its versions has it unpacked. As soon as a version of a
stretch changes, or another comes between two of them, the stretch is cut, and the versions of the message that it
concerns get rows of their own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from turnwire import errors
from turnwire.log import frames, prepare, wire
from turnwire.store.base import HEADER_SLOT, SUMMARY_SLOT, EntryRow, Node, Version

#: The mark of a block among the entries. No payload has number 0.
BLOCK = 0
#: The mark of a stretch in the index, and its kind: a part of a kind that this build does not know has 0.
STRETCH = -1

_HEAD = Struct("<HH")  # entries, bytes of the rest
# Of an entry: mark, µs since the first, revisions back to the delta before, where its rest ends, where in its payload
# that is interrupted by its content, where this lies in the body and how long it is (0: there is none).
_ENTRY = Struct("<BIIHHHH")
_REST_END = 3


class Block:
    """A block as it is stored."""

    def __init__(self, first: int, count: int, recorded_us: int, payload: bytes, digest: bytes) -> None:
        """``digest`` is that of the log up to the last entry, if it is stored. Raises ``CorruptData``."""
        self.first = first
        self.last = first + count - 1
        self.recorded_us = recorded_us
        self.payload = payload
        self._digest = digest
        if len(payload) < _HEAD.size or _HEAD.unpack_from(payload)[0] != count:
            raise errors.CorruptData("a block of entries is damaged", revision=first)
        self._rest = _HEAD.size + count * _ENTRY.size
        self._body = self._rest + _HEAD.unpack_from(payload)[1]
        if len(payload) < self._body:
            raise errors.CorruptData("a block of entries is damaged", revision=first)

    def __contains__(self, revision: int) -> bool:
        return self.first <= revision <= self.last

    def entry(self, revision: int) -> EntryRow:
        """One of its entries; the last has its digest, if that is stored."""
        at = _HEAD.size + (revision - self.first) * _ENTRY.size
        mark, recorded, back, end, offset, start, length = _ENTRY.unpack_from(self.payload, at)
        begin = _ENTRY.unpack_from(self.payload, at - _ENTRY.size)[_REST_END] if revision > self.first else 0
        payload = self.payload[self._rest + begin : self._rest + end]
        if length:
            start += self._body
            payload = payload[:offset] + self.payload[start : start + length] + payload[offset:]
        return EntryRow(
            revision,
            self.recorded_us + recorded,
            mark >> 1,
            payload,
            revision - back if back else 0,
            bool(mark & 1),
            self._digest if revision == self.last else b"",
        )

    def content(self, revision: int) -> tuple[int, int, int]:
        """Where the content of an entry is: in its payload, in the block, and how long (0: it has none here)."""
        at = _HEAD.size + (revision - self.first) * _ENTRY.size
        *_, offset, start, length = _ENTRY.unpack_from(self.payload, at)
        return offset, self._body + start, length

    def entries(self, first: int, last: int) -> Iterator[EntryRow]:
        """Its entries of a range."""
        return map(self.entry, range(max(first, self.first), min(last, self.last) + 1))


class Stretched(NamedTuple):
    """A stretch as a row of the index has it, by the columns of the row."""

    place: bytes
    slot: bytes
    revision: int  # of the block's first entry
    start: int  # in the block
    length: int
    turn: int  # the revision of the turn of all messages that begin in it; 0: none begins
    run: bytes


class Item(NamedTuple):
    """A version in a block, and where its bytes lie in it."""

    node: Node
    at: int


# Of a stretch: versions; revisions from the block's first to its greatest; where, from its start, the first message
# that begins in it has its frame, where the last one has, and where its header is; the kind of that (0: none begins).
_STRETCH = Struct("<HHHHHB")
# Of a version: mark, revisions from the block's first, revisions back to the birth of its place, offset and length in
# the payload of its entry, where it lies from the start of the stretch, and the bytes of its key: a part's slot or
# (with _HEADER) a header's place. The keys follow, all together.
_ITEM = Struct("<BHHHHHB")
_HEADER = 0x80  # no key is as long
_GREATEST = 0xFFFF


def outline(run: bytes) -> tuple[int, int, int, int, int]:
    """What a replay has to know of a stretch, places counted from its start. Raises ``CorruptData``.

    Revisions from the block's first to the greatest; where the frame of the first message begins (before it are parts
    of the message before); where the frame of the last message begins, and where its header does; and of which kind it
    is (0: no message begins here).
    """
    if len(run) < _STRETCH.size:
        raise errors.CorruptData("a row of the index is damaged")
    _, reach, whole, frame, last, kind = _STRETCH.unpack_from(run)
    return reach, whole, frame, last, kind


def stretch(items: Sequence[Item], first: int) -> Stretched:
    """The row for versions that follow one another in the block whose first revision is given."""
    begun = [index for index, item in enumerate(items) if item.node.slot == HEADER_SLOT]
    end = _end(items[-1])
    whole = frame = last = end
    turn = kind = 0
    if begun:
        header = items[begun[-1]]
        last, kind, turn = header.at, header.node.kind, header.node.turn
        frame = _frame(header, end)
        whole = _frame(items[begun[0]], _end(items[begun[1] - 1])) if len(begun) > 1 else frame
    start = whole if begun and not begun[0] else items[0].at - len(wire.part_prefix(items[0].node.length))
    reach = max(node.revision for node, _ in items) - first
    keys: list[bytes] = []
    packed = [_STRETCH.pack(len(items), reach, whole - start, frame - start, last - start, kind)]
    for (place, slot, sort, revision, born, _, offset, length, sealed, *_), at in items:
        key = slot or place
        keys.append(key)
        size = len(key) if slot else len(key) | _HEADER
        packed.append(
            _ITEM.pack(sort << 1 | sealed, revision - first, revision - born, offset, length, at - start, size)
        )
    packed += keys
    place, slot = items[0].node[:2]
    return Stretched(place, slot, first, start, end - start, turn, b"".join(packed))


def _end(item: Item) -> int:
    return item.at + item.node.length


def _frame(header: Item, end: int) -> int:
    """Where the frame of a message begins that ends at ``end``."""
    return header.at - len(frames.opening(header.node.kind, end - header.at))


def versions(of: Stretched) -> list[Item]:
    """The versions of a stretch, in order. Raises ``CorruptData``."""
    return [
        Item(Node(place, slot, mark >> 1, revision, born, 0, offset, length, bool(mark & 1), turn, 0), at)
        for place, slot, mark, revision, born, offset, length, turn, at in _unpacked(of)
    ]


def headers(of: Stretched) -> list[Node]:
    """The headers of the messages that begin in a stretch, in order. Raises ``CorruptData``."""
    return [
        Node(place, HEADER_SLOT, mark >> 1, revision, born, 0, offset, length, bool(mark & 1), turn, 0)
        for place, slot, mark, revision, born, offset, length, turn, _ in _unpacked(of)
        if slot == HEADER_SLOT
    ]


def shown(of: Stretched, payload: bytes, revision: int) -> list[Version]:
    """The versions of a stretch that there were at a revision, in order, with their bytes; ``payload``: of its block.

    Raises ``CorruptData``.
    """
    return [
        (place, slot, mark >> 1, born, turn, 0, payload[at : at + length])
        for place, slot, mark, put, born, _, length, turn, at in _unpacked(of)
        if put <= revision
    ]


def _unpacked(of: Stretched) -> Iterator[tuple[bytes, bytes, int, int, int, int, int, int, int]]:
    """Of each version of a stretch: place, slot, mark, revision, birth, offset, length, turn, where its bytes are."""
    place, _, first, start, _, turn, run = of
    try:
        keys = _STRETCH.size + _STRETCH.unpack_from(run)[0] * _ITEM.size
        for mark, ahead, back, offset, length, at, size in _ITEM.iter_unpack(run[_STRETCH.size : keys]):
            behind = keys + (size & ~_HEADER)
            slot = run[keys:behind]
            keys = behind
            begun = 0
            if size & _HEADER:
                place, slot, begun = slot, HEADER_SLOT, turn
            revision = first + ahead
            yield place, slot, mark, revision, revision - back, offset, length, begun, start + at
    except struct_error as error:
        raise errors.CorruptData("a row of the index is damaged", revision=first) from error


# Making blocks

#: Entries with larger payloads stay in rows of their own.
SMALL_BYTES = 1000
#: Fewer entries one after another are left as they are.
FEWEST = 8
#: So that a row fills a page of the file and needs no second.
MOST_BYTES = 16_200
_BESIDE = _ENTRY.size + 3  # bytes of an entry beside its payload: what the block says of it, tag and length of a part
_AROUND = 8  # bytes of a message's frame
_MOST = 1 << 32  # µs, and revisions


def groups(rows: Iterable[EntryRow]) -> list[list[EntryRow]]:
    """Small entries, in order, as they go together into blocks; those that go into none are left out."""
    found: list[list[EntryRow]] = []
    group: list[EntryRow] = []
    size = 0
    for row in rows:
        beside = len(row.payload) + (_BESIDE if row.field == prepare.PART else _BESIDE + _AROUND)
        size += beside
        if not group or not (
            row.revision == group[-1].revision + 1
            and size <= MOST_BYTES
            and 0 <= row.recorded_us - group[0].recorded_us < _MOST
        ):
            group, size = [], beside
            found.append(group)
        group.append(row)
    return [group for group in found if len(group) >= FEWEST]


_Unit = tuple[Sequence[Node], bytes]  # versions that an entry has in one piece, and that piece
_Run = list[_Unit]  # what becomes a stretch


class Made(NamedTuple):
    """A block and the stretches in it."""

    entries: Sequence[EntryRow]
    payload: bytes
    stretches: list[tuple[Stretched, list[Item]]]


def make(of: Sequence[Sequence[EntryRow]], nodes: Sequence[Node], gone: Sequence[tuple[bytes, bytes]]) -> list[Made]:
    """Blocks of groups of entries.

    ``nodes`` are the live versions, in order, between which there are no others; ``gone`` the positions, in order, at
    which versions have ended that a read at an older revision finds there.
    """
    where = {row.revision: (number, row.payload) for number, group in enumerate(of) for row in group}
    runs: list[list[_Run]] = [[] for _ in of]
    run: _Run | None = None
    current = turn = at = 0
    before: Node | None = None
    while at < len(nodes):
        node = nodes[at]
        # An entry has one content, so that what is found is not found again.
        number, payload = where.pop(node.revision, (-1, b""))
        count = _in_one_piece(nodes, at, gone) if number >= 0 else 0
        if not count:
            run = None
            at += 1
            continue
        header = node.slot == HEADER_SLOT
        if (
            run is None
            or before is None
            or number != current
            or (header and turn and node.turn != turn)
            or not (header or node.place == before.place)
            or (gone and _between(gone, before, node))
        ):
            run, current, turn = [], number, 0
            runs[number].append(run)
        if header:
            turn = node.turn
        before = nodes[at + count - 1]
        run.append((nodes[at : at + count], payload[node.offset : before.offset + before.length]))
        at += count
    return [_made(group, found) for group, found in zip(of, runs, strict=True)]


def _in_one_piece(nodes: Sequence[Node], at: int, gone: Sequence[tuple[bytes, bytes]]) -> int:
    """How many versions, from one on, follow one another in a payload as in a replay; 0: the first is none of such.

    At an older revision too, so that none of the positions in ``gone`` may lie between them.
    """
    place, slot, _, revision, _, _, end, *_ = first = nodes[at]
    if slot == HEADER_SLOT and not first.turn:
        return 0
    behind = at
    while behind < len(nodes):
        node = nodes[behind]
        if behind > at:
            end += len(wire.part_prefix(node.length))
        if (
            (node.place, node.revision, node.offset) != (place, revision, end)
            or node.delta
            or node.slot == SUMMARY_SLOT
            or revision - node.born > _GREATEST
            or node.kind >= _HEADER
            or len(node.slot or place) >= _HEADER
            or (behind > at and gone and _between(gone, nodes[behind - 1], node))
        ):
            break
        end += node.length
        behind += 1
    return behind - at


def _between(gone: Sequence[tuple[bytes, bytes]], before: Node, behind: Node) -> bool:
    at = bisect_right(gone, (before.place, before.slot))
    return at < len(gone) and gone[at] < (behind.place, behind.slot)


def _made(entries: Sequence[EntryRow], runs: Sequence[_Run]) -> Made:
    body = bytearray()
    contents: dict[int, tuple[int, int, int]] = {}
    placed: list[list[Item]] = []
    for run in runs:
        items: list[Item] = []
        at = 0
        while at < len(run):
            behind = at + 1
            while behind < len(run) and run[behind][0][0].slot != HEADER_SLOT:
                behind += 1
            _add_message(body, contents, items, run[at:behind])
            at = behind
        placed.append(items)
    first_us = entries[0].recorded_us
    rest: list[bytes] = []
    said: list[bytes] = []
    end = 0
    for row in entries:
        offset, start, length = contents.get(row.revision, (0, 0, 0))
        rest.append(row.payload[:offset])
        rest.append(row.payload[offset + length :])
        end += len(row.payload) - length
        back = row.revision - row.previous if row.previous else 0
        said.append(
            _ENTRY.pack(row.field << 1 | row.ignorable, row.recorded_us - first_us, back, end, offset, start, length)
        )
    payload = b"".join((_HEAD.pack(len(entries), end), *said, *rest, body))
    first = entries[0].revision
    shift = len(payload) - len(body)
    found: list[tuple[Stretched, list[Item]]] = []
    for items in placed:
        made = stretch(items, first)
        found.append((made._replace(start=made.start + shift), items))
    return Made(entries, payload, found)


def _add_message(
    body: bytearray, contents: dict[int, tuple[int, int, int]], items: list[Item], units: Sequence[_Unit]
) -> None:
    """Add a message in its frame, or, where it has begun before, parts of it."""
    pieces: list[bytes] = []
    header = units[0][0][0]
    at = len(body)
    if header.slot == HEADER_SLOT:
        size = sum(len(content) for _, content in units)
        size += sum(len(wire.part_prefix(nodes[0].length)) for nodes, _ in units[1:])
        pieces.append(frames.opening(header.kind, size))
        at += len(pieces[0])
    for nodes, content in units:
        first = nodes[0]
        if first.slot != HEADER_SLOT:
            pieces.append(wire.part_prefix(first.length))
            at += len(pieces[-1])
        contents[first.revision] = (first.offset, at, len(content))
        items += (Item(node, at + node.offset - first.offset) for node in nodes)
        pieces.append(content)
        at += len(content)
    body += b"".join(pieces)
