"""Which type of the schema something is that does not say so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from turnwire import rules, v1
from turnwire.validation import unknown

#: The types that lie in files, the likelier first: where several fit equally well the first of them is meant.
_LIKELY: Final[tuple[type[Message], ...]] = (
    v1.Entry,
    v1.Turn,
    v1.User,
    v1.Assistant,
    v1.PromptPart,
    v1.PromptMessage,
    v1.PromptRecord,
    v1.PromptContext,
    v1.MessageSummary,
    v1.Session,
    v1.SessionProperties,
    v1.EntryInput,
    v1.AppendRequest,
    v1.HistoryFrame,
    v1.Finding,
)

_MEMBERS: Final = {
    cls: frozenset(name for field in cls.DESCRIPTOR.fields for name in (field.name, field.json_name)) for cls in _LIKELY
}


def of_tree(tree: dict[str, object]) -> type[Message] | None:
    """The type of a parsed ProtoJSON object: one that has all its members, and misses least of what it needs."""
    fitting = [cls for cls in _LIKELY if tree and tree.keys() <= _MEMBERS[cls]]
    if not fitting:
        # Perhaps a later schema's, with members that this one does not know.
        known = [(len(tree.keys() & _MEMBERS[cls]), cls) for cls in _LIKELY]
        most = max(known, key=lambda one: one[0])
        return most[1] if most[0] > len(tree) / 2 else None
    return _best((cls, _parsed(tree, cls)) for cls in fitting) or fitting[0]


def of_bytes(data: bytes) -> type[Message] | None:
    """The type of a serialized message: one that knows all its fields, and misses least of what it needs."""
    return _best((cls, _read(data, cls)) for cls in _LIKELY) if data else None


def fits(data: bytes, cls: type[Message]) -> bool:
    """Whether serialized bytes can be a message of a type, none of whose fields is unknown."""
    return _read(data, cls) is not None


def _best(candidates: Iterable[tuple[type[Message], Message | None]]) -> type[Message] | None:
    best: type[Message] | None = None
    fewest = -1
    for cls, message in candidates:
        if message is None:
            continue
        broken = len(rules.check(message))
        if best is None or broken < fewest:
            best, fewest = cls, broken
    return best


def _parsed(tree: dict[str, object], cls: type[Message]) -> Message | None:
    try:
        return json_format.ParseDict(tree, cls())
    except (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _read(data: bytes, cls: type[Message]) -> Message | None:
    try:
        message = cls.FromString(data)
    except DecodeError:
        return None
    return None if unknown.any_in(message) else message
