"""Checks one message by itself: its bytes, the rules of the schema, and what a later schema may have written."""

from __future__ import annotations

import json
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from turnwire import rules as schema_rules
from turnwire import v1
from turnwire.errors import Violation
from turnwire.rules import own, schema
from turnwire.validation import unknown, values
from turnwire.validation.findings import Findings

_MOST_TOLD: Final = 200


def message_type(name: str) -> type[Message] | None:
    """The class of a message type by its name, with or without its package; None if the schema has none of it."""
    short = name.removeprefix(f"{schema.PACKAGE}.")
    found: Any = getattr(v1, short, None)
    return found if isinstance(found, type) and issubclass(found, Message) else None


def check(
    message: Message,
    found: Findings,
    *,
    stored: bool | None = None,
    role: int = 0,
    revision: int = 0,
    lead: str = "",
    place: str = "",
) -> bool:
    """Check a message; ``stored`` and ``role`` are those of `turnwire.rules.check`. Tells if no rule was broken.

    ``lead`` comes before every path, with its closing dot. What a later schema may have written is told as such.
    """
    later: set[str] = set()
    sound = True
    for violation in schema_rules.check(message, stored=stored, role=role):
        path, rule, right = violation
        value = values.at(message, path)
        if _is_later(violation):
            if right == own.ONEOF_UNKNOWN.text:
                later.add(path.rpartition(".")[0])
                found.add("storage.unknown_kind", revision=revision, path=lead + path, place=place)
            else:
                found.add("storage.unknown_enum", revision=revision, path=lead + path, value=value, place=place)
            continue
        sound = False
        found.add(rule, revision=revision, path=lead + path, value=value, expected=right, place=place)
    if unknown.any_in(message):
        for each in unknown.fields(message):
            if each.path not in later:
                text = unknown.origin(each.message, each.number)
                where = (lead + each.path).rstrip(".")
                found.add("storage.unknown_field", revision=revision, path=where, text=text, place=place)
    return sound


def check_bytes(
    data: bytes,
    cls: type[Message],
    found: Findings,
    *,
    stored: bool | None = None,
    role: int = 0,
    place: str = "",
) -> Message | None:
    """The same for a serialized message; returns it, or None if the bytes are none."""
    try:
        message = cls.FromString(data)
    except DecodeError:
        found.add("storage.bytes", place=place, expected=f"a serialized {cls.DESCRIPTOR.full_name}")
        return None
    check(message, found, stored=stored, role=role, place=place)
    return message


def check_json(
    text: str,
    cls: type[Message],
    found: Findings,
    *,
    stored: bool | None = None,
    role: int = 0,
    place: str = "",
) -> Message | None:
    """The same for a message as ProtoJSON."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        found.add("storage.json", place=place, expected="one JSON document")
        return None
    message = from_tree(tree, cls, found, place=place)
    if message is not None:
        check(message, found, stored=stored, role=role, place=place)
    return message


def from_tree(tree: Any, cls: type[Message], found: Findings, *, place: str = "") -> Message | None:
    """A message of parsed ProtoJSON; None, with a finding, if it is none. Fields of a later schema are told of."""
    message = cls()
    try:
        try:
            json_format.ParseDict(tree, message)
        except json_format.ParseError as error:
            # Once more without what only a later schema knows: if that is all, nothing is wrong.
            message = cls()
            json_format.ParseDict(tree, message, ignore_unknown_fields=True)
            found.add("storage.unknown_field", place=place, text=_told(error))
    except (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError) as error:
        expected = f"canonical ProtoJSON of {cls.DESCRIPTOR.full_name}"
        found.add("storage.json", place=place, value=_told(error), expected=expected)
        return None
    return message


def _told(error: Exception) -> str:
    text = str(error)
    return text if len(text) <= _MOST_TOLD else f"{text[: _MOST_TOLD - 1]}…"


def _is_later(violation: Violation) -> bool:
    """Whether a violation can be the mark of a later schema: a number or member that this one does not know."""
    return violation.rule == own.UNKNOWN and violation.text != own.ONEOF_UNSET.text
