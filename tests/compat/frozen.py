"""Reads what was frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnwire import v1
from turnwire.formats import native
from turnwire.formats.report import Report
from turnwire.log import raw

HERE = Path(__file__).parent
VERSIONS = sorted(path.parent for path in HERE.glob("*/manifest.json"))
SESSIONS = sorted(HERE.glob("*/sessions/*.tw"))


def manifest(version: Path) -> dict[str, Any]:
    return json.loads((version / "manifest.json").read_text())


def entries(version: Path) -> Iterator[bytes]:
    """The single entries of a version, serialized."""
    data = (version / "entries.binpb").read_bytes()
    at = 0
    while at < len(data):
        length, shift = 0, 0
        while True:
            byte = data[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        yield data[at : at + length]
        at += length


def log(path: Path) -> native.SessionLog:
    """The session of a file."""
    report = Report()
    (found,) = native.read(path, report)
    return found


def history(path: Path) -> list[Any]:
    """The messages that the log of a file folds to, as JSON."""
    lines = path.with_name(path.name.removesuffix(".tw") + ".history.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in lines.splitlines()]


def parsed(found: native.SessionLog) -> list[v1.Entry]:
    for data in found.entries:
        assert raw.entry(data)
    return [v1.Entry.FromString(data) for data in found.entries]
