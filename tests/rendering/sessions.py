"""Short ways to write stored sessions and to see what is sent of them."""

from __future__ import annotations

import json
from typing import Any

from turnwire import v1
from turnwire.prompt import History, Item, assemble
from turnwire.rendering import Dialect, Options, Rendering, render

X = v1.ModelRef(provider_id="acme", model_id="x")
Y = v1.ModelRef(provider_id="other", model_id="y")

PENDING, RUNNING = v1.ToolState.TOOL_STATE_PENDING, v1.ToolState.TOOL_STATE_RUNNING
COMPLETED, ERROR = v1.ToolState.TOOL_STATE_COMPLETED, v1.ToolState.TOOL_STATE_ERROR


def text(content: str, **more: Any) -> v1.PromptPart:
    return v1.PromptPart(text=v1.TextPart(text=content, **more))


def reasoning(content: str, metadata: str = "", *, model: v1.ModelRef | None = None) -> v1.PromptPart:
    part = v1.PromptPart(reasoning=v1.ReasoningPart(text=content))
    if metadata:
        part.reasoning.provider.metadata_json = metadata
        part.reasoning.provider.signed = True
    if model is not None:
        part.reasoning.provider.model.CopyFrom(model)
    return part


def tool(
    call_id: str, output: str | None = None, state: v1.ToolState.ValueType | None = None, **more: Any
) -> v1.PromptPart:
    if state is None:
        state = RUNNING if output is None else COMPLETED
    more.setdefault("input_json", "{}")
    return v1.PromptPart(tool=v1.ToolPart(call_id=call_id, name="sh", state=state, output=output, **more))


def file(url: str, mime: str = "image/png", name: str | None = None) -> v1.PromptPart:
    return v1.PromptPart(file=v1.FilePart(url=url, mime=mime, filename=name))


def user(*parts: v1.PromptPart | str) -> v1.User:
    return v1.User(turn_id="T", parts=[text(part) if isinstance(part, str) else part for part in parts])


def assistant(*parts: v1.PromptPart | str, model: v1.ModelRef = X, **result: Any) -> v1.Assistant:
    made = v1.Assistant(turn_id="T", parts=[text(part) if isinstance(part, str) else part for part in parts])
    made.run.model.CopyFrom(model)
    made.result.CopyFrom(v1.Result(**result))
    return made


def items(*messages: v1.User | v1.Assistant, profile: str = "default") -> tuple[Item, ...]:
    """The prompt of a session. Messages and parts without ids get M0, M1, ... and M0.0, M0.1, ..."""
    session: list[v1.User | v1.Assistant] = []
    for place, given in enumerate(messages):
        message = type(given).FromString(given.SerializeToString())
        message.id = message.id or f"M{place}"
        for at, part in enumerate(message.parts):
            part.id = part.id or f"{message.id}.{at}"
        session.append(message)
    return assemble(History(session, turns=[v1.Turn(id="T")]), "T", profile).items


def sent(
    *messages: v1.User | v1.Assistant,
    to: Dialect = Dialect.OPENAI_CHAT,
    model: v1.ModelRef = X,
    options: Options | None = None,
    profile: str = "default",
) -> Rendering:
    """What is sent of a session."""
    return render(items(*messages, profile=profile), to, model, options=options or Options(), profile=profile)


def entries(rendering: Rendering) -> list[Any]:
    """The messages of a body."""
    body = json.loads(rendering.body)
    return next(body[name] for name in ("messages", "input", "contents") if name in body)


def changes(rendering: Rendering) -> list[tuple[str, str, str]]:
    """The changes as plain texts."""
    return [(change.rule.value, change.message_id, change.part_id) for change in rendering.changes]
