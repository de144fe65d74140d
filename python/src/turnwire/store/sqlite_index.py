"""Writing the index: the rows of a change, and its small entries into blocks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turnwire import v1
from turnwire.log import prepare, whole
from turnwire.store import sqlite_block, sqlite_names
from turnwire.store.base import HEADER_SLOT, LAST_FIELD, Change, EntryRow, Node, Put, SessionRow
from turnwire.store.sqlite_block import BLOCK, STRETCH, Block, Item, Made, Stretched
from turnwire.store.sqlite_pack import pack_put, pack_run
from turnwire.store.sqlite_rows import Rows, base
from turnwire.store.sqlite_schema import DIGEST_EVERY

_Position = tuple[bytes, bytes]


def write_index(db: sqlite3.Connection, rows: Rows, change: Change, small: Sequence[EntryRow]) -> None:
    """Bring the session's row and the index up to a change, inside a transaction.

    Those of its entries that ``change.entries`` has are still to be written, the others are in the file. ``small`` are
    all of no more than ``SMALL_BYTES``.
    """
    session = change.session
    key = session.key
    db.execute(
        "UPDATE session SET head = ?, digest = ?, recorded_us = ?, properties = ?, revert = ?, ahead = 0 WHERE key = ?",
        (session.head, session.digest, session.recorded_us, session.properties, session.revert, key),
    )
    versions = bool(change.ended or change.live or change.puts)
    greatest = rows.greatest(key) if versions else None
    puts = change.puts
    made = _blocks(change, small, greatest)
    insert_entries(db, session, _write_blocks(db, session, made, change.entries) if made else change.entries)
    if versions:
        _apply_nodes(db, rows, key, change, made, greatest)
    if change.names or puts:
        sqlite_names.write(db, key, change.names, puts)
    if change.spans:
        db.executemany("REPLACE INTO span VALUES (?, ?, ?, ?, ?)", [(key, *span) for span in change.spans])
    if change.properties is not None:
        set_properties(db, key, change.properties)


# Entries and blocks


def _blocks(change: Change, small: Sequence[EntryRow], greatest: _Position | None) -> list[Made]:
    """The blocks that the small entries of a change are put into."""
    if len(small) < sqlite_block.FEWEST:
        return []
    first = small[0].revision
    fresh = sum(node.revision >= first for node in change.live.values())
    fresh += sum(1 + len(put.parts) for put in change.puts if put.revision >= first)
    if fresh < sqlite_block.FEWEST:  # deltas and what ends are read as well from rows of their own
        return []
    groups = sqlite_block.groups(row for row in small if row.field <= LAST_FIELD and row.field != prepare.SESSION)
    if not groups:
        return []
    if change.puts:
        _spell_out(change, groups)
    nodes = sorted(change.live.values())
    if greatest is not None:  # before that there are others
        nodes = [node for node in nodes if node[:2] > greatest]
    others = _ends(change) - change.live.keys()
    others.update((put.place, HEADER_SLOT) for put in change.puts)
    return [made for made in sqlite_block.make(groups, nodes, sorted(others)) if made.stretches]


def _spell_out(change: Change, groups: list[list[EntryRow]]) -> None:
    """Make the nodes of the messages that are as they were put and go into blocks."""
    inside = {row.revision for group in groups for row in group}
    blocked = [put for put in change.puts if put.revision in inside]
    change.puts = [put for put in change.puts if put.revision not in inside]
    for put in blocked:
        change.live.update({(node.place, node.slot): node for node in whole.nodes(put)})


def _write_blocks(
    db: sqlite3.Connection, session: SessionRow, made: list[Made], fresh: Sequence[EntryRow]
) -> Sequence[EntryRow]:
    """Put blocks in the place of the rows of their entries. Returns the fresh entries that are in none."""
    at, first_us = base(session.key), session.first_us
    written: list[tuple[Any, ...]] = []
    inside: set[int] = set()
    begun = fresh[0].revision if fresh else session.head + 1
    for entries, payload, _ in made:
        first, last = entries[0], entries[-1]
        if first.revision < begun:
            db.execute("DELETE FROM entry WHERE pos BETWEEN ? AND ?", (at + first.revision, at + last.revision))
        if last.revision >= begun:
            inside.update(range(first.revision, last.revision + 1))
        chain = session.digest if last.revision == session.head else last.digest or None
        ahead = first.recorded_us - first_us
        written.append((at + first.revision, ahead, BLOCK, last.revision - first.revision, chain, payload))
    db.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", written)
    return [row for row in fresh if row.revision not in inside]


def insert_entries(db: sqlite3.Connection, session: SessionRow, entries: Sequence[EntryRow]) -> None:
    """Write entries that have their digests."""
    at, first_us = base(session.key), session.first_us
    db.executemany(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                at + row.revision,
                row.recorded_us - first_us,
                row.field << 1 | row.ignorable,
                row.revision - row.previous if row.previous else 0,
                None if row.revision % DIGEST_EVERY else row.digest,
                row.payload,
            )
            for row in entries
        ],
    )


def insert_block(db: sqlite3.Connection, session: SessionRow, block: Block) -> None:
    """Write a block whose last entry is the session's head."""
    ahead = block.recorded_us - session.first_us
    row = (base(session.key) + block.first, ahead, BLOCK, block.last - block.first, session.digest, block.payload)
    db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)


# Nodes


