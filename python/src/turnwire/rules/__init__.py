"""The rules of single messages: everything that can be said of a message without knowing its session.

``check`` lists what is broken, ``require`` raises for it, ``references`` walks the ids of other things. The rules are
compiled from the shipped descriptors: protovalidate's under protovalidate's own rule ids, and Turnwire's own, whose
ids begin with ``turnwire.``; `docs/spec.md` states those in numbered sentences.

Rules apply to a message after the server has filled in ids and times.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest

from turnwire import errors, jsontext
from turnwire.errors import Violation
from turnwire.rules import compiler, own
from turnwire.rules.order import in_order
from turnwire.rules.own import CALL_ID, HELD_BY, STORED_ONLY, TIMESTAMP, UNKNOWN
from turnwire.rules.standard import UnsupportedRule
from turnwire.rules.walk import Reference, references

JSON_DEPTH: Final = jsontext.DEPTH
JSON_SHAPE: Final = jsontext.SHAPE
JSON_SYNTAX: Final = jsontext.SYNTAX

_checkers: dict[type[Message], compiler.Checker] = {}


def _checker(of: type[Message]) -> compiler.Checker:
    checker = compiler.checker(of.DESCRIPTOR.full_name) or _nothing
    _checkers[of] = checker
    return checker


def _nothing(message: Message, stored: bool | None, role: int, calls: list[str] | None) -> None:
    """The check of a message that has no rules."""


def check(
    message: Message, *, stored: bool | None = None, role: int = 0, keep_unknown: bool = False
) -> list[Violation]:
    """Return the broken rules of a message and of all that is inside it, in their order; empty if it is right.

    ``stored``: parts must have their ids (True), must have none (False), or either (None). What is inside a mutation
    must have none in any case. ``role``: the role of the message that holds the part which is checked, where the
    message itself does not tell (``PromptPart``, ``PartPut``, ``MoreParts``); 0, or a number that is no role: not
    known, and `HELD_BY` is skipped.
    ``keep_unknown``: let pass what a later schema has written (for reading), while what is merely unset is still told.

    Paths begin at the message: ``parts[1].tool.input_json``, ``labels["k"]``. Raises `UnsupportedRule` if the
    descriptors hold a rule that this version cannot check, and KeyError for a message of no package of the schema.
    """
    checker = _checkers.get(type(message)) or _checker(type(message))
    found = checker(message, stored, role if role in own.ROLES else 0, None)
    if found is None:
        return []
    if len(found) > 1:
        found = in_order(message.DESCRIPTOR.full_name, found)
    if keep_unknown:
        return [each for each in found if each.rule != UNKNOWN or each.text == own.ONEOF_UNSET.text]
    return found


def require(message: Message, path_prefix: str = "", *, stored: bool | None = None, role: int = 0) -> None:
    """Raise for the broken rules of a message, if there are any; the arguments are those of `check`.

    ``path_prefix`` is the path of the message in its request, for example ``entries[3].assistant``. Raises

    * `errors.UnknownToThisServer` if a required oneof is unset or an enum's number is not known;
    * else `errors.TransientPartHasId` if a part that a hook writes has an id;
    * else `errors.RuleViolation` with all violations;
    * but `errors.DuplicateCallId` if nothing is wrong except a call id that two parts have.
    """
    checker = _checkers.get(type(message)) or _checker(type(message))
    found = checker(message, stored, role if role in own.ROLES else 0, None)
    if found is not None:
        raise failure(in_order(message.DESCRIPTOR.full_name, found), path_prefix)


def failure(violations: list[Violation], path_prefix: str = "") -> errors.TurnwireError:
    """Make the exception for violations in their order, of which there is at least one, as `require` raises it."""
    found = [Violation(_join(path_prefix, path), rule, text) for path, rule, text in violations]
    by_rule = {each.rule: each for each in reversed(found)}
    if UNKNOWN in by_rule:
        first = by_rule[UNKNOWN]
        fields = [BadRequest.FieldViolation(field=path, description=text, reason=rule) for path, rule, text in found]
        return errors.UnknownToThisServer(first.text, path=first.path, detail=BadRequest(field_violations=fields))
    if STORED_ONLY in by_rule:
        return errors.TransientPartHasId(by_rule[STORED_ONLY].text, path=by_rule[STORED_ONLY].path)
    if by_rule.keys() == {CALL_ID}:
        return errors.DuplicateCallId(by_rule[CALL_ID].text, path=by_rule[CALL_ID].path)
    return errors.RuleViolation(found)


def _join(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix and path else prefix or path


__all__ = [
    "CALL_ID",
    "HELD_BY",
    "JSON_DEPTH",
    "JSON_SHAPE",
    "JSON_SYNTAX",
    "STORED_ONLY",
    "TIMESTAMP",
    "UNKNOWN",
    "Reference",
    "UnsupportedRule",
    "Violation",
    "check",
    "failure",
    "references",
    "require",
]
