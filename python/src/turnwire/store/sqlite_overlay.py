"""Reading a session whose index lacks the end of the log: the index and over it the tail, made for one read.

That is so where nothing may be written, after a process has died, and where others hold the file for long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Protocol

from turnwire.store.base import HEADER_SLOT, EntryRow, Name, Node, RevertSpan, SessionRow, Snapshot, Stretch, Version
from turnwire.store.sqlite_rows import Rows
from turnwire.store.sqlite_snapshot import SqliteSnapshot
from turnwire.store.sqlite_tail import Tail

_POSITION = itemgetter(0, 1)


class Indexed(Snapshot, Protocol):
    """A snapshot that lists names too."""

    def names(self, space: int, after: int, limit: int) -> list[Name]: ...


class TailSnapshot:
    """An ``Indexed`` of a session up to a head behind what the index has."""

    def __init__(self, stored: SqliteSnapshot, rows: Rows, session: SessionRow, head: int) -> None:
        """``session`` is the row as the file has it, and ``stored`` what the index has. Raises ``CorruptData``."""
        self._stored = stored
        self._last = session.head
        self._tail = Tail(rows, session, True)
        self._tail.catch_up(head)
        self._versions: dict[tuple[bytes, bytes], list[Node]] = defaultdict(list)
        for node in self._tail.versions():
            self._versions[node.place, node.slot].append(node)

    def versions(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version]:
        stored = self._stored.versions(revision, first, last)
        if revision <= self._last:
            return stored
        kept = (version for version in stored if version[:2] not in self._versions)
        found = sorted(
            node
            for node in self._valid(revision)
            if (node.place, node.slot) >= first and (last is None or (node.place, node.slot) < last)
        )
        return merge(kept, map(self._version, found), key=_POSITION)

    def pieces(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version | Stretch]:
        if revision <= self._last:
            return self._stored.pieces(revision, first, last)
        return self.versions(revision, first, last)

    def headers_back(self, revision: int, before: bytes | None, limit: int) -> list[Node]:
        if revision <= self._last:
            return self._stored.headers_back(revision, before, limit)
        # So many that, without those that the tail has other versions of, there are still enough.
        stored = self._stored.headers_back(revision, before, limit + len(self._versions))
        found = [node for node in stored if (node.place, HEADER_SLOT) not in self._versions]
        for node in self._valid(revision):
            if node.slot == HEADER_SLOT and (before is None or node.place < before):
                found.append(node)
        return sorted(found, reverse=True)[:limit]

    def entry(self, revision: int) -> EntryRow:
        return self._stored.entry(revision)

    def name(self, space: int, id: str, revision: int) -> Name | None:
        return self._tail.named(space, id, revision) or self._stored.name(space, id, revision)

    def names(self, space: int, after: int, limit: int) -> list[Name]:
        found = {(name.born, name.id): name for name in self._stored.names(space, after, limit)}
        found.update({(name.born, name.id): name for name in self._tail.names_of(space, after)})
        return [found[at] for at in sorted(found)][:limit]

    def span(self, revision: int) -> RevertSpan | None:
        return self._stored.span(revision)

    def foreign(self, revision: int) -> int | None:
        return self._stored.foreign(revision)

    def _valid(self, revision: int) -> Iterator[Node]:
        for nodes in self._versions.values():
            for node in nodes:
                if node.revision <= revision and (not node.ended or node.ended > revision):
                    yield node

    def _version(self, node: Node) -> Version:
        payload = self.entry(node.revision).payload
        stored = payload[node.offset : node.offset + node.length]
        return node.place, node.slot, node.kind, node.born, node.turn, node.delta, stored
