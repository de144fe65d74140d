"""The JSON tree of versions before 1.2, and the data directory around it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.opencode.stores import database, state, tree, write
from tests.formats.opencode.test_database import ONE, beside_of, exported, named, read
from tests.formats.samples import assistant, document, exact, noted, text, tool, user
from turnwire.formats import Report, Wanted, history
from turnwire.formats.opencode import OPENCODE


def test_a_tree_gives_what_the_export_has(tmp_path: Path) -> None:
    tree(tmp_path, ONE, named("2"))
    before = state(tmp_path)
    report = Report()
    first, second = read(tmp_path, report)
    assert (exported(first), exported(second)) == (exact(ONE), exact(named("2")))
    assert (report.notes, state(tmp_path)) == ([], before)


def test_gzipped_files(tmp_path: Path) -> None:
    tree(tmp_path, ONE)
    for file in list(tmp_path.rglob("*.json")):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert exported(read(tmp_path)[0]) == exact(ONE)


def test_a_data_directory_is_enough(tmp_path: Path) -> None:
    """With the database that was made from the tree beside it, which then has the sessions. Nothing else is read."""
    tree(tmp_path / "storage", ONE, named("2"))
    write(tmp_path / "auth.json", {"info": "secret"})
    assert [(one.path, one.form) for one in OPENCODE.sources(tmp_path, Report())] == [(tmp_path / "storage", "tree")]
    changed = json.loads(ONE)
    changed["messages"][0]["parts"][0]["text"] = "changed since"
    database(tmp_path / "opencode.db", json.dumps(changed)).close()
    write(tmp_path / "snapshot" / "export.json", json.loads(ONE))
    report = Report()
    found = read(tmp_path, report)
    assert [(one.session_id, one.source) for one in found] == [
        ("ses_1", str(tmp_path / "opencode.db")),
        ("ses_2", str(tmp_path / "storage")),
    ]
    assert exported(found[0]) == exact(json.dumps(changed))
    assert noted(report) == [("left", "", "1 sessions are in the database beside it, and read from there")]
    assert len(read(tmp_path / "storage")) == 2


def test_a_directory_with_several_of_them(tmp_path: Path) -> None:
    tree(tmp_path / "a" / "storage", ONE)
    (tmp_path / "b").mkdir()
    database(tmp_path / "b" / "some.name", named("2")).close()
    write(tmp_path / "c" / "deep" / "three.json", json.loads(named("3")))
    (tmp_path / "c" / "four").write_bytes(gzip.compress(named("4").encode()))
    write(tmp_path / "c" / "other.json", {"no": "export"})
    assert sorted(one.session_id for one in read(tmp_path)) == ["ses_1", "ses_2", "ses_3", "ses_4"]


def test_nothing_of_opencodes(tmp_path: Path) -> None:
    write(tmp_path / "other.json", {"no": "export"})
    report = Report()
    assert read(tmp_path, report) == []
    assert [note.reason for note in report.notes] == [
        "nothing of opencode's is there: no export, no database, no storage tree"
    ]


def test_what_hangs_on_a_session(tmp_path: Path) -> None:
    tree(tmp_path, ONE)
    todo = [{"content": "first", "status": "pending", "priority": "low", "id": "1"}]
    write(tmp_path / "todo" / "ses_1.json", todo)
    write(tmp_path / "project" / "p.json", {"id": "p", "worktree": "/tmp/x", "vcs": "git", "time": {"created": 1}})
    write(tmp_path / "session_share" / "ses_1.json", {"id": "shr", "secret": "hidden", "url": "https://example.org"})
    write(tmp_path / "session_diff" / "ses_1.json", [])
    (session,) = read(tmp_path)
    assert {name: json.loads(value) for name, value in beside_of(session).items()} == {
        "todo": todo,
        "share": {"id": "shr", "url": "https://example.org"},
        "project": {"id": "p", "worktree": "/tmp/x", "vcs": "git"},
    }
    assert history(session).summaries == {}


def child() -> tuple[str, str]:
    task = tool("prt_3", metadata={"sessionId": "ses_2"}) | {"tool": "task"}
    parent = document(user("msg_1", text("prt_1")), assistant("msg_2", task, parent="msg_1"), projectID="p")
    return parent, named("2", parentID="ses_1")


def test_the_task_that_made_a_child_session(tmp_path: Path) -> None:
    tree(tmp_path / "storage", *child())
    for number, whole in enumerate(child()):
        write(tmp_path / "exports" / f"{9 - number}.json", json.loads(whole))
    for path in (tmp_path / "storage", tmp_path / "exports"):
        links = {one.session_id: one.properties.parent for one in read(path)}
        assert (links["ses_2"].session_id, links["ses_2"].part_id) == ("ses_1", "prt_3")
    (alone,) = read(tmp_path / "exports" / "8.json")
    assert (alone.properties.parent.session_id, alone.properties.parent.HasField("part_id")) == ("ses_1", False)


def test_only_what_is_wanted(tmp_path: Path) -> None:
    tree(tmp_path, ONE, named("2", time={"created": 1, "updated": 9000}))
    assert [one.session_id for one in read(tmp_path, wanted=Wanted(since_ms=9000))] == ["ses_2"]
    assert [one.session_id for one in read(tmp_path, wanted=Wanted(frozenset({"ses_1"})))] == ["ses_1"]


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def test_a_cut_file_costs_itself(tmp_path: Path) -> None:
    tree(tmp_path, ONE, named("2"), named("3"))
    cut(tmp_path / "part" / "msg_1" / "prt_1.json")
    cut(tmp_path / "message" / "ses_2" / "msg_21.json")
    cut(tmp_path / "session" / "p" / "ses_3.json")
    write(tmp_path / "part" / "msg_none" / "prt_lost.json", {"id": "prt_lost"})
    write(tmp_path / "message" / "ses_none" / "msg_lost.json", {"id": "msg_lost"})
    report = Report()
    found = {one.session_id: one for one in read(tmp_path, report)}
    parts = [[part.id for part in one.parts] for one in history(found["ses_1"]).messages]
    assert parts == [[], ["prt_2", "prt_3"]]
    assert [one.id for one in history(found["ses_2"]).messages] == ["msg_22"]
    assert [one.id for one in history(found["ses_3"]).messages] == ["msg_31", "msg_32"]
    assert [found[f"ses_{number}"].whole for number in (1, 2, 3)] == [False, False, False]
    assert [found[f"ses_{number}"].headless for number in (1, 2, 3)] == [False, False, True]
    refused = [(note.path, note.reason.partition(":")[0]) for note in report.notes if note.outcome == "refused"]
    assert refused == [
        ("/part/msg_1/prt_1.json", "cut or damaged"),
        ("/message/ses_2/msg_21.json", "cut or damaged"),
        ("/part/msg_21/prt_21.json", "its message is damaged"),
        ("/session/p/ses_3.json", "cut or damaged"),
        ("/message/ses_none/msg_lost.json", "its session is missing"),
        ("/part/msg_none/prt_lost.json", "its message is missing"),
    ]


@pytest.mark.parametrize("link", ["part", "folder", "session", "todo"])
def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path, link: str) -> None:
    """It could name any file that the importing user can read. One that stays inside is a file like any other."""
    storage = tree(tmp_path / "storage", ONE, named("2"))
    moved = {
        "part": storage / "part" / "msg_1" / "prt_1.json",
        "folder": storage / "part" / "msg_2",
        "session": storage / "session" / "p" / "ses_1.json",
        "todo": storage / "todo" / "ses_1.json",
    }[link]
    write(storage / "todo" / "ses_1.json", [{"content": "secret"}])
    moved.rename(tmp_path / "outside")
    moved.symlink_to(tmp_path / "outside")
    report = Report()
    found = {one.session_id: one for one in read(storage, report)}
    reason = "a symbolic link that leads out of the tree, which is not followed"
    assert (f"/{moved.relative_to(storage)}", reason) in [
        (note.path, note.reason) for note in report.notes if note.outcome == "refused"
    ]
    assert found["ses_2"].whole
    if link == "session":
        assert set(found) == {"ses_2"}
    else:
        assert not found["ses_1"].whole
        assert "secret" not in found["ses_1"].properties.extra_json or link != "todo"
        parts = {"part": [[], ["prt_2", "prt_3"]], "folder": [["prt_1"], []], "todo": [["prt_1"], ["prt_2", "prt_3"]]}
        assert [[part.id for part in one.parts] for one in history(found["ses_1"]).messages] == parts[link]
    moved.unlink()
    (tmp_path / "outside").rename(storage / "kept")
    moved.symlink_to(storage / "kept")
    report = Report()
    assert exported(read(storage, report)[0]) == exact(ONE)
    assert report.notes == []


def test_ids_that_stand_in_names_only(tmp_path: Path) -> None:
    tree(tmp_path, ONE)
    for file in [*(tmp_path / "message").rglob("*.json"), *(tmp_path / "part").rglob("*.json")]:
        value: dict[str, Any] = json.loads(file.read_text())
        del value["id"]
        write(file, value)
    assert [part.id for one in history(read(tmp_path)[0]).messages for part in one.parts] == ["prt_1", "prt_2", "prt_3"]
