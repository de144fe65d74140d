"""For every rule of the storage layer, files and entries that break exactly it. Each case gives the rules found."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from tests.builders import assistant, text, tool, user
from tests.validation.logs import chained, found_in, head, opening, raw
from turnwire import v1
from turnwire.log import wire
from turnwire.log.raw import RawEntry
from turnwire.store import sqlite_check
from turnwire.validation import Selection, files
from turnwire.validation.findings import Findings
from turnwire.validation.imports import Import

LATER = 299  # a payload that no schema has yet


def entry_bytes(entry: RawEntry) -> bytes:
    envelope = v1.Entry(revision=entry.revision, digest=entry.digest, ignorable=entry.ignorable)
    envelope.recorded.FromMicroseconds(entry.recorded_us)
    return envelope.SerializeToString() + wire.field(entry.field, entry.payload)


def delimited(*records: bytes) -> bytes:
    return b"".join(wire.varint(len(record)) + record for record in records)


def log(*entries: RawEntry) -> bytes:
    return delimited(*map(entry_bytes, entries))


def native(*entries: RawEntry) -> bytes:
    """Turnwire's own form of a session."""
    session = v1.Session(id="s", head=head(list(entries)), properties=opening()[0].session)
    session.recorded.FromSeconds(1)
    return wire.field(1, session.SerializeToString()) + b"".join(wire.field(2, entry_bytes(each)) for each in entries)


def native_that_ends_in(record: bytes) -> bytes:
    """Turnwire's own form of a session in whose last entry's place is something else."""
    entries = whole()
    return native(*entries).removesuffix(wire.field(2, entry_bytes(entries[-1]))) + wire.field(2, record)


def whole() -> list[RawEntry]:
    return raw(*opening(), user("u", text("p", "hello")), user("w"))


def check(path: Path, content: bytes, **how: Any) -> list[v1.Finding]:
    """What is found in a file of some content."""
    path.write_bytes(content)
    return [finding for step in files.check(path, Selection(), **how) for finding in step.findings]


def flipped(content: bytes, at: int) -> bytes:
    """The content with a bit of one byte flipped."""
    found = bytearray(content)
    found[at] ^= 4
    return bytes(found)


def with_unknown(*, field: int = 100, inside: str = "user") -> list[RawEntry]:
    """A log whose message, or part of it, has a field of a later schema."""
    entry = user("u", text("p", "x"))
    target: Any = entry.user.user if inside == "user" else entry.user.user.parts[0]
    target.MergeFromString(wire.field(field, b"x"))
    return raw(*opening(), entry)


def later_kind() -> list[RawEntry]:
    entry = user("u", text("p", "x"))
    part = entry.user.user.parts[0]
    part.ClearField("text")
    part.MergeFromString(wire.field(100, b"x"))
    return raw(*opening(), entry)


def later_enum() -> v1.ToolPart:
    return v1.ToolPart(call_id="c", name="n", state=77)  # type: ignore[arg-type]


def entry_in_json(change: Callable[[Any], object]) -> bytes:
    """JSON lines of a log in whose middle an entry, of an assistant with a tool call, is changed."""
    entries = raw(*opening(), user("u"), assistant("a", tool("p")), user("w"))
    trees = [json_format.MessageToDict(v1.Entry.FromString(entry_bytes(each))) for each in entries]
    change(trees[3])
    return b"".join(json.dumps({"entry": each}).encode() + b"\n" for each in trees)


def log_in_json(change: Callable[[Any], object], *, within: str = "tool") -> bytes:
    """The same, in whose middle the tool call, or its part, is what a later schema has made of it."""

    def inside(entry: Any) -> None:
        part = entry["assistant"]["assistant"]["parts"][0]
        change(part if within == "part" else part["tool"])

    return entry_in_json(inside)


def _hologram(entry: Any) -> None:
    entry["hologram"] = entry.pop("assistant")


def later_payload(*, ignorable: bool = False) -> list[RawEntry]:
    entries = whole()
    return chained([*entries[:3], entries[3]._replace(field=LATER, ignorable=ignorable)])


def two_types() -> bytes:
    """JSON lines of a user message and of something that is nothing of the schema's."""
    return json.dumps(json_format.MessageToDict(user("u").user.user)).encode() + b'\n{"colour": "red", "size": 5}\n'


