"""Vectors of encoding and of rules."""

from __future__ import annotations

import json
from typing import Any

import protovalidate

from tests.conformance.making import trees
from tests.conformance.runner.equality import message_class
from turnwire.conformance import v1 as conformance
from turnwire.rules import schema
from turnwire.rules.compiler import path_key

_IDS = {"stored": "PART_IDS_STORED", "transient": "PART_IDS_TRANSIENT"}
_VALIDATOR = protovalidate.Validator()
#: What Turnwire calls otherwise, or judges beside protovalidate.
_OWN = "turnwire."


def encoding(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``type``; ``hex``, ``json`` (a text or a tree) or ``message`` (with ``and``: bytes behind it) as input; then what
    comes out: ``to_hex``, ``to_json``, ``to_message``, or ``refused: true``."""
    full_name = f"turnwire.v1.{tree['type']}"
    make = message_class(full_name)
    request = conformance.EncodingRequest(message_type=full_name)
    if "json" in tree:
        request.json = _text(tree["json"])
    else:
        given = (
            tree["hex"] if "hex" in tree else trees.message(make, tree["message"]).SerializeToString(deterministic=True)
        )
        request.binary = given + tree.get("and", b"")
    expected = conformance.Response()
    to_json = "to_json" in tree or tree.get("writes") == "json"
    request.output = conformance.Encoding.ENCODING_JSON if to_json else conformance.Encoding.ENCODING_BINARY
    if tree.get("refused"):
        expected.refused.SetInParent()
    elif "to_json" in tree:
        expected.encoding.json = _text(tree["to_json"])
    elif "to_hex" in tree:
        expected.encoding.binary = tree["to_hex"]
    else:
        expected.encoding.binary = trees.message(make, tree["to_message"]).SerializeToString(deterministic=True)
    return conformance.Request(encoding=request), expected


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def rules(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``type``; ``message`` or ``hex``; ``ids``: stored or transient; ``role``: user, assistant, a number;
    ``broken``: pairs of rule and path. Protovalidate has to find the same, as far as it can say it."""
    full_name = f"turnwire.v1.{tree['type']}"
    data = (
        tree["hex"]
        if "hex" in tree
        else trees.message(message_class(full_name), tree["message"]).SerializeToString(deterministic=True)
    )
    data += tree.get("and", b"")
    request = conformance.RulesRequest(message_type=full_name, message=data)
    if "ids" in tree:
        request.part_ids = conformance.PartIds.Value(_IDS[tree["ids"]])
    if "role" in tree:
        request.role = trees.ROLES.get(tree["role"], tree["role"])
    broken = [(rule, path) for rule, path in tree["broken"]]
    check(full_name, data, broken, ids_known="ids" in tree)
    violations = [conformance.Violation(rule=rule, path=path) for rule, path in broken]
    expected = conformance.Response(rules=conformance.RulesResponse(violations=violations))
    return conformance.Request(rules=request), expected


def check(full_name: str, data: bytes, broken: list[tuple[str, str]], *, ids_known: bool = False) -> None:
    """Hold what a vector expects against protovalidate. Raises SourceError."""
    message = schema.message_class(full_name).FromString(data)
    found: list[tuple[str, str]] = []
    for violation in _VALIDATOR.collect_violations(message):
        proto: Any = violation.proto
        path = _path(proto.field)
        oneof = proto.rule_id == "required" and not proto.field.elements[-1].field_number
        renamed = proto.rule_id == "enum.defined_only" or oneof
        found.append(("turnwire.unknown" if renamed else proto.rule_id, path))
    known = [
        (rule, path)
        for rule, path in broken
        if (not rule.startswith(_OWN) or rule == "turnwire.unknown")
        and not (rule == "required" and ids_known and path.rpartition(".")[2] == "id")
    ]
    if sorted(found) != sorted(known):
        raise trees.SourceError(f"protovalidate finds {sorted(found)}, the source says {sorted(known)}")


def _path(field: Any) -> str:
    text = ""
    for element in field.elements:
        text += f".{element.field_name}" if text else element.field_name
        if element.subscript is not None:
            text += f"[{path_key(element.subscript.value)}]"
    return text
