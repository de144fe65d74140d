"""Hand-made histories: short ids, texts that say where they come from, no store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnwire import v1
from turnwire.prompt import History, Item, Part

MODEL = v1.ModelRef(provider_id="acme", model_id="m-1")


def text(part_id: str, content: str, *, signed: bool = False, ignored: bool | None = None) -> v1.PromptPart:
    part = v1.PromptPart(id=part_id, text=v1.TextPart(text=content, ignored=ignored))
    if signed:
        part.text.provider.metadata_json = '{"sig":"S"}'
        part.text.provider.signed = True
    return part


def reasoning(part_id: str, content: str, *, signed: bool = False) -> v1.PromptPart:
    part = v1.PromptPart(id=part_id, reasoning=v1.ReasoningPart(text=content))
    if signed:
        part.reasoning.provider.metadata_json = '{"sig":"S"}'
        part.reasoning.provider.signed = True
    return part


def tool(part_id: str, call_id: str, *, output: str | None = "ok", signed: bool = False) -> v1.PromptPart:
    state = v1.ToolState.TOOL_STATE_RUNNING if output is None else v1.ToolState.TOOL_STATE_COMPLETED
    part = v1.PromptPart(
        id=part_id, tool=v1.ToolPart(call_id=call_id, name="sh", state=state, input_json="{}", output=output)
    )
    if signed:
        part.tool.provider.signed = True
    return part


def compaction(part_id: str, tail: str | None = None) -> v1.PromptPart:
    return v1.PromptPart(id=part_id, compaction=v1.CompactionPart(tail_start_id=tail))


def turn(turn_id: str) -> v1.Turn:
    made = v1.Turn(id=turn_id)
    made.created.FromSeconds(1)
    made.request.agent = "build"
    made.request.model.CopyFrom(MODEL)
    return made


def user(message_id: str, *parts: v1.PromptPart | str, turn: str = "T1") -> v1.User:
    made = v1.User(id=message_id, turn_id=turn, parts=_parts(message_id, parts))
    made.time.created.FromSeconds(1)
    return made


def assistant(
    message_id: str,
    *parts: v1.PromptPart | str,
    turn: str = "T1",
    parent: str | None = None,
    finish: str | None = "stop",
    completed: bool = True,
    failed: bool = False,
    summary: bool = False,
) -> v1.Assistant:
    made = v1.Assistant(id=message_id, turn_id=turn, parent_id=parent, parts=_parts(message_id, parts))
    made.time.created.FromSeconds(1)
    if completed:
        made.time.completed.FromSeconds(2)
    made.run.agent = "build"
    made.run.model.CopyFrom(MODEL)
    if finish is not None:
        made.result.finish = finish
    if failed:
        made.result.failure.aborted.message = "stopped"
    if summary:
        made.result.kind = v1.ResultKind.RESULT_KIND_SUMMARY
    return made


def summary(message_id: str, parent: str, *parts: v1.PromptPart | str, turn: str = "T1") -> v1.Assistant:
    """A completed summary; without parts it has a text."""
    return assistant(message_id, *(parts or ("summary",)), turn=turn, parent=parent, summary=True)


def history(
    *messages: v1.User | v1.Assistant,
    removed_messages: Iterable[str] = (),
    removed_parts: Iterable[str] = (),
    turns: Sequence[str] = ("T1",),
) -> History:
    return History(
        messages,
        turns=map(turn, turns),
        revision=len(messages),
        removed_messages=frozenset(removed_messages),
        removed_parts=frozenset(removed_parts),
    )


def dialogue() -> History:
    """U1 A1 U2 A2, each with one text whose id is the message's in lower case and a number: u1.0, a1.0, ..."""
    return history(user("U1", "one"), assistant("A1", "two"), user("U2", "three"), assistant("A2", "four"))


def item(message: v1.PromptMessage, message_id: str = "", mutation: int = 0) -> Item:
    parts = tuple(map(Part, message.parts))
    return Item(role=message.role, parts=parts, message_id=message_id, mutation=mutation)


def ids(items: Iterable[Item | v1.PromptItem]) -> list[str]:
    """The items in short: a stored message's id, else ``+`` and the index of the mutation that made it."""
    return [
        light.message_id or f"+{light.mutation}"
        for light in (item if isinstance(item, Item) else Item.of(item) for item in items)
    ]


def texts(items: Iterable[Item | v1.PromptItem]) -> list[list[str]]:
    """The texts of every item; the kind's name for a part that has none."""
    return [
        [part.message.text.text if part.kind == "text" else part.kind for part in light.parts]
        for light in (item if isinstance(item, Item) else Item.of(item) for item in items)
    ]


def frozen(source: History) -> list[bytes]:
    """The bytes of a history's messages, to compare before and after."""
    return [message.header.SerializeToString(deterministic=True) for message in source.messages]


def _parts(message_id: str, parts: Sequence[v1.PromptPart | str]) -> list[v1.PromptPart]:
    return [
        text(f"{message_id.lower()}.{index}", part) if isinstance(part, str) else part
        for index, part in enumerate(parts)
    ]
