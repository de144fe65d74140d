"""The ``Store`` protocol and the rows that a store keeps.

A store keeps, for every session, the entries of its log and an index over them, so that reading the history costs the
size of what is returned and an append costs the same at any length of the log. The index is made of

* ``Node``: one version of a message's header, of a part or of a summary, with the revisions from and until which it
  is part of the history. The versions that are valid at a revision, in the order of (place, slot), are the history.
* ``Name``: which place an id has, for turns, messages, parts, prompt records, prompt contexts and call ids; and which
  entries say how a prompt record was rendered.
* ``RevertSpan``: from which to which revision a revert was open.

What the rows mean is decided in ``turnwire.log.plan``; a store only keeps them. It knows no SQL here and takes no lock
of the process for granted: ``write`` gets a pure function from a view of one session to the changes to make, which a
store may run inside a transaction or run again when another writer came first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from turnwire import v1

T = TypeVar("T")


class _MakeRow(Protocol):
    def __call__(self, of: type[T], fields: tuple[object, ...], /) -> T: ...


#: Makes a row of all its fields in their order, without the Python function of its type, which takes longer than the
#: rest: for the few rows that each message needs.
row: _MakeRow = vars(tuple)["__new__"]

#: Slot of a message's header: before any part's.
HEADER_SLOT = b""
#: Slot of a message's summary: after any part's.
SUMMARY_SLOT = b"\xff"

#: The greatest number of a payload that this build knows.
LAST_FIELD = max(field.number for field in v1.Entry.DESCRIPTOR.oneofs_by_name["payload"].fields)

#: Spaces of names.
TURN, MESSAGE, PART, PROMPT, CONTEXT, CALL, RENDERING = range(1, 8)


class SessionRow(NamedTuple):
    """The state of one session's log. Times are microseconds since the epoch, by the server's clock."""

    tenant: str
    id: str
    key: int  # the store's own number for the session; 0 until it is stored
    head: int  # last revision
    digest: bytes  # of the log up to head
    first_us: int  # when revision 1 was recorded
    recorded_us: int  # when the last entry was recorded
    properties: int  # revision of the entry that has the properties in force
    revert: int  # revision of the open revert; 0: none


class EntryRow(NamedTuple):
    """One entry as it is stored. ``payload`` is what the digest covers; ``field`` its number in ``Entry.payload``."""

    revision: int
    recorded_us: int
    field: int
    payload: bytes
    previous: int = 0  # of a delta: the revision of the delta before it on the same version of the part; 0: none
    ignorable: bool = False
    digest: bytes = b""  # filled in by reads that ask for it


class Node(NamedTuple):
    """One version of a header, part or summary: the ``length`` bytes at ``offset`` of the payload of ``revision``."""

    place: bytes  # order of the message in the session
    slot: bytes  # order in the message: HEADER_SLOT, a part's key, or SUMMARY_SLOT
    kind: int  # header: field number of the payload (user or assistant); part: field number of its kind
    revision: int  # the entry that put this version
    born: int  # the revision at which the place came into being
    ended: int  # the revision from which on this version is not part of the history; 0: it still is
    offset: int
    length: int
    sealed: bool  # part: takes no more deltas; header: the message has ended
    turn: int  # header: revision of the message's turn
    delta: int  # part: revision of the last delta on this version; 0: none
    grown: int = 0  # part: bytes of text that deltas have added to this version


class Name(NamedTuple):
    """What an id names, from the revision ``born`` on. An id that gets a new place has a new row beside the old one.

    A message or part is live while the node at (place, slot) is live and was born at the same revision.
    """

    space: int
    id: str
    born: int  # turn, prompt, context, rendering: revision of the entry
    place: bytes = b""  # turn: place of its first message, b"" until it has one
    slot: bytes = b""


class PutPart(NamedTuple):
    """A part in the payload of its put: ``length`` bytes at ``offset``."""

    id: str
    kind: int  # as in Node
    offset: int
    length: int
    sealed: bool  # as in Node
    call_id: str  # of a tool; else ""


class Put(NamedTuple):
    """A message that was put with its parts in a place where nothing was, all ids new: the names and nodes that
    ``turnwire.log.whole`` makes of it, in short."""

    id: str
    place: bytes
    kind: int  # the rest as in the Node of the header
    revision: int
    offset: int
    length: int
    sealed: bool
    turn: int
    parts: Sequence[PutPart]


class RevertSpan(NamedTuple):
    """A revert that was open from revision ``start`` until before ``end`` (0: still open), from a place on."""

    start: int
    end: int
    place: bytes
    slot: bytes  # HEADER_SLOT: the whole message


class Reply(NamedTuple):
    """The reply to a request id: SHA-256 of the request as received, and the serialized response."""

    sha256: bytes
    response: bytes


class Request(NamedTuple):
    """A request id with its reply, to be kept while the session lives."""

    method: str
    id: str
    reply: Reply


@dataclass(slots=True)
class Change:
    """What one write does to one session, all or nothing.

    ``ended`` holds versions that stop being live, with ``ended`` set; ``live`` the versions that are live afterwards,
    by (place, slot), and ``puts`` those of messages that are as they were put. ``properties`` is set when they changed,
    for the filters of listing.
    """

    session: SessionRow
    entries: list[EntryRow] = field(default_factory=list)
    ended: list[Node] = field(default_factory=list)
    live: dict[tuple[bytes, bytes], Node] = field(default_factory=dict)
    names: list[Name] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    spans: list[RevertSpan] = field(default_factory=list)
    properties: v1.SessionProperties | None = None
    request: Request | None = None


class View(Protocol):
    """One session as a writer sees it, at the head. Looking up what is not there gives None."""

    @property
    def session(self) -> SessionRow | None:
        """The session's row; None when there is no such session."""
        ...

    @property
    def deleted(self) -> bool:
        """Whether the session was deleted."""
        ...

    def reply(self, method: str, request_id: str) -> Reply | None: ...

    def name(self, space: int, id: str) -> Name | None:
        """The newest row of an id."""
        ...

    def fresh(self, message_ids: Sequence[str], part_ids: Sequence[str]) -> bool:
        """Whether none of the messages, of which there is one at least, and none of the parts has a name."""
        ...

    def node(self, place: bytes, slot: bytes) -> Node | None:
        """The live node at a place."""
        ...

    def message_nodes(self, place: bytes) -> Sequence[Node]:
        """All live nodes of a message in order: header, parts, summary."""
        ...

    def nodes_from(self, place: bytes, slot: bytes) -> Sequence[Node]:
        """All live nodes from a place on, in order."""
        ...

    def last_place(self) -> bytes | None:
        """The greatest place of a live message."""
        ...

    def place_before(self, place: bytes) -> bytes | None:
        """The greatest place of a live message that is less than this one."""
        ...

    def last_slot(self, place: bytes) -> bytes | None:
        """The greatest slot of a live part of a message."""
        ...

    def slot_before(self, place: bytes, slot: bytes) -> bytes | None:
        """The greatest slot of a live part of a message that is less than this one."""
        ...

    def entry(self, revision: int) -> EntryRow:
        """An entry of the log, which must be there."""
        ...

    def span(self, start: int) -> RevertSpan:
        """A revert by its revision, which must be there."""
        ...


