"""From what a source says to messages: ProtoJSON as YAML, with a few short ways to write it.

* A text or reasoning part may be written as its text: ``{id: p, text: hello}``.
* A put may be written without its inner level: ``user: {id: u, parts: […]}``, ``part: {message_id: u, id: p, …}``.
* What the schema requires and a source leaves out is filled in, where a maker asks for it: ``FILLED``.
* ``unknown: {PATH: BYTES}`` puts what a later schema has written behind the message there: ``add_unknown``.
* ``!hex "0a 01 70"`` are bytes, ``!repeat ["[", 128]`` is a text many times, ``!join […]`` is texts in a row.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from turnwire import v1
from turnwire.conformance import v1 as conformance

M = TypeVar("M", bound=Message)

ROLES: Final = {"user": v1.Role.ROLE_USER, "assistant": v1.Role.ROLE_ASSISTANT}

#: A time of writing; nothing hangs on it.
THEN: Final = "2026-01-01T00:00:00Z"
MODEL: Final = {"provider_id": "acme", "model_id": "m-1"}

#: By the name of a message, what is filled in.
FILLED: Final[Mapping[str, Mapping[str, Any]]] = {
    "SessionProperties": {"created": THEN},
    "Turn": {"created": THEN, "request": {"agent": "build", "model": MODEL}},
    "User": {"turn_id": "t", "time": {"created": THEN}},
    "Assistant": {"turn_id": "t", "time": {"created": THEN}, "run": {"agent": "build", "model": MODEL}},
    "AssistantTime": {"created": THEN},
    "ToolPart": {"name": "shell"},
}

_AS_TEXT: Final = ("TextPart", "ReasoningPart")
_INSIDE: Final = {"UserPut": "user", "AssistantPut": "assistant", "PartPut": "part"}


class SourceError(Exception):
    """A source says something that cannot be made into a vector."""


class _Loader(yaml.SafeLoader):
    """YAML with the tags of the sources."""

    def hex(self, node: yaml.ScalarNode) -> bytes:
        return bytes.fromhex(str(self.construct_scalar(node)))

    def repeat(self, node: yaml.SequenceNode) -> Any:
        what, times = self.construct_sequence(node, deep=True)
        return what * times

    def join(self, node: yaml.SequenceNode) -> str:
        return "".join(self.construct_sequence(node, deep=True))


for _tag in (_Loader.hex, _Loader.repeat, _Loader.join):
    _Loader.add_constructor(f"!{_tag.__name__}", _tag)


def load(path: Path) -> Any:
    """Read a source. Raises SourceError."""
    try:
        return yaml.load(path.read_text("utf-8"), _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise SourceError(f"{path.name}: {error}") from None


def message(make: type[M], tree: Any, *, fill: bool = False) -> M:
    """Make a message of a tree. ``fill``: fill in what the schema requires. Raises SourceError."""
    made = make()
    try:
        json_format.ParseDict(_json(tree, make.DESCRIPTOR, fill), made)
    except (json_format.ParseError, KeyError) as error:
        raise SourceError(f"{make.DESCRIPTOR.name}: {error}") from None
    return made


def _json(tree: Any, descriptor: Descriptor, fill: bool) -> Any:
    name = descriptor.name if descriptor.file.package == "turnwire.v1" else ""
    if name in _AS_TEXT and isinstance(tree, str):
        tree = {"text": tree}
    if not isinstance(tree, dict):
        return tree
    inside = _INSIDE.get(name)
    if inside is not None and inside not in tree:
        outer = {key: tree[key] for key in descriptor.fields_by_name if key in tree and key != inside}
        tree = {**outer, inside: {key: value for key, value in tree.items() if key not in outer}}
    if fill:
        tree = {**FILLED.get(name, {}), **tree}
    return {key: _value(value, descriptor.fields_by_name[key], fill) for key, value in tree.items()}


def _value(value: Any, field: FieldDescriptor, fill: bool) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    inner = field.message_type
    if inner is None or value is None:
        return value
    if inner.GetOptions().map_entry:
        return {key: _value(each, inner.fields_by_name["value"], fill) for key, each in value.items()}
    if field.is_repeated:
        return [_json(each, inner, fill) for each in value]
    return _json(value, inner, fill)


def add_unknown(message: Message, unknown: Mapping[str, bytes]) -> None:
    """Put bytes behind messages inside one, by their paths: ``{"append.message.parts[0]": BYTES}``; "" is itself."""
    for path, data in unknown.items():
        inner: Any = message
        for name, index in re.findall(r"([a-z_]+)(?:\[(\d+)])?", path):
            inner = getattr(inner, name)
            inner = inner[int(index)] if index else inner
        inner.MergeFromString(data)


def spelled(tree: Any) -> Any:
    """A tree in which every ``role`` that is written in short has the name that the schema gives it."""
    if isinstance(tree, dict):
        return {
            key: f"ROLE_{value.upper()}" if key == "role" and value in ROLES else spelled(value)
            for key, value in tree.items()
        }
    return [spelled(each) for each in tree] if isinstance(tree, list) else tree


def refusal(tree: Any) -> conformance.Refusal:
    """A refusal: the name of a reason, or that and a path: ``ANCHOR_UNKNOWN mutations[0].remove.message_id``."""
    name, _, path = str(tree).partition(" ")
    try:
        return conformance.Refusal(reason=v1.Reason.Value(f"REASON_{name}"), path=path)
    except ValueError:
        raise SourceError(f"no such reason: {name}") from None
