"""``turnwire validate`` of a store's file that is damaged beside its logs: each damage is found, and costs no more."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnwire
from tests.builders import THEN, assistant, clear, delta, made, put, revert, text, tool, turn, user
from tests.cli import flipping
from tests.cli.support import run
from turnwire import ids, v1
from turnwire.calls.validation import ValidationCalls
from turnwire.embedded import Embedded

BAD, GOOD = "ses_bad", "ses_good"
_A_STRETCH = "WHERE session = :key AND place = (SELECT max(place) FROM node WHERE session = :key AND mark = -1)"


def _changed(column: str, at: int) -> str:
    """A BLOB in which a byte, counted from 1, is another."""
    byte = f"substr({column}, {at}, 1)"
    other = f"iif({byte} = x'03', x'04', x'03')"
    return f"CAST(substr({column}, 1, {at - 1}) || {other} || substr({column}, {at + 1}) AS BLOB)"


_BEYOND = v1.AppendResponse(
    head=v1.Head(revision=152, digest=bytes(32), recorded=Timestamp(seconds=THEN))
).SerializeToString()
_ANOTHER = v1.AppendResponse(
    head=v1.Head(revision=7, digest=bytes(32), recorded=Timestamp(seconds=THEN))
).SerializeToString()


async def _made(path: Path) -> None:
    async with turnwire.open(path) as tw:
        for id in (BAD, GOOD):
            await tw.create_session(id, title="t", directory="/d", labels={"k": "v"})
            await tw.append(id, [turn(), user("u", text("p", "hello"))])
            await tw.append(id, [assistant("a", tool("c")), put("a", tool("c"))])
            for at in range(70):  # blocks of small entries, and stretches of the index
                await tw.append(id, [user(f"m{at}", text(f"q{at}", f"text {at}"))])
                await tw.append(id, [user(made(ids.MESSAGE, at), text(made(ids.PART, at)))])
            await tw.append(id, [delta("q69", 7, " more"), put("a", text("n", "new")), delta("q69", 12, "!")])
            await tw.append(id, [revert("m60"), clear(), revert("m65")], request_id="once")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "turnwire.db"
    asyncio.run(_made(path))
    return path


@pytest.fixture
def damaged(store: Path, tmp_path: Path) -> Any:
    """Copies the store, changes the copy by statements, and gives its path."""

    def change(*statements: str) -> Path:
        path = tmp_path / "turnwire.db"
        path.write_bytes(store.read_bytes())
        db = sqlite3.connect(path)
        ((key,),) = db.execute("SELECT key FROM session WHERE id = ?", (BAD,))
        for statement in statements:
            db.execute(statement.replace(":key", str(key)))
        db.commit()
        db.close()
        return path

    return change


def found(path: Path, *options: str, code: int = 1) -> list[tuple[str, str, str]]:
    ran = run("--json", "validate", path, *options)
    assert ran.code == code, ran
    return [(line["rule"], line.get("sessionId", ""), line.get("place", "")) for line in ran.lines[:-1]]


def test_a_sound_store(store: Path) -> None:
    ran = run("validate", store)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith(": sound\n")


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("DELETE FROM node WHERE session = :key", ["node"]),
        ("UPDATE node SET start = start + 1 WHERE session = :key", ["node"]),
        ("UPDATE node SET run = x'00' WHERE session = :key AND run IS NOT NULL", ["node"]),
        (f"UPDATE node SET start = start + 5 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET start = -1 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET length = length - 1 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET back = 1 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET delta = 1 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET grown = 1 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET mark = -2 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET mark = -3 {_A_STRETCH}", ["node"]),
        (f"UPDATE node SET turn = NULL {_A_STRETCH}", ["node"]),
        *((f"UPDATE node SET run = {_changed('run', at)} {_A_STRETCH}", ["node"]) for at in range(1, 30)),
        (f"UPDATE node SET run = x'' {_A_STRETCH}", ["node"]),
        ("UPDATE past SET length = length + 1 WHERE session = :key", ["past"]),
        ("DELETE FROM past WHERE session = :key", ["past"]),
        ("DELETE FROM name WHERE session = :key AND space = 3", ["name"]),
        ("UPDATE name SET place = x'01' WHERE session = :key AND space = 1", ["name"]),
        ("INSERT INTO name VALUES (:key, 9, 'more', 2, 1, x'', x'')", ["name"]),
        ("DELETE FROM series WHERE session = :key", ["name"]),
        ("UPDATE series SET last = first WHERE session = :key", ["name"]),
        ("UPDATE series SET names = substr(names, 2) WHERE session = :key", ["name"]),
        ("UPDATE series SET names = CAST(x'01000100' || zeroblob(22) AS BLOB) WHERE session = :key", ["name"]),
        ("DELETE FROM listed WHERE session = :key", ["listed"]),
        ("DELETE FROM span WHERE session = :key", ["span"]),
        ("UPDATE span SET ended = 5 WHERE session = :key", ["span"]),
        ("UPDATE detail SET directory = 'other' WHERE session = :key", ["detail"]),
        ("UPDATE detail SET archived = 1 WHERE session = :key", ["detail"]),
        ("INSERT INTO label VALUES (:key, 'x', 'y')", ["label"]),
        ("UPDATE label SET value = 'w' WHERE session = :key", ["label"]),
        ("UPDATE session SET revert = 2 WHERE key = :key", ["session"]),
        ("UPDATE session SET properties = 2 WHERE key = :key", ["session"]),
        ("UPDATE session SET ahead = 2 WHERE key = :key", ["session"]),
        ("UPDATE session SET ahead = -1 WHERE key = :key", ["session"]),
        ("UPDATE entry SET back = 77 WHERE pos = (:key << 32) + 1", ["entry"]),
        ("UPDATE entry SET digest = x'' WHERE mark = 0 AND pos >> 32 = :key", ["entry"]),
    ],
)
def test_the_index_contradicts_the_log(damaged: Any, statement: str, tables: list[str]) -> None:
    path = damaged(statement)
    assert found(path) == [("storage.index", BAD, f"table {table}") for table in tables]
    assert found(path, "--ignore", "storage.index", code=0) == []
    assert found(path, "--session", GOOD, code=0) == []


@pytest.mark.parametrize(
    "table",
    ["node", "past", "name", "series", "listed", "span", "detail", "label", "reply", "fresh_reply", "deleted"],
)
def test_a_table_is_missing(damaged: Any, table: str) -> None:
    ran = run("--json", "validate", damaged(f"DROP TABLE {table}"))
    assert ran.code == 1
    assert {line["rule"] for line in ran.lines[:-1]} == {"storage.table"}
    assert f"table {table}" in [line["value"] for line in ran.lines[:-1]]
    assert ran.lines[-1]["summary"]["sessions"] == 2


@pytest.mark.parametrize("table", ["session", "entry"])
def test_a_table_without_which_there_are_no_sessions(damaged: Any, table: str) -> None:
    assert {rule for rule, _, _ in found(damaged(f"DROP TABLE {table}"))} == {"storage.table"}


def test_an_index_of_a_table_is_missing(damaged: Any) -> None:
    assert found(damaged("DROP INDEX label_value")) == [("storage.table", "", "")]


def test_rows_without_a_session(damaged: Any) -> None:
    ran = run("--json", "validate", damaged("DELETE FROM session WHERE key = :key"))
    assert ran.code == 1
    (finding, summary) = ran.lines
    assert finding["rule"] == "storage.orphan"
    assert finding["value"] == "entry, detail, label, node, past, name, series, listed, span, fresh_reply"
    assert summary["summary"]["sessions"] == 1


@pytest.mark.parametrize("id", ["'bad id'", "''", "CAST(x'ff41' AS TEXT)", "hex(zeroblob(65))"])
def test_a_session_whose_id_is_none(damaged: Any, id: str) -> None:
    ran = run("--json", "validate", damaged(f"UPDATE session SET id = {id} WHERE key = :key"))
    assert (ran.code, ran.err) == (1, "")
    assert [line["rule"] for line in ran.lines[:-1]] == ["storage.id"]
    assert ran.lines[-1]["summary"]["sessions"] == 1


def test_another_time_to_count_from_is_one_finding(damaged: Any) -> None:
    path = damaged("UPDATE session SET first_us = first_us + 5000000 WHERE key = :key")
    assert found(path) == [("session.digest", BAD, "")]
    # The digest does not hold, so that nothing is said of what the log comes to, whoever wants to hear of it.
    assert found(path, "--select", "storage.index", code=0) == []


def test_a_session_that_was_deleted_and_is_there(damaged: Any) -> None:
    path = damaged("INSERT INTO deleted SELECT tenant, id FROM session WHERE key = :key")
    (finding, _) = run("--json", "validate", path).lines
    assert (finding["rule"], finding["value"]) == ("storage.deleted", f'"{BAD}"')


@pytest.mark.parametrize("id", ["''", "'bad id'", "CAST(x'ff41' AS TEXT)"])
def test_a_session_that_was_deleted_and_whose_id_is_none(damaged: Any, id: str) -> None:
    assert found(damaged(f"INSERT INTO deleted VALUES ('', {id})")) == [("storage.id", "", "table deleted")]


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ("method = 'Wish'", "a method of the service"),
        ("sha256 = x'00'", "a SHA-256 of the request, in 32 bytes"),
        ("response = x'ff'", "a serialized turnwire.v1.AppendResponse"),
        ("response = x'0a020800'", "a serialized turnwire.v1.AppendResponse, whose results[0].revision must be"),
        ("response = x''", "a serialized turnwire.v1.AppendResponse with the session's head"),
        (f"response = x'{_BEYOND.hex()}'", "a head up to revision 151"),
        (f"response = x'{_ANOTHER.hex()}'", "the digest that the log has at revision 7"),
        ("method = 'CreateSession', response = x''", "a serialized turnwire.v1.CreateSessionResponse with the session"),
        ("method = 'MutatePrompt', response = x''", "a serialized turnwire.v1.PromptEnd with the session's head"),
        ("request_id = ''", "the id of a request"),
    ],
)
@pytest.mark.parametrize("table", ["reply", "fresh_reply"])
def test_a_reply_that_is_none(damaged: Any, table: str, change: str, right: str) -> None:
    kept = "session, request_id, method, sha256, response"
    sort_in = (f"INSERT INTO reply SELECT {kept} FROM fresh_reply", "DELETE FROM fresh_reply")
    first = sort_in if table == "reply" else ()
    path = damaged(*first, f"UPDATE {table} SET {change} WHERE session = :key")
    finding = run("--json", "validate", path).lines[0]
    assert (finding["rule"], finding["sessionId"]) == ("storage.reply", BAD)
    assert finding["place"].endswith('to request "once"') or "request_id" in change
    assert finding["expected"].startswith(right)
    assert len(found(path)) == 1


def test_the_replies_of_all_methods_are_sound(tmp_path: Path) -> None:
    path = tmp_path / "turnwire.db"
    asyncio.run(_asked(path))
    assert found(path, code=0) == []
    db = sqlite3.connect(path)
    methods = db.execute("SELECT method FROM reply UNION SELECT method FROM fresh_reply ORDER BY 1").fetchall()
    db.close()
    assert [method for (method,) in methods] == [
        *("Append", "CreateSession", "ForkSession", "MutatePrompt", "RenderPrompt", "UpdateSession")
    ]


async def _asked(path: Path) -> None:
    async with turnwire.open(path) as tw:
        await tw.create_session(GOOD, request_id="r")
        await tw.append(GOOD, [turn("t"), user("u", text("p", "hello"), turn="t")], request_id="r")
        for at in range(9):
            await tw.append(GOOD, [user(f"m{at}", text(f"q{at}"), turn="t")], request_id=f"r{at}")
        await tw.update_session(GOOD, title="other", request_id="r")
        await tw.fork_session(GOOD, 3, request_id="r")
        prompt = await tw.mutate_prompt(GOOD, "t", [], request_id="r")
        await tw.render_prompt(GOOD, "openai-chat", prompt_id=prompt.record.id, record=True, request_id="r")


def test_entries_without_a_digest_are_a_note(tmp_path: Path) -> None:
    """As a process leaves them that is killed: the file as it is while another has it open."""
    path = tmp_path / "copy.db"
    asyncio.run(_copied(tmp_path / "turnwire.db", path))
    ran = run("--json", "validate", path)
    (finding, summary) = ran.lines
    assert (ran.code, finding["rule"], finding["value"]) == (0, "storage.no_digest", "revisions 66 to 72")
    assert summary["summary"]["entries"] == 72


async def _copied(path: Path, copy: Path) -> None:
    async with turnwire.open(path) as tw:
        await tw.create_session(GOOD)
        await tw.append(GOOD, [turn()])
        for at in range(70):
            await tw.append(GOOD, [user(f"m{at}", text(f"q{at}", f"text {at}"))])
        for end in ("", "-wal"):
            copy.with_name(copy.name + end).write_bytes(path.with_name(path.name + end).read_bytes())


def test_sessions_of_other_tenants_are_counted(damaged: Any) -> None:
    path = damaged("UPDATE session SET tenant = 'other' WHERE key = :key")
    ran = run("--json", "validate", path)
    assert ran.code == 0
    assert [(line["rule"], line["value"]) for line in ran.lines[:-1]] == [("storage.tenants", "1 session")]


def test_a_fault_costs_one_session_and_is_no_finding(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ValidationCalls.validate_session

    def faulty(self: Embedded, session_id: str, **options: Any) -> Any:
        if session_id == BAD:
            raise ZeroDivisionError("secret content")
        return right(self, session_id, **options)

    monkeypatch.setattr(ValidationCalls, "validate_session", faulty)
    ran = run("validate", store)
    assert ran.code == 2
    assert "fault of the program: ZeroDivisionError" in ran.err
    assert "secret" not in ran.err
    assert "1 session" in ran.out


def test_what_forks_and_restarts_leave_is_what_the_log_comes_to(tmp_path: Path) -> None:
    """A fork at every revision, also between a message and its turn; each gets that turn afterwards."""
    path = tmp_path / "turnwire.db"
    asyncio.run(_forked(path))
    assert found(path, "--select", "storage", code=0) == []


async def _forked(path: Path) -> None:
    async with turnwire.open(path) as tw:
        await tw.create_session("ses_0")
        await tw.append("ses_0", [user("u", text("p")), assistant("a", text("q")), turn()])
        await tw.append("ses_0", [revert("a")])
        await tw.append("ses_0", [user("w")])
        for revision in range(1, (await tw.get_session("ses_0")).head.revision + 1):
            id = f"ses_{revision}"
            await tw.fork_session("ses_0", revision, new_session_id=id)
            await tw.append(id, [turn("late"), user("x", turn="late")])
            if revision in (2, 3):
                await tw.append(id, [turn()])


def test_a_damaged_page_of_the_index_is_told_once(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "turnwire.db"
    db = sqlite3.connect(store)
    ((root, size),) = db.execute(
        "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = 'node' AND type = 'table'"
    )
    db.close()
    data = bytearray(store.read_bytes())
    data[(root - 1) * size : (root - 1) * size + 16] = b"\xee" * 16
    path.write_bytes(data)
    rules = [rule for rule, _, _ in found(path)]
    assert rules.count("storage.unreadable") == 1
    assert set(rules) == {"storage.database", "storage.unreadable"}


def test_a_damaged_page_of_the_deleted_stops_nothing(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "turnwire.db"
    db = sqlite3.connect(store)
    ((root, size),) = db.execute(
        "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = 'deleted' AND type = 'table'"
    )
    db.close()
    data = bytearray(store.read_bytes())
    data[(root - 1) * size : (root - 1) * size + 16] = b"\xee" * 16
    path.write_bytes(data)
    ran = run("--json", "validate", path)
    assert (ran.code, {line["rule"] for line in ran.lines[:-1]}) == (1, {"storage.database"})
    assert ran.lines[-1]["summary"]["sessions"] == 2


def test_the_bytes_around_what_a_replay_sends_are_those_of_no_payload(store: Path, tmp_path: Path) -> None:
    """Of a block each byte is changed by itself: all are found but those that nothing reads."""
    path = tmp_path / "turnwire.db"
    path.write_bytes(store.read_bytes())
    db = sqlite3.connect(path)
    where = "mark = 0 AND pos >> 32 = (SELECT key FROM session WHERE id = ?)"
    pos, block = db.execute(f"SELECT pos, payload FROM entry WHERE {where} ORDER BY pos LIMIT 1", (BAD,)).fetchone()
    (start, length) = db.execute(
        "SELECT start, length FROM node WHERE mark = -1 AND session = ? AND revision = ? ORDER BY start LIMIT 1",
        (pos >> 32, pos & 0xFFFFFFFF),
    ).fetchone()
    for at in (start, start + 1, start + 2, start + 3, start + length - 1):
        changed = bytearray(block)
        changed[at] ^= 1
        db.execute("UPDATE entry SET payload = ? WHERE pos = ?", (bytes(changed), pos))
        db.commit()
        ran = run("--json", "validate", path)
        assert ran.code == 1, at
    db.close()


@pytest.mark.parametrize(
    ("index", "table"), [("label_value", "label"), ("detail_directory", "detail"), ("entry_foreign", "entry")]
)
def test_an_index_of_a_table_lacks_rows(store: Path, tmp_path: Path, index: str, table: str) -> None:
    path = tmp_path / "turnwire.db"
    path.write_bytes(store.read_bytes())
    db = sqlite3.connect(path, isolation_level=None)
    if table == "entry":
        db.execute("UPDATE entry SET mark = 200 WHERE mark = 0")  # and so every block is foreign, too
    db.execute("PRAGMA writable_schema = ON")
    ((text,),) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,))
    without = text.partition(" WHERE ")[0] + " WHERE 0"
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (without, index))
    db.execute("PRAGMA schema_version = 1001")
    db.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("REINDEX")
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (text, index))
    db.execute("PRAGMA schema_version = 1002")
    db.close()
    findings = [line for line in run("--json", "validate", path).lines if line.get("rule") == "storage.database"]
    assert findings
    assert all(index in finding["value"] for finding in findings)


@pytest.mark.parametrize("column", ["head", "first_us", "properties", "digest", "tenant"])
def test_a_session_whose_row_holds_nothing(damaged: Any, column: str) -> None:
    """As one flipped bit can make it: in the table's own description the columns may be NULL."""
    text = "UPDATE sqlite_master SET sql = replace(replace(sql, 'NOT NULL', ''), 'STRICT', '') WHERE name = 'session'"
    path = damaged("PRAGMA writable_schema = ON", text)
    db = sqlite3.connect(path)
    db.execute(f"UPDATE session SET {column} = NULL WHERE id = ?", (BAD,))
    db.commit()
    db.close()
    ran = run("--json", "validate", path)
    assert ran.code == 1
    assert "fault" not in ran.err
    assert all(line.get("sessionId", BAD) != GOOD for line in ran.lines)
    rules = {line["rule"] for line in ran.lines[:-1]}
    assert rules - {"storage.database"} == {
        "storage.table",
        "storage.id" if column == "tenant" else "storage.unreadable",
    }


