"""Damaged pages of a database: what can be read by any way is, and every loss is told."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.formats.opencode.stores import add, database, insert
from tests.formats.opencode.test_database import beside_of, exported, named, read
from tests.formats.samples import exact
from turnwire.formats import Report, SessionImport, Wanted, history
from turnwire.formats.opencode import OPENCODE

COUNT = 60
NAMES = [f"{number:03d}" for number in range(100, 100 + COUNT)]
IDS = [f"ses_{name}" for name in NAMES]


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    """A copy of `original`."""
    return shutil.copyfile(original, tmp_path / "opencode.db")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of many sessions, each with a todo, a share and the project."""
    path = tmp_path_factory.mktemp("original") / "opencode.db"
    documents = [named(name, title=f"T{name}" + "t" * 300) for name in NAMES]
    db = database(path)
    db.execute("PRAGMA synchronous=OFF")
    for document in documents:
        add(db, document)
    db.execute("CREATE INDEX todo_session_idx ON todo (session_id)")
    stamps = {"time_created": 1, "time_updated": 1}
    project = {"id": "p", "worktree": "/tmp/x", "vcs": "git", "sandboxes": "[]", **stamps}
    insert(db, "project", project)
    for number in range(200):
        insert(db, "project", project | {"id": f"other{number}"})
    for name in IDS:
        todo = {"content": "do it " * 40, "status": "pending", "priority": "low", "position": 0, "session_id": name}
        insert(db, "todo", todo | stamps)
        share = {
            "session_id": name,
            "id": f"shr_{name}",
            "secret": "s",
            "url": f"https://example.org/{name}" + "u" * 60,
        }
        insert(db, "session_share", share | stamps)
    db.close()
    return path


def damage(path: Path, name: str, *, fill: bytes = b"\xff", at: int = 0) -> None:
    """Overwrite a leaf page of a table or an index."""
    db = sqlite3.connect(path)
    (page,) = db.execute("PRAGMA page_size").fetchone()
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    db.close()
    data = bytearray(path.read_bytes())
    leaf = leaves(data, root, page)[at]
    assert leaf != 1
    data[(leaf - 1) * page : leaf * page] = (fill * page)[:page]
    path.write_bytes(data)


