"""Bytes that are no UTF-8: U+FFFD stands for them, and the literals that held them are kept to the byte."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnwire
from tests.formats.opencode.stores import database, insert, tree
from tests.formats.opencode.test_database import ONE
from tests.formats.samples import document, exact, text, tool, user
from turnwire import v1
from turnwire.embedded import Embedded
from turnwire.formats import History, Outcome, Report, extras, history, sessions, stored
from turnwire.formats.jsonlit import Node
from turnwire.formats.load import load
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.undecoded import cleaned, decode, shown

#: No beginning of a surrogate, which is kept as one.
plain = st.binary().map(lambda data: bytes(byte for byte in data if byte >= 0x20 and byte not in b'"\\\xed'))


@pytest.fixture
async def client() -> AsyncIterator[Embedded]:
    async with turnwire.open(":memory:") as opened:
        yield opened


@given(plain)
def test_a_literal_is_kept_to_the_byte(data: bytes) -> None:
    node, literals = cleaned(Node.parse(decode(b'{"a":[1,"' + data + b'"]}', json=True)))
    assert node.value == {"a": [b"1", data.decode("utf-8", "replace")]}
    assert [b64decode(literal) for literal in literals.values()] in ([], [b'"' + data + b'"'])
    assert (literals != {}) == (data.decode("utf-8", "replace").encode() != data)
    assert set(literals) <= {"/a/1"}
    assert shown(decode(data)) == data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xed\xa0\xbd", "\ud83d"),
        (b"\xed\xa0\xbd\xed\xb2\x80", "\U0001f480"),
        (b"\xed\xaf\xbf\xed\xb2\x80", "\U0010fc80"),
        (b"\xed\xaf\xbf\xff", "\udbff\ufffd"),
        (b"\\udbff\xff", "\udbff\ufffd"),
        (b"\\udbff\\udc80", "\U0010fc80"),
        (b"\xff\\udc80", "\ufffd\udc80"),
    ],
)
def test_surrogates_are_told_from_bytes(data: bytes, text: str) -> None:
    node, literals = cleaned(Node.parse(decode(b'"' + data + b'"', json=True)))
    assert node.value == text
    assert bool(literals) == (b"\xff" in data)


def test_a_key_makes_its_object_the_literal() -> None:
    node, literals = cleaned(Node.parse(decode(b'{"a":{"k\xff":1, "b":2}}', json=True)))
    assert node.value == {"a": {"k\ufffd": b"1", "b": b"2"}}
    assert {pointer: b64decode(literal) for pointer, literal in literals.items()} == {"/a": b'{"k\xff":1, "b":2}'}


def kept(extra_json: str, space: str = "opencode") -> dict[str, bytes]:
    """The literals in some extras."""
    found = extras.space(extra_json, space).get("bytes", {})
    assert isinstance(found, dict)
    return {pointer: b64decode(str(literal)) for pointer, literal in found.items()}


def damaged(*paths: str) -> bytes:
    """A document with a byte that is no UTF-8 wherever it has a #."""
    first = user("msg_1", text("prt_1", "caf#"), summary={"title": "s#", "diffs": []}, agent="a#")
    second = user("msg_2", tool("prt_2", input={"k": "in#put", "n": 1.0}, output="out#"), text("prt_3#"), at=1001)
    return document(first, second, title="T#").replace("#", "\udce9").encode("utf-8", "surrogateescape")


async def test_an_export_file(client: Embedded, tmp_path: Path) -> None:
    for name, data in (("a.json", damaged()), ("b.json.gz", gzip.compress(damaged()))):
        (tmp_path / name).write_bytes(data)
        report = Report()
        (session,) = sessions(OPENCODE, tmp_path / name, report)
        assert exact(OPENCODE.export(history(session))) == exact(damaged().decode("utf-8", "replace"))
        check(history(session))
        reason = "bytes that are no UTF-8 became U+FFFD, the original is kept"
        told = {note.path + note.pointer for note in report.notes if note.reason == reason}
        assert told == {
            *("/info/title", "/messages/0/summary/title", "/messages/0/agent", "/messages/0/parts/0/text"),
            *("/messages/1/parts/0/state/input/k", "/messages/1/parts/0/state/output", "/messages/1/parts/1/id"),
        }
        session.source = "a"
        assert await load(client, session, Report()) is (Outcome.IMPORTED if name == "a.json" else Outcome.UNCHANGED)
    assert exact(OPENCODE.export(await stored.history(client, "ses_1"))) == exact(damaged().decode("utf-8", "replace"))