#: A version as a reader gets it: place, slot, kind, born, turn and delta of the node, and its bytes.
Version = tuple[bytes, bytes, int, int, int, int, bytes]


class Stretch(NamedTuple):
    """Versions one after another without open deltas and summaries, which a store has as a replay sends them."""

    place: bytes  # of the first version
    slot: bytes
    turn: int  # revision of the turn of all messages that begin in it; 0: none begins
    parts: bytes  # more parts of the message before, each with tag and length
    closed: bytes  # whole messages, each in its frame
    kind: int  # of the header of one more message, which may go on behind; 0: there is none
    message: bytes  # that message: header and parts
    versions: Callable[[], list[Version]]


class Snapshot(Protocol):
    """One state of one session as a reader sees it, at any revision of its log."""

    def versions(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version]:
        """The versions valid at a revision, in order, from (place, slot) ``first`` to before ``last`` (None: the end).

        One is read after the other, so that who stops early pays for no more.
        """
        ...

    def pieces(
        self, revision: int, first: tuple[bytes, bytes], last: tuple[bytes, bytes] | None
    ) -> Iterator[Version | Stretch]:
        """The same, several in one piece where the store has them so."""
        ...

    def headers_back(self, revision: int, before: bytes | None, limit: int) -> list[Node]:
        """Headers valid at a revision, the last first, of places less than ``before`` (None: all)."""
        ...

    def entry(self, revision: int) -> EntryRow:
        """An entry of the log. Raises ``CorruptData`` when it is missing."""
        ...

    def name(self, space: int, id: str, revision: int) -> Name | None:
        """The row of an id that was in force at a revision."""
        ...

    def span(self, revision: int) -> RevertSpan | None:
        """The revert that was open at a revision."""
        ...

    def foreign(self, revision: int) -> int | None:
        """The first entry, up to a revision, whose payload this build does not know and may not ignore."""
        ...


