"""Short ways to write a log and to read it back, for every test that works through an engine.

    await append(engine, "s", turn("t"), user("u", text("p", "hello")))
    history = await replay(engine, "s", last_turns=1)

Builders give `EntryInput`s; what a test does not name has a fixed value, so that equal calls make equal bytes. Nothing
here changes a request that it was given: an engine takes its request over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from turnwire import errors, ids, v1
from turnwire.engine import Caller, Engine

M = TypeVar("M", bound=Message)
E = TypeVar("E", bound=errors.TurnwireError)

CALLER = Caller()
#: A time of writing, in seconds since the epoch.
THEN = 1_700_000_000

PENDING = v1.ToolState.TOOL_STATE_PENDING
RUNNING = v1.ToolState.TOOL_STATE_RUNNING
COMPLETED = v1.ToolState.TOOL_STATE_COMPLETED
ERROR = v1.ToolState.TOOL_STATE_ERROR


def made(prefix: str, number: int) -> str:
    """An id in the form in which a server assigns it; in the order of the numbers."""
    return f"{prefix}{number:0{ids.DIGITS}}"


# Parts


def text(id: str = "", content: str = "", *, ended: bool = False) -> v1.PromptPart:
    part = v1.PromptPart(id=id, text=v1.TextPart(text=content))
    if ended:
        part.text.time.end.FromSeconds(THEN)
    return part


def reasoning(id: str = "", content: str = "", *, ended: bool = False) -> v1.PromptPart:
    part = v1.PromptPart(id=id, reasoning=v1.ReasoningPart(text=content))
    if ended:
        part.reasoning.time.end.FromSeconds(THEN)
    return part


def tool(
    id: str = "",
    call_id: str = "c1",
    *,
    state: v1.ToolState.ValueType = RUNNING,
    input_json: str = "{}",
    raw_input: str | None = None,
    output: str | None = None,
) -> v1.PromptPart:
    made = v1.ToolPart(
        call_id=call_id, name="shell", state=state, input_json=input_json, raw_input=raw_input, output=output
    )
    return v1.PromptPart(id=id, tool=made)


def compaction(id: str = "", tail_start_id: str | None = None) -> v1.PromptPart:
    return v1.PromptPart(id=id, compaction=v1.CompactionPart(tail_start_id=tail_start_id))


# Entries


def turn(
    id: str = "t", *, agent: str = "build", created: int | None = THEN, system: str | None = None
) -> v1.EntryInput:
    made = v1.Turn(id=id)
    if created is not None:
        made.created.FromSeconds(created)
    made.request.agent = agent
    made.request.model.CopyFrom(v1.ModelRef(provider_id="acme", model_id="m-1"))
    if system is not None:
        made.request.system = system
    return v1.EntryInput(turn=made)


def user(
    id: str = "u",
    *parts: v1.PromptPart,
    turn: str = "t",
    before: str | None = None,
    created: int | None = THEN,
) -> v1.EntryInput:
    made = v1.User(id=id, turn_id=turn, parts=parts)
    if created is not None:
        made.time.created.FromSeconds(created)
    return v1.EntryInput(user=v1.UserPut(user=made, before_id=before))


def assistant(
    id: str = "a",
    *parts: v1.PromptPart,
    turn: str = "t",
    parent: str | None = None,
    before: str | None = None,
    completed: bool = False,
    finish: str | None = None,
) -> v1.EntryInput:
    made = v1.Assistant(id=id, turn_id=turn, parent_id=parent, parts=parts)
    made.time.created.FromSeconds(THEN)
    if completed:
        made.time.completed.FromSeconds(THEN + 1)
    made.run.agent = "build"
    made.run.model.CopyFrom(v1.ModelRef(provider_id="acme", model_id="m-1"))
    if finish is not None:
        made.result.finish = finish
    return v1.EntryInput(assistant=v1.AssistantPut(assistant=made, before_id=before))


def put(message_id: str, part: v1.PromptPart, *, before: str | None = None) -> v1.EntryInput:
    """A put of one part."""
    return v1.EntryInput(part=v1.PartPut(message_id=message_id, part=part, before_id=before))


def delta(part_id: str, offset: int, text: str = "", *, raw_input: str = "", output: str = "") -> v1.EntryInput:
    made = v1.PartDelta(part_id=part_id, offset=offset)
    if text:
        made.text = text
    if raw_input:
        made.raw_input = raw_input
    if output:
        made.output = output
    return v1.EntryInput(delta=made)


def remove(id: str) -> v1.EntryInput:
    """A removal of a message."""
    return v1.EntryInput(removal=v1.Removal(message_id=id))


def remove_part(id: str) -> v1.EntryInput:
    return v1.EntryInput(removal=v1.Removal(part_id=id))


def revert(message_id: str, part_id: str | None = None) -> v1.EntryInput:
    return v1.EntryInput(revert=v1.Revert(message_id=message_id, part_id=part_id))


def clear() -> v1.EntryInput:
    """The clearing of the open revert."""
    return v1.EntryInput(revert_clear=v1.RevertClear())


def summary(message_id: str, body: str = "what it said") -> v1.EntryInput:
    return v1.EntryInput(summary=v1.MessageSummary(message_id=message_id, body=body))


def properties(**fields: str) -> v1.SessionProperties:
    made = v1.SessionProperties(**fields)  # type: ignore[arg-type]  # texts by the names of fields
    made.created.FromSeconds(THEN)
    return made


# Calls


async def append(
    engine: Engine,
    session_id: str,
    *entries: v1.EntryInput,
    create: bool | v1.SessionProperties = False,
    expected: int | None = None,
    request_id: str | None = None,
    caller: Caller = CALLER,
) -> v1.AppendResponse:
    request = v1.AppendRequest(
        session_id=session_id, entries=entries, expected_revision=expected, request_id=request_id
    )
    if create:
        request.create.CopyFrom(v1.SessionProperties() if create is True else create)
    return await engine.append(caller, request)


async def opened(engine: Engine, session_id: str = "s", *entries: v1.EntryInput) -> v1.AppendResponse:
    """Make a session of revision 1, turn ``t`` (revision 2), and what else is given from revision 3 on."""
    return await append(engine, session_id, turn(), *entries, create=properties())


@dataclass
class History:
    """What a replay gave: the frames, and the messages and summaries put together from them."""

    frames: list[v1.HistoryFrame] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of the responses, in bytes
    messages: list[v1.User | v1.Assistant] = field(default_factory=list)
    turns: list[v1.Turn] = field(default_factory=list)
    summaries: dict[str, v1.MessageSummary] = field(default_factory=dict)
    head: v1.Head | None = None

    @property
    def ids(self) -> list[str]:
        return [message.id for message in self.messages]

    @property
    def kinds(self) -> list[str]:
        """The names of the frames, in order."""
        return [frame.WhichOneof("frame") or "" for frame in self.frames]

    @property
    def shape(self) -> dict[str, list[str]]:
        """The ids of the parts of each message."""
        return {message.id: [part.id for part in message.parts] for message in self.messages}

    def part(self, id: str) -> v1.PromptPart:
        return next(part for message in self.messages for part in message.parts if part.id == id)


def collect(responses: Iterable[v1.ReplayResponse | v1.GetMessageResponse]) -> History:
    """Put a replay together, as a client does."""
    history = History()
    for response in responses:
        history.sizes.append(response.ByteSize())
        for frame in response.frames:
            assert history.head is None, "the head is the last frame"
            history.frames.append(frame)
            match frame.WhichOneof("frame"):
                case "turn":
                    history.turns.append(frame.turn)
                case "user":
                    history.messages.append(frame.user)
                case "assistant":
                    history.messages.append(frame.assistant)
                case "parts":
                    assert frame.parts.message_id == history.messages[-1].id
                    history.messages[-1].parts.extend(frame.parts.parts)
                case "summary":
                    assert frame.summary.message_id == history.messages[-1].id
                    history.summaries[frame.summary.message_id] = frame.summary
                case other:
                    assert other == "head"
                    history.head = frame.head
    assert history.head is not None
    return history


async def parsed(make: type[M], responses: AsyncIterator[bytes]) -> list[M]:
    return [make.FromString(response) async for response in responses]


async def replay(
    engine: Engine,
    session_id: str,
    revision: int | None = None,
    *,
    last_turns: int | None = None,
    range: v1.MessageRange | None = None,
    summaries: bool = False,
    caller: Caller = CALLER,
) -> History:
    request = v1.ReplayRequest(session_id=session_id, revision=revision, include_summaries=summaries)
    if last_turns is not None:
        request.last_turns = last_turns
    if range is not None:
        request.range.CopyFrom(range)
    return collect(await parsed(v1.ReplayResponse, engine.replay(caller, request)))


async def get_message(
    engine: Engine, session_id: str, message_id: str, revision: int | None = None, *, summary: bool = False
) -> History:
    request = v1.GetMessageRequest(
        session_id=session_id, message_id=message_id, revision=revision, include_summary=summary
    )
    return collect(await parsed(v1.GetMessageResponse, engine.get_message(CALLER, request)))


async def read(engine: Engine, session_id: str, first: int = 0, last: int | None = None) -> list[v1.Entry]:
    """The raw entries of a range."""
    request = v1.ReadEntriesRequest(session_id=session_id, from_revision=first, to_revision=last)
    responses = await parsed(v1.ReadEntriesResponse, engine.read_entries(CALLER, request))
    return [entry for response in responses for entry in response.entries]


async def get_session(engine: Engine, session_id: str) -> v1.Session:
    return (await engine.get_session(CALLER, v1.GetSessionRequest(session_id=session_id))).session


async def fork(
    engine: Engine,
    session_id: str,
    new_id: str = "f",
    revision: int | None = None,
    *,
    title: str | None = None,
) -> v1.Session:
    request = v1.ForkSessionRequest(session_id=session_id, new_session_id=new_id, revision=revision, title=title)
    return (await engine.fork_session(CALLER, request)).session


async def delete(engine: Engine, session_id: str, *, children: bool = False) -> list[str]:
    request = v1.DeleteSessionRequest(session_id=session_id, include_children=children)
    return list((await engine.delete_session(CALLER, request)).session_ids)


@contextmanager
def refused(error: type[E], path: str | None = None, **metadata: str | int) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect a refusal of exactly this class, at a path, with these metadata."""
    with pytest.raises(error) as caught:
        yield caught
    assert type(caught.value) is error
    if path is not None:
        assert caught.value.path == path
    for key, value in metadata.items():
        assert caught.value.metadata[key] == str(value)
