"""The recorded requests of the real opencode (``../shared/oracle``), and the sessions that they go on with.

A case is one file of the oracle. `history` rebuilds its session as the program would export it (the rows of the
database, the rows that changed before the request, the message that was appended) and imports that.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from turnwire import v1
from turnwire.formats import base, jsonlit
from turnwire.formats.jsonlit import Node
from turnwire.formats.opencode import export_file, map_record
from turnwire.formats.report import Report
from turnwire.prompt import History, assemble, mutate, text_part
from turnwire.rendering import Capabilities, Dialect, Options, Rendering, render

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
ORACLE = SHARED / "oracle"
CORPORA = SHARED / "corpora"

MISSING = f"the recorded requests are not there ({ORACLE.name} beside the repository's folder)"

DIALECTS = {
    "openai-chat": Dialect.OPENAI_CHAT,
    "openai-responses": Dialect.OPENAI_RESPONSES,
    "anthropic-messages": Dialect.ANTHROPIC_MESSAGES,
    "google": Dialect.GOOGLE_GEMINI,
}
MEMBER = {
    Dialect.OPENAI_CHAT: "messages",
    Dialect.OPENAI_RESPONSES: "input",
    Dialect.ANTHROPIC_MESSAGES: "messages",
    Dialect.GOOGLE_GEMINI: "contents",
}
# What the models of the recording take, by its configuration.
_IMAGES_ONLY = Capabilities(images=True, pdf=False)
_MODELS = {
    "fake-model": Capabilities(images=True, pdf=True),
    "text-model": Capabilities(images=False, pdf=False),
    "tiny-model": Capabilities(images=False, pdf=False),
    "fake-claude": _IMAGES_ONLY,
    "gpt-5-fake": _IMAGES_ONLY,
    "fake-gem": _IMAGES_ONLY,
    "inter-model": Capabilities(reasoning_field="reasoning_content"),
}


@dataclass(frozen=True)
class Case:
    """One recorded request."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def data(self) -> dict[str, Any]:
        return _data(self.path)

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.data["dialect"]]

    @property
    def model(self) -> v1.ModelRef:
        return v1.ModelRef(provider_id=self.data["provider_id"], model_id=self.data["model_id"])

    @property
    def quirk(self) -> bool:
        return bool(self.data.get("extra_config"))


def cases() -> list[Case]:
    """All cases; none if the folder is not there."""
    return [Case(path) for path in sorted(ORACLE.glob("out/*/*.json"))]


@cache
def _data(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


# --- the session -----------------------------------------------------------------------------------------------------


@dataclass
class _Rows:
    """The rows of a session: ids to JSON texts, with what they are ordered by."""

    messages: dict[str, tuple[int, str]]
    parts: dict[str, tuple[str, str]]  # part id -> message id, text


@cache
def _database(path: Path) -> sqlite3.Connection:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    # Bytes 18 and 19 say that there is a write-ahead log; there is none, and in memory there can be none.
    data = data[:18] + b"\1\1" + data[20:]
    connection = sqlite3.connect(":memory:")
    connection.deserialize(data)
    return connection


def _read_rows(case: Case) -> _Rows:
    source, session = case.data["source"], case.data["session_id"]
    if "/cli-providers/" in source:
        return _read_export(session)
    database = _database((CORPORA / source.removeprefix("out/")).resolve())
    rows = _Rows({}, {})
    for name, created, data in database.execute(
        "select id, time_created, data from message where session_id = ?", (session,)
    ):
        rows.messages[name] = (created, _with(data, id=name, sessionID=session))
    for name, message, data in database.execute(
        "select id, message_id, data from part where session_id = ?", (session,)
    ):
        rows.parts[name] = (message, _with(data, id=name, sessionID=session, messageID=message))
    return rows


def _read_export(session: str) -> _Rows:
    (path,) = (CORPORA / "opencode-1.18.33/cli-providers/exports").glob(f"*{session}*")
    text = unpacked(path)
    rows = _Rows({}, {})
    for message in Node.parse(text).find(("messages",)).items():
        members = message.members()
        info = json.loads(members["info"].raw)
        rows.messages[info["id"]] = (info["time"]["created"], members["info"].raw)
        for part in members["parts"].items():
            rows.parts[json.loads(part.raw)["id"]] = (info["id"], part.raw)
    return rows


def _with(document: str, **members: str) -> str:
    """The text of an object with more members at its end."""
    more = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members.items())
    rest = document.rstrip()[:-1]
    return f"{rest},{more}}}" if rest.strip() != "{" else f"{{{more}}}"


