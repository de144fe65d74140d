"""A session as the entries of one append leave it: a view with the changes so far laid over it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import TypeVar

from turnwire import v1
from turnwire.log import digest
from turnwire.store.base import (
    HEADER_SLOT,
    SUMMARY_SLOT,
    Change,
    EntryRow,
    Name,
    Node,
    Request,
    RevertSpan,
    SessionRow,
    View,
)


class Draft:
    """Looks things up first among the changes of this append, then in the view; collects the changes."""

    def __init__(self, view: View, session: SessionRow, now_us: int) -> None:
        self.session = session
        self._view = view
        self._now_us = now_us
        self._entries: list[EntryRow] = []
        self._ended: list[Node] = []
        self._nodes: dict[bytes, dict[bytes, Node | None]] = {}  # by place and slot; None: ended
        self._places: list[bytes] = []  # every place that this append put a header to, sorted
        self._slots: dict[bytes, list[bytes]] = {}  # the same for the parts of a place
        self._names: dict[tuple[int, str], list[Name]] = {}  # every row of this append, oldest first
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
        self._entries.append(EntryRow(revision, self._now_us, field, payload, previous, ignorable, chain))
        self.session = session._replace(head=revision, digest=chain, recorded_us=self._now_us)
        return revision

    def set_properties(self, properties: v1.SessionProperties, revision: int) -> None:
        self._properties = properties
        self.session = self.session._replace(properties=revision)

    def change(self, request: Request | None) -> Change:
        """Everything that this append changes."""
        return Change(
            self.session,
            self._entries,
            self._ended,
            {
                (place, slot): node
                for place, slots in self._nodes.items()
                for slot, node in slots.items()
                if node is not None
            },
            [name for rows in self._names.values() for name in rows],
            list(self._spans.values()),
            self._properties,
            request,
        )

    # Names

    def name(self, space: int, id: str) -> Name | None:
        rows = self._names.get((space, id))
        return rows[-1] if rows else self._view.name(space, id)

    def set_name(self, name: Name) -> None:
        rows = self._names.setdefault((name.space, name.id), [])
        if rows and rows[-1].born == name.born:
            rows.pop()
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

    def touch(self, node: Node) -> None:
        """Replace a live node by the same version with other marks."""
        self._set(node)

    def end(self, nodes: Iterable[Node], revision: int) -> None:
        """Take nodes out of the history from a revision on."""
        for node in nodes:
            self._end(node, revision)
            self._nodes.setdefault(node.place, {})[node.slot] = None

    def _set(self, node: Node) -> None:
        slots = self._nodes.setdefault(node.place, {})
        if node.slot not in slots and node.slot != SUMMARY_SLOT:
            if node.slot == HEADER_SLOT:
                insort(self._places, node.place)
            else:
                insort(self._slots.setdefault(node.place, []), node.slot)
        slots[node.slot] = node

    def _end(self, node: Node | None, revision: int) -> None:
        if node is not None:
            self._ended.append(node._replace(ended=revision))

    def message_nodes(self, place: bytes) -> list[Node]:
        found = {node.slot: node for node in self._view.message_nodes(place)}
        _overlay(found, self._nodes.get(place, {}))
        return [found[slot] for slot in sorted(found)]

    def nodes_from(self, place: bytes, slot: bytes) -> list[Node]:
        found = {(node.place, node.slot): node for node in self._view.nodes_from(place, slot)}
        drafted = {(of, at): node for of, slots in self._nodes.items() if of >= place for at, node in slots.items()}
        _overlay(found, {at: node for at, node in drafted.items() if at >= (place, slot)})
        return [found[at] for at in sorted(found)]

    # Places: a bound that was live once is as good as one that still is, since nothing live lies between.

    def last_place(self) -> bytes | None:
        return _greater(self._view.last_place(), _last(self._places))

    def place_before(self, place: bytes) -> bytes | None:
        return _greater(self._view.place_before(place), _below(self._places, place))

    def last_slot(self, place: bytes) -> bytes | None:
        return _greater(self._view.last_slot(place), _last(self._slots.get(place, [])))

    def slot_before(self, place: bytes, slot: bytes) -> bytes | None:
        return _greater(self._view.slot_before(place, slot), _below(self._slots.get(place, []), slot))

    # Entries and reverts

    def entry(self, revision: int) -> EntryRow:
        stored = self._view.session.head if self._view.session else 0
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


def _last(keys: list[bytes]) -> bytes | None:
    return keys[-1] if keys else None


def _below(keys: list[bytes], key: bytes) -> bytes | None:
    at = bisect_left(keys, key)
    return keys[at - 1] if at else None


def _greater(one: bytes | None, other: bytes | None) -> bytes | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
