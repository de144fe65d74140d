"""Makes one Python function of all rules of a message type.

Looking rules up at each message would cost many times the rules themselves, so the descriptors are turned into
source once, as `dataclasses` does it: attribute reads and comparisons, and a call per message inside. A type without
any rule, nor one inside it, has no function and is never entered.

A function takes the message, whether it is stored (``None``: not known), the role of the message that holds it (0: not
known), and a list that gets the call ids of tool parts (``None``: nobody asks). It returns the violations, with paths
from this message on, or ``None``. Paths are put together only when there is something to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from turnwire import jsontext
from turnwire.errors import Violation
from turnwire.rules import own, schema, standard
from turnwire.rules.standard import FieldRules, Rule, UnsupportedRule

Violations = list[Violation] | None
Checker = Callable[[Any, bool | None, int, list[str] | None], Violations]

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_KEY_SHOWN: Final = 64

_checkers: dict[str, Checker | None] = {}


def checker(full_name: str) -> Checker | None:
    """Return the function for a message type by its full name; ``None``: it has no rules. Compiled at first use."""
    if full_name not in _checkers:
        # While a type is being compiled, itself inside it goes the long way.
        _checkers[full_name] = partial(_later, full_name)
        try:
            _checkers[full_name] = _Source(schema.message(full_name)).compile()
        except BaseException:
            del _checkers[full_name]
            raise
    return _checkers[full_name]


def _later(full_name: str, message: Any, stored: bool | None, role: int, calls: list[str] | None) -> Violations:
    check = _checkers[full_name]
    return check(message, stored, role, calls) if check is not None else None


def path_key(key: object) -> str:
    """Write a map's key for a path: a text in quotes and cut to 64 characters, anything else as it is."""
    if not isinstance(key, str):
        return json.dumps(key)
    return json.dumps(key if len(key) <= _KEY_SHOWN else key[:_KEY_SHOWN] + "…", ensure_ascii=False)


def _one(found: Violations, path: str, rule: Rule | jsontext.JsonFault) -> list[Violation]:
    found = [] if found is None else found
    found.append(Violation(path, rule.rule, rule.text))
    return found


def _nest(found: Violations, prefix: str, inner: list[Violation]) -> list[Violation]:
    found = [] if found is None else found
    found += [Violation(f"{prefix}.{path}", rule, text) for path, rule, text in inner]
    return found


