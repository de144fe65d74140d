"""Documents for the tests of the formats: real exports, made-up ones, and reading JSON with its number spelling."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from turnwire import v1
from turnwire.formats import History, Report, SessionImport, history
from turnwire.formats.opencode import OPENCODE, map_record
from turnwire.formats.opencode.export_file import parse

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "opencode"
CORPORA = ROOT.parent / "shared" / "corpora"
NO_CORPORA = "the corpora (../shared/corpora beside the project) are not on this machine"


def export_files() -> list[Path]:
    """Every export in the corpora."""
    return sorted(CORPORA.glob("opencode-*/*/exports/*.json*"))


def corpus_params() -> list[Any]:
    """One pytest parameter per export of the corpora, or one that skips."""
    files = export_files()
    if not files:
        return [pytest.param(None, marks=pytest.mark.skip(reason=NO_CORPORA))]
    return [pytest.param(file, id="/".join(file.relative_to(CORPORA).parts[:2]) + f"/{file.name}") for file in files]


def content(path: Path) -> str:
    """The text of a plain or gzipped file."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


class Spelled(str):
    """A number by its spelling; equal to no ordinary string."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spelled) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def exact(text: str) -> Any:
    """JSON as values, numbers by their spelling."""
    return json.loads(text, parse_int=Spelled, parse_float=Spelled, parse_constant=Spelled)


def take(text: str, report: Report | None = None) -> SessionImport:
    """Import the text of an export."""
    report = Report() if report is None else report
    record = parse(text, report)
    assert record is not None
    session = map_record(record, report)
    assert session is not None
    return session


def there_and_back(text: str) -> str:
    """Import the text of an export, and export it again."""
    return OPENCODE.export(history(take(text)))


def exported(text: str) -> Any:
    """The export of what a document becomes, which must be that document, numbers by their spelling."""
    back = there_and_back(text)
    assert exact(back) == exact(text)
    return json.loads(back)


def noted(report: Report) -> list[tuple[str, str, str]]:
    """The notes of a report: outcome, place and reason."""
    return [(note.outcome.value, note.path + note.pointer, note.reason) for note in report.notes]


SESSION = "ses_1"


def info(**more: Any) -> dict[str, Any]:
    """The ``info`` of a session."""
    return {"id": SESSION, "title": "T", "directory": "/tmp/x", "version": "1.18.33", "time": {"created": 1000}} | more


def user(name: str, *parts: dict[str, Any], at: int = 1000, **more: Any) -> dict[str, Any]:
    """A user message with its parts."""
    head = {
        "id": name,
        "sessionID": SESSION,
        "role": "user",
        "time": {"created": at},
        "agent": "build",
        "model": {"providerID": "fake", "modelID": "m"},
    }
    return {"info": head | more, "parts": [owned(part, name) for part in parts]}


def assistant(name: str, *parts: dict[str, Any], at: int = 1001, parent: str | None, **more: Any) -> dict[str, Any]:
    """An assistant message with its parts."""
    head = {
        "id": name,
        "sessionID": SESSION,
        "role": "assistant",
        "time": {"created": at, "completed": at + 1},
        "parentID": parent,
        "modelID": "m",
        "providerID": "fake",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/tmp/x", "root": "/tmp/x"},
        "cost": 0,
        "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
        "finish": "stop",
    }
    if parent is None:
        del head["parentID"]
    return {"info": head | more, "parts": [owned(part, name) for part in parts]}


def owned(part: dict[str, Any], message: str) -> dict[str, Any]:
    """A part with the ids that it repeats."""
    return {"sessionID": SESSION, "messageID": message} | part


def text(name: str, said: str = "hello", **more: Any) -> dict[str, Any]:
    """A text part."""
    return {"id": name, "type": "text", "text": said} | more


def tool(name: str, call: str = "call_1", **state: Any) -> dict[str, Any]:
    """A tool part, completed unless the state says otherwise."""
    done = {
        "status": "completed",
        "input": {"a": 1},
        "output": "done",
        "title": "t",
        "metadata": {},
        "time": {"start": 1, "end": 2},
    }
    return {"id": name, "type": "tool", "callID": call, "tool": "bash", "state": done | state}


def document(*messages: dict[str, Any], **more: Any) -> str:
    """The text of an export with these messages; ``more`` goes into the session's info."""
    return json.dumps({"info": info(**more), "messages": list(messages)}, indent=2)


def only_part(part: dict[str, Any], report: Report | None = None, *, role: str = "assistant") -> v1.PromptPart:
    """What a part becomes in a message of a role."""
    whole = document(user("m1", part if role == "user" else text("p0")), assistant("m2", part, parent="m1"))
    messages = history(take(whole, report)).messages
    return messages[0 if role == "user" else 1].parts[0]


def taken(*messages: dict[str, Any], report: Report | None = None, **more: Any) -> History:
    """The history that importing these messages leads to."""
    return history(take(document(*messages, **more), report))
