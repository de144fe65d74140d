"""opencode's database: read as it is, in whatever state, and never written."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.formats.opencode.stores import add, add_message, database, insert, state
from tests.formats.samples import assistant, document, exact, noted, text, tool, user
from turnwire.formats import Report, SessionImport, Wanted, extras, history, sessions
from turnwire.formats.opencode import OPENCODE

ONE = document(
    user("msg_1", text("prt_1")),
    assistant("msg_2", text("prt_2"), tool("prt_3"), parent="msg_1"),
    slug="s",
    projectID="p",
    time={"created": 1000, "updated": 2000},
)


def read(path: Path, report: Report | None = None, wanted: Wanted | None = None) -> list[SessionImport]:
    return list(sessions(OPENCODE, path, report or Report(), wanted or Wanted()))


def exported(session: SessionImport) -> Any:
    """The export, without what the columns of a newer database add."""
    tree = exact(OPENCODE.export(history(session)))
    for key in ("cost", "tokens"):
        tree["info"].pop(key, None)
    return tree


def named(name: str, **more: Any) -> str:
    """The same session under other ids."""
    whole = json.loads(
        ONE.replace("ses_1", f"ses_{name}").replace('"msg_', f'"msg_{name}').replace('"prt_', f'"prt_{name}')
    )
    whole["info"] |= more
    return json.dumps(whole)


def test_a_database_gives_what_the_export_has(tmp_path: Path) -> None:
    database(tmp_path / "opencode.db", ONE).close()
    report = Report()
    (session,) = read(tmp_path / "opencode.db", report)
    assert exported(session) == exact(ONE)
    assert (report.notes, session.source, session.whole) == ([], str(tmp_path / "opencode.db"), True)


def test_by_content_and_not_by_name(tmp_path: Path) -> None:
    database(tmp_path / "a", ONE).close()
    (tmp_path / "b").write_bytes(gzip.compress((tmp_path / "a").read_bytes()))
    sqlite3.connect(tmp_path / "c.db").execute("CREATE TABLE t (x)").connection.close()
    assert [OPENCODE.detect(tmp_path / name) for name in ("a", "b", "c.db")] == ["database", "database", None]
    assert read(tmp_path / "a")[0].entries == read(tmp_path / "b")[0].entries


def test_while_another_writes(tmp_path: Path) -> None:
    """With a WAL and a reader or writer that has it open: what is committed is read, and no byte is changed."""
    db = sqlite3.connect(tmp_path / "opencode.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.close()
    db = database(tmp_path / "opencode.db", ONE)
    db.execute("PRAGMA wal_autocheckpoint=0")
    add(db, named("2"))
    db.execute("BEGIN IMMEDIATE")
    add(db, named("3"))
    before = state(tmp_path)
    assert set(before) == {"opencode.db", "opencode.db-shm", "opencode.db-wal"}
    assert [session.session_id for session in read(tmp_path / "opencode.db")] == ["ses_1", "ses_2"]
    assert state(tmp_path) == before
    db.execute("COMMIT")
    assert len(read(tmp_path / "opencode.db")) == 3
    db.close()


@pytest.mark.parametrize("beside", [["-wal", "-shm"], ["-wal"]])
def test_what_a_killed_program_left(tmp_path: Path, beside: list[str]) -> None:
    live, left = tmp_path / "live", tmp_path / "left"
    live.mkdir()
    left.mkdir()
    db = sqlite3.connect(live / "opencode.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA wal_autocheckpoint=0")
    other = database(live / "opencode.db", ONE)
    for suffix in ("", *beside):
        shutil.copyfile(live / f"opencode.db{suffix}", left / f"opencode.db{suffix}")
    other.close()
    db.close()
    before = state(left)
    left.chmod(0o555)
    try:
        assert exported(read(left / "opencode.db")[0]) == exact(ONE)
    finally:
        left.chmod(0o755)
    assert state(left) == before


def test_a_wal_database_at_rest_gets_no_files_beside_it(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "opencode.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.close()
    database(tmp_path / "opencode.db", ONE).close()
    before = state(tmp_path)
    assert list(before) == ["opencode.db"]
    assert len(read(tmp_path / "opencode.db")) == 1
    assert state(tmp_path) == before


def test_a_hot_journal_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", ONE)
    db.execute("PRAGMA cache_size=1")
    db.execute("BEGIN")
    for number in range(30):
        add(db, named(f"x{number}"))
    shutil.copytree(tmp_path, tmp_path / "left")
    db.execute("ROLLBACK")
    db.close()
    before = state(tmp_path / "left")
    assert "opencode.db-journal" in before
    assert [session.session_id for session in read(tmp_path / "left" / "opencode.db")] == ["ses_1"]
    assert state(tmp_path / "left") == before


def test_one_that_begins_to_write_meanwhile(tmp_path: Path) -> None:
    """It was at rest when it was opened: what was read while it changed is read again."""
    path = tmp_path / "opencode.db"
    database(path, ONE, named("2")).close()
    (source,) = OPENCODE.sources(path, Report())
    records = OPENCODE.read(source, Report())
    next(records)
    db = sqlite3.connect(path, isolation_level=None)
    add_message(db, "ses_2", user("msg_9", text("prt_9"), at=5000))
    second = OPENCODE.map(next(records), Report())
    assert second is not None
    assert [message.id for message in history(second).messages][-1] == "msg_9"
    db.close()


def test_what_hangs_on_a_session(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", ONE)
    for position, content in enumerate(("first", "second")):
        times = {"time_created": 1, "time_updated": 2}
        row = {"session_id": "ses_1", "content": content, "status": "pending", "priority": "low", "position": position}
        insert(db, "todo", row | times)
    share = {"session_id": "ses_1", "id": "shr", "secret": "hidden", "url": "https://example.org/s/1"}
    insert(db, "session_share", share | {"time_created": 1, "time_updated": 1})
    project = {"id": "p", "worktree": "/tmp/x", "vcs": "git", "time_created": 1, "time_updated": 1, "sandboxes": "[]"}
    insert(db, "project", project)
    db.execute("UPDATE session SET share_url = 'https://example.org/s/1'")
    db.execute("ALTER TABLE session ADD COLUMN later text")
    db.execute("UPDATE session SET later = 'new'")
    (session,) = read(tmp_path / "opencode.db")
    beside = {name: json.loads(value) for name, value in beside_of(session).items()}
    assert beside == {
        "todo": [
            {"content": "first", "status": "pending", "priority": "low"},
            {"content": "second", "status": "pending", "priority": "low"},
        ],
        "share": {"id": "shr", "url": "https://example.org/s/1"},
        "project": {"id": "p", "worktree": "/tmp/x", "vcs": "git"},
        "columns": {"later": "new"},
    }
    assert "hidden" not in session.properties.extra_json
    assert session.properties.share_url == "https://example.org/s/1"
    assert exported(session)["info"]["share"] == {"url": "https://example.org/s/1"}
    db.close()


def beside_of(session: SessionImport) -> dict[str, str]:
    from turnwire.formats.jsonlit import Node

    space = extras.spaces(session.properties.extra_json).get("opencode/beside", "{}")
    return {name: node.raw for name, node in Node.parse(space).members().items()}


def test_diffs_over_a_session_are_kept_at_its_last_message(tmp_path: Path) -> None:
    database(tmp_path / "opencode.db", ONE).close()
    (tmp_path / "storage" / "session_diff").mkdir(parents=True)
    diffs = [{"file": "a", "before": "x", "after": "y", "additions": 1, "deletions": 1}]
    (tmp_path / "storage" / "session_diff" / "ses_1.json").write_text(json.dumps(diffs))
    (session,) = read(tmp_path / "opencode.db")
    (summary,) = history(session).summaries.values()
    assert summary.message_id == "msg_1"
    assert json.loads(extras.spaces(summary.extra_json)["opencode/beside"]) == {"session_diff": diffs}
    assert exported(session) == exact(ONE)


def test_the_task_that_made_a_child_session(tmp_path: Path) -> None:
    task = tool("prt_3", metadata={"sessionId": "ses_2"}) | {"tool": "task"}
    parent = document(user("msg_1", text("prt_1")), assistant("msg_2", task, parent="msg_1"))
    database(tmp_path / "opencode.db", parent, named("2", parentID="ses_1")).close()
    found = {session.session_id: session for session in read(tmp_path / "opencode.db")}
    link = found["ses_2"].properties.parent
    assert (link.session_id, link.part_id) == ("ses_1", "prt_3")


def test_only_what_is_wanted(tmp_path: Path) -> None:
    late = {"created": 1000, "updated": 9000}
    database(tmp_path / "opencode.db", ONE, named("2", time=late), named("3", time=late)).close()
    path = tmp_path / "opencode.db"
    assert [one.session_id for one in read(path, wanted=Wanted(since_ms=9000))] == ["ses_2", "ses_3"]
    assert [one.session_id for one in read(path, wanted=Wanted(frozenset({"ses_1", "ses_3"})))] == ["ses_1", "ses_3"]
    (source,) = OPENCODE.sources(path, Report())
    assert (OPENCODE.count(source), OPENCODE.count(source, Wanted(since_ms=9001))) == (3, 0)


def test_tables_of_the_coming_version_are_told_and_not_guessed(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", ONE)
    db.execute("DELETE FROM message")
    db.execute("DELETE FROM part")
    db.execute("CREATE TABLE session_message (id text, session_id text, type text, seq integer, data text)")
    db.execute("CREATE TABLE event (id text, aggregate_id text, seq integer, type text, data text)")
    db.execute("INSERT INTO session_message VALUES ('m', 'ses_1', 'user', 0, '{}')")
    db.execute("INSERT INTO event VALUES ('e', 'ses_1', 0, 'session.next.prompted', '{}')")
    report = Report()
    (session,) = read(tmp_path / "opencode.db", report)
    assert session.entries == []
    assert noted(report) == [
        ("left", "/session_message", "1 rows of a table of the coming version, which are not read"),
        ("left", "/event", "1 rows of a table of the coming version, which are not read"),
        (
            "left",
            "/session/ses_1",
            "its 1 messages are in session_message only, a table of the coming version",
        ),
    ]
    assert report.complete
    db.close()


def test_a_bad_row_costs_itself(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", ONE, named("2"))
    db.execute('UPDATE part SET data = \'{"type":"text","te\' WHERE id = \'prt_2\'')
    db.execute("UPDATE message SET data = 'no JSON' WHERE id = 'msg_21'")
    db.execute("UPDATE session SET revert = '{' WHERE id = 'ses_2'")
    part = {"session_id": "ses_1", "time_created": 1, "time_updated": 1, "data": '{"type":"text","text":"lost"}'}
    insert(db, "part", {"id": "prt_lost", "message_id": "msg_none", **part})
    message = {"time_created": 1, "time_updated": 1, "data": '{"role":"user"}'}
    insert(db, "message", {"id": "msg_lost", "session_id": "ses_none", **message})
    report = Report()
    first, second = read(tmp_path / "opencode.db", report)
    assert [[part.id for part in one.parts] for one in history(first).messages] == [["prt_1"], ["prt_3"]]
    assert [one.id for one in history(second).messages] == ["msg_22"]
    assert sorted(noted(report)) == [
        ("refused", "/message/msg_21", "no JSON: no JSON value at character 0"),
        ("refused", "/message/msg_lost", "its session is missing"),
        ("refused", "/part/prt_2", "no JSON: unterminated string starting at character 15"),
        ("refused", "/part/prt_21", "its message is damaged"),
        ("refused", "/part/prt_lost", "the session has no such message"),
        ("repaired", "/message/msg_22/parentID", "no user message of the session, left out"),
        ("repaired", "/session/ses_2/revert", "no JSON: the text ends at character 1"),
    ]
    assert (first.whole, second.whole) == (False, False)
    db.close()


def test_a_damaged_page_costs_what_is_on_it(tmp_path: Path) -> None:
    """SQLite cannot read some rows: what it can read is taken, and the rest is refused."""
    path = tmp_path / "opencode.db"
    documents = [named(f"{number:03d}") for number in range(100, 160)]
    db = database(path, *documents)
    (page,) = db.execute("PRAGMA page_size").fetchone()
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'part'").fetchone()
    db.close()
    data = bytearray(path.read_bytes())
    inner = data[(root - 1) * page : root * page]
    assert inner[0] == 5  # an interior page of a table
    first_child = int.from_bytes(inner[12:14], "big")
    child = int.from_bytes(inner[first_child : first_child + 4], "big")
    data[(child - 1) * page : child * page] = b"\xff" * page
    path.write_bytes(data)
    report = Report()
    found = read(path, report)
    assert len(found) == 60
    whole = [session for session in found if session.whole]
    assert 20 < len(whole) < 60
    assert {exported(one)["info"]["id"] for one in whole} == {one.session_id for one in whole}
    assert all(note.outcome == "refused" for note in report.notes)
    assert not report.complete


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 4000)
    report = Report()
    assert read(tmp_path / "opencode.db", report) == []
    assert not report.complete


def test_texts_that_are_no_unicode(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", ONE)
    db.execute(
        "UPDATE part SET data = CAST(? AS TEXT) WHERE id = 'prt_1'", (b'{"type":"text","text":"a\xed\xa0\xbdb"}',)
    )
    db.execute("UPDATE part SET data = CAST(? AS TEXT) WHERE id = 'prt_2'", (b'{"type":"text","text":"a\xffb"}',))
    report = Report()
    (session,) = read(tmp_path / "opencode.db", report)
    parts = [part for message in history(session).messages for part in message.parts]
    assert [part.text.text for part in parts[:2]] == ["a\ufffdb", "a\ufffdb"]
    assert exported(session)["messages"][0]["parts"][0]["text"] == "a\ud83db"
    db.close()
