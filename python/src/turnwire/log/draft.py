"""A session as the entries of one append leave it: a view with the changes so far laid over it.

A draft is a view itself, so that another may lie over it and, once it is accepted, be absorbed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from turnwire import v1
from turnwire.log import digest, whole
from turnwire.log.prepare import Prepared
from turnwire.store.base import (
    HEADER_SLOT,
    MESSAGE,
    PART,
    SUMMARY_SLOT,
    Change,
    EntryRow,
    Name,
    Node,
    Put,
    Reply,
    Request,
    RevertSpan,
    SessionRow,
    View,
    row,
)

_NONE: Mapping[Any, Any] = {}
_VIEWS = Node(b"", b"", 0, 0, 0, 0, 0, 0, False, 0, 0)  # stands for what only the view knows


class Admitted(NamedTuple):
    """What became of one entry; the fields of ``turnwire.v1.AppendResult``."""

    revision: int
    id: str = ""
    part_ids: Sequence[str] = ()
    existing: bool = False


class Draft:
    """Looks things up first among the changes of this append, then in the view; collects the changes."""

    deleted = False

    def __init__(self, view: View, session: SessionRow, now_us: int) -> None:
        self.session = session
        self.awaited: dict[str, bytes] = {}  # turns that messages named before they came: the first place of those
        self._view = view
        self._stored = view.session.head if view.session is not None else 0
        self._now_us = now_us
        self._entries: list[EntryRow] = []
        self._ended: list[Node] = []
        self._nodes: dict[bytes, dict[bytes, Node | None]] = {}  # by place and slot; None: ended
        self._places: list[bytes] = []  # the places of the live headers among them, sorted
        self._slots: dict[bytes, list[bytes]] = {}  # the same for the live parts of a place
        self._names: dict[int, dict[str, list[Name]]] = {}  # by space and id: every row, oldest first
        # Messages put whole that no one has looked into; of these the above has the places alone.
        self._last_puts: list[Put] = []  # since someone asked for a message or part
        self._puts: dict[str, Put] = {}  # those before, by the id of the message
        self._put_parts: dict[str, Put] = {}  # by the ids of its parts
        self._spans: dict[int, RevertSpan] = {}
        self._properties: v1.SessionProperties | None = None

    @property
    def next(self) -> int:
        """The revision that the next entry gets."""
        return self.session.head + 1

    def record(self, field: int, payload: bytes, *, previous: int = 0, ignorable: bool = False) -> int:
        """Add an entry to the log and return its revision."""
        session = self.session
        revision = session.head + 1
        chain = digest.link(session.digest, revision, self._now_us, field, payload)
        self._entries.append(row(EntryRow, (revision, self._now_us, field, payload, previous, ignorable, chain)))
        tenant, id, key, _, _, first_us, _, properties, revert = session
        self.session = row(SessionRow, (tenant, id, key, revision, chain, first_us, self._now_us, properties, revert))
        return revision

    def add(self, entry: Prepared) -> int:
        """Add an entry that was prepared."""
        return self.record(entry.field, entry.payload, ignorable=entry.ignorable)

    def set_properties(self, properties: v1.SessionProperties, revision: int) -> None:
        self._properties = properties
        self.session = self.session._replace(properties=revision)

    def change(self, request: Request | None) -> Change:
        """Everything that this append changes."""
        return Change(
            self.session,
            self._entries,
            self._ended,
            {(node.place, node.slot): node for slots in self._nodes.values() for node in slots.values() if node}
            if self._nodes
            else {},
            [name for of in self._names.values() for rows in of.values() for name in rows] if self._names else [],
            [*self._puts.values(), *self._last_puts],
            list(self._spans.values()),
            self._properties,
            request,
        )

    def absorb(self, change: Change) -> None:
        """Take in the change of a draft that lay over this one."""
        self._entries += change.entries
        if change.ended:
            self._ended += change.ended
            for node in change.ended:
                self._unset(node)
        place, slots = b"", {}
        for node in change.live.values():  # those of a place one after another
            if node.place != place:
                place = node.place
                slots = self._nodes.setdefault(place, {})
            if slots.get(node.slot) is None:
                self._bound(node)
            slots[node.slot] = node
        for name in change.names:
            self.set_name(name)
        for put in change.puts:
            self.put_whole(put)
        if change.spans:
            self._spans.update({span.start: span for span in change.spans})
        self._properties = change.properties or self._properties
        self.session = change.session

    def reply(self, method: str, request_id: str) -> Reply | None:
        return self._view.reply(method, request_id)

    # Names

    def name(self, space: int, id: str) -> Name | None:
        if space in (MESSAGE, PART):
            self._note_puts()
            put = self._puts.get(id) if space == MESSAGE else self._put_parts.get(id)
            if put is not None:
                self._look_into(put)
        of = self._names.get(space)
        rows = of.get(id) if of is not None else None
        return rows[-1] if rows is not None else self._view.name(space, id)

    def fresh(self, message_ids: Sequence[str], part_ids: Sequence[str]) -> bool:
        """Whether none of the messages and none of the parts has a name."""
        self._note_puts()
        for puts, space, ids in ((self._puts, MESSAGE, message_ids), (self._put_parts, PART, part_ids)):
            if not (puts.keys().isdisjoint(ids) and self._names.get(space, _NONE).keys().isdisjoint(ids)):
                return False
        return self._view.fresh(message_ids, part_ids)

    def set_name(self, name: Name) -> None:
        of = self._names.get(name.space)
        if of is None:
            of = self._names[name.space] = {}
        rows = of.get(name.id)
        if rows is None:
            of[name.id] = [name]
        elif rows[-1].born == name.born:
            rows[-1] = name
        else:
            rows.append(name)

    # Nodes

    def node(self, place: bytes, slot: bytes) -> Node | None:
        slots = self._nodes.get(place)
        if slots is not None and slot in slots:
            return slots[slot]
        return self._view.node(place, slot)

    def live(self, name: Name | None) -> Node | None:
        """The live node that a name stands for, if it has one."""
        if name is None or not name.place:
            return None
        node = self.node(name.place, name.slot)
        return node if node is not None and node.born == name.born else None

    def put(self, node: Node) -> None:
        """Make a node live; the version that was live in its place ends at its revision."""
        self._end(self.node(node.place, node.slot), node.revision)
        self._set(node)

    def put_whole(self, put: Put) -> None:
        """Put a message and its parts, whose ids are all new, in a place where nothing is."""
        self._last_puts.append(put)
        insort(self._places, put.place)

    def _note_puts(self) -> None:
        """Make the last messages found by their ids; those of a batch are mostly written before anyone asks."""
        if self._last_puts:
            for put in self._last_puts:
                self._puts[put.id] = put
                for part in put.parts:
                    self._put_parts[part.id] = put
            self._last_puts.clear()

    def _look_into(self, put: Put) -> None:
        del self._puts[put.id]
        for part in put.parts:
            del self._put_parts[part.id]
        for name in whole.names(put):
            self.set_name(name)
        nodes = whole.nodes(put)
        self._nodes.setdefault(put.place, {}).update({node.slot: node for node in nodes})
        self._slots[put.place] = [node.slot for node in nodes[1:]]

    def _look_into_all(self) -> None:
        self._note_puts()
        for put in [*self._puts.values()]:
            self._look_into(put)

    def touch(self, node: Node) -> None:
        """Replace a live node by the same version with other marks."""
        self._set(node)

    def end(self, nodes: Iterable[Node], revision: int) -> None:
        """Take nodes out of the history from a revision on."""
        for node in nodes:
            self._end(node, revision)
            self._unset(node)

    def _set(self, node: Node) -> None:
        slots = self._nodes.setdefault(node.place, {})
        if slots.get(node.slot) is None:
            self._bound(node)
        slots[node.slot] = node

    def _bound(self, node: Node) -> None:
        if node.slot == HEADER_SLOT:
            insort(self._places, node.place)
        elif node.slot != SUMMARY_SLOT:
            slots = self._slots.setdefault(node.place, [])
            if not slots or node.slot > slots[-1]:
                slots.append(node.slot)
            else:
                insort(slots, node.slot)

    def _unset(self, node: Node) -> None:
        slots = self._nodes.setdefault(node.place, {})
        if slots.get(node.slot) is not None:
            if node.slot == HEADER_SLOT:
                _remove(self._places, node.place)
            elif node.slot != SUMMARY_SLOT:
                _remove(self._slots[node.place], node.slot)
        slots[node.slot] = None

    def _end(self, node: Node | None, revision: int) -> None:
        if node is not None:
            self._ended.append(node._replace(ended=revision))

    def message_nodes(self, place: bytes) -> list[Node]:
        found = {node.slot: node for node in self._view.message_nodes(place)}
        _overlay(found, self._nodes.get(place, {}))
        return [found[slot] for slot in sorted(found)]

    def nodes_from(self, place: bytes, slot: bytes) -> list[Node]:
        self._look_into_all()
        found = {(node.place, node.slot): node for node in self._view.nodes_from(place, slot)}
        drafted = {(of, at): node for of, slots in self._nodes.items() if of >= place for at, node in slots.items()}
        _overlay(found, {at: node for at, node in drafted.items() if at >= (place, slot)})
        return [found[at] for at in sorted(found)]

    # Places: those of the view count as far as nothing here has ended what is there.

    def last_place(self) -> bytes | None:
        there, here = self._view.last_place(), self._places
        if there in self._nodes:
            there = self._place_of_view(there)
        return here[-1] if here and (there is None or here[-1] > there) else there

    def place_before(self, place: bytes) -> bytes | None:
        return _greater(self._place_of_view(self._view.place_before(place)), _below(self._places, place))

    def last_slot(self, place: bytes) -> bytes | None:
        return _greater(self._slot_of_view(place, self._view.last_slot(place)), _last(self._slots.get(place, [])))

    def slot_before(self, place: bytes, slot: bytes) -> bytes | None:
        there = self._slot_of_view(place, self._view.slot_before(place, slot))
        return _greater(there, _below(self._slots.get(place, []), slot))

    def _place_of_view(self, place: bytes | None) -> bytes | None:
        while place is not None and self._nodes.get(place, _NONE).get(HEADER_SLOT, _VIEWS) is None:
            place = self._view.place_before(place)
        return place

    def _slot_of_view(self, place: bytes, slot: bytes | None) -> bytes | None:
        here = self._nodes.get(place, _NONE)
        while slot is not None and here.get(slot, _VIEWS) is None:
            slot = self._view.slot_before(place, slot)
        return slot

    # Entries and reverts

    def entry(self, revision: int) -> EntryRow:
        stored = self._stored
        return self._view.entry(revision) if revision <= stored else self._entries[revision - stored - 1]

    def span(self, start: int) -> RevertSpan:
        return self._spans.get(start) or self._view.span(start)

    def set_span(self, span: RevertSpan) -> None:
        self._spans[span.start] = span
        self.session = self.session._replace(revert=0 if span.end else span.start)


_Key = TypeVar("_Key")


def _overlay(found: dict[_Key, Node], drafted: Mapping[_Key, Node | None]) -> None:
    for at, node in drafted.items():
        if node is None:
            found.pop(at, None)
        else:
            found[at] = node


def _remove(keys: list[bytes], key: bytes) -> None:
    del keys[bisect_left(keys, key)]


def _last(keys: list[bytes]) -> bytes | None:
    return keys[-1] if keys else None


def _below(keys: list[bytes], key: bytes) -> bytes | None:
    at = bisect_left(keys, key)
    return keys[at - 1] if at else None


def _greater(one: bytes | None, other: bytes | None) -> bytes | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
