"""What a part, and a message's header, may say in the state that they are in: tool states, times, usage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire import v1
from turnwire.validation.state import Amounts

PENDING: Final = v1.ToolState.TOOL_STATE_PENDING
RUNNING: Final = v1.ToolState.TOOL_STATE_RUNNING
FINAL: Final = frozenset((v1.ToolState.TOOL_STATE_COMPLETED, v1.ToolState.TOOL_STATE_ERROR))
_STATES: Final = frozenset((PENDING, RUNNING, *FINAL))

#: What stands in `Amounts` for what is not known.
_NOT_KNOWN: Final = -1.0
#: Costs are sums of fractions, whose last digits depend on the order.
_CLOSE: Final = 1e-6


class Wrong(NamedTuple):
    """A ``rule`` that is broken at ``path``; ``expected`` says what is right."""

    rule: str
    path: str
    expected: str


def part(part: v1.PromptPart) -> Iterator[Wrong]:
    """What is wrong with a part as it is."""
    kind = part.WhichOneof("kind")
    if kind == "tool":
        tool = part.tool
        yield from _tool(tool)
        if tool.HasField("time"):
            yield from _times("tool.time.end", tool.time)
            if tool.HasField("compacted") and tool.time.HasField("end") and _at(tool.compacted) < _at(tool.time.end):
                yield Wrong("session.times", "tool.compacted", "must not be before the end of the call")
    elif kind == "text" and part.text.HasField("time"):
        yield from _times("text.time.end", part.text.time)
    elif kind == "reasoning" and part.reasoning.HasField("time"):
        yield from _times("reasoning.time.end", part.reasoning.time)


def change(before: int, after: int) -> Wrong | None:
    """What is wrong with a change of a tool's state; nothing can be said of a state of a later schema."""
    if before in FINAL and after != before and after in _STATES:
        return Wrong("session.tool.left", "tool.state", f"must stay {_name(before)}, which is final")
    if before == RUNNING and after == PENDING:
        return Wrong("session.tool.back", "tool.state", "must not go back from RUNNING")
    return None


def header(message: v1.User | v1.Assistant) -> Iterator[Wrong]:
    """What is wrong with a message's header as it is."""
    if isinstance(message, v1.Assistant):
        time = message.time
        if time.HasField("completed") and time.HasField("created") and _at(time.completed) < _at(time.created):
            yield Wrong("session.times", "time.completed", "must not be before it was created")


def _tool(tool: v1.ToolPart) -> Iterator[Wrong]:
    state = tool.state
    name = "session.tool.content"
    if tool.HasField("error") and state != v1.ToolState.TOOL_STATE_ERROR:
        yield Wrong(name, "tool.error", f"must be unset in state {_name(state)}")
    if state == PENDING and tool.output:
        yield Wrong(name, "tool.output", "must be unset in state PENDING")
    if state == v1.ToolState.TOOL_STATE_COMPLETED and not tool.HasField("output"):
        yield Wrong(name, "tool.output", "must be set in state COMPLETED")
    if state in (PENDING, RUNNING):
        if tool.HasField("time") and tool.time.HasField("end"):
            yield Wrong(name, "tool.time.end", f"must be unset in state {_name(state)}")
        if tool.HasField("compacted"):
            yield Wrong(name, "tool.compacted", f"must be unset in state {_name(state)}")


def _times(path: str, time: v1.PartTime) -> Iterator[Wrong]:
    if time.HasField("start") and time.HasField("end") and _at(time.end) < _at(time.start):
        yield Wrong("session.times", path, "must not be before the start")


def _at(time: Timestamp) -> tuple[int, int]:
    return time.seconds, time.nanos


def _name(state: int) -> str:
    values = v1.ToolState.DESCRIPTOR.values_by_number
    return values[state].name.removeprefix("TOOL_STATE_") if state in values else str(state)


def amounts(usage: v1.Usage) -> Amounts:
    """A usage as numbers that can be added."""
    cost = usage.cost if usage.HasField("cost") else _NOT_KNOWN
    if not usage.HasField("tokens"):
        return [cost, *[_NOT_KNOWN] * 5]
    tokens = usage.tokens
    return [cost, tokens.input, tokens.output, tokens.reasoning, tokens.cache.read, tokens.cache.write]


def added(one: Amounts, other: Amounts, sign: int = 1) -> Amounts:
    """One plus, or minus, the other; not known where one of the two is not."""
    return [_NOT_KNOWN if a == _NOT_KNOWN or b == _NOT_KNOWN else a + sign * b for a, b in zip(one, other, strict=True)]


def equal(one: Amounts, other: Amounts) -> bool:
    """Whether two usages are equal, as far as both are known."""
    return all(
        a == _NOT_KNOWN or b == _NOT_KNOWN or math.isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE)
        for a, b in zip(one, other, strict=True)
    )