def _apply(rows: _Rows, change: Node) -> None:
    row = json.loads(change.raw)
    table, name, kind = row["table"], row["id"], row["change"]
    if table not in ("message", "part"):
        return
    if kind == "removed":
        (rows.messages if table == "message" else rows.parts).pop(name)
        return
    assert kind == "added", (table, kind)
    raw = change.find(("row",)).raw
    if table == "message":
        rows.messages[name] = (row["row"]["time"]["created"], raw)
    else:
        rows.parts[name] = (row["row"]["messageID"], raw)


def export_text(case: Case) -> str:
    """The session as the program would export it right before the request."""
    rows = _read_rows(case)
    node = Node.parse(case.path.read_text())
    members = node.members()
    for change in members["other_rows"].items():
        _apply(rows, change)
    appended = members["appended"].members()
    info = json.loads(appended["info"].raw)
    rows.messages[info["id"]] = (info["time"]["created"], appended["info"].raw)
    for part in appended["parts"].items():
        rows.parts[json.loads(part.raw)["id"]] = (info["id"], part.raw)
    by_message: dict[str, list[str]] = {}
    for _, (message, text) in sorted(rows.parts.items()):
        by_message.setdefault(message, []).append(text)
    ordered = sorted(rows.messages, key=lambda name: (rows.messages[name][0], name))
    messages = ",".join(
        f'{{"info":{rows.messages[name][1]},"parts":[{",".join(by_message.get(name, []))}]}}' for name in ordered
    )
    session = json.dumps({"id": case.data["session_id"], "version": case.data["version"], "time": {"created": 1}})
    return f'{{"info":{session},"messages":[{messages}]}}'


def imported(export: str) -> base.History:
    """What Turnwire has after importing a session's export."""
    report = Report()
    record = export_file.parse(export, report)
    assert record is not None
    session = map_record(record, report)
    assert session is not None
    return base.history(session)


def history(case: Case) -> History:
    """The session as Turnwire has it after import."""
    folded = imported(export_text(case))
    return History(folded.messages, turns=folded.turns.values())


def unpacked(path: Path) -> str:
    """The text of a file, gzipped or not."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


# --- the request -----------------------------------------------------------------------------------------------------


def reminders(case: Case) -> Iterator[v1.Mutation]:
    """What the program added at request time, as mutations."""
    for one in case.data["transient"]:
        if one["kind"] == "request-time":
            found: Any = case.data["request"]
            for step in one["pointer"].split("/")[1:]:
                found = found[int(step) if isinstance(found, list) else step]
            yield v1.Mutation(append_to=v1.AppendTo(role=v1.Role.ROLE_USER, parts=[text_part(found, synthetic=True)]))


def rendered(case: Case) -> Rendering:
    """What we send for the case."""
    past = history(case)
    turn_id = past.messages[-1].turn_id
    prompt = assemble(past, turn_id, "opencode")
    items = mutate(prompt.items, reminders(case), prompt)
    options = Options(capabilities=_MODELS.get(case.data["model_id"], Capabilities()))
    return render(items, case.dialect, case.model, options=options, profile="opencode")


def expected(case: Case) -> list[str]:
    """The entries that the program sent, without the system's, as it spelled them."""
    entries = Node.parse(case.path.read_text()).find(("request", MEMBER[case.dialect])).items()
    values = [entry.value for entry in entries]
    return [jsonlit.dumps(value) for value in values if _role(value) not in ("system", "developer")]


def actual(case: Case) -> list[str]:
    """The entries that we send, byte for byte."""
    body = Node.parse(rendered(case).body)
    return [entry.raw for entry in body.find((MEMBER[case.dialect],)).items()]


def _role(entry: jsonlit.Json) -> jsonlit.Json:
    return entry.get("role") if isinstance(entry, dict) else None
