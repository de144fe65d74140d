"""Vectors of stored bytes that every later version, in every language, has to read: tests/compat/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from google.protobuf import json_format

from tests.compat import frozen
from tests.conformance.making import history, logs
from turnwire import v1
from turnwire.conformance import v1 as conformance

_ENTRY: Final = "turnwire.v1.Entry"


def vectors() -> Iterator[conformance.Vector]:
    """For each session its history, whole and half, and its chain; each single entry as JSON, and from JSON."""
    for path in frozen.SESSIONS:
        log = frozen.log(path)
        yield from _session(f"{path.parents[1].name}/{path.stem}", log.session.id, log.entries)
    for version in frozen.VERSIONS:
        for at, data in enumerate(frozen.entries(version)):
            yield from _entry(f"compat/{version.name}/entries/{at}", data)


def forms(name: str, log: Iterable[bytes]) -> Iterator[conformance.Vector]:
    """Each entry of a log as JSON, and from JSON."""
    for at, data in enumerate(log):
        yield from _entry(f"{name}/{at + 1}", data)


def _session(name: str, session_id: str, log: list[bytes]) -> Iterator[conformance.Vector]:
    for revision in (len(log) // 2, len(log)):
        fold = conformance.FoldRequest(entries=log, revision=revision)
        yield conformance.Vector(
            name=f"fold/compat/{name}/{revision}",
            sentences=["TW-LOG-001", "TW-ENC-010"],
            request=conformance.Request(fold=fold),
            expected=conformance.Response(fold=logs.history(log, revision, session_id)),
        )
    request, expected = history.log_digest(session_id, log)
    yield conformance.Vector(name=f"digest/compat/{name}", sentences=["TW-DIG-001"], request=request, expected=expected)


def _entry(name: str, data: bytes) -> Iterator[conformance.Vector]:
    entry = v1.Entry.FromString(data)
    # Members sorted, for the order of a map would be another in each process.
    text = json_format.MessageToJson(entry, indent=None, ensure_ascii=False, sort_keys=True)
    yield _encoding(f"{name}/to-json", conformance.EncodingRequest(message_type=_ENTRY, binary=data), text)
    yield _encoding(f"{name}/from-json", conformance.EncodingRequest(message_type=_ENTRY, json=text), data)


def _encoding(name: str, request: conformance.EncodingRequest, result: str | bytes) -> conformance.Vector:
    expected = conformance.Response()
    if isinstance(result, str):
        request.output = conformance.Encoding.ENCODING_JSON
        expected.encoding.json = result
    else:
        request.output = conformance.Encoding.ENCODING_BINARY
        expected.encoding.binary = result
    return conformance.Vector(
        name=f"encoding/{name}",
        sentences=["TW-ENC-001", "TW-ENC-002"],
        request=conformance.Request(encoding=request),
        expected=expected,
    )
