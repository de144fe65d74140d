"""Hypothesis strategies for the messages of the schema, made from its descriptors.

    messages(v1.Assistant)                    valid messages: every rule of the schema holds, sizes are small
    messages(v1.PromptMessage, stored=False)  the same without part ids, as a hook writes it
    json_texts(), ids(), timestamps()       single values

and `tests.breaking.broken` makes messages in which one rule is broken.

``stored`` and ``role`` mean what they mean in `turnwire.rules.check`: a message that is made with them is valid when it
is checked with them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import strategies as st

from turnwire import v1
from turnwire.rules import own, schema, standard
from turnwire.rules.standard import FieldRules

M = TypeVar("M", bound=Message)

ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
_MOST_ITEMS = 3
_MOST_TEXT = 20


def ids() -> st.SearchStrategy[str]:
    """Ids that a caller may bring."""
    return st.text(ID_ALPHABET, min_size=1, max_size=24) | st.text(ID_ALPHABET, min_size=128, max_size=128)


def timestamps() -> st.SearchStrategy[Timestamp]:
    """Times of the years 0001 to 9999, to the nanosecond."""
    usual = st.integers(1_600_000_000, 1_900_000_000)
    seconds = usual | st.integers(own.FIRST_SECOND, own.LAST_SECOND)
    return st.builds(Timestamp, seconds=seconds, nanos=st.integers(0, 999_999_999))


def json_texts(*, obj: bool = False) -> st.SearchStrategy[str]:
    """JSON documents as text, or objects: any spacing, any numbers, lone surrogates escaped, keys twice."""
    numbers = st.integers().map(str) | st.sampled_from(["1.0", "-0", "1E400", "653247040368672768", "0.1e-7"])
    strings = st.text(max_size=8).map(json.dumps) | st.sampled_from([r'"\ud83d"', r'"\u0000"', '"😀"', r'"\/"'])
    leaves = numbers | strings | st.sampled_from(["true", "false", "null", "[]", "{}"])

    def lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")

    def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.lists(st.tuples(strings, inner), max_size=3)
        return pairs.map(lambda items: "{ " + ", ".join(f"{key}: {value}" for key, value in items) + "}\n")

    documents = st.recursive(leaves, lambda inner: lists(inner) | objects(inner), max_leaves=6)
    return objects(documents) if obj else documents


def messages(message_type: type[M], *, stored: bool | None = None, role: int = 0) -> st.SearchStrategy[M]:
    """Valid messages of a type."""
    return _messages(message_type.DESCRIPTOR.full_name, stored, role).map(lambda built: _as(message_type, built))


def _as(message_type: type[M], built: Any) -> M:
    return built if isinstance(built, message_type) else message_type.FromString(built.SerializeToString())


def inner_context(message: Any, stored: bool | None, role: int) -> tuple[bool | None, int]:
    """Return what `turnwire.rules.check` knows about the parts inside a message: whether stored, and the role."""
    descriptor = schema.message(message.DESCRIPTOR.full_name)
    source = own.role_source(descriptor)
    role = role if source is None else source if isinstance(source, int) else getattr(message, source)
    return (False if own.transient(descriptor) else stored), role


@cache
def _messages(full_name: str, stored: bool | None, role: int) -> st.SearchStrategy[Any]:
    return _built(full_name, stored, role)


@st.composite
def _built(draw: st.DrawFn, full_name: str, stored: bool | None, role: int) -> Any:
    if full_name == "google.protobuf.Timestamp":
        return draw(timestamps())
    if full_name == "google.protobuf.FieldMask":
        return FieldMask(paths=draw(st.lists(st.sampled_from(["title", "directory", "labels"]), unique=True)))
    descriptor = schema.message(full_name)
    result = getattr(v1, descriptor.name)()
    in_oneof = {field.name for oneof in descriptor.oneofs if own.is_real(oneof) for field in oneof.fields}
    for field in descriptor.fields:
        if field.name not in in_oneof:
            _draw_field(draw, result, field, *inner_context(result, stored, role))
    stored, role = inner_context(result, stored, role)
    for oneof in filter(own.is_real, descriptor.oneofs):
        fields = [field for field in oneof.fields if not role or role in (own.held_by(field) or {role})]
        if standard.oneof_required(oneof) or draw(st.booleans()):
            field = draw(st.sampled_from(fields))
            _set(result, field, draw(_value(field, standard.field_rules(field), stored, role)))
    return result


def _draw_field(draw: st.DrawFn, message: Any, field: FieldDescriptor, stored: bool | None, role: int) -> None:
    rules = standard.field_rules(field)
    if field.is_repeated:
        _draw_many(draw, message, field, rules, stored, role)
    elif own.stored_only(field):
        if stored or (stored is None and draw(st.booleans())):
            setattr(message, field.name, draw(_value(field, rules, stored, role)))
    elif rules.required or not (field.has_presence or rules.skip_zero) or draw(st.booleans()):
        _set(message, field, draw(_value(field, rules, stored, role)))


def _draw_many(
    draw: st.DrawFn, message: Any, field: FieldDescriptor, rules: FieldRules, stored: bool | None, role: int
) -> None:
    sizes = range(0, _MOST_ITEMS + 1)
    least = min(size for size in sizes if standard.holds(rules.clauses, range(size)))
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        keys = _value(entry["key"], rules.keys or FieldRules(), stored, role)
        values = _value(entry["value"], rules.items or FieldRules(), stored, role)
        for key, value in draw(st.dictionaries(keys, values, min_size=least, max_size=_MOST_ITEMS)).items():
            target[key] = value
        return
    items = _value(field, rules.items or FieldRules(), stored, role)
    if field.name == "parts":
        lists = st.lists(items, min_size=least, max_size=_MOST_ITEMS, unique_by=(_call, _id))
    else:
        lists = st.lists(items, min_size=least, max_size=_MOST_ITEMS)
    target.extend(draw(lists))


def _call(part: v1.PromptPart) -> str | int:
    return part.tool.call_id if part.HasField("tool") else id(part)


def _id(part: v1.PromptPart) -> str | int:
    return part.id or id(part)


def _set(message: Any, field: FieldDescriptor, value: Any) -> None:
    if field.message_type is not None:
        getattr(message, field.name).SetInParent()
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


def _value(field: FieldDescriptor, rules: FieldRules, stored: bool | None, role: int) -> st.SearchStrategy[Any]:
    """Values of a field, or of one item of it, that obey its rules."""
    if field.message_type is not None:
        return _messages(field.message_type.full_name, stored, role)
    limits = {clause.rule.rule.partition(".")[2]: clause for clause in rules.clauses}
    if field.type == FieldDescriptor.TYPE_STRING:
        is_object = own.json_object(field)
        if is_object is not None:
            texts = json_texts(obj=is_object)
            return texts if limits else texts | st.just("")
        return _texts(limits).filter(lambda text: standard.holds(rules.clauses, text))
    if field.type == FieldDescriptor.TYPE_BYTES:
        size = next((size for size in range(65) if standard.holds(rules.clauses, bytes(size))), 0)
        return st.binary(min_size=size, max_size=size if limits else 16)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_ENUM:
        numbers = sorted(field.enum_type.values_by_number)
        return st.sampled_from([number for number in numbers if standard.holds(rules.clauses, number)])
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return st.floats(0, 1e9).filter(lambda number: standard.holds(rules.clauses, number))
    low, high = _range(field, rules)
    return st.integers(low, min(high, low + 1000)) | st.integers(low, high)


def _texts(limits: dict[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" not in limits:
        return st.text(min_size=1 if limits else 0, max_size=_MOST_TEXT)
    matches = limits["pattern"].constants.values()
    alphabet = "".join(chr(code) for code in range(33, 127) if all(match(chr(code)) for match in matches))
    return st.text(alphabet, min_size=1, max_size=_MOST_TEXT)


def _range(field: FieldDescriptor, rules: FieldRules) -> tuple[int, int]:
    bits = 31 if field.type == FieldDescriptor.TYPE_INT32 else 63
    low, high = -(1 << bits), (1 << bits) - 1
    for clause in rules.clauses:
        bounds = [int(number) for number in re.findall(r"(?<![\w.])-?\d+", clause.broken)]
        if clause.rule.rule.endswith("gte_lte"):
            low, high = bounds
        elif clause.rule.rule.endswith("gte"):
            low = bounds[0]
        else:
            high = bounds[0]
    return low, high
