"""A session as its log has it: what an exporter writes, and what an importer compares with.

The log is read entry by entry and folded here, through any client. So an exporter sees the messages that an open revert
hides, too, and an importer learns which of the objects it brought itself, from where, and with what content.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol, TypeAlias

from turnwire import v1
from turnwire.formats import ledger
from turnwire.formats.base import History, Message
from turnwire.log.fold import Folded, FoldedMessage, fold

#: An object in a session: its kind, and its id ("" for what there is one of).
Key: TypeAlias = tuple[str, str]
#: The revert of the source, which the marks tell: entries open and clear those of others, too.
REVERT: Key = ("revert", "")

#: The digest of what is not there.
NOTHING = b""


class Reading(Protocol):
    """What reading a session needs of a client."""

    def read_entries(
        self, session_id: str, from_revision: int = 1, to_revision: int | None = None
    ) -> AsyncIterator[v1.Entry]:
        """Raw entries; see `turnwire.Client.read_entries`."""
        ...


@dataclass(slots=True)
class Stored:
    """A session folded at its head, and what imports brought.

    ``brought`` has for each object the digest of its content as each source brought it last (`NOTHING`: took it out),
    ``last`` the source that did so last, and ``properties`` the properties that each source brought last. ``programs``
    are those whose importers brought anything, ``sources`` where from, ``native`` the ids of what none of them brought,
    and ``own`` the number of entries that were made here. ``owners`` are the messages of the parts and summaries that
    imports brought.
    """

    folded: Folded = field(default_factory=Folded)
    brought: dict[Key, dict[str, bytes]] = field(default_factory=dict[Key, dict[str, bytes]])
    last: dict[Key, str] = field(default_factory=dict[Key, str])
    properties: dict[str, v1.SessionProperties] = field(default_factory=dict[str, v1.SessionProperties])
    programs: set[str] = field(default_factory=set[str])
    sources: set[str] = field(default_factory=set[str])
    own: int = 0
    native: set[str] = field(default_factory=set[str])
    owners: dict[Key, str] = field(default_factory=dict[Key, str])

    def by(self, source: str, key: Key) -> bytes | None:
        """The digest of an object's content as a source brought it last; None: it never did."""
        return self.brought.get(key, {}).get(source)


async def read(log: Reading, session_id: str) -> Stored:
    """Read a session. Raises what reading entries does, and `turnwire.errors.UnknownPayload`."""
    entries = [entry async for entry in log.read_entries(session_id)]
    stored = Stored()
    mark: ledger.Mark | None = None
    for entry in entries:
        if entry.HasField("session"):
            found = ledger.mark_of(entry.session)
            if found is not None and found.revision == entry.revision:
                mark = found
        if mark is not None and mark.revision <= entry.revision <= mark.revision + mark.entries:
            _claim(stored, entry, mark)
        else:
            stored.own += 1
            for kind, name in _contents(entry):
                if kind in ("message", "part") and (kind, name) not in stored.brought:
                    stored.native.add(name)
    stored.folded = fold(entries)
    return stored


async def history(log: Reading, session_id: str) -> History:
    """A session as an exporter takes it. Raises what `read` does."""
    stored = await read(log, session_id)
    folded = stored.folded
    result = History(session_id, ledger.unmarked(folded.properties), folded.turns, native=frozenset(stored.native))
    for message in folded.places:
        result.messages.append(whole(message))
        if message.summary is not None:
            result.summaries[message.id] = message.summary
    if folded.revert is not None:
        result.revert = folded.revert.revert
    return result


def whole(message: FoldedMessage) -> Message:
    """A message with all its parts, those that an open revert hides included."""
    built = header(message.header)
    built.parts.extend(part.built() for part in message.places)
    return built


def header(message: Message) -> Message:
    """A message without its parts, as a copy."""
    if isinstance(message, v1.User):
        user = v1.User()
        user.CopyFrom(message)
        del user.parts[:]
        return user
    assistant = v1.Assistant()
    assistant.CopyFrom(message)
    del assistant.parts[:]
    return assistant


def revert_digest(revert: v1.Revert | None) -> str:
    """The digest of a revert; empty for none."""
    return "" if revert is None else sha256(revert.SerializeToString(deterministic=True)).hexdigest()[:16]


def digest(message: Message | v1.PromptPart | v1.MessageSummary) -> bytes:
    """The digest of an object's content; of a message, without its parts."""
    if isinstance(message, v1.User | v1.Assistant) and message.parts:
        message = header(message)
    return sha256(message.SerializeToString(deterministic=True)).digest()[:16]


def _claim(stored: Stored, entry: v1.Entry, mark: ledger.Mark) -> None:
    stored.programs.add(mark.program)
    stored.sources.add(mark.source)
    if entry.HasField("session"):
        stored.properties[mark.source] = ledger.unmarked(entry.session)
        if mark.revert is not None and entry.revision == mark.revision:
            stored.brought.setdefault(REVERT, {})[mark.source] = mark.revert.encode()
    contents = _contents(entry)
    if entry.removal.HasField("message_id"):  # with all that hangs on it
        name = entry.removal.message_id
        held = (key for key, owner in stored.owners.items() if owner == name)
        contents |= dict.fromkeys(held, NOTHING)
    for key, content in contents.items():
        stored.brought.setdefault(key, {})[mark.source] = content
        stored.last[key] = mark.source
        stored.native.discard(key[1])
    _note_owners(stored, entry)


def _note_owners(stored: Stored, entry: v1.Entry) -> None:
    match entry.WhichOneof("payload"):
        case "user" | "assistant":
            message: Message = entry.user.user if entry.HasField("user") else entry.assistant.assistant
            for part in message.parts:
                stored.owners["part", part.id] = message.id
        case "part":
            stored.owners["part", entry.part.part.id] = entry.part.message_id
        case "summary":
            stored.owners["summary", entry.summary.message_id] = entry.summary.message_id
        case _:
            pass


def _contents(entry: v1.Entry) -> dict[Key, bytes]:
    """The digests of what an entry puts or takes out, by object."""
    match entry.WhichOneof("payload"):
        case "user" | "assistant":
            message: Message = entry.user.user if entry.HasField("user") else entry.assistant.assistant
            found = {("message", message.id): digest(message)}
            for part in message.parts:
                found["part", part.id] = digest(part)
            return found
        case "part":
            return {("part", entry.part.part.id): digest(entry.part.part)}
        case "summary":
            return {("summary", entry.summary.message_id): digest(entry.summary)}
        case "removal":
            target = entry.removal.WhichOneof("target")
            kind, name = (
                ("message", entry.removal.message_id) if target == "message_id" else ("part", entry.removal.part_id)
            )
            return {(kind, name): NOTHING}
        case _:
            return {}