def _apply_nodes(
    db: sqlite3.Connection, rows: Rows, key: int, change: Change, made: list[Made], greatest: _Position | None
) -> None:
    touched: dict[bytes, set[bytes]] = {}
    for place, slot in change.live:
        touched.setdefault(place, set()).add(slot)
    for node in change.ended:
        touched.setdefault(node.place, set()).add(node.slot)
    if greatest is not None:
        positions = {*change.live, *_ends(change), *((put.place, HEADER_SLOT) for put in change.puts)}
        _make_way(db, rows, key, sorted(position for position in positions if position <= greatest))
    own = dict(change.live)  # what gets a row of its own
    written: list[tuple[Any, ...]] = []
    for block in made:
        for stretch, items in block.stretches:
            written.append(_stretch(key, stretch))
            for node, _ in items:
                del own[node.place, node.slot]
    runs: dict[bytes, bytes] = {}
    for place, slots in touched.items():
        header = change.live.get((place, HEADER_SLOT))
        if header is None or header.born != header.revision or change.ended:
            _unpack(db, rows, key, place, slots)
        if header is not None and header.born == header.revision and (place, HEADER_SLOT) in own:
            parts = _before_stretches(own, place, slots)
            run, count = pack_run(header, parts)
            if run is not None:
                runs[place] = run
                for part in parts[:count]:
                    del own[place, part.slot]
    if change.ended:
        gone = [(key, node.place, node.slot) for node in change.ended if (node.place, node.slot) not in own]
        db.executemany("DELETE FROM node WHERE session = ? AND place = ? AND slot = ?", gone)
        db.executemany(
            "INSERT INTO past VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(key, node.ended, *_node(node)) for node in change.ended],
        )
    written += ((key, *_node(node), None if slot else runs.get(place)) for (place, slot), node in own.items())
    written += (row for put in change.puts for row in _nodes_of(key, put))
    _write_nodes(db, written)


def _before_stretches(own: Mapping[_Position, Node], place: bytes, slots: Iterable[bytes]) -> list[Node]:
    """The parts of a message before the first that a stretch has: who looks for one behind that finds the stretch."""
    found: list[Node] = []
    for slot in sorted(slots):
        node = own.get((place, slot))
        if node is None:
            break
        if slot != HEADER_SLOT:
            found.append(node)
    return found


def _nodes_of(key: int, put: Put) -> list[tuple[Any, ...]]:
    """The rows of the nodes of a message that is as it was put."""
    _, place, kind, revision, offset, length, sealed, turn, parts = put
    run, count = pack_put(put)
    back = revision - turn if turn else None
    found: list[tuple[Any, ...]] = [
        (key, place, HEADER_SLOT, kind << 1 | sealed, revision, 0, offset, length, back, 0, 0, run)
    ]
    if count < len(parts):
        found += [(key, *_node(part), None) for part in whole.nodes(put)[1 + count :]]
    return found


def _ends(change: Change) -> set[_Position]:
    return {(node.place, node.slot) for node in change.ended}


def _make_way(db: sqlite3.Connection, rows: Rows, key: int, positions: Sequence[_Position]) -> None:
    """Cut the stretches of a session where a position lies in them, and give its message rows of their own."""
    for position in positions:
        found = rows.stretch(key, *position)
        if found is None:
            continue
        items = sqlite_block.versions(found)
        if position > items[-1].node[:2]:
            continue
        place = position[0]
        gone = (key, found.place, found.slot)
        db.execute("DELETE FROM node WHERE session = ? AND place = ? AND slot = ?", gone)
        parts = [
            [item for item in items if item.node.place < place],
            [item for item in items if item.node.place > place],
        ]
        written = [_stretch(key, sqlite_block.stretch(part, found.revision)) for part in parts if part]
        written += [(key, *_node(item.node), None) for item in items if item.node.place == place]
        _write_nodes(db, written)


def write_versions(db: sqlite3.Connection, key: int, items: Sequence[Item]) -> None:
    """Give versions rows of their own."""
    _write_nodes(db, [(key, *_node(item.node), None) for item in items])


def _unpack(db: sqlite3.Connection, rows: Rows, key: int, place: bytes, touched: set[bytes]) -> None:
    """Give the parts that are packed behind a header rows of their own, if one of them or the header changes."""
    run = rows.run(key, place)
    if run and (HEADER_SLOT in touched or any(part.slot in touched for part in run)):
        db.execute("UPDATE node SET run = NULL WHERE session = ? AND place = ? AND slot = x''", (key, place))
        _write_nodes(db, [(key, *_node(part), None) for part in run])


def _write_nodes(db: sqlite3.Connection, written: list[tuple[Any, ...]]) -> None:
    db.executemany("REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", written)


def _stretch(key: int, of: Stretched) -> tuple[Any, ...]:
    """The row of a stretch."""
    place, slot, first, start, length, turn, run = of
    return key, place, slot, STRETCH, first, 0, start, length, first - turn if turn else None, 0, 0, run


def _node(node: Node) -> tuple[bytes, bytes, int, int, int, int, int, int | None, int, int]:
    """The columns of a node from its place on."""
    place, slot, kind, revision, born, _, offset, length, sealed, turn, delta, grown = node
    return (
        place,
        slot,
        kind << 1 | sealed,
        revision,
        revision - born,
        offset,
        length,
        revision - turn if turn else None,
        delta - revision if delta else 0,
        grown,
    )


# Properties


def set_properties(db: sqlite3.Connection, key: int, properties: v1.SessionProperties) -> None:
    """Keep what sessions are filtered by."""
    db.execute(
        "REPLACE INTO detail VALUES (?, ?, ?, ?)",
        (
            key,
            properties.directory if properties.HasField("directory") else None,
            properties.parent.session_id if properties.HasField("parent") else None,
            properties.HasField("archived"),
        ),
    )
    db.execute("DELETE FROM label WHERE session = ?", (key,))
    db.executemany("INSERT INTO label VALUES (?, ?, ?)", [(key, *label) for label in properties.labels.items()])
