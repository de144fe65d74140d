"""Small messages to write, shared by the tests of clients and servers."""

from __future__ import annotations

from turnwire import v1

MODEL = v1.ModelRef(provider_id="anthropic", model_id="claude-sonnet-4-5")


def text(words: str, id: str = "") -> v1.PromptPart:
    return v1.PromptPart(id=id, text=v1.TextPart(text=words))


def turn(id: str = "trn_1", agent: str = "build", model: v1.ModelRef = MODEL) -> v1.Turn:
    return v1.Turn(id=id, request=v1.TurnRequest(agent=agent, model=model))


def user(id: str, *words: str, turn_id: str = "trn_1") -> v1.User:
    return v1.User(id=id, turn_id=turn_id, parts=[text(each) for each in words])


def assistant(id: str, *words: str, parent_id: str | None = None, turn_id: str = "trn_1") -> v1.Assistant:
    run = v1.Run(agent="build", model=MODEL)
    parts = [text(each, f"prt_{id}_{at}") for at, each in enumerate(words)]
    return v1.Assistant(id=id, turn_id=turn_id, parent_id=parent_id, run=run, parts=parts)
