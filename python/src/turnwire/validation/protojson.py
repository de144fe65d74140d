"""Reads ProtoJSON strictly, but for what a later schema may have written: members and names of enums.

``google.protobuf.json_format`` takes a list or a text for a message, and the last of two equal members, and can skip
what it does not know only without saying what that was. So a document is laid over the descriptors first.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

import turnwire
from turnwire import v1
from turnwire.rules.compiler import path_key
from turnwire.rules.schema import PACKAGE
from turnwire.validation import documents, scalars

M = TypeVar("M", bound=Message)

#: Stands in a message for the name of an enum that this schema does not know; no schema has this number.
LATER: Final = -(2**31)

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_MOST_TOLD: Final = 200


class NoMessage(ValueError):
    """A text is not one ProtoJSON document of its type. ``path``: where; the text says why."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(why)
        self.path = path


class Later(NamedTuple):
    """What a later schema may have written: a member (of the message at ``path``), or the ``name`` of an enum there."""

    path: str
    text: str
    name: str = ""


class Twice(NamedTuple):
    """What stands in a parsed document for an object that has a member twice."""

    member: str


def document(text: str | bytes) -> Any:
    """Parse one JSON document of RFC 8259; an object with a member twice is a `Twice`.

    Raises ValueError, and its `documents.TooMuch`.
    """
    documents.check_size(text)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def message(tree: Any, cls: type[M]) -> tuple[M, list[Later]]:
    """A message of a parsed document, without what only a later schema knows, and what that was.

    Raises `NoMessage`.
    """
    later: list[Later] = []
    made = cls()
    try:
        json_format.ParseDict(_message(tree, cast("Descriptor", cls.DESCRIPTOR), "", later), made)
    except NoMessage:
        raise
    except (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError) as error:
        text = str(error)
        raise NoMessage(text if len(text) <= _MOST_TOLD else f"{text[: _MOST_TOLD - 1]}…") from None
    return made, later


def known(tree: Any, cls: type[M]) -> M:
    """A message of a parsed document, all of which this schema has to know. Raises `NoMessage`."""
    made, later = message(tree, cls)
    for each in later[:1]:
        shown = json.dumps(each.name[:80], ensure_ascii=False)
        raise NoMessage(each.text or f"{shown} is of a schema later than this one, or misspelt", each.path)
    return made


def parse(text: str | bytes, cls: type[M]) -> M:
    """A message of its ProtoJSON. Raises `NoMessage`, whose text says what is wrong, and where."""
    try:
        return known(document(text), cls)
    except NoMessage as error:
        raise NoMessage(f"{error.path}: {error}" if error.path else str(error), error.path) from None
    except ValueError as error:
        raise NoMessage(str(error)) from None


def later_payload(members: dict[str, Any]) -> str:
    """The member that must be the payload of an entry, of a kind that only a later schema knows; "" for none."""
    fields = _fields(v1.Entry.DESCRIPTOR)
    if any(fields[name].containing_oneof is not None for name in members if name in fields):
        return ""
    unknown = [name for name, value in members.items() if name not in fields and isinstance(value, dict)]
    return unknown[0] if len(unknown) == 1 else ""


def origin(member: str, of: Descriptor) -> str:
    """Where a member that the schema does not know may come from, in one sentence for people."""
    shown = json.dumps(member[:80], ensure_ascii=False)
    version = f"that of version {turnwire.__version__}"
    return f"the member {shown} of {of.name} is of a schema later than {version}, or misspelt"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Twice:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    counts = Counter(name for name, _ in pairs)
    return Twice(next(name for name, count in counts.items() if count > 1))


def _constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@cache
def _fields(of: Descriptor) -> dict[str, FieldDescriptor]:
    return {name: field for field in of.fields for name in (field.name, field.json_name)}


@cache
def _prefix(of: EnumDescriptor) -> str:
    return of.values[0].name.removesuffix("UNSPECIFIED")


def _message(tree: Any, of: Descriptor, path: str, later: list[Later]) -> dict[str, Any]:
    members = _members(tree, path, f"{of.full_name} is an object")
    lead = f"{path}." if path else ""
    made: dict[str, Any] = {}
    for name, value in members.items():
        field = _fields(of).get(name)
        if field is None:
            later.append(Later(path, origin(name, of)))
        else:
            made[name] = _value(value, field, lead + field.name, later)
    return made


def _members(tree: Any, path: str, right: str) -> dict[str, Any]:
    if isinstance(tree, Twice):
        raise NoMessage(f"the member {json.dumps(tree.member[:80], ensure_ascii=False)} stands twice", path)
    if not isinstance(tree, dict):
        raise NoMessage(right, path)
    return cast("dict[str, Any]", tree)


def _value(value: Any, field: FieldDescriptor, path: str, later: list[Later]) -> Any:
    if value is None:  # unset
        return None
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        of = entry.fields_by_name["value"]
        members = _members(value, path, "a map is an object")
        return {key: _item(item, of, f"{path}[{path_key(key)}]", later) for key, item in members.items()}
    if field.is_repeated and isinstance(value, list):
        items = cast("Sequence[Any]", value)
        return [_item(item, field, f"{path}[{index}]", later) for index, item in enumerate(items)]
    return _item(value, field, path, later)


def _item(value: Any, field: FieldDescriptor, path: str, later: list[Later]) -> Any:
    of = field.message_type
    if of is not None and of.full_name.startswith(f"{PACKAGE}."):
        return _message(value, of, path, later)
    if isinstance(value, Twice):
        _members(value, path, "")
    if field.enum_type is not None and isinstance(value, str) and _is_later(value, field.enum_type):
        later.append(Later(path, "", value))
        return LATER
    if wanted := scalars.right(value, field):
        raise NoMessage(wanted, path)
    return value


def _is_later(name: str, of: EnumDescriptor) -> bool:
    return name not in of.values_by_name and name.startswith(_prefix(of)) and _NAME.fullmatch(name) is not None
