"""Logs for vectors: entries that a real store admitted, and the histories that it shows of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.conformance.making import trees
from turnwire import errors, v1
from turnwire.conformance import v1 as conformance
from turnwire.engine import Caller, Engine
from turnwire.log import digest, raw, wire
from turnwire.store.memory import MemoryStore

SESSION: Final = "ses_1"
_CALLER: Final = Caller()
#: 2026-01-01T00:00:00.000007Z, so that the digits after the point count.
_BEGIN_US: Final = 1_767_225_600_000_007


class _Engine(Engine):
    """An engine with a clock of its own: a second goes by with every entry."""

    ticks = 0

    def now_us(self) -> int:
        return _BEGIN_US + self.ticks * 1_000_000


def entries(source: Sequence[Any], session_id: str = SESSION) -> list[bytes]:
    """Have a store admit the entries of a source, the first of which are the session's properties.

    ``{later: BYTES, ignorable: true}`` is an entry with a payload that no schema has, or of the ``number`` given, with
    ``envelope``: what a later schema has written beside it. Raises SourceError.
    """
    return asyncio.run(_entries(source, session_id))


async def _entries(source: Sequence[Any], session_id: str) -> list[bytes]:
    engine = _Engine(MemoryStore())
    for at, tree in enumerate(source):
        engine.ticks += 1
        try:
            if "later" in tree:
                await engine.restore(_CALLER, session_id, [await _later(engine, session_id, tree)])
                continue
            if at == 0:
                properties = trees.message(v1.SessionProperties, tree["session"], fill=True)
                create = v1.CreateSessionRequest(session_id=session_id, properties=properties)
                head = (await engine.create_session(_CALLER, create)).session.head
            else:
                known = {key: tree[key] for key in tree if key != "unknown"}
                entry = trees.message(v1.EntryInput, known, fill=True)
                trees.add_unknown(entry, tree.get("unknown", {}))
                head = (await engine.append(_CALLER, v1.AppendRequest(session_id=session_id, entries=[entry]))).head
        except errors.TurnwireError as error:
            raise trees.SourceError(f"entry {at + 1} is refused: {error}") from None
        if head.revision != at + 1:
            raise trees.SourceError(f"entry {at + 1} was there already")
    return await _read(engine, session_id)


async def _later(engine: _Engine, session_id: str, tree: Any) -> bytes:
    head = (await engine.get_session(_CALLER, v1.GetSessionRequest(session_id=session_id))).session.head
    now_us = engine.now_us()
    number = tree.get("number", 299)
    after = digest.link(head.digest, head.revision + 1, now_us, number, tree["later"])
    entry = v1.Entry(revision=head.revision + 1, digest=after, ignorable=tree.get("ignorable", False))
    entry.recorded.FromMicroseconds(now_us)
    envelope: bytes = tree.get("envelope", b"")
    return entry.SerializeToString(deterministic=True) + wire.field(number, tree["later"]) + envelope


async def _read(engine: Engine, session_id: str) -> list[bytes]:
    request = v1.ReadEntriesRequest(session_id=session_id)
    return [data async for response in engine.read_entries(_CALLER, request) for data in _values(response)]


def _values(data: bytes) -> Iterator[bytes]:
    """The values of the first field of a message, which is repeated."""
    return (data[field.value : field.end] for field in raw.fields(data) if field.number == 1)


def history(log: Sequence[bytes], revision: int | None = None, session_id: str = SESSION) -> conformance.History:
    """What a store shows of a log at a revision: once at that revision of the whole log, and once of a log that ends
    there, which must be the same. Raises the errors of Replay."""
    return asyncio.run(_history(log, revision or len(log), session_id))


async def _history(log: Sequence[bytes], revision: int, session_id: str) -> conformance.History:
    whole, short = Engine(MemoryStore()), Engine(MemoryStore())
    await whole.restore(_CALLER, session_id, log)
    await short.restore(_CALLER, session_id, log[:revision])
    shown = await _shown(whole, session_id, revision)
    session = (await short.get_session(_CALLER, v1.GetSessionRequest(session_id=session_id))).session
    if shown != await _shown(short, session_id, revision):
        raise AssertionError("a store shows a revision otherwise once more follows")
    # A store knows the properties without folding; which are in force is seen in the session that ends there.
    found = [v1.Entry.FromString(data) for data in log[:revision]]
    shown.properties.CopyFrom(session.properties)
    shown.turns.extend(entry.turn for entry in found if entry.WhichOneof("payload") == "turn")
    if session.HasField("revert"):
        shown.revert.CopyFrom(session.revert)
    return shown


async def _shown(engine: Engine, session_id: str, revision: int) -> conformance.History:
    request = v1.ReplayRequest(session_id=session_id, revision=revision, include_summaries=True)
    made = conformance.History()
    async for response in engine.replay(_CALLER, request):
        for frame in v1.ReplayResponse.FromString(response).frames:
            match frame.WhichOneof("frame"):
                case "user":
                    made.messages.add(user=frame.user)
                case "assistant":
                    made.messages.add(assistant=frame.assistant)
                case "parts":
                    held(made.messages[-1]).parts.extend(frame.parts.parts)
                case "summary":
                    made.messages[-1].summary.CopyFrom(frame.summary)
                case "head":
                    made.revision = frame.head.revision
                case _:
                    pass
    return made


def held(message: conformance.HistoryMessage) -> v1.User | v1.Assistant:
    """The user's or the assistant's message."""
    return message.user if message.HasField("user") else message.assistant


def outline(history: conformance.History) -> list[dict[str, dict[str, str]]]:
    """A history in few words, as sources say what they expect: the text of each part, or what kind it is."""
    return [{held(each).id: {part.id: words(part) for part in held(each).parts}} for each in history.messages]


def words(part: v1.PromptPart) -> str:
    """A part in few words."""
    kind = part.WhichOneof("kind") or ""
    if kind in ("text", "reasoning"):
        text: str = getattr(part, kind).text
        return text
    if kind == "tool":
        tool = part.tool
        state = v1.ToolState.Name(tool.state).removeprefix("TOOL_STATE_").lower()
        said = [f"{name}={getattr(tool, name)}" for name in ("raw_input", "output") if tool.HasField(name)]
        return " ".join([state, *said])
    return kind
