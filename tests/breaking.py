"""Messages in which exactly one rule is broken, made from the descriptors.

``broken(v1.Assistant)`` draws ``(message, path, rule)``. Every rule that the schema has for the type and for what is
inside it comes up, but for sizes that take thousands of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import strategies as st

from tests.strategies import inner_context, messages
from turnwire import v1
from turnwire.rules import own, schema, standard
from turnwire.rules.compiler import path_key
from turnwire.rules.standard import FieldRules

M = TypeVar("M", bound=Message)

_MOST_SIZE = 2000


class Broken(NamedTuple):
    """A ``message`` in which the ``rule`` is broken at ``path``, and no other rule anywhere."""

    message: Any
    path: str
    rule: str


class Break(NamedTuple):
    """One way to break a ``rule`` at ``path``: call ``apply``."""

    path: str
    rule: str
    apply: Callable[[], object]


@st.composite
def broken(draw: st.DrawFn, message_type: type[M], *, stored: bool | None = None, role: int = 0) -> Broken:
    """Messages that break exactly one rule; any rule that the schema has for the type comes up."""
    places: list[Break] = []
    while not places:
        message = draw(messages(message_type, stored=stored, role=role))
        places = list(breaks(message, stored, role))
    rule = draw(st.sampled_from(sorted({place.rule for place in places})))
    chosen = draw(st.sampled_from([place for place in places if place.rule == rule]))
    chosen.apply()
    return Broken(message, chosen.path, chosen.rule)


def breaks(message: Any, stored: bool | None = None, role: int = 0, prefix: str = "") -> Iterator[Break]:
    """Every way to break one rule of a message as it is, or of a message that is set inside it."""
    if isinstance(message, Timestamp):
        place = prefix.removesuffix(".")
        yield Break(place, own.TIMESTAMP, lambda: setattr(message, "seconds", own.LAST_SECOND + 1))
        yield Break(place, own.TIMESTAMP, lambda: setattr(message, "seconds", own.FIRST_SECOND - 1))
        yield Break(place, own.TIMESTAMP, lambda: setattr(message, "nanos", -1))
        yield Break(place, own.TIMESTAMP, lambda: setattr(message, "nanos", 1_000_000_000))
        return
    if not message.DESCRIPTOR.full_name.startswith(schema.PACKAGE):
        return
    stored, role = inner_context(message, stored, role)
    descriptor = schema.message(message.DESCRIPTOR.full_name)
    for field in descriptor.fields:
        path = prefix + field.name
        rules = standard.field_rules(field)
        if field.is_repeated:
            yield from _many(message, field, rules, path, stored, role)
            continue
        if rules.required:
            yield Break(path, "required", lambda name=field.name: message.ClearField(name))
        is_set = message.HasField(field.name) if field.has_presence else True
        if not is_set:
            continue
        if field.message_type is not None:
            yield from breaks(getattr(message, field.name), stored, role, f"{path}.")
        else:
            yield from _scalar(message, field, rules, path, stored)
    for oneof in filter(own.is_real, descriptor.oneofs):
        if standard.oneof_required(oneof):
            yield Break(prefix + oneof.name, own.UNKNOWN, lambda name=oneof.name: message.ClearField(name))
    if isinstance(message, v1.PromptPart):
        yield from _holders(message, role, prefix)


def _scalar(message: Any, field: FieldDescriptor, rules: FieldRules, path: str, stored: bool | None) -> Iterator[Break]:
    transient_id = own.stored_only(field) and stored is False
    for rule, value in _wrong(field, rules) if not transient_id else []:
        yield Break(path, rule, lambda value=value: setattr(message, field.name, value))
    if own.stored_only(field):
        if stored is False:
            yield Break(path, own.STORED_ONLY, lambda: setattr(message, field.name, "prt_1"))
        elif stored:
            yield Break(path, "required", lambda: message.ClearField(field.name))


def _many(
    message: Any, field: FieldDescriptor, rules: FieldRules, path: str, stored: bool | None, role: int
) -> Iterator[Break]:
    items = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        for clause in rules.clauses:
            yield Break(path, clause.rule.rule, lambda: items.update({f"k{number}": "" for number in range(65)}))
        for rule, key in _wrong(entry["key"], rules.keys or FieldRules()):
            yield Break(f"{path}[{path_key(key)}]", rule, lambda key=key: items.update({key: _plain(items)}))
        for key in items:
            for rule, value in _wrong(entry["value"], rules.items or FieldRules()):
                yield Break(f"{path}[{path_key(key)}]", rule, lambda k=key, v=value: items.update({k: v}))
        return
    if not standard.holds(rules.clauses, ()):
        yield Break(path, "repeated.min_items", lambda: message.ClearField(field.name))
    if field.message_type is None:
        return
    for index, item in enumerate(items):
        yield from breaks(item, stored, role, f"{path}[{index}].")
    if field.name == "parts" and own.role_source(schema.message(message.DESCRIPTOR.full_name)) is not None:
        for item in items:
            if item.HasField("tool"):
                yield Break(f"{path}[{len(items)}].tool.call_id", own.CALL_ID, lambda item=item: _again(items, item))


def _plain(items: Any) -> Any:
    """A value that the map takes and that breaks no rule."""
    return True if items.GetEntryClass().DESCRIPTOR.fields_by_name["value"].type == FieldDescriptor.TYPE_BOOL else ""


def _again(parts: Any, part: v1.PromptPart) -> None:
    copy = v1.PromptPart()
    copy.CopyFrom(part)
    if copy.id:
        copy.id = "another"
    parts.append(copy)


def _holders(part: v1.PromptPart, role: int, prefix: str) -> Iterator[Break]:
    wrong: dict[int, tuple[str, v1.PromptPart]] = {
        own.ROLE_USER: ("snapshot", v1.PromptPart(snapshot=v1.SnapshotPart())),
        own.ROLE_ASSISTANT: ("compaction", v1.PromptPart(compaction=v1.CompactionPart())),
    }
    if role in wrong:
        name, other = wrong[role]
        yield Break(f"{prefix}{name}", own.HELD_BY, lambda: part.MergeFrom(other))


def _wrong(field: FieldDescriptor, rules: FieldRules) -> Iterator[tuple[str, Any]]:
    """Values of a field, or of one item of it, that break exactly one rule, with the id of the rule."""
    for value in _candidates(field):
        if rules.skip_zero and not value:
            continue
        broken = [clause for clause in rules.clauses if not standard.holds([clause], value)]
        if len(broken) == 1:
            rule = broken[0].rule.rule
            yield (own.UNKNOWN if rule == "enum.defined_only" else rule), value
    is_object = own.json_object(field)
    if is_object is not None:
        yield "turnwire.json.syntax", '{"x": NaN}'
        yield "turnwire.json.depth", '{"x": ' + "[" * 128 + "]" * 128 + "}"
        if is_object:
            yield "turnwire.json.shape", "[]"


def _candidates(field: FieldDescriptor) -> list[Any]:
    if field.type == FieldDescriptor.TYPE_STRING and own.json_object(field) is not None:
        return [""]
    if field.type == FieldDescriptor.TYPE_STRING:
        lengths = [length + 1 for length in (64, 128, 256, 512, 1024, 4096)]
        return ["", " ", "ab\n", "ünï", *("x" * length for length in lengths)]
    if field.type == FieldDescriptor.TYPE_BYTES:
        return [b"x" * 31, b"x" * 33]
    if field.type == FieldDescriptor.TYPE_ENUM:
        return [0, -1, 99]
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return [-1e-300, float("inf")]
    if field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64):
        return [-(2**31), -1, 0, 99, 600, 1001, 2**31 - 1]
    return []
