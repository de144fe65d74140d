"""What counts as equal: an expected answer against the one that came, by tests/conformance/README.md."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from turnwire import v1
from turnwire.conformance import v1 as conformance


def difference(
    request: conformance.Request, expected: conformance.Response, answer: conformance.Response
) -> str | None:
    """What is different about an answer, in a few lines; None: it is right."""
    wanted, came = expected.WhichOneof("response"), answer.WhichOneof("response")
    if came == "refused" and wanted == "refused":
        return _refusal(expected.refused, answer.refused)
    if wanted != came:
        return f"expected {_shown(expected)}\nbut got {_shown(answer)}"
    match wanted:
        case "encoding":
            return _encoding(request.encoding.message_type, expected.encoding, answer.encoding)
        case "rules":
            return _violations(expected.rules, answer.rules)
        case "digest":
            return _digests(list(expected.digest.digests), list(answer.digest.digests))
        case "assembly" | "mutation":
            right, found = getattr(expected, wanted), getattr(answer, wanted)
            return _messages(right, found)
        case "service":
            return _service(expected.service, answer.service)
        case _:
            return _messages(expected, answer)


def message_class(full_name: str) -> type[Message]:
    """The class of a message of ``turnwire.v1``. Raises KeyError."""
    found = getattr(v1, full_name.removeprefix("turnwire.v1."), None)
    if not isinstance(found, type) or not issubclass(found, Message) or found.DESCRIPTOR.full_name != full_name:
        raise KeyError(full_name)
    return found


def _messages(expected: Message, answer: Message) -> str | None:
    if expected.SerializeToString(deterministic=True) == answer.SerializeToString(deterministic=True):
        return None
    right, found = str(expected).splitlines(), str(answer).splitlines()
    at = next((at for at, (a, b) in enumerate(zip(right, found, strict=False)) if a != b), min(len(right), len(found)))
    if at == len(right) == len(found):
        return "unknown fields differ"
    first = max(at - 3, 0)
    return "\n".join(["expected, from where it differs:", *right[first : at + 4], "got:", *found[first : at + 4]])


def _encoding(
    full_name: str, expected: conformance.EncodingResponse, answer: conformance.EncodingResponse
) -> str | None:
    wanted, came = expected.WhichOneof("output"), answer.WhichOneof("output")
    if wanted != came:
        return f"expected {wanted}, got {came or 'nothing'}"
    if wanted == "json":
        try:
            found = json.loads(answer.json, object_pairs_hook=_once)
        except ValueError as error:
            return f"no JSON: {error}: {answer.json[:200]}"
        return None if _same(json.loads(expected.json), found) else f"expected {expected.json}\ngot {answer.json}"
    make = message_class(full_name)
    try:
        found = make.FromString(answer.binary)
    except DecodeError:
        return f"bytes that are no {full_name}: {answer.binary[:100].hex(' ')}"
    different = _messages(make.FromString(expected.binary), found)
    if different is None and len(answer.binary) != found.ByteSize():
        # The same content has the same length in any order, unless something is written that needs not be.
        return f"{len(answer.binary)} bytes where {found.ByteSize()} say the same: {answer.binary[:100].hex(' ')}"
    return different


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of its members. Raises ValueError if one stands twice: readers differ in which of them counts."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a member stands twice")
    return made


def _violations(expected: conformance.RulesResponse, answer: conformance.RulesResponse) -> str | None:
    right = Counter((each.rule, each.path) for each in expected.violations)
    found = Counter((each.rule, each.path) for each in answer.violations)
    if right == found:
        return None
    lines = [f"not found: {rule} at {path}" for rule, path in sorted((right - found).elements())]
    return "\n".join(lines + [f"found: {rule} at {path}" for rule, path in sorted((found - right).elements())])


def _refusal(expected: conformance.Refusal, answer: conformance.Refusal) -> str | None:
    if expected.reason != answer.reason or expected.path != answer.path:
        return f"expected {_reason(expected)}, got {_reason(answer)}"
    return None


def _digests(expected: list[bytes], answer: list[bytes]) -> str | None:
    if expected == answer:
        return None
    if len(expected) != len(answer):
        return f"expected {len(expected)} digests, got {len(answer)}"
    at = next(at for at, (a, b) in enumerate(zip(expected, answer, strict=True)) if a != b)
    return f"digest {at}: expected {expected[at].hex()}, got {answer[at].hex()}"


def _service(expected: conformance.ServiceResponse, answer: conformance.ServiceResponse) -> str | None:
    if len(expected.results) != len(answer.results):
        return f"expected {len(expected.results)} results, got {len(answer.results)}"
    for at, (right, found) in enumerate(zip(expected.results, answer.results, strict=True)):
        wanted, came = right.WhichOneof("outcome"), found.WhichOneof("outcome")
        if wanted != came:
            return f"call {at}: expected {_shown(right)}\nbut got {_shown(found)}"
        if wanted == "refused":
            different = _refusal(right.refused, found.refused)
        else:
            different = _missing(json.loads(right.reply_json), json.loads(found.reply_json), "reply")
        if different is not None:
            return f"call {at}: {different}"
    return None


def _missing(expected: Any, answer: Any, path: str) -> str | None:
    """What of an expectation an answer does not hold."""
    if isinstance(expected, dict) and isinstance(answer, dict):
        for key, value in expected.items():
            if value is None and key in answer:
                return f"{path}.{key} is there"
            if value is None:
                continue
            if key not in answer:
                return f"{path}.{key} is not there"
            if (different := _missing(value, answer[key], f"{path}.{key}")) is not None:
                return different
        return None
    if isinstance(expected, list) and isinstance(answer, list):
        if len(expected) != len(answer):
            return f"{path} has {len(answer)} items, not {len(expected)}"
        pairs = enumerate(zip(expected, answer, strict=True))
        return next((text for at, (a, b) in pairs if (text := _missing(a, b, f"{path}[{at}]")) is not None), None)
    return None if _same(expected, answer) else f"{path} is {answer!r}, not {expected!r}"


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON values: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _reason(refusal: conformance.Refusal) -> str:
    known = v1.Reason.DESCRIPTOR.values_by_number.get(refusal.reason)
    name = str(refusal.reason) if known is None else known.name.removeprefix("REASON_")
    return f"{name} at {refusal.path}" if refusal.path else name


def _shown(message: conformance.Response | conformance.CallResult) -> str:
    kind = (
        message.WhichOneof("response") if isinstance(message, conformance.Response) else message.WhichOneof("outcome")
    )
    if kind == "refused":
        return f"a refusal: {_reason(message.refused)}"
    if kind == "error":
        return f"an error: {message.error}" if isinstance(message, conformance.Response) else "an error"
    if kind is None:
        return "nothing"
    text = json_format.MessageToJson(message, indent=None)
    return text if len(text) <= 400 else f"{text[:400]}…"