def damaged_page(path: Path) -> list[v1.Finding]:
    """What SQLite says of a database one of whose pages is overwritten."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 4096")
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    db.executemany("INSERT INTO t VALUES (?, ?)", ((at, "x" * 500) for at in range(100)))
    db.commit()
    db.close()
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 2 + 64] = b"\xee" * 64
    path.write_bytes(data)
    found = Findings()
    if sqlite_check.faults(path):
        found.add("storage.database")
    return found.take()


def imported(path: Path, document: object) -> list[v1.Finding]:
    """What the importer of opencode says of an export."""
    path.write_text(json.dumps(document))
    found = Import.at(path)
    assert found is not None
    return [finding for step in found.check(Selection()) for finding in step.findings]


def export(change: Callable[[Any], object]) -> Any:
    source = Path(__file__).parents[1] / "data" / "opencode" / "three-turns.json"
    document = json.loads(source.read_text())
    change(document)
    return document


def _no_message(document: Any) -> None:
    document["messages"].append(5)


def _surrogate(document: Any) -> None:
    for part in document["messages"][0]["parts"]:
        if part["type"] == "text":
            part["text"] = "\ud83d"
            return


#: By rule: what is found, given a path at which a file may be made.
FILES: dict[str, list[Callable[[Path], list[v1.Finding]]]] = {
    "storage.bytes": [
        lambda path: check(path, delimited(b"\x0a\x05x"), cls=v1.User),
        lambda path: check(path, delimited(b"\xff", *map(entry_bytes, whole())), cls=v1.Entry)[:1],
        lambda path: found_in(chained([*whole()[:2], whole()[2]._replace(payload=b"\xff")])),
        lambda path: check(path, native_that_ends_in(b"\xff")),
        lambda path: check(path, delimited(b"\x08\x01"), cls=v1.RunPath),
        lambda path: check(path, delimited(wire.field(1, b"p") + wire.field(3, b"\x08\x01")), cls=v1.PromptPart),
    ],
    "storage.form": [
        lambda path: found_in([*whole()[:3], whole()[3]._replace(recorded_us=2**62)], end=head(whole())),
        lambda path: check(path, log(*whole()) + delimited(entry_bytes(whole()[3]) + wire.field(19, b""))),
        lambda path: check(path, entry_in_json(lambda entry: entry.pop("assistant"))),
    ],
    "storage.torn": [
        lambda path: check(path, log(*whole())[:-1]),
        lambda path: check(path, native(*whole())[:-1]),
        lambda path: check(path, gzip.compress(native(*whole()))[:-12]),
        lambda path: check(path, gzip.compress(log(*whole()))[:-12]),
        lambda path: check(path, gzip.compress(log(*whole())) + b"more"),
        lambda path: check(path, flipped(gzip.compress(native(*whole())), -6)),
        lambda path: check(path, flipped(gzip.compress(b'{"cwd": "/"}'), -2), cls=v1.RunPath),
    ],
    "storage.json": [
        lambda path: check(path, b'{"id": "u",\n', cls=v1.User),
        lambda path: check(path, b'{"cwd": 5}', cls=v1.RunPath),
        lambda path: check(path, b'{"cwd": "/"}\n{"cwd": \n{"root": "/"}\n', cls=v1.RunPath),
        lambda path: check(path, b'{"cwd": "/", "cwd": "/x"}', cls=v1.RunPath),
        lambda path: check(path, b'{"role": "ROLE_USER", "parts": [{"text": {"text": "a", "text": "b"}}]}'),
        lambda path: check(path, b'{"role": "ROLE_USER", "role": "ROLE_USER"}'),
        lambda path: check(path, b'["cwd"]', cls=v1.RunPath),
        lambda path: check(path, b'"cwd"', cls=v1.RunPath),
        lambda path: check(path, b"[[]]", cls=v1.RunPath),
        lambda path: check(path, b'{"role": "ROLE_USER", "parts": [{"text": []}]}'),
        lambda path: check(path, b'{"role": "wizard", "parts": [{"text": {"text": "a"}}]}'),
        lambda path: check(path, b'{"labels": ["a"], "created": "2026-01-31T14:05:09Z"}', cls=v1.SessionProperties),
    ],
    "storage.type": [lambda path: check(path, two_types())],
    "storage.unknown_field": [
        lambda path: found_in(with_unknown()),
        lambda path: found_in(with_unknown(inside="part")),
        lambda path: check(path, b'{"cwd": "/", "colour": "red"}', cls=v1.RunPath),
        lambda path: check(path, log_in_json(lambda tool: tool.update(colour="red"))),
        lambda path: check(path, b'{"id": "p", "hologram": {}}', cls=v1.PromptPart),
        lambda path: check(path, log_in_json(lambda part: part.update(hologram=part.pop("tool")), within="part")),
    ],
    "storage.unknown_enum": [
        lambda path: check(path, delimited(later_enum().SerializeToString()), cls=v1.ToolPart),
        lambda path: check(path, b'{"role": "ROLE_WIZARD", "parts": [{"text": {"text": "a"}}]}'),
        lambda path: check(path, b'{"role": 17, "parts": [{"text": {"text": "a"}}]}'),
        lambda path: check(path, log_in_json(lambda tool: tool.update(state="TOOL_STATE_DREAMING"))),
    ],
    "storage.unknown_kind": [lambda path: found_in(later_kind())],
    "storage.unknown_payload": [
        lambda path: found_in(later_payload()),
        lambda path: found_in(later_payload(ignorable=True)),
        lambda path: check(path, entry_in_json(_hologram)),
        lambda path: check(path, entry_in_json(lambda entry: (_hologram(entry), entry.update(ignorable=True)))),
    ],
    "storage.continues": [
        lambda path: check(path, native(*whole()[2:])),
        lambda path: check(path, log(*whole()[2:])),
    ],
    "storage.database": [damaged_page],
    "storage.import.refused": [lambda path: imported(path, export(_no_message))],
    "storage.import.repaired": [lambda path: imported(path, export(_surrogate))],
}


#: Rules of this layer that are tested where they come from.
ELSEWHERE = {
    "storage.unreadable": "tests/engine/test_validating.py: a page that SQLite cannot read",
    "storage.table": "tests/cli/test_validate_store.py",
    "storage.id": "tests/cli/test_validate_store.py",
    "storage.orphan": "tests/cli/test_validate_store.py",
    "storage.index": "tests/cli/test_validate_store.py",
    "storage.deleted": "tests/cli/test_validate_store.py",
    "storage.reply": "tests/cli/test_validate_store.py",
    "storage.no_digest": "tests/cli/test_validate_store.py",
    "storage.tenants": "tests/cli/test_validate_store.py",
    "storage.import.left": "test_import_left: a database of opencode with rows of the coming version",
}