def hide(path: Path, name: str, *, at: int = 0, rest: int = 2) -> None:
    """Make a leaf page say that it has fewer cells than it has, one in ``rest``: it is readable, and hides rows."""
    db = sqlite3.connect(path)
    (page,) = db.execute("PRAGMA page_size").fetchone()
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    db.close()
    data = bytearray(path.read_bytes())
    begin = (leaves(data, root, page)[at] - 1) * page
    cells = int.from_bytes(data[begin + 3 : begin + 5], "big")
    data[begin + 3 : begin + 5] = (cells // rest).to_bytes(2, "big")
    path.write_bytes(data)


def leaves(data: bytearray, root: int, page: int) -> list[int]:
    start = (root - 1) * page
    if data[start] in (10, 13):
        return [root]
    assert data[start] in (2, 5)
    cells = [int.from_bytes(data[start + 12 + 2 * each : start + 14 + 2 * each], "big") for each in range(256)]
    count = int.from_bytes(data[start + 3 : start + 5], "big")
    children = [int.from_bytes(data[start + cell : start + cell + 4], "big") for cell in cells[:count]]
    children.append(int.from_bytes(data[start + 8 : start + 12], "big"))
    return [leaf for child in children for leaf in leaves(data, child, page)]


def refusals(report: Report) -> Counter[tuple[str, str]]:
    """How many objects were refused, by kind and the table in their path."""
    return Counter((note.kind, note.path.split("/")[1]) for note in report.notes if note.outcome == "refused")


def messages_of(session: SessionImport) -> list[tuple[str, list[str]]]:
    return [(one.id, [part.id for part in one.parts]) for one in history(session).messages]


def all_messages() -> dict[str, list[tuple[str, list[str]]]]:
    return {
        f"ses_{name}": [(f"msg_{name}1", [f"prt_{name}1"]), (f"msg_{name}2", [f"prt_{name}2", f"prt_{name}3"])]
        for name in NAMES
    }


@pytest.mark.parametrize("fill", [b"\xff", b"\x00", b"\x0a\x00\x00\x00\x00\x10\x00"])
@pytest.mark.parametrize(
    "index",
    [
        "message_session_time_created_id_idx",
        "part_session_idx",
        "part_message_id_id_idx",
        "sqlite_autoindex_session_1",
        "sqlite_autoindex_message_1",
        "sqlite_autoindex_part_1",
        "sqlite_autoindex_project_1",
        "sqlite_autoindex_session_share_1",
        "todo_session_idx",
    ],
)
def test_a_damaged_index_costs_nothing(path: Path, index: str, fill: bytes) -> None:
    """Whether it cannot be read, or is readable and tells too little: the rows are found in the table."""
    before = [exported(one) for one in read(path)]
    damage(path, index, fill=fill)
    report = Report()
    found = read(path, report)
    assert [exported(one) for one in found] == before
    assert report.notes == []
    assert all(one.whole and not one.unread for one in found)
    assert {len(beside_of(one)) for one in found} == {3}
    (alone,) = read(path, wanted=Wanted(frozenset({IDS[0]})))
    assert messages_of(alone) == all_messages()[IDS[0]]


@pytest.mark.parametrize("name", ["todo", "session_share", "project"])
def test_a_damaged_table_beside_costs_its_rows_only(path: Path, name: str) -> None:
    damage(path, name)
    report = Report()
    found = read(path, report)
    assert {one.session_id: messages_of(one) for one in found} == all_messages()
    refused = refusals(report)
    assert set(refused) == {("table", name)}
    unread = [one for one in found if one.unread]
    member = {"session_share": "share"}.get(name, name)
    assert {each for one in unread for each in one.unread} == {("opencode/beside", member)}
    assert {one.session_id for one in found if not one.whole} == {one.session_id for one in unread}
    assert all((member in beside_of(one)) == (one not in unread) for one in found)
    if name != "project":
        assert 0 < len(unread) < COUNT
    reasons = {note.reason for note in report.notes}
    assert reasons == {"database disk image is malformed"}


def test_a_damaged_session_table_costs_heads_only(path: Path) -> None:
    damage(path, "session")
    report = Report()
    found = read(path, report)
    assert {one.session_id: messages_of(one) for one in found} == all_messages()
    headless = [one for one in found if one.headless]
    assert 0 < len(headless) < COUNT
    assert not any(one.properties.HasField("title") or one.whole for one in headless)
    assert all(one.properties.title.startswith("T1") for one in found if not one.headless)
    assert refusals(report) == {("session", "session"): len(headless)}
    assert {note.id for note in report.notes if note.outcome == "refused"} == {one.session_id for one in headless}
    (source,) = OPENCODE.sources(path, Report())
    assert OPENCODE.count(source) == COUNT


def test_a_session_table_and_its_index_that_are_damaged(path: Path) -> None:
    """The messages tell which sessions there are."""
    damage(path, "session")
    damage(path, "sqlite_autoindex_session_1")
    report = Report()
    found = read(path, report)
    assert {one.session_id: messages_of(one) for one in found} == all_messages()
    assert not report.complete


@pytest.mark.parametrize(("name", "at"), [("part", 0), ("part", 2), ("part", -1), ("message", 1), ("message", -1)])
def test_a_damaged_page_of_rows_costs_these_rows(path: Path, name: str, at: int) -> None:
    damage(path, name, at=at)
    report = Report()
    found = {one.session_id: messages_of(one) for one in read(path, report)}
    there = {(session, *pair) for session, pairs in all_messages().items() for pair in rows(name, pairs)}
    got = {(session, *pair) for session, pairs in found.items() for pair in rows(name, pairs)}
    lost = there - got
    assert got <= there
    assert 0 < len(lost) < 60
    named_in_report = {note.id for note in report.notes if note.kind == name and note.outcome == "refused"}
    assert named_in_report == {row[-1] for row in lost}


def rows(name: str, pairs: list[tuple[str, list[str]]]) -> list[tuple[str, ...]]:
    return (
        [(one,) for one, _ in pairs] if name == "message" else [(one, part) for one, parts in pairs for part in parts]
    )


def test_damaged_rows_of_a_damaged_index_are_told_by_where_they_are(path: Path) -> None:
    """Nothing tells whose the lost rows are: no session is taken to be whole whose rows cannot all be known."""
    damage(path, "part", at=1)
    damage(path, "part_session_idx", at=0)
    report = Report()
    found = read(path, report)
    assert len(found) == COUNT
    lost = 3 * COUNT - sum(len(parts) for one in found for _, parts in messages_of(one))
    assert lost > 0
    gaps = [note for note in report.notes if note.path == "/part"]
    assert len(gaps) == 1
    first, last = (int(word) for word in gaps[0].reason.split(":")[0].split() if word.isdigit())
    assert last - first + 1 == lost
    assert not any(one.whole for one in found)


def test_a_damaged_page_does_not_hide_where_a_child_came_from(path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    task: dict[str, Any] = {"type": "tool", "callID": "c", "tool": "task", "state": {"status": "completed"}}
    task["state"]["metadata"] = {"sessionId": IDS[1]}
    db.execute("UPDATE part SET data = ? WHERE id = 'prt_1003'", (json.dumps(task),))
    db.execute("UPDATE session SET parent_id = ? WHERE id = ?", (IDS[0], IDS[1]))
    db.close()
    damage(path, "part_session_idx")
    child = next(one for one in read(path) if one.session_id == IDS[1])
    assert (child.properties.parent.session_id, child.properties.parent.part_id) == (IDS[0], "prt_1003")


def test_the_exact_session_comes_back(path: Path) -> None:
    damage(path, "message_session_time_created_id_idx")
    expected = exact(named(NAMES[0], title=f"T{NAMES[0]}" + "t" * 300))
    first = exported(read(path)[0])
    first["info"].pop("share", None)
    assert first == expected
