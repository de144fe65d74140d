"""Hypothesis strategies for documents like opencode's: right ones, odd ones, and ones that are wrong in places."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_texts = st.text(st.characters(), max_size=8)
_lone = st.sampled_from(["\ud83d", "a\udc00b", "\U0001f600", "\x00", "\uffff", '"\\/\n', ""])
texts = _texts | _lone
_spelled = st.sampled_from(
    [
        *("0", "-0", "1", "1.0", "-1", "1.5", "1e3", "1E+2", "0.1e-6", "NaN", "Infinity", "-Infinity"),
        *("653247040368672768", "18446744073709551616", "1" + "0" * 60, "1e400", "-1e-400"),
        "1e999999999999999999999",
    ]
)


class Number:
    """A number by its spelling, for `render`."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling

    def __repr__(self) -> str:
        return f"Number({self.spelling})"


numbers = _spelled.map(Number)
counts = st.integers(0, 10**6) | st.integers(0, 2**64)
times = st.integers(1_700_000_000_000, 1_700_000_000_010) | st.integers(-(10**17), 10**17)
scalars = st.none() | st.booleans() | texts | counts | numbers
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(texts, anything, max_size=3)


def _mostly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A right value seven times of eight."""
    return st.integers(0, 7).flatmap(lambda number: anything if number == 0 else strategy)


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """An object whose members can be wrong, be lacking, or have strange company."""
    members = {key: _mostly(value) for key, value in required.items()}
    maybe = {key: _mostly(value) for key, value in (optional or {}).items()}
    whole = st.fixed_dictionaries(members, optional=maybe)
    fewer = st.fixed_dictionaries({}, optional=members | maybe)
    stranger = st.tuples(whole, objects).map(lambda pair: pair[1] | pair[0])
    return st.one_of(whole, whole, whole, fewer, stranger)


message_ids = st.sampled_from(["msg_1", "msg_2", "msg_3", "msg_4", "böse id", ""])
part_ids = st.sampled_from(["prt_1", "prt_2", "prt_3", "prt_4", "prt_5", "prt 6", "\ud83d"])
period = _object({"start": times}, {"end": times})
cache = _object({"read": counts, "write": counts})
tokens = _object({"input": counts, "output": counts, "reasoning": counts, "cache": cache}, {"total": counts})
cost = st.floats(0, 10, allow_nan=False)
model = _object({"providerID": texts, "modelID": texts})
span = _object({"value": texts, "start": counts, "end": counts})
position = _object({"line": counts, "character": counts})
source = st.one_of(
    _object({"type": st.just("file"), "path": texts, "text": span}),
    _object(
        {
            "type": st.just("symbol"),
            "path": texts,
            "text": span,
            "name": texts,
            "kind": counts,
            "range": _object({"start": position, "end": position}),
        }
    ),
    _object({"type": st.just("resource"), "clientName": texts, "uri": texts, "text": span}),
)
error = _object(
    {
        "name": st.sampled_from(
            [
                "APIError",
                "ProviderAuthError",
                "UnknownError",
                "MessageOutputLengthError",
                "MessageAbortedError",
                "StructuredOutputError",
                "ContextOverflowError",
                "ContentFilterError",
                "OtherError",
            ]
        ),
        "data": _object(
            {"message": texts},
            {
                "statusCode": st.integers(0, 700),
                "isRetryable": st.booleans(),
                "responseHeaders": st.dictionaries(texts, texts, max_size=2),
                "responseBody": texts,
                "metadata": _object({"url": texts}),
                "retries": counts,
                "providerID": texts,
            },
        ),
    }
)
file_object = {"mime": texts, "url": texts}
attachment = _object(file_object | {"id": part_ids, "type": st.just("file")}, {"filename": texts})
state = _object(
    {"status": st.sampled_from(["pending", "running", "completed", "error"]), "input": objects},
    {
        "raw": texts,
        "output": texts,
        "error": texts,
        "title": texts,
        "metadata": objects,
        "time": _object({"start": times}, {"end": times, "compacted": times}),
        "attachments": st.lists(attachment, max_size=2),
    },
)
_kinds: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "text": (
        {"text": texts},
        {"synthetic": st.booleans(), "ignored": st.booleans(), "time": period, "metadata": objects},
    ),
    "reasoning": ({"text": texts, "time": period}, {"metadata": objects}),
    "file": (file_object, {"filename": texts, "source": source, "synthetic": st.booleans()}),
    "tool": ({"callID": st.sampled_from(["a", "b"]), "tool": texts, "state": state}, {"metadata": objects}),
    "subtask": ({"prompt": texts, "description": texts, "agent": texts}, {"model": model, "command": texts}),
    "agent": ({"name": texts}, {"source": span}),
    "step-start": ({}, {"snapshot": texts}),
    "step-finish": ({"reason": texts, "cost": cost, "tokens": tokens}, {"snapshot": texts}),
    "snapshot": ({"snapshot": texts}, {}),
    "patch": ({"hash": texts, "files": st.lists(texts, max_size=3)}, {}),
    "retry": ({"attempt": counts, "error": error, "time": _object({"created": times})}, {}),
    "compaction": ({"auto": st.booleans()}, {"overflow": st.booleans(), "tail_start_id": message_ids}),
    "of tomorrow": ({"what": anything}, {}),
}
parts = st.one_of(
    *(
        _object({"id": part_ids, "type": st.just(kind), "sessionID": st.just("ses_1")} | required, optional)
        for kind, (required, optional) in _kinds.items()
    )
)
_head = {"id": message_ids, "sessionID": st.just("ses_1"), "time": _object({"created": times}, {"completed": times})}
diff = _object(
    {"file": texts, "additions": counts, "deletions": counts},
    {"patch": texts, "before": texts, "after": texts, "status": texts},
)
format_object = st.one_of(
    _object({"type": st.just("text")}),
    _object({"type": st.just("json_schema"), "schema": objects}, {"retryCount": st.integers(0, 2000)}),
)
user_info = _object(
    _head | {"agent": texts, "model": _object({"providerID": texts, "modelID": texts}, {"variant": texts})},
    {
        "variant": texts,
        "format": format_object,
        "system": texts,
        "tools": st.dictionaries(texts, st.booleans(), max_size=2),
        "summary": _object({"diffs": st.lists(diff, max_size=2)}, {"title": texts, "body": texts}),
    },
).map(lambda head: head | {"role": "user"})
assistant_info = _object(
    _head | {"parentID": message_ids, "modelID": texts, "providerID": texts, "mode": texts, "agent": texts},
    {
        "path": _object({"cwd": texts, "root": texts}),
        "cost": cost,
        "tokens": tokens,
        "error": error,
        "summary": st.booleans(),
        "structured": anything,
        "variant": texts,
        "finish": texts,
    },
).map(lambda head: head | {"role": "assistant"})
messages = st.fixed_dictionaries(
    {"info": user_info | assistant_info, "parts": st.lists(parts, max_size=4)},
    optional={"other": anything, "drop": anything, "order": anything},
)
session_info = _object(
    {"title": texts, "directory": texts, "version": texts, "time": _object({"created": times}, {"archived": times})},
    {
        "parentID": texts,
        "share": _object({"url": texts}),
        "revert": _object({"messageID": message_ids}, {"partID": part_ids, "snapshot": texts, "diff": texts}),
        "slug": texts,
        "location": _object({"directory": texts}),
    },
).map(lambda head: {"id": "ses_1"} | head)
documents = st.fixed_dictionaries(
    {"info": session_info, "messages": st.lists(messages, max_size=5)}, optional={"more": anything}
)
