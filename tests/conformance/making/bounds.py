"""Values at and beyond each bound that the schema sets, read off protovalidate's options.

Every bound gives a value that is just right and one that is just wrong, so that a new rule has its vectors by itself:
a rule of a kind that is not known here is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.conformance.making.trees import SourceError
from turnwire.rules import schema

#: Where a value of a field stands: the field itself, an item of a list, a value or a key of a map, or how many there
#: are of them.
FIELD: Final = ""
ITEM: Final = "item"
VALUE: Final = "value"
KEY: Final = "key"
COUNT: Final = "count"


class Bound(NamedTuple):
    """A ``value`` of the ``place`` in a field; ``rule``: the one that it breaks, "": it is right.

    ``says`` is what a name calls it, ``declares`` the rule that it stands at. With place ``COUNT`` the value is how
    many items or pairs there are.
    """

    place: str
    says: str
    declares: str
    value: Any
    rule: str


def bounds(field: FieldDescriptor) -> Iterator[Bound]:
    """What each of protovalidate's rules of a field allows and refuses. Raises SourceError."""
    rules = schema.option(field, "buf.validate.field")
    if rules is not None:
        yield from _of(rules, FIELD)


def declared(field: FieldDescriptor) -> set[tuple[str, str]]:
    """The rules of a field that a value can break, each with its place."""
    return {(each.place, each.declares) for each in bounds(field)}


def _of(rules: Message, place: str) -> Iterator[Bound]:
    for option, value in rules.ListFields():
        if option.name == "ignore":
            continue
        if option.name == "required":
            # Of a message or an id; what has no presence is wrong as zero, which the other rules say as well.
            continue
        if option.message_type is None or option.name not in _KINDS:
            raise SourceError(f"{option.full_name}: no vectors are known for it")
        yield from _KINDS[option.name](option.name, value, place)


def _string(kind: str, rules: Any, place: str) -> Iterator[Bound]:
    for option, value in rules.ListFields():
        rule = f"{kind}.{option.name}"
        match option.name:
            case "min_len":
                yield Bound(place, "at", rule, "x" * value, "")
                yield Bound(place, "below", rule, "x" * (value - 1), rule)
            case "max_len" | "max_bytes":
                yield Bound(place, "at", rule, "x" * value, "")
                yield Bound(place, "above", rule, "x" * (value + 1), rule)
            case "pattern" if value.startswith("^["):
                for text in ("a b", "ab\n", "ünï"):
                    yield Bound(place, text.encode().hex(), rule, text, rule)
            case "pattern" if value == r"[^\s]":
                yield Bound(place, "right", rule, " x ", "")
                yield Bound(place, "wrong", rule, " \t\n", rule)
            case _:
                raise SourceError(f"{rule} {value}: no vectors are known for it")


def _bytes(kind: str, rules: Any, place: str) -> Iterator[Bound]:
    for option, value in rules.ListFields():
        rule = f"{kind}.{option.name}"
        if option.name != "len":
            raise SourceError(f"{rule}: no vectors are known for it")
        yield Bound(place, "at", rule, b"\x01" * value, "")
        yield Bound(place, "below", rule, b"\x01" * (value - 1), rule)
        yield Bound(place, "above", rule, b"\x01" * (value + 1), rule)


def _number(kind: str, rules: Any, place: str) -> Iterator[Bound]:
    parts = {option.name: value for option, value in rules.ListFields()}
    if parts.keys() - {"gte", "lte", "finite"}:
        raise SourceError(f"{kind} {sorted(parts)}: no vectors are known for it")
    rule = f"{kind}.{'_'.join(name for name in ('gte', 'lte') if name in parts)}"
    for name, says, step in (("gte", "below", -1), ("lte", "above", 1)):
        if name in parts:
            beyond = math.nextafter(parts[name], step * math.inf) if kind == "double" else parts[name] + step
            yield Bound(place, f"at-{name}", rule, parts[name], "")
            yield Bound(place, says, rule, beyond, rule)
    if "finite" in parts:
        yield Bound(place, "infinity", f"{kind}.finite", math.inf, f"{kind}.finite")


def _enum(kind: str, rules: Any, place: str) -> Iterator[Bound]:
    for option, value in rules.ListFields():
        rule = f"{kind}.{option.name}"
        match option.name:
            case "defined_only":
                # The name that Turnwire gives to protovalidate's rule.
                yield Bound(place, "99", "turnwire.unknown", 99, "turnwire.unknown")
                yield Bound(place, "-1", "turnwire.unknown", -1, "turnwire.unknown")
            case "not_in":
                for number in value:
                    yield Bound(place, str(number), rule, number, rule)
            case _:
                raise SourceError(f"{rule}: no vectors are known for it")


def _many(kind: str, rules: Any, place: str) -> Iterator[Bound]:
    inner = {"items": ITEM, "values": VALUE, "keys": KEY}
    for option, value in rules.ListFields():
        rule = f"{kind}.{option.name}"
        match option.name:
            case "items" | "values" | "keys":
                yield from _of(value, inner[option.name])
            case "min_items" | "min_pairs":
                yield Bound(COUNT, "at", rule, value, "")
                yield Bound(COUNT, "below", rule, value - 1, rule)
            case "max_items" | "max_pairs":
                yield Bound(COUNT, "at", rule, value, "")
                yield Bound(COUNT, "above", rule, value + 1, rule)
            case _:
                raise SourceError(f"{rule}: no vectors are known for it")


_KINDS: Final[Mapping[str, Callable[[str, Any, str], Iterator[Bound]]]] = {
    "string": _string,
    "bytes": _bytes,
    "double": _number,
    "int32": _number,
    "int64": _number,
    "enum": _enum,
    "repeated": _many,
    "map": _many,
}
