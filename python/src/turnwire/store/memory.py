"""The store in memory: the reference that the other stores are tested against, and a double for tests."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

from turnwire import errors, v1
from turnwire.log import deltas, digest, whole
from turnwire.store.base import (
    HEADER_SLOT,
    LAST_FIELD,
    MESSAGE,
    PART,
    SUMMARY_SLOT,
    Change,
    EntryRow,
    Name,
    Node,
    Reply,
    Request,
    RevertSpan,
    SessionQuery,
    SessionRow,
    Snapshot,
    Stretch,
    Version,
    View,
)

T = TypeVar("T")
_PROPERTIES_FIELD = v1.Entry.SESSION_FIELD_NUMBER


class _Session:
    """The rows of one session."""

    def __init__(self, row: SessionRow) -> None:
        self.row = row
        self.entries: list[EntryRow] = []
        self.live: dict[tuple[bytes, bytes], Node] = {}
        self.order: list[tuple[bytes, bytes]] = []  # keys of live, sorted
        self.past: list[Node] = []
        self.names: dict[tuple[int, str], list[Name]] = {}  # by born
        self.spans: dict[int, RevertSpan] = {}
        self.replies: dict[tuple[str, str], Reply] = {}
        self.properties = v1.SessionProperties()

    def apply(self, change: Change) -> None:
        whole.spelled_out(change)
        self.row = change.session
        self.entries += change.entries
        self.past += change.ended
        for node in change.ended:
            self._drop((node.place, node.slot))
        for at, node in change.live.items():
            if at not in self.live:
                insort(self.order, at)
            self.live[at] = node
        for name in change.names:
            rows = self.names.setdefault((name.space, name.id), [])
            if rows and rows[-1].born == name.born:
                rows[-1] = name
            else:
                rows.append(name)
        self.spans.update({span.start: span for span in change.spans})
        if change.properties is not None:
            self.properties = change.properties
        if change.request is not None:
            self.replies[change.request.method, change.request.id] = change.request.reply

    def _drop(self, at: tuple[bytes, bytes]) -> None:
        if self.live.pop(at, None) is not None:
            del self.order[bisect_left(self.order, at)]


class _View:
    """A session as a writer sees it."""

    def __init__(self, stored: _Session | None, deleted: bool) -> None:
        self._stored = stored
        self.deleted = deleted

    @property
    def session(self) -> SessionRow | None:
        return self._stored.row if self._stored else None

    def reply(self, method: str, request_id: str) -> Reply | None:
        return self._stored.replies.get((method, request_id)) if self._stored else None

    def name(self, space: int, id: str) -> Name | None:
        rows = self._stored.names.get((space, id)) if self._stored else None
        return rows[-1] if rows else None

    def fresh(self, message_ids: Sequence[str], part_ids: Sequence[str]) -> bool:
        unknown = all(self.name(MESSAGE, id) is None for id in message_ids)
        return unknown and all(self.name(PART, id) is None for id in part_ids)

    def node(self, place: bytes, slot: bytes) -> Node | None:
        return self._stored.live.get((place, slot)) if self._stored else None

    def message_nodes(self, place: bytes) -> Sequence[Node]:
        if self._stored is None:
            return []
        order = self._stored.order
        within = slice(bisect_left(order, (place, HEADER_SLOT)), bisect_right(order, (place, SUMMARY_SLOT)))
        return [self._stored.live[at] for at in order[within]]

    def nodes_from(self, place: bytes, slot: bytes) -> Sequence[Node]:
        if self._stored is None:
            return []
        order = self._stored.order
        return [self._stored.live[at] for at in order[bisect_left(order, (place, slot)) :]]

    def last_place(self) -> bytes | None:
        return self._stored.order[-1][0] if self._stored and self._stored.order else None

    def place_before(self, place: bytes) -> bytes | None:
        before = self._before(place, HEADER_SLOT)
        return before[0] if before else None

    def last_slot(self, place: bytes) -> bytes | None:
        return self.slot_before(place, SUMMARY_SLOT)

    def slot_before(self, place: bytes, slot: bytes) -> bytes | None:
        before = self._before(place, slot)
        return before[1] if before and before[0] == place and before[1] != HEADER_SLOT else None

    def _before(self, place: bytes, slot: bytes) -> tuple[bytes, bytes] | None:
        if self._stored is None:
            return None
        at = bisect_left(self._stored.order, (place, slot))
        return self._stored.order[at - 1] if at else None

    def entry(self, revision: int) -> EntryRow:
        assert self._stored is not None
        return self._stored.entries[revision - 1]

    def span(self, start: int) -> RevertSpan:
        assert self._stored is not None
        return self._stored.spans[start]


class _Snapshot:
    """A session as a reader sees it."""

    def __init__(self, stored: _Session) -> None:
        self._stored = stored

    def versions(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version]:
        for node in _valid(self._stored, revision):
            at = (node.place, node.slot)
            if at < first:
                continue
            if last is not None and at >= last:
                break
            payload = self._stored.entries[node.revision - 1].payload
            stored = payload[node.offset : node.offset + node.length]
            yield node.place, node.slot, node.kind, node.born, node.turn, node.delta, stored

    def pieces(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version | Stretch]:
        return self.versions(revision, first, last)

    def headers_back(self, revision: int, before: bytes | None, limit: int) -> list[Node]:
        found = [
            node
            for node in _valid(self._stored, revision)
            if node.slot == HEADER_SLOT and (before is None or node.place < before)
        ]
        return found[::-1][:limit]

    def entry(self, revision: int) -> EntryRow:
        return self._stored.entries[revision - 1]

    def name(self, space: int, id: str, revision: int) -> Name | None:
        rows = self._stored.names.get((space, id), [])
        return next((row for row in reversed(rows) if row.born <= revision), None)

    def foreign(self, revision: int) -> int | None:
        return next(
            (row.revision for row in self._stored.entries[:revision] if row.field > LAST_FIELD and not row.ignorable),
            None,
        )

    def span(self, revision: int) -> RevertSpan | None:
        return next((span for span in self._stored.spans.values() if _open(span, revision)), None)


class MemoryStore:
    """Keeps everything in this process, and nothing once it ends."""

    def __init__(self, *, part_bytes: int = 64 * 1024 * 1024) -> None:
        self.part_bytes = part_bytes
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._deleted: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._keys = 0
        self._watchers: dict[tuple[str, str], set[asyncio.Event]] = {}

    async def write_each(
        self, tenant: str, session_id: str, steps: Sequence[Callable[[View], tuple[Change | None, T]]]
    ) -> list[T | Exception]:
        found: list[T | Exception] = []
        for step in steps:
            try:
                found.append(await self.write(tenant, session_id, step))
            except Exception as error:
                found.append(error)
        return found

    async def write(self, tenant: str, session_id: str, step: Callable[[View], tuple[Change | None, T]]) -> T:
        at = (tenant, session_id)
        with self._lock:
            stored = self._sessions.get(at)
            change, result = step(_View(stored, at in self._deleted))
            if change is not None:
                if stored is None:
                    self._keys += 1
                    stored = _Session(change.session)
                    change.session = change.session._replace(key=self._keys)
                    self._sessions[at] = stored
                stored.apply(change)
        self._wake(at)
        return result

    async def fork(
        self,
        source: SessionRow,
        revision: int,
        session_id: str,
        adapt: Callable[[EntryRow], bytes],
        finish: Callable[[SessionRow, bytes, bytes], Request | None],
    ) -> SessionRow:
        at = (source.tenant, session_id)
        with self._lock:
            parent = self._get(source.tenant, source.id)
            if at in self._deleted:
                raise errors.SessionDeleted("the session was deleted", session_id=session_id)
            if at in self._sessions:
                raise errors.SessionAlreadyExists("the session exists", path="new_session_id", session_id=session_id)
            self._keys += 1
            child = _fork(parent, revision, adapt, session_id, self._keys)
            row = child.row
            revert = child.entries[row.revert - 1].payload if row.revert else b""
            request = finish(row, child.entries[row.properties - 1].payload, revert)
            if request is not None:
                parent.replies[request.method, request.id] = request.reply
            self._sessions[at] = child
        return child.row

    async def delete(self, tenant: str, session_id: str, *, children: bool) -> list[str]:
        with self._lock:
            self._get(tenant, session_id)
            ids = [session_id]
            for id in ids if children else ():
                ids += [
                    other
                    for (of, other), stored in self._sessions.items()
                    if of == tenant and stored.properties.parent.session_id == id and other not in ids
                ]
            for id in ids:
                del self._sessions[tenant, id]
                self._deleted.add((tenant, id))
        for id in ids:
            self._wake((tenant, id))
        return ids

    async def session(self, tenant: str, session_id: str) -> SessionRow:
        return self._get(tenant, session_id).row

    async def sessions(
        self, tenant: str, query: SessionQuery, limit: int, after: tuple[int, str] | None
    ) -> list[SessionRow]:
        found = [stored.row for (of, _), stored in self._sessions.items() if of == tenant and _matches(stored, query)]
        found.sort(key=lambda row: (-row.recorded_us, row.id))
        if after is not None:
            found = [row for row in found if (-row.recorded_us, row.id) > (-after[0], after[1])]
        return found[:limit]

    async def reply(self, tenant: str, session_id: str, method: str, request_id: str) -> Reply | None:
        return self._get(tenant, session_id).replies.get((method, request_id))

    async def entries(self, session: SessionRow, first: int, last: int, limit_bytes: int) -> list[EntryRow]:
        found: list[EntryRow] = []
        size = 0
        for row in self._of(session).entries[first - 1 : last]:
            found.append(row)
            size += len(row.payload)
            if size >= limit_bytes:
                break
        return found

    async def entry(self, session: SessionRow, revision: int) -> EntryRow:
        return self._of(session).entries[revision - 1]

    async def properties(self, sessions: Sequence[SessionRow]) -> list[tuple[bytes, bytes] | None]:
        found: list[tuple[bytes, bytes] | None] = []
        for row in sessions:
            stored = self._sessions.get((row.tenant, row.id))
            found.append(
                None if stored is None else (stored.entries[row.properties - 1].payload, stored.entries[0].payload)
            )
        return found

    async def name(self, session: SessionRow, space: int, id: str, revision: int) -> Name | None:
        return _Snapshot(self._of(session)).name(space, id, revision)

    async def names(self, session: SessionRow, space: int, after: int, limit: int) -> list[Name]:
        found = [
            row for (of, _), rows in self._of(session).names.items() if of == space for row in rows if row.born > after
        ]
        return sorted(found, key=lambda row: row.born)[:limit]

    async def read(self, session: SessionRow, use: Callable[[Snapshot], T]) -> T:
        return use(_Snapshot(self._of(session)))

    async def watch(self, tenant: str, session_id: str) -> AsyncIterator[None]:
        event = asyncio.Event()
        watchers = self._watchers.setdefault((tenant, session_id), set())
        watchers.add(event)
        try:
            while True:
                event.clear()
                yield
                await event.wait()
        finally:
            watchers.discard(event)

    async def close(self) -> None:
        return None

    def _wake(self, at: tuple[str, str]) -> None:
        for event in self._watchers.get(at, ()):
            event.set()

    def _get(self, tenant: str, session_id: str) -> _Session:
        if (tenant, session_id) in self._deleted:
            raise errors.SessionDeleted("the session was deleted", session_id=session_id)
        stored = self._sessions.get((tenant, session_id))
        if stored is None:
            raise errors.SessionNotFound("there is no such session", session_id=session_id)
        return stored

    def _of(self, session: SessionRow) -> _Session:
        return self._get(session.tenant, session.id)


def _open(span: RevertSpan, revision: int) -> bool:
    return span.start <= revision and (not span.end or span.end > revision)


def _valid(stored: _Session, revision: int) -> list[Node]:
    """The versions that are part of the history at a revision, in order."""
    nodes = [node for node in stored.live.values() if node.revision <= revision]
    nodes += [node for node in stored.past if node.revision <= revision < node.ended]
    return sorted(nodes, key=lambda node: (node.place, node.slot))


def _matches(stored: _Session, query: SessionQuery) -> bool:
    properties, row = stored.properties, stored.row
    return (
        all(key in properties.labels and properties.labels[key] == value for key, value in query.labels)
        and (query.directory is None or (properties.HasField("directory") and properties.directory == query.directory))
        and (query.recorded_from_us is None or row.recorded_us >= query.recorded_from_us)
        and (query.recorded_before_us is None or row.recorded_us < query.recorded_before_us)
        and (query.parent is None or properties.parent.session_id == query.parent)
        and (query.archived is None or properties.HasField("archived") == query.archived)
    )


def _fork(parent: _Session, revision: int, adapt: Callable[[EntryRow], bytes], id: str, key: int) -> _Session:
    """The rows of a session as they were at a revision, under another id."""
    entries = parent.entries[:revision]
    chain = digest.start(id)
    for at, row in enumerate(entries):
        if row.field == _PROPERTIES_FIELD:
            row = row._replace(payload=adapt(row))
        chain = digest.link(chain, row.revision, row.recorded_us, row.field, row.payload)
        entries[at] = row._replace(digest=chain)
    spans = [
        span._replace(end=span.end if span.end <= revision else 0)
        for span in parent.spans.values()
        if span.start <= revision
    ]
    properties = max(entry.revision for entry in entries if entry.field == _PROPERTIES_FIELD)
    session = SessionRow(
        parent.row.tenant,
        id,
        key,
        revision,
        chain,
        entries[0].recorded_us,
        entries[-1].recorded_us,
        properties,
        next((span.start for span in spans if not span.end), 0),
    )
    child = _Session(session)
    child.entries = entries
    for node in parent.past:
        if node.ended <= revision:
            child.past.append(node)
    for node in _valid(parent, revision):
        last, grown = node.delta, node.grown
        while last > revision:
            grown -= deltas.size(parent.entries[last - 1].payload)
            last = parent.entries[last - 1].previous
        child.live[node.place, node.slot] = node._replace(ended=0, delta=last, grown=grown)
    child.order = sorted(child.live)
    for of, names in parent.names.items():
        kept = [name for name in names if name.born <= revision]
        if kept:
            child.names[of] = kept
    child.spans = {span.start: span for span in spans}
    child.properties = v1.SessionProperties.FromString(entries[properties - 1].payload)
    return child