class _Source:
    """The source of one function. Methods return lines; what they name besides the function's arguments, ``found`` and
    variables of their own is in ``names``."""

    def __init__(self, message: Descriptor) -> None:
        self.message = message
        self.names: dict[str, Any] = {"one": _one, "nest": _nest, "key": path_key}
        # The message types whose lines are being written into this function, the outermost first.
        self.open: list[str] = []

    def compile(self) -> Checker | None:
        """Make the function; ``None`` if there is nothing to check. Raises `UnsupportedRule`."""
        lines = self.content(self.message, "m", "")
        if not lines:
            return None
        body = ["found = None", *self.context(), *lines, "return found"]
        source = "\n".join(["def check(m, stored, role, calls):", *_indented(body)])
        exec(compile(source, f"<rules of {self.message.full_name}>", "exec"), self.names)
        result: Checker = self.names["check"]
        return result

    def constant(self, value: Any) -> str:
        """Give a value a name that the source can use."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def context(self) -> list[str]:
        """Lines that set what is known about all that is inside the function's message."""
        lines: list[str] = []
        role = own.role_source(self.message)
        if isinstance(role, int):
            lines.append(f"role = {role}")
        elif role is not None:
            lines += [f"role = m.{role}", f"if role not in {self.constant(frozenset(own.ROLES))}: role = 0"]
        if role is not None:
            lines.append("calls = []")
        if own.transient(self.message):
            lines.append("stored = False")
        return lines

    def content(self, message: Descriptor, at: str, prefix: str) -> list[str]:
        """Lines about all fields of a message; ``at`` is its variable, ``prefix`` its path with a closing dot."""
        standard.refuse_message_rules(message.full_name)
        self.open.append(message.full_name)
        oneofs = [oneof for oneof in message.oneofs if own.is_real(oneof)]
        members = {field.name for oneof in oneofs for field in oneof.fields}
        lines: list[str] = []
        for field in message.fields:
            if field.name not in members:
                lines += self.many(field, at, prefix) if field.is_repeated else self.single(field, at, prefix)
        for oneof in oneofs:
            lines += self.oneof(oneof, at, prefix)
        self.open.pop()
        return lines

    def single(self, field: FieldDescriptor, at: str, prefix: str) -> list[str]:
        """Lines about a field that is neither repeated nor in a oneof."""
        rules = standard.field_rules(field)
        value, path = f"{at}.{field.name}", prefix + field.name
        has = f"{at}.HasField({field.name!r})" if field.has_presence else value
        unset = self.violation(repr(path), standard.REQUIRED) if rules.required else []
        if field.message_type is not None:
            return _branch(has, self.inside(field.message_type, value, path), unset)
        lines = self.value(field, rules, repr(path))
        if own.stored_only(field):
            lines += ["if v:", "    if stored is False:", *_indented(self.violation(repr(path), own.ID_TRANSIENT), 2)]
            lines += ["elif stored:", *_indented(self.violation(repr(path), own.ID_MISSING))]
        if field.full_name == own.CALL_ID_FIELD:
            lines.append("if calls is not None: calls.append(v)")
        if lines:
            lines = [f"v = {value}", *lines]
        # An optional field that is unset reads as its default, which mostly breaks nothing.
        if not rules.required and (not field.has_presence or standard.holds(rules.clauses, field.default_value)):
            return lines
        return _branch(has, lines, unset)

    def inside(self, message: Descriptor, value: str, path: str) -> list[str]:
        """Lines about a message that is there and neither in a list nor in a oneof; ``value`` is an expression."""
        if message.full_name == _TIMESTAMP:
            good = f"{own.FIRST_SECOND} <= v.seconds <= {own.LAST_SECOND} and 0 <= v.nanos <= 999_999_999"
            return [f"v = {value}", f"if not ({good}):", *_indented(self.violation(repr(path), own.WRONG_TIME))]
        if message.full_name in self.open or own.transient(message) or own.role_source(message) is not None:
            return self.call(message, value, repr(path))
        # Written in place: a call costs more than the few comparisons that most messages need.
        at = f"m{len(self.open)}"
        lines = self.content(message, at, f"{path}.")
        return [f"{at} = {value}", *lines] if lines else []

    def call(self, message: Descriptor, value: str, path: str) -> list[str]:
        """Lines that leave a message to the function of its type; ``value`` and ``path`` are expressions."""
        if message.full_name == _TIMESTAMP:
            raise UnsupportedRule(f"{self.message.full_name}: a time in a list, a map or a oneof is not supported")
        check = checker(message.full_name)
        if check is None:
            return []
        call = f"{self.constant(check)}({value}, stored, role, calls)"
        return [f"v = {call}", f"if v is not None: found = nest(found, {path}, v)"]

    def value(self, field: FieldDescriptor, rules: FieldRules, path: str) -> list[str]:
        """Lines that test ``v``, which is no message; ``path`` is an expression."""
        lines: list[str] = []
        for clause in rules.clauses:
            broken = clause.broken
            for name, constant in clause.constants.items():
                broken = broken.replace(name, self.constant(constant))
            rule = own.ENUM_UNKNOWN if clause.rule.rule == "enum.defined_only" else clause.rule
            lines += [f"if {broken}:", *_indented(self.violation(path, rule))]
        if rules.skip_zero and lines:
            lines = ["if v:", *_indented(lines)]
        is_object = own.json_object(field)
        if is_object is not None:
            scan = self.constant(jsontext.check_unicode)
            lines += ["if v:", f"    fault = {scan}(v, {is_object})"]
            lines += [f"    if fault is not None: found = one(found, {path}, fault)"]
        return lines

    def violation(self, path: str, rule: Rule) -> list[str]:
        return [f"found = one(found, {path}, {self.constant(rule)})"]

    def many(self, field: FieldDescriptor, at: str, prefix: str) -> list[str]:
        """Lines about a repeated field or a map."""
        rules = standard.field_rules(field)
        path = prefix + field.name
        is_map = False
        element, key = field, field
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            is_map = True
            element, key = (field.message_type.fields_by_name[name] for name in ("value", "key"))
        place = f"f'{path}[{{key(k)}}]'" if is_map else f"f'{path}[{{k}}]'"
        if element.message_type is not None:
            each = self.call(element.message_type, "v", place)
        else:
            each = self.value(element, rules.items, place) if rules.items is not None else []
        if is_map:
            each = ["v = items[k]", *each] if each else []
            if rules.keys is not None:
                each = ["v = k", *self.value(key, rules.keys, place), *each]
        full = ["for k in items:" if is_map else "for k, v in enumerate(items):", *_indented(each)] if each else []
        if field.name == "parts" and at == "m" and own.role_source(self.message) is not None:
            full += ["if len(calls) > 1 and len(set(calls)) < len(calls):"]
            full += [f"    for k in {self.constant(own.repeated_calls)}(items):"]
            full += _indented(self.violation("f'parts[{k}].tool.call_id'", own.SAME_CALL), 2)
        sizes = self.value(field, FieldRules(clauses=rules.clauses), repr(path))
        empty = self.violation(repr(path), standard.REQUIRED) if rules.required else []
        if standard.holds(rules.clauses, ()):
            full, sizes = [*sizes, *full], []
        lines = [*sizes, *_branch("items", full, empty)]
        return [f"v = items = {at}.{field.name}", *lines] if lines else []

    def oneof(self, oneof: OneofDescriptor, at: str, prefix: str) -> list[str]:
        """Lines about the member of a oneof that is set."""
        path = prefix + oneof.name
        lines: list[str] = []
        if standard.oneof_required(oneof):
            lines += ["if kind is None:", f"    found = one(found, {path!r}, {self.constant(own.unset_oneof)}({at}))"]
        kinds: dict[str, tuple[Checker | None, tuple[int, ...]]] = {}
        for field in oneof.fields:
            roles = own.held_by(field)
            if field.message_type is not None:
                if field.message_type.full_name == _TIMESTAMP:
                    raise UnsupportedRule(f"{field.full_name}: a time in a oneof is not supported")
                check = checker(field.message_type.full_name)
                if check is not None or roles:
                    kinds[field.name] = (check, roles)
            else:
                content = self.value(field, standard.field_rules(field), repr(prefix + field.name))
                if content:
                    lines += [f"if kind == {field.name!r}:", *_indented([f"v = {at}.{field.name}", *content])]
        if kinds:
            table = self.constant(kinds)
            name = f"{prefix!r} + kind" if prefix else "kind"
            lines += [f"if kind in {table}:", f"    check, roles = {table}[kind]"]
            if any(roles for _, roles in kinds.values()):
                wrong = self.constant(own.wrong_holder)
                lines += ["    if role and role not in roles:", f"        found = one(found, {name}, {wrong}(roles))"]
            lines += ["    if check is not None:", f"        v = check(getattr({at}, kind), stored, role, calls)"]
            lines += [f"        if v is not None: found = nest(found, {name}, v)"]
        return [f"kind = {at}.WhichOneof({oneof.name!r})", *lines] if lines else []


def _indented(lines: list[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


def _branch(condition: str, then: list[str], otherwise: list[str]) -> list[str]:
    if then and otherwise:
        return [f"if {condition}:", *_indented(then), "else:", *_indented(otherwise)]
    if then:
        return [f"if {condition}:", *_indented(then)]
    return [f"if not {condition}:", *_indented(otherwise)] if otherwise else []