class SessionQuery(NamedTuple):
    """What to list: filters as in ``turnwire.v1.SessionFilter``; times in microseconds since the epoch."""

    labels: tuple[tuple[str, str], ...] = ()
    directory: str | None = None
    recorded_from_us: int | None = None
    recorded_before_us: int | None = None
    parent: str | None = None
    archived: bool | None = None


class Store(Protocol):
    """Where logs lie. Every method may raise ``StoreBusy``, ``StoreFull``, ``StoreReadOnly`` or ``CorruptData``.

    Reads see what was durable when they began; a read at a revision gives the same at any later time.
    """

    #: Adapts ``Limits.part_bytes``: what one part may have at most in this store.
    part_bytes: int

    def write(
        self, tenant: str, session_id: str, step: Callable[[View], tuple[Change | None, T]]
    ) -> Coroutine[Any, Any, T]:
        """Run ``step`` on the session and make its change durable, then return its result.

        The step is pure: it may run more than once and may run on any thread. What it raises is raised here, and
        nothing is changed.
        """
        ...

    def write_each(
        self, tenant: str, session_id: str, steps: Sequence[Callable[[View], tuple[Change | None, T]]]
    ) -> Coroutine[Any, Any, list[T | Exception]]:
        """Run steps on the session one after the other, and make their changes durable together.

        Returns what each comes to: its result, or what it raised. A step that raises changes nothing and stops no
        other. What fails for all of them is raised here, and nothing is changed then.
        """
        ...

    async def fork(
        self,
        source: SessionRow,
        revision: int,
        session_id: str,
        adapt: Callable[[EntryRow], bytes],
        finish: Callable[[SessionRow, bytes, bytes], Request | None],
    ) -> SessionRow:
        """Copy the entries 1 to ``revision`` of a session into a new one, in one transaction.

        ``adapt`` gives the payload that an entry with properties has in the new session; all others stay as they are.
        The index is copied as it was at that revision. ``finish`` gets the new session's row with the payloads of its
        properties and of its open revert (b"": none), and may give a request id to keep with the source. Raises
        ``SessionAlreadyExists`` or, for an id that was used before, ``SessionDeleted``; ``SessionNotFound`` or
        ``SessionDeleted`` when the source went away meanwhile.
        """
        ...

    async def delete(self, tenant: str, session_id: str, *, children: bool) -> list[str]:
        """Delete a session, and on demand those that it started, and leave tombstones. Returns the ids deleted."""
        ...

    async def session(self, tenant: str, session_id: str) -> SessionRow:
        """The session's row. Raises ``SessionNotFound`` or ``SessionDeleted``."""
        ...

    async def sessions(
        self, tenant: str, query: SessionQuery, limit: int, after: tuple[int, str] | None
    ) -> list[SessionRow]:
        """Sessions by (recorded_us descending, id ascending), from behind ``after`` on."""
        ...

    async def reply(self, tenant: str, session_id: str, method: str, request_id: str) -> Reply | None: ...

    async def entries(self, session: SessionRow, first: int, last: int, limit_bytes: int) -> list[EntryRow]:
        """Entries ``first`` to ``last`` with their digests, at least one, until their payloads reach a size.

        Those that are missing are left out. Raises ``CorruptData`` with ``last`` in its metadata if all are, and
        without it for what cannot be read.
        """
        ...

    async def entry(self, session: SessionRow, revision: int) -> EntryRow: ...

    async def properties(self, sessions: Sequence[SessionRow]) -> list[tuple[bytes, bytes] | None]:
        """Of each session the payloads of the properties in force and of revision 1; None if it is gone."""
        ...

    async def name(self, session: SessionRow, space: int, id: str, revision: int) -> Name | None:
        """The row of an id that was in force at a revision."""
        ...

    async def names(self, session: SessionRow, space: int, after: int, limit: int) -> list[Name]:
        """The rows of a space that were born after a revision, by revision."""
        ...

    async def read(self, session: SessionRow, use: Callable[[Snapshot], T]) -> T:
        """Run ``use`` over one state of the session, and return its result.

        It may run on any thread, and again if the store fails in the middle; it should end soon, since a store may
        hold a transaction open meanwhile.
        """
        ...

    def watch(self, tenant: str, session_id: str) -> AsyncIterator[None]:
        """Yield whenever the session may have got new entries or been deleted, by any process, within 100 ms.

        Wake-ups may be merged or spurious. The first comes at once.
        """
        ...

    async def close(self) -> None:
        """Let the writes under way finish, then close. Idempotent."""
        ...
