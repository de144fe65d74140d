"""Every session of opencode's corpora, rendered for every dialect.

The checker of the vendors' rules takes it, and so do the vendors' own types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.rendering import checker, oracle
from turnwire import v1
from turnwire.errors import EmptyPrompt
from turnwire.prompt import History, Item, assemble
from turnwire.rendering import Dialect, render

EXPORTS = sorted(oracle.CORPORA.glob("opencode-*/**/exports/*.json*"))

pytestmark = pytest.mark.skipif(not EXPORTS, reason="the corpora are not there (beside the repository's folder)")

CONTEXT = v1.PromptContext(
    system=["You are a careful agent.", "Be brief."],
    tools=[
        v1.ToolDefinition(name="bash", description="Run a command", input_schema_json='{"type":"object"}'),
        v1.ToolDefinition(name="none"),
    ],
    parameters_json='{"temperature": 0.5, "max_tokens": 1000}',
)


@cache
def items_of(path: Path) -> tuple[tuple[Item, ...], v1.ModelRef] | None:
    """The prompt after a session's last turn and the model that it was for; None for a session without messages."""
    folded = oracle.imported(oracle.unpacked(path))
    if not folded.messages:
        return None
    turn_id = folded.messages[-1].turn_id
    past = History(folded.messages, turns=folded.turns.values())
    return assemble(past, turn_id).items, folded.turns[turn_id].request.model


def bodies(path: Path, dialect: Dialect) -> list[str]:
    """The session for its own model and for another one."""
    found = items_of(path)
    if found is None:
        return []
    items, own = found
    other = v1.ModelRef(provider_id="other", model_id="other")
    made: list[str] = []
    for model in (own, other):
        try:
            made.append(render(items, dialect, model, context=CONTEXT).body)
        except EmptyPrompt:
            assert not any(part.kind == "text" and part.message.text.text for item in items for part in item.parts)
    return made


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parts[-4]}-{path.parts[-3]}-{path.stem}")
def test_the_vendors_rules_hold(path: Path, dialect: Dialect) -> None:
    for body in bodies(path, dialect):
        assert checker.faults(body, dialect) == []


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parts[-4]}-{path.parts[-3]}-{path.stem}")
def test_openai_takes_it_as_chat(path: Path) -> None:
    chat = pytest.importorskip("openai.types.chat")
    for body in bodies(path, Dialect.OPENAI_CHAT):
        data = json.loads(body)
        _validate(list[chat.ChatCompletionMessageParam], data["messages"])
        _validate(list[chat.ChatCompletionToolParam], data["tools"])


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parts[-4]}-{path.parts[-3]}-{path.stem}")
def test_openai_takes_it_as_responses(path: Path) -> None:
    responses = pytest.importorskip("openai.types.responses")
    for body in bodies(path, Dialect.OPENAI_RESPONSES):
        data = json.loads(body)
        _validate(responses.ResponseInputParam, data["input"])
        _validate(list[responses.ToolParam], data["tools"])


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parts[-4]}-{path.parts[-3]}-{path.stem}")
def test_anthropic_takes_it(path: Path) -> None:
    types = pytest.importorskip("anthropic.types")
    for body in bodies(path, Dialect.ANTHROPIC_MESSAGES):
        data = json.loads(body)
        _validate(list[types.MessageParam], data["messages"])
        _validate(list[types.TextBlockParam], data["system"])
        _validate(list[types.ToolParam], data["tools"])


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parts[-4]}-{path.parts[-3]}-{path.stem}")
def test_google_takes_it(path: Path) -> None:
    types = pytest.importorskip("google.genai.types")
    for body in bodies(path, Dialect.GOOGLE_GEMINI):
        data = json.loads(body)
        _validate(list[types.Content], data["contents"])
        _validate(types.Content, data["systemInstruction"])
        _validate(list[types.Tool], data["tools"])
        _validate(types.GenerationConfig, data["generationConfig"])


@cache
def _adapter(kind: Any) -> Any:
    return pytest.importorskip("pydantic").TypeAdapter(kind)


def _validate(kind: Any, value: Any) -> None:
    """Let pydantic check a value. It checks what is iterable only when it is walked."""
    _walk(_adapter(kind).validate_python(value))


def _walk(value: Any) -> None:
    if isinstance(value, Mapping):
        for one in value.values():
            _walk(one)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for one in value:
            _walk(one)


def test_the_types_refuse_what_is_wrong() -> None:
    """The walk does reach what pydantic leaves for later."""
    types = pytest.importorskip("anthropic.types")
    responses = pytest.importorskip("openai.types.responses")
    chat = pytest.importorskip("openai.types.chat")
    google = pytest.importorskip("google.genai.types")
    for kind, value in (
        (list[types.MessageParam], [{"role": "user", "content": [{"type": "text"}]}]),
        (responses.ResponseInputParam, [{"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}]),
        (list[chat.ChatCompletionMessageParam], [{"role": "tool", "content": "x"}]),
        (list[google.Content], [{"role": "user", "parts": [{"texts": "x"}]}]),
    ):
        with pytest.raises(ValueError, match="validation error"):
            _validate(kind, value)