def check(found: History) -> None:
    assert kept(found.properties.extra_json) == {"/title": b'"T\xe9"'}
    first, second = found.messages
    assert kept(first.extra_json) == {"/summary/title": b'"s\xe9"', "/agent": b'"a\xe9"'}
    assert kept(first.parts[0].extra_json) == {"/text": b'"caf\xe9"'}
    tool_part, named = second.parts
    assert kept(tool_part.extra_json) == {"/state/input/k": b'"in\xe9put"', "/state/output": b'"out\xe9"'}
    assert kept(named.extra_json) == {"/id": b'"prt_3\xe9"'}


def test_a_tree(tmp_path: Path) -> None:
    tree(tmp_path, ONE)
    part = tmp_path / "part" / "msg_1" / "prt_1.json"
    part.write_bytes(part.read_bytes().replace(b"hello", b"hel\xfflo"))
    (tmp_path / "todo").mkdir()
    (tmp_path / "todo" / "ses_1.json").write_bytes(b'[{"content": "do \xff"}]')
    (tmp_path / "session_diff").mkdir()
    (tmp_path / "session_diff" / "ses_1.json").write_bytes(b'[{"file": "f\xff"}]')
    (session,) = sessions(OPENCODE, tmp_path, Report())
    found = history(session)
    assert kept(found.messages[0].parts[0].extra_json) == {"/text": b'"hel\xfflo"'}
    assert kept(session.properties.extra_json, "opencode/beside") == {"/todo/0/content": b'"do \xff"'}
    assert kept(found.summaries["msg_1"].extra_json, "opencode/beside") == {"/session_diff/0/file": b'"f\xff"'}


def test_a_database(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", ONE)

    def change(table: str, column: str, name: str, data: bytes) -> None:
        db.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE id = ?", (data, name))

    change("session", "title", "ses_1", b"T\xff")
    change("part", "data", "prt_2", b'{"type":"text","text":"a\xffb"}')
    change("message", "data", "msg_1", b'{"role":"user","agent":"a\xff"}')
    insert(db, "part", part_row(b"prt_\xff", b'{"type":"text","text":"one"}'))
    insert(db, "part", part_row(b"prt_\xfe", b'{"type":"text","text":"two"}'))
    db.execute("UPDATE part SET id = CAST(id AS TEXT), data = CAST(data AS TEXT)")
    db.close()
    report = Report()
    (session,) = sessions(OPENCODE, tmp_path / "opencode.db", report)
    found = history(session)
    assert (session.properties.title, kept(session.properties.extra_json)) == ("T\ufffd", {"/title": b'"T\xff"'})
    assert kept(found.messages[0].extra_json) == {"/agent": b'"a\xff"'}
    parts = {part.text.text: part for part in found.messages[1].parts if part.HasField("text")}
    assert kept(parts["a\ufffdb"].extra_json) == {"/text": b'"a\xffb"'}
    assert kept(parts["one"].extra_json) == {"/id": b'"prt_\xff"'}
    assert kept(parts["two"].extra_json) == {"/id": b'"prt_\xfe"'}
    assert report.complete


def part_row(name: bytes, data: bytes) -> dict[str, Any]:
    stamps = {"time_created": 1, "time_updated": 1}
    return {"id": name, "message_id": "msg_2", "session_id": "ses_1", "data": data, **stamps}


def test_members_around_what_is_mapped(tmp_path: Path) -> None:
    whole = json.loads(document(user("msg_1", text("prt_1"))))
    whole["more"] = ["#"]
    whole["messages"][0]["other"] = {"k": "#"}
    data = json.dumps(whole).replace("#", "\udcff").encode("utf-8", "surrogateescape")
    (tmp_path / "a.json").write_bytes(data)
    (session,) = sessions(OPENCODE, tmp_path / "a.json", Report())
    message: v1.User | v1.Assistant = history(session).messages[0]
    assert kept(session.properties.extra_json, "opencode/file") == {"/more/0": b'"\xff"'}
    assert kept(message.extra_json, "opencode/message") == {"/other/k": b'"\xff"'}
    assert exact(OPENCODE.export(history(session))) == exact(data.decode("utf-8", "replace"))
