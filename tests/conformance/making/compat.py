"""Vectors of stored bytes that every later version, in every language, has to read: tests/compat/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf import json_format

from tests.conformance.making import history, logs
from turnwire import v1
from turnwire.conformance import v1 as conformance
from turnwire.formats import Report, native

COMPAT: Final = Path(__file__).parents[2] / "compat"
_ENTRY: Final = "turnwire.v1.Entry"


def vectors() -> Iterator[conformance.Vector]:
    """For each session of a file: its history, whole and half, its chain, one entry of each kind as JSON and back."""
    for path in sorted(COMPAT.glob("*/*.turnwire")):
        for log in native.read(path, Report()):
            name = f"{path.parent.name}/{path.stem}/{log.session.id}"
            yield from _session(name, log.session.id, log.entries)


def _session(name: str, session_id: str, log: list[bytes]) -> Iterator[conformance.Vector]:
    for revision in (len(log) // 2, len(log)):
        request = conformance.FoldRequest(entries=log, revision=revision)
        yield conformance.Vector(
            name=f"fold/compat/{name}/{revision}",
            sentences=["TW-LOG-001", "TW-ENC-010"],
            request=conformance.Request(fold=request),
            expected=conformance.Response(fold=logs.history(log, revision, session_id)),
        )
    request_, expected = history.log_digest(session_id, log)
    yield conformance.Vector(
        name=f"digest/compat/{name}", sentences=["TW-DIG-001"], request=request_, expected=expected
    )
    kinds: set[str] = set()
    for data in log:
        entry = v1.Entry.FromString(data)
        kind = entry.WhichOneof("payload") or ""
        if kind in kinds:
            continue
        kinds.add(kind)
        text = json_format.MessageToJson(entry, indent=None, ensure_ascii=False, sort_keys=True)
        yield _encoding(f"{name}/{kind}/to-json", conformance.EncodingRequest(message_type=_ENTRY, binary=data), text)
        yield _encoding(f"{name}/{kind}/from-json", conformance.EncodingRequest(message_type=_ENTRY, json=text), data)


def _encoding(name: str, request: conformance.EncodingRequest, result: str | bytes) -> conformance.Vector:
    expected = conformance.Response()
    if isinstance(result, str):
        request.output = conformance.Encoding.ENCODING_JSON
        expected.encoding.json = result
    else:
        request.output = conformance.Encoding.ENCODING_BINARY
        expected.encoding.binary = result
    return conformance.Vector(
        name=f"encoding/compat/{name}",
        sentences=["TW-ENC-001", "TW-ENC-002"],
        request=conformance.Request(encoding=request),
        expected=expected,
    )
