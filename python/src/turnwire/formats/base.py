"""What every importer and exporter of another program's sessions looks like.

An `Importer` is a folder of its own beside this module. It finds what is its own below a path (`sources`), reads
records (`read`), and maps a record to a pure value (`map`): no store, no clock, no randomness, so that mapping the same
record again gives the same value. What becomes of it is the work of `turnwire.formats.load`, which is the same for all
programs: it brings what is new or changed into a store, and says what became of it. An `Exporter` turns a history into
the text of the other program's own file.

What a program's record holds and the schema has no place for is kept in ``extra_json``; see `turnwire.formats.extras`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from turnwire import v1
from turnwire.formats.report import Report

Message: TypeAlias = v1.User | v1.Assistant
Record = TypeVar("Record")
_M = TypeVar("_M", v1.User, v1.Assistant)


class Unlinked(NamedTuple):
    """An answer whose user message is not among what was read: its id, the id of the message that it answers (empty if
    the source names none), and the ``extra_json`` that it has where that message is there."""

    message_id: str
    parent_id: str
    extra_json: str


@dataclass(slots=True)
class SessionImport:
    """One session, ready to be appended.

    ``entries`` are in an order in which every reference points backwards, so that they can be cut into requests at any
    place. Every turn, message and part has its id. ``source`` names the file or database that it comes from: what was
    brought from there once, and is there no more, is taken out of the history when the session is imported again,
    unless something of the session could not be read, and it is not ``whole``. ``headless`` is set if its head could
    not be read, and ``unread`` are the extras that could not be, by name space and member: what is there of these stays
    as it is. ``unlinked`` are the answers of a session that is not whole whose user messages were not read, and
    ``revert_unread`` is set if that is so for its revert: what is there of these links stays, too. ``original_id`` is
    the session's id in the source, where that is another. ``digest`` is that of
    `turnwire.formats.ledger`, if it has been computed.
    """

    session_id: str
    properties: v1.SessionProperties
    entries: list[v1.EntryInput] = field(default_factory=list[v1.EntryInput])
    source: str = ""
    program: str = ""
    whole: bool = True
    digest: str = ""
    headless: bool = False
    unread: tuple[tuple[str, str], ...] = ()
    original_id: str = ""
    unlinked: tuple[Unlinked, ...] = ()
    revert_unread: bool = False


@dataclass(slots=True)
class History:
    """What an exporter needs: a session folded at one revision.

    ``messages`` are in the order of the log with all their parts, those that an open revert hides included.
    ``native`` are the ids of those messages and parts that no importer brought: for them an exporter fills in what
    the other program cannot do without.
    """

    session_id: str
    properties: v1.SessionProperties
    turns: dict[str, v1.Turn] = field(default_factory=dict[str, v1.Turn])
    messages: list[Message] = field(default_factory=list[Message])
    summaries: dict[str, v1.MessageSummary] = field(default_factory=dict[str, v1.MessageSummary])
    revert: v1.Revert | None = None
    native: frozenset[str] = frozenset()


class Source(NamedTuple):
    """One place from which sessions are read: a file, or a directory that is one store. ``form`` names its form.

    ``beside`` are other places that were found with it, for an importer that has to look there too.
    """

    path: Path
    form: str
    beside: tuple[Path, ...] = ()


class Wanted(NamedTuple):
    """Which sessions are to be read: those of these ids (None: all), changed then or later (None: at any time)."""

    session_ids: frozenset[str] | None = None
    since_ms: int | None = None

    def takes(self, session_id: str, updated_ms: int | None) -> bool:
        """Whether a session is wanted; ``updated_ms`` is when it changed last, None if that is not known."""
        if self.session_ids is not None and session_id not in self.session_ids:
            return False
        return self.since_ms is None or updated_ms is None or updated_ms >= self.since_ms


EVERYTHING = Wanted()


class Importer(Protocol[Record]):
    """Reads the sessions of one program."""

    @property
    def program(self) -> str:
        """The program's name, for example ``opencode``."""
        ...

    def sources(self, path: Path, report: Report) -> list[Source]:
        """What of this program is at a path, which may be a file or a directory, told by content and not by name.

        If there is nothing, the report says so. Raises OSError if the path cannot be read at all.
        """
        ...

    def count(self, source: Source, wanted: Wanted = EVERYTHING) -> int:
        """How many records `read` is going to give, as far as that can be told quickly; for a progress bar."""
        ...

    def read(self, source: Source, report: Report, wanted: Wanted = EVERYTHING) -> Iterator[Record]:
        """The records of a source, one a session. What cannot be read is refused in the report.

        Never writes to the source. Raises OSError if it cannot be read at all.
        """
        ...

    def is_store(self, source: Source) -> bool:
        """Whether a source is where the program keeps its sessions: one that is not there (any more) does not exist."""
        ...

    def id_of(self, record: Record) -> str:
        """The id of a record's session in the source; empty if it has none."""
        ...

    def map(self, record: Record, report: Report) -> SessionImport | None:
        """A record as a pure value; None if nothing of it can be taken, which the report then says."""
        ...


class Exporter(Protocol):
    """Writes the sessions of one program."""

    @property
    def program(self) -> str:
        """The program's name, for example ``opencode``."""
        ...

    def export(self, history: History) -> str:
        """The text of the file that the program itself would write for the session."""
        ...


def sessions(
    importer: Importer[Record], path: Path, report: Report, wanted: Wanted = EVERYTHING
) -> Iterator[SessionImport]:
    """The sessions at a path, read and mapped one after the other."""
    for source in importer.sources(path, report):
        for record in importer.read(source, report, wanted):
            mapped = importer.map(record, report)
            if mapped is not None:
                yield mapped


def history(session: SessionImport) -> History:
    """The history that appending a session's entries leads to: what an exporter would get afterwards."""
    result = History(session.session_id, session.properties)
    by_id: dict[str, Message] = {}
    for entry in session.entries:
        match entry.WhichOneof("payload"):
            case "turn":
                result.turns[entry.turn.id] = entry.turn
            case "user":
                before = entry.user.before_id if entry.user.HasField("before_id") else None
                _place(result, by_id, _copy(entry.user.user), before)
            case "assistant":
                before = entry.assistant.before_id if entry.assistant.HasField("before_id") else None
                _place(result, by_id, _copy(entry.assistant.assistant), before)
            case "part":
                by_id[entry.part.message_id].parts.append(entry.part.part)
            case "summary":
                result.summaries[entry.summary.message_id] = entry.summary
            case "revert":
                result.revert = entry.revert
            case other:
                raise ValueError(f"an import holds no {other} entry")
    return result


def _copy(message: _M) -> _M:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _place(result: History, by_id: dict[str, Message], message: Message, before: str | None) -> None:
    by_id[message.id] = message
    place = len(result.messages)
    if before is not None:
        place = next(index for index, other in enumerate(result.messages) if other.id == before)
    result.messages.insert(place, message)