def test_a_text_that_is_no_utf_8(damaged: Any) -> None:
    bad = "CAST(x'ff41' AS TEXT)"
    assert found(damaged(f"UPDATE listed SET id = {bad} WHERE session = :key")) == [
        ("storage.index", BAD, "table listed")
    ]
    (reply,) = found(damaged(f"UPDATE fresh_reply SET method = {bad} WHERE session = :key"))
    assert reply[:2] == ("storage.reply", BAD)
    ran = run("validate", damaged("PRAGMA writable_schema = ON", f"UPDATE sqlite_master SET sql = {bad}"))
    assert (ran.code, "fault" in ran.err, "malformed database schema" in ran.err) == (2, False, True)


_Small = tuple[Path, bytes, object, list[int]]  # its path, its bytes, what readers get, the bits that mean something


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> _Small:
    path = tmp_path_factory.mktemp("flipped") / "turnwire.db"
    asyncio.run(flipping.make(path))
    data = path.read_bytes()
    right = asyncio.run(flipping.seen(path))
    assert flipping.wrong(path, right) == ""
    return path, data, right, flipping.bits(data)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_flipped_bit_is_told_of_or_harmless(small: _Small, data: st.DataObject) -> None:
    path, whole, right, bits = small
    path.write_bytes(flipping.flip(whole, data.draw(st.sampled_from(bits))))
    assert flipping.wrong(path, right) == ""
