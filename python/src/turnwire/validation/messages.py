"""Checks one message by itself: its bytes, the rules of the schema, and what a later schema may have written."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError, Message

from turnwire import rules as schema_rules
from turnwire import v1
from turnwire.errors import Violation
from turnwire.rules import own, schema
from turnwire.validation import protojson, unknown, values
from turnwire.validation.documents import TooMuch
from turnwire.validation.findings import Findings

_LATER: Final = str(protojson.LATER)

ONE_DOCUMENT: Final = "one JSON document"
NONE: Final[frozenset[str]] = frozenset()


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
    later: frozenset[str] = NONE,
) -> bool:
    """Check a message; ``stored`` and ``role`` are those of `turnwire.rules.check`. Tells if no rule was broken.

    ``lead`` comes before every path, with its closing dot. What a later schema may have written is told as such.
    ``later``: paths, lead included, where that was told of and left out; what is missing there is not missed.
    """
    strange = list(unknown.fields(message)) if unknown.any_in(message) else []
    told: set[str] = set()
    wrong: set[str] = set()
    sound = True
    for each in strange:
        field = each.message.DESCRIPTOR.fields_by_number.get(each.number)
        if field is not None:
            sound = False
            told.add(each.path)
            where = f"{each.path}.{field.name}".lstrip(".")
            wrong.add(where)
            right = "a field of the type that its number has, which never changes"
            found.add("storage.bytes", revision=revision, path=lead + where, expected=right, place=place)
    for violation in schema_rules.check(message, stored=stored, role=role):
        path, rule, right = violation
        if path in wrong or (right == own.ONEOF_UNSET.text and (lead + path).rpartition(".")[0] in later):
            continue
        value = values.at(message, path)
        if _is_later(violation):
            if right == own.ONEOF_UNKNOWN.text:
                if path.rpartition(".")[0] not in told:
                    told.add(path.rpartition(".")[0])
                    found.add("storage.unknown_kind", revision=revision, path=lead + path, place=place)
            elif value != _LATER:  # which was told of when it was read
                found.add("storage.unknown_enum", revision=revision, path=lead + path, value=value, place=place)
            continue
        sound = False
        found.add(rule, revision=revision, path=lead + path, value=value, expected=right, place=place)
    for each in strange:
        if each.path not in told:
            text = unknown.origin(each.message, each.number)
            where = (lead + each.path).rstrip(".")
            found.add("storage.unknown_field", revision=revision, path=where, text=text, place=place)
    return sound


class Read(NamedTuple):
    """A message that was read; ``later``: the paths where JSON had what only a later schema knows and it lacks."""

    message: Message
    later: frozenset[str]


def from_bytes(data: bytes, cls: type[Message], found: Findings, *, place: str = "") -> Read | None:
    """A serialized message; None, with a finding, if the bytes are none."""
    try:
        return Read(cls.FromString(data), NONE)
    except DecodeError:
        found.add("storage.bytes", place=place, expected=f"a serialized {cls.DESCRIPTOR.full_name}")
        return None


def from_json(text: str, cls: type[Message], found: Findings, *, place: str = "") -> Read | None:
    """A message as ProtoJSON; None, with a finding, if the text is none."""
    try:
        tree = protojson.document(text)
    except ValueError as error:
        found.add("storage.json", place=place, expected=expected(error))
        return None
    return from_tree(tree, cls, found, place=place)


def expected(error: ValueError) -> str:
    """What is right where a text could not be parsed."""
    return str(error) if isinstance(error, TooMuch) else ONE_DOCUMENT


def from_tree(tree: Any, cls: type[Message], found: Findings, *, place: str = "") -> Read | None:
    """A message of parsed ProtoJSON (`protojson.document`); None, with a finding, if it is none.

    What a later schema has written is told of, and not in the message.
    """
    try:
        message, later = protojson.message(tree, cls)
    except protojson.NoMessage as error:
        expected = f"canonical ProtoJSON of {cls.DESCRIPTOR.full_name}"
        found.add("storage.json", path=error.path, place=place, value=str(error), expected=expected)
        return None
    for each in later:
        rule = "storage.unknown_enum" if each.name else "storage.unknown_field"
        found.add(rule, path=each.path, place=place, text=each.text, value=values.short(each.name).strip('"'))
    return Read(message, frozenset(each.path for each in later))


def _is_later(violation: Violation) -> bool:
    """Whether a violation can be the mark of a later schema: a number or member that this one does not know."""
    return violation.rule == own.UNKNOWN and violation.text != own.ONEOF_UNSET.text
