"""The vendors' known rules for request bodies, as a checker: `faults` names every rule that a body breaks.

Beside the documentation of the APIs these are what their servers answer with status 400 and what their types cannot
say: every call has its result directly after it, no result without a call, roles alternate where they must, no empty
text, the user speaks first, ids are unique and legal, reasoning is not the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from turnwire.rendering import Dialect

_ANTHROPIC_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ANTHROPIC_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def faults(body: str, dialect: Dialect) -> list[str]:
    """The rules that a body breaks; none for a body that the provider takes."""
    data = json.loads(body)
    found = list(_CHECKS[dialect](data))
    found += [f"a lone surrogate at {path}" for path, text in _strings(data) if _lone(text)]
    if re.search(r"[,:{\[] | [,:}\]]|\n", re.sub(r'"(?:[^"\\]|\\.)*"', '""', body)):
        found.append("white space between tokens")
    return found


def _lone(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield f"{path} (key)", key
            yield from _strings(one, f"{path}/{key}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _strings(one, f"{path}/{index}")


def _unique(ids: list[str], limit: int) -> Iterator[str]:
    if len(set(ids)) != len(ids):
        yield "a call id stands there twice"
    if any(not name or len(name) > limit for name in ids):
        yield f"a call id of more than {limit} characters, or of none"


def _object(text: str) -> bool:
    return isinstance(json.loads(text), dict)


def _chat(data: dict[str, Any]) -> Iterator[str]:
    messages = [message for message in data["messages"] if message["role"] != "system"]
    if not messages or messages[0]["role"] != "user":
        yield "the first message is not the user's"
    ids: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        role = message["role"]
        if role != "tool" and open_calls:
            yield "a call without a result directly after it"
            open_calls = []
        content = message.get("content")
        if role == "tool":
            if not open_calls or open_calls.pop(0) != message["tool_call_id"]:
                yield "a result without its call, or out of order"
            if not isinstance(content, str) or not content:
                yield "an empty result"
            continue
        if role == "assistant":
            calls = message.get("tool_calls")
            if calls is not None and not calls:
                yield "an empty list of calls"
            open_calls = [call["id"] for call in calls or ()]
            ids += open_calls
            if any(not _object(call["function"]["arguments"]) for call in calls or ()):
                yield "arguments that are no object"
            if content is None and not calls:
                yield "an assistant without content and calls"
            if content is not None and not content:
                yield "an empty text"
            if "reasoning_content" in message and not message["reasoning_content"]:
                yield "empty reasoning"
        elif isinstance(content, str):
            if not content:
                yield "an empty text"
        else:
            if not content:
                yield "a message without content"
            if any(part["type"] == "text" and not part["text"] for part in content):
                yield "an empty text"
    if open_calls:
        yield "a call without a result at the end"
    yield from _unique(ids, 40)


def _responses(data: dict[str, Any]) -> Iterator[str]:
    items = [item for item in data["input"] if item.get("role") != "developer"]
    if not items or items[0].get("role") != "user":
        yield "the first item is not the user's"
    ids: list[str] = []
    open_calls: list[str] = []
    answering = False
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call_output":
            answering = True
            if not open_calls or open_calls.pop(0) != item["call_id"]:
                yield "a result without its call, or out of order"
            if not item["output"]:
                yield "an empty result"
            continue
        if open_calls and (answering or kind != "function_call"):
            yield "a call without a result directly after it"
            open_calls = []
        answering = False
        if kind == "function_call":
            open_calls.append(item["call_id"])
            ids.append(item["call_id"])
            if not _object(item["arguments"]):
                yield "arguments that are no object"
        elif kind == "reasoning":
            after = items[index + 1] if index + 1 < len(items) else {}
            if after.get("type") not in ("reasoning", "function_call") and after.get("role") != "assistant":
                yield "reasoning that nothing of the assistant follows"
        elif not item["content"] or any(isinstance(part, dict) and part.get("text") == "" for part in item["content"]):
            yield "an empty text"
    if open_calls:
        yield "a call without a result at the end"
    yield from _unique(ids, 64)


def _anthropic(data: dict[str, Any]) -> Iterator[str]:
    messages = data["messages"]
    yield from _alternate([message["role"] for message in messages], "assistant")
    ids: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        content = message["content"]
        if not content:
            yield "a message without content"
            continue
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if results != open_calls or any(block["type"] != "tool_result" for block in content[: len(results)]):
            yield "results that are not those of the calls before, in their order and first of all"
        open_calls = [block["id"] for block in content if block["type"] == "tool_use"]
        ids += open_calls
        after_call = False
        for block in content:
            yield from _anthropic_block(block)
            after_call = after_call or block["type"] == "tool_use"
            if after_call and block["type"] != "tool_use":
                yield "something after a call in its message"
        if content[-1]["type"] in ("thinking", "redacted_thinking"):
            yield "reasoning at the end of a message"
    if open_calls:
        yield "a call without a result at the end"
    yield from _unique(ids, 64)
    if any(_ANTHROPIC_ID.fullmatch(name) is None for name in ids):
        yield "a call id of characters that may not be"
    if messages and messages[-1]["role"] == "assistant":
        yield "an assistant at the end"


def _anthropic_block(block: dict[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text":
            if not block["text"]:
                yield "an empty text"
        case "thinking":
            if not block["signature"]:
                yield "reasoning without a signature"
        case "tool_use":
            if not isinstance(block["input"], dict):
                yield "an input that is no object"
        case "tool_result":
            if not block["content"]:
                yield "an empty result"
            for part in block["content"] if isinstance(block["content"], list) else ():
                yield from _anthropic_block(part)
        case "image":
            source = block["source"]
            if source["type"] == "base64" and (source["media_type"] not in _ANTHROPIC_IMAGES or not source["data"]):
                yield "a picture of a type that may not be"
        case _:
            pass


def _gemini(data: dict[str, Any]) -> Iterator[str]:
    contents = data["contents"]
    yield from _alternate([content["role"] for content in contents], "model")
    open_calls: list[str] = []
    for content in contents:
        parts = content["parts"]
        if not parts:
            yield "a content without parts"
            continue
        results = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if results != open_calls or any("functionResponse" not in part for part in parts[: len(results)]):
            yield "results that are not those of the calls before, in their order and first of all"
        open_calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        for part in parts:
            if "text" in part and not part["text"] and "thoughtSignature" not in part:
                yield "an empty text"
            if "functionCall" in part and not isinstance(part["functionCall"]["args"], dict):
                yield "an input that is no object"
            if "functionResponse" in part and not all(part["functionResponse"]["response"].values()):
                yield "an empty result"
    if open_calls:
        yield "a call without a result at the end"
    if contents and contents[-1]["role"] == "model":
        yield "the model at the end"


def _alternate(roles: list[str], other: str) -> Iterator[str]:
    if not roles or roles[0] != "user":
        yield "the first message is not the user's"
    if any(role not in ("user", other) for role in roles):
        yield "a role that is not known"
    if any(one == next_one for one, next_one in pairwise(roles)):
        yield "two neighbours of one role"


_CHECKS: dict[Dialect, Callable[[dict[str, Any]], Iterator[str]]] = {
    Dialect.OPENAI_CHAT: _chat,
    Dialect.OPENAI_RESPONSES: _responses,
    Dialect.ANTHROPIC_MESSAGES: _anthropic,
    Dialect.GOOGLE_GEMINI: _gemini,
}
