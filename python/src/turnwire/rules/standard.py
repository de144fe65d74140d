"""Protovalidate's rules of one field, read off the descriptors as Python expressions.

A rule is an expression over ``v``, the field's value, that is true when the rule is broken. Ids of rules are
protovalidate's own (``string.min_len``, ``int32.gte_lte``), so that a violation reads the same in every language.

Only the kinds of rule that the schema uses are known here. Any other one raises `UnsupportedRule` when the rules of a
message are first compiled: a rule that nobody checks must never look like a rule that holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire.rules import schema


class UnsupportedRule(Exception):
    """The descriptors hold a rule that this code does not know. Raised when compiling, never for a message."""


class Rule(NamedTuple):
    """What a violation says: the ``rule`` id and a ``text`` that tells what is right, without content."""

    rule: str
    text: str


class Clause(NamedTuple):
    """A ``rule`` with ``broken``, an expression over ``v`` and the names of ``constants``: true when it is broken."""

    rule: Rule
    broken: str
    constants: dict[str, Any]


@dataclass
class FieldRules:
    """The rules of one field.

    ``required``: unset, or without presence zero, breaks `REQUIRED`, and nothing else is looked at. ``skip_zero``: a
    zero value is not looked at. ``clauses`` are about the value; of a repeated field or a map about the whole.
    ``items`` are about each item, or each value of a map, ``keys`` about each key.
    """

    required: bool = False
    skip_zero: bool = False
    clauses: list[Clause] = field(default_factory=list[Clause])
    items: FieldRules | None = None
    keys: FieldRules | None = None


REQUIRED: Final = Rule("required", "must be set")

_IGNORE_IF_ZERO: Final = 1
_INTEGERS: Final = frozenset(
    f"{sign}{kind}" for kind in ("int32", "int64", "fixed32", "fixed64") for sign in ("", "u", "s")
)


@cache
def field_rules(field: FieldDescriptor) -> FieldRules:
    """Read the protovalidate rules of a field. Raises `UnsupportedRule`. Not to be changed: it is read once."""
    rules = schema.option(field, "buf.validate.field")
    return _read(rules, field, field.full_name) if rules is not None else FieldRules()


def oneof_required(oneof: Any) -> bool:
    """Tell whether one member of a oneof must be set. Raises `UnsupportedRule`."""
    rules = schema.option(oneof, "buf.validate.oneof")
    return rules is not None and bool(_parts(rules, oneof.full_name, {"required"}).get("required"))


def refuse_message_rules(full_name: str) -> None:
    """Raise `UnsupportedRule` if a message has rules as a whole (CEL): the schema has none, and none is read."""
    rules = schema.option(schema.message(full_name), "buf.validate.message")
    if rules is not None:
        raise UnsupportedRule(f"{full_name}: rules of a whole message are not supported")


def holds(clauses: Iterable[Clause], value: Any) -> bool:
    """Tell whether a value breaks none of the clauses."""
    return not any(eval(clause.broken, {**clause.constants, "v": value}) for clause in clauses)


def _read(rules: Message, field: FieldDescriptor, where: str) -> FieldRules:
    result = FieldRules()
    for name, value in _parts(rules, where, {"required", "ignore", *_KINDS}).items():
        if name == "required":
            result.required = value
        elif name == "ignore":
            if value != _IGNORE_IF_ZERO:
                raise UnsupportedRule(f"{where}: ignore = {value} is not supported")
            result.skip_zero = True
        else:
            _KINDS[name](result, name, value, field, where)
    return result


def _parts(rules: Message, where: str, known: Iterable[str]) -> dict[str, Any]:
    """Return what is set in an options message; raise `UnsupportedRule` for anything not ``known``."""
    parts = {field.full_name if field.is_extension else field.name: value for field, value in rules.ListFields()}
    unknown = sorted(parts.keys() - set(known))
    if unknown or len(UnknownFieldSet(rules)):
        raise UnsupportedRule(f"{where}: {rules.DESCRIPTOR.name} has {unknown or 'unknown fields'}: not supported")
    return parts


def _string(result: FieldRules, kind: str, rules: Message, field: FieldDescriptor, where: str) -> None:
    for name, value in _parts(rules, where, {"min_len", "max_len", "max_bytes", "pattern"}).items():
        if name == "min_len":
            broken, text = f"len(v) < {value}", f"must have at least {_count(value, 'character')}"
        elif name == "max_len":
            broken, text = f"len(v) > {value}", f"must have at most {_count(value, 'character')}"
        elif name == "max_bytes":
            # A character has at most four bytes, so that a short text need not be encoded.
            broken = f"len(v) > {value // 4} and len(v.encode()) > {value}"
            text = f"must have at most {_count(value, 'byte')} of UTF-8"
        else:
            constant = f"PATTERN_{len(result.clauses)}"
            text = f"must match {value}"
            result.clauses.append(
                Clause(Rule(f"{kind}.{name}", text), f"not {constant}(v)", {constant: pattern(value, where)})
            )
            continue
        result.clauses.append(Clause(Rule(f"{kind}.{name}", text), broken, {}))


def _bytes(result: FieldRules, kind: str, rules: Message, field: FieldDescriptor, where: str) -> None:
    length = _parts(rules, where, {"len"})["len"]
    result.clauses.append(Clause(Rule("bytes.len", f"must have {_count(length, 'byte')}"), f"len(v) != {length}", {}))


def _number(result: FieldRules, kind: str, rules: Message, field: FieldDescriptor, where: str) -> None:
    parts = _parts(rules, where, {"gte", "lte", "finite"} if kind == "double" else {"gte", "lte"})
    low, high = parts.get("gte"), parts.get("lte")
    # Written as "not inside", so that NaN breaks them too.
    if low is not None and high is not None:
        if low > high:
            raise UnsupportedRule(f"{where}: a range that excludes its middle is not supported")
        rule = Rule(f"{kind}.gte_lte", f"must be from {low:g} to {high:g}")
        result.clauses.append(Clause(rule, f"not {low!r} <= v <= {high!r}", {}))
    elif low is not None:
        result.clauses.append(Clause(Rule(f"{kind}.gte", f"must be at least {low:g}"), f"not v >= {low!r}", {}))
    elif high is not None:
        result.clauses.append(Clause(Rule(f"{kind}.lte", f"must be at most {high:g}"), f"not v <= {high!r}", {}))
    if parts.get("finite"):
        result.clauses.append(Clause(Rule(f"{kind}.finite", "must be finite"), "v - v != 0", {}))


def _enum(result: FieldRules, kind: str, rules: Message, field: FieldDescriptor, where: str) -> None:
    parts = _parts(rules, where, {"defined_only", "not_in"})
    assert field.enum_type is not None
    values = field.enum_type.values_by_number
    if parts.get("defined_only"):
        rule = Rule("enum.defined_only", "must be a number that the enum defines")
        result.clauses.append(Clause(rule, "v not in DEFINED", {"DEFINED": frozenset(values)}))
    if parts.get("not_in"):
        names = ", ".join(values[number].name for number in parts["not_in"])
        rule = Rule("enum.not_in", f"must not be {names}")
        result.clauses.append(Clause(rule, "v in REFUSED", {"REFUSED": frozenset(parts["not_in"])}))


def _repeated(result: FieldRules, kind: str, rules: Message, field: FieldDescriptor, where: str) -> None:
    for name, value in _parts(rules, where, {"min_items", "max_items", "items"}).items():
        if name == "items":
            result.items = _read(value, field, f"{where}[]")
        else:
            _size(result, kind, name, value, "item")


def _map(result: FieldRules, kind: str, rules: Message, field: FieldDescriptor, where: str) -> None:
    assert field.message_type is not None
    entry = field.message_type.fields_by_name
    for name, value in _parts(rules, where, {"min_pairs", "max_pairs", "keys", "values"}).items():
        if name == "keys":
            result.keys = _read(value, entry["key"], f"{where}, keys")
        elif name == "values":
            result.items = _read(value, entry["value"], f"{where}, values")
        else:
            _size(result, kind, name, value, "pair")


def _size(result: FieldRules, kind: str, name: str, limit: int, unit: str) -> None:
    most = name.startswith("max")
    text = f"must have at {'most' if most else 'least'} {_count(limit, unit)}"
    result.clauses.append(Clause(Rule(f"{kind}.{name}", text), f"len(v) {'>' if most else '<'} {limit}", {}))


_KINDS: Final[dict[str, Callable[[FieldRules, str, Message, FieldDescriptor, str], None]]] = {
    "string": _string,
    "bytes": _bytes,
    "double": _number,
    **dict.fromkeys(_INTEGERS, _number),
    "enum": _enum,
    "repeated": _repeated,
    "map": _map,
}


def pattern(text: str, where: str = "a pattern") -> Callable[[str], Any]:
    """Compile a pattern of protovalidate (RE2) so that Python finds the same; call the result with the whole text.

    Python's ``$`` also matches before a newline at the end, and its ``\\s`` knows more kinds of space than RE2's five.
    Whatever else could differ is refused with `UnsupportedRule`: other escapes of letters, flags, look-arounds.
    """
    result = ""
    inside = False
    for token in re.findall(r"\\.|.", text, re.DOTALL):
        if token[0] == "\\" and token[1:].isalnum() and token not in (r"\t", r"\n", r"\f", r"\r", r"\v"):
            if token != r"\s" or not inside:
                raise UnsupportedRule(f"{where}: {token} in a pattern is not supported")
            token = r"\t\n\f\r "
        elif token == "[" and not inside:
            inside = True
        elif token == "]" and inside:
            inside = False
        elif token == "$" and not inside:
            token = r"\Z"
        result += token
    if "(?" in result or "[:" in result:
        raise UnsupportedRule(f"{where}: the pattern {text} is not supported")
    return re.compile(result).search


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"
