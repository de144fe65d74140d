"""Vectors for every rule that the schema has on a field: a message that is right, and the same with that rule broken.

They are made from the descriptors, at each bound and just beyond it. What is expected is known from how the message was
broken, and protovalidate has to find the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message

from tests.breaking import breaks
from tests.conformance.making import bounds
from tests.conformance.making.encoding import check
from tests.conformance.making.trees import SourceError
from tests.conformance.runner.equality import message_class
from turnwire.conformance import v1 as conformance
from turnwire.rules import own, schema, standard
from turnwire.rules.compiler import path_key

#: The sentence that these vectors prove.
SENTENCE: Final = "TW-RUL-001"

#: A list of more items is only made too long: it takes as many bytes again to show that one less is right.
_MOST_ITEMS: Final = 10_000

_CANDIDATES: Final[dict[int, list[Any]]] = {
    FieldDescriptor.CPPTYPE_STRING: ["{}", "a1", ""],
    FieldDescriptor.CPPTYPE_INT32: [1, 100],
    FieldDescriptor.CPPTYPE_INT64: [1],
    FieldDescriptor.CPPTYPE_BOOL: [True],
    FieldDescriptor.CPPTYPE_DOUBLE: [0.5],
    FieldDescriptor.CPPTYPE_ENUM: [1],
}


def vectors() -> Iterator[conformance.Vector]:
    """The vectors, in the order of the schema."""
    names: set[str] = set()
    for file in schema.descriptor_set().file:
        if file.package != schema.PACKAGE:
            continue
        for declared in file.message_type:
            descriptor = schema.message(f"{schema.PACKAGE}.{declared.name}")
            for members in _choices(descriptor):
                for name, vector in _of(descriptor, members):
                    if name not in names:
                        names.add(name)
                        yield vector


def _of(descriptor: Descriptor, members: dict[str, str]) -> Iterator[tuple[str, conformance.Vector]]:
    name = "".join(f"/{each}" for each in [descriptor.name, *members.values()])
    yield name, _vector(name, _full(descriptor, members), [])
    seen: set[tuple[str, str]] = set()
    for at in range(len(_breaks(_full(descriptor, members)))):
        message = _full(descriptor, members)
        chosen = _breaks(message)[at]
        if "." in chosen.path or (chosen.path, chosen.rule) in seen:
            continue
        seen.add((chosen.path, chosen.rule))
        chosen.apply()
        field = chosen.path.partition("[")[0]
        inside = "" if field == chosen.path else "[]"
        name = f"/{descriptor.name}/{field}{inside}/{chosen.rule}"
        yield name, _vector(name, message, [(chosen.rule, chosen.path)])
    for field, _ in _full(descriptor, members).ListFields():
        yield from _bounds(descriptor, members, descriptor.fields_by_name[field.name])
    for field in filter(own.stored_only, descriptor.fields):
        yield from _bounds(descriptor, members, field)


def _bounds(
    descriptor: Descriptor, members: dict[str, str], field: FieldDescriptor
) -> Iterator[tuple[str, conformance.Vector]]:
    """A vector at each bound of a field, and one beyond it."""
    for bound in bounds.bounds(field):
        broken = _broken(field, bound)
        if broken is None or (bound.place == bounds.COUNT and not broken and bound.value > _MOST_ITEMS):
            continue
        message = _full(descriptor, members)
        path = _put(message, field, bound)
        name = "/" + "/".join(filter(None, [descriptor.name, field.name, bound.place, bound.declares, bound.says]))
        yield name, _vector(name, message, [(rule, path) for rule in broken])


def _broken(field: FieldDescriptor, bound: bounds.Bound) -> list[str] | None:
    """The rules that a value breaks: that of the bound, and others of the same value; None: it is not looked at."""
    rules = standard.field_rules(field)
    if bound.place in (bounds.ITEM, bounds.VALUE, bounds.KEY):
        rules = (rules.keys if bound.place == bounds.KEY else rules.items) or standard.FieldRules()
    if rules.skip_zero and not bound.value:
        return None
    if own.json_object(field) is not None and bound.value:
        return None  # It would have to be JSON as well; the right message has such a text.
    value = range(bound.value) if bound.place == bounds.COUNT else bound.value
    names = [each.rule.rule for each in rules.clauses if not standard.holds([each], value)]
    broken = [own.UNKNOWN if name == "enum.defined_only" else name for name in names]
    if bound.rule not in (broken or [""]):
        raise SourceError(f"{field.full_name}: {bound.declares} {bound.says} cannot be made by itself")
    return broken


def _put(message: Any, field: FieldDescriptor, bound: bounds.Bound) -> str:
    """Put the value of a bound into a message; the path of it."""
    if bound.place == bounds.FIELD:
        setattr(message, field.name, bound.value)
        return field.name
    message.ClearField(field.name)
    many = getattr(message, field.name)
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    match bound.place:
        case bounds.ITEM:
            many.append(bound.value)
            return f"{field.name}[0]"
        case bounds.VALUE:
            many["k"] = bound.value
            return f'{field.name}["k"]'
        case bounds.KEY:
            many[bound.value] = _plain(field)
            return f"{field.name}[{path_key(bound.value)}]"
        case _ if is_map:
            many.update({f"k{number}": _plain(field) for number in range(bound.value)})
        case _ if field.message_type is not None:
            many.extend(_least(field.message_type) for _ in range(bound.value))
        case _:
            many.extend([_plain(field)] * bound.value)
    return field.name


def _plain(field: FieldDescriptor) -> Any:
    """A value of a list or a map that breaks no rule: the zero of its type."""
    inner = field.message_type
    value: Any = (field if inner is None else inner.fields_by_name["value"]).default_value
    return "" if field.is_repeated and inner is None else value


def _breaks(message: Message) -> list[Any]:
    return list(breaks(message))


def _vector(name: str, message: Message, broken: list[tuple[str, str]]) -> conformance.Vector:
    data = message.SerializeToString(deterministic=True)
    full_name = message.DESCRIPTOR.full_name
    check(full_name, data, broken)
    violations = [conformance.Violation(rule=rule, path=path) for rule, path in broken]
    return conformance.Vector(
        name=f"rules/schema{name}",
        sentences=[SENTENCE],
        request=conformance.Request(rules=conformance.RulesRequest(message_type=full_name, message=data)),
        expected=conformance.Response(rules=conformance.RulesResponse(violations=violations)),
    )


def _choices(descriptor: Descriptor) -> list[dict[str, str]]:
    """Which members of oneofs to set: each member once."""
    oneofs = _oneofs(descriptor)
    longest = max((len(oneof.fields) for oneof in oneofs), default=1)
    return [{each.name: each.fields[min(at, len(each.fields) - 1)].name for each in oneofs} for at in range(longest)]


def _oneofs(descriptor: Descriptor) -> list[OneofDescriptor]:
    return [oneof for oneof in descriptor.oneofs if own.is_real(oneof)]


def _full(descriptor: Descriptor, members: dict[str, str]) -> Message:
    """A message with every field set to something legal, but for the ids of parts, and those of messages inside only
    where they have to be: they have vectors of their own."""
    left_out = {field.name for oneof in _oneofs(descriptor) for field in oneof.fields} - set(members.values())
    return _made(descriptor, [each for each in descriptor.fields if each.name not in left_out])


def _least(descriptor: Descriptor) -> Message:
    """A message with what it has to have. Of the kinds of part that is text, which any message may hold."""
    first = [each.fields[0] for each in _oneofs(descriptor) if standard.oneof_required(each)]
    members = {field.name for oneof in _oneofs(descriptor) for field in oneof.fields}
    return _made(
        descriptor, [*first, *(each for each in descriptor.fields if each.name not in members and _needed(each))]
    )


def _needed(field: FieldDescriptor) -> bool:
    rules = standard.field_rules(field)
    if field.is_repeated:
        return not standard.holds(rules.clauses, ())
    if rules.required or field.has_presence:
        return rules.required
    return not rules.skip_zero and not standard.holds(rules.clauses, field.default_value)


def _made(descriptor: Descriptor, fields: list[FieldDescriptor]) -> Message:
    made = message_class(descriptor.full_name)()
    for field in fields:
        if not own.stored_only(field):
            _set(made, field)
    return made


def _set(made: Any, field: FieldDescriptor) -> None:
    rules = standard.field_rules(field)
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        entry = inner.fields_by_name
        getattr(made, field.name)["k"] = _legal(entry["value"], rules.items or standard.FieldRules())
    elif inner is not None and inner.file.package != schema.PACKAGE:
        if inner.name == "FieldMask":
            made.update_mask.paths.append("title")
        else:
            getattr(made, field.name).FromSeconds(1_700_000_000)
    elif inner is not None:
        if field.is_repeated:
            getattr(made, field.name).append(_least(inner))
        else:
            getattr(made, field.name).CopyFrom(_least(inner))
    elif field.is_repeated:
        getattr(made, field.name).append(_legal(field, rules.items or standard.FieldRules()))
    else:
        setattr(made, field.name, _legal(field, rules))


def _legal(field: FieldDescriptor, rules: standard.FieldRules) -> Any:
    candidates = [b"\x01" * 32] if field.type == FieldDescriptor.TYPE_BYTES else _CANDIDATES[field.cpp_type]
    if field.type == FieldDescriptor.TYPE_STRING and own.json_object(field) is None:
        candidates = [each for each in candidates if each != "{}"]
    return next(value for value in candidates if standard.holds(rules.clauses, value))
