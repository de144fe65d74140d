"""A database that is imported while it is sound, then damaged, then healed: what is in the store stays throughout."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.formats.opencode.stores import add, add_message, database, insert
from tests.formats.opencode.test_damaged_pages import damage, hide
from tests.formats.samples import assistant, document, exact, text, user
from turnwire import v1
from turnwire.embedded import Embedded
from turnwire.formats import Outcome, Report, stored
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import bring

COUNT = 40
IDS = [f"ses_{number}" for number in range(100, 100 + COUNT)]


@pytest.fixture
async def client() -> AsyncIterator[Embedded]:
    async with turnwire.open(":memory:") as opened:
        yield opened


def session(number: int) -> str:
    """An export of one session: a user message with a summary, and two answers."""
    one, two, three = (f"msg_{number}{each}" for each in range(3))
    whole = json.loads(
        document(
            user(one, text(f"prt_{number}0", "hello " * 20), summary={"title": "asked", "diffs": []}),
            assistant(two, text(f"prt_{number}1", "done " * 40), at=1001, parent=one),
            assistant(three, text(f"prt_{number}2", "more " * 40), at=1002, parent=one),
            title=f"T{number}" + "t" * 300,
            projectID="p",
        ).replace("ses_1", f"ses_{number}")
    )
    return json.dumps(whole)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of many sessions, each with a todo, a share and the project."""
    path = tmp_path_factory.mktemp("original") / "opencode.db"
    db = database(path)
    db.execute("PRAGMA synchronous=OFF")
    db.execute("CREATE INDEX todo_session_idx ON todo (session_id)")
    stamps = {"time_created": 1, "time_updated": 1}
    for name in ("q", "r", "s", "p"):
        insert(db, "project", {"id": name, "worktree": f"/tmp/{name}", "vcs": "git", "sandboxes": "[]", **stamps})
    for number in range(100, 100 + COUNT):
        add(db, session(number))
        name = f"ses_{number}"
        todo = {"session_id": name, "content": "do it", "status": "pending", "priority": "low", "position": 0}
        insert(db, "todo", todo | stamps)
        insert(db, "session_share", {"session_id": name, "id": f"shr_{number}", "secret": "s", "url": "u"} | stamps)
    db.close()
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    """A copy of `original`."""
    return shutil.copyfile(original, tmp_path / "opencode.db")


async def run(client: Embedded, path: Path, *, apart: bool = False) -> Report:
    report = Report()
    async for _ in bring(client, OPENCODE, OPENCODE.sources(path, report), report, apart=apart):
        pass
    return report


async def exports(client: Embedded) -> dict[str, Any]:
    names = [one.id async for one in client.list_sessions()]
    return {name: exact(OPENCODE.export(await stored.history(client, name))) for name in names}


def counted(report: Report) -> dict[str, int]:
    """How many objects of each kind stand in the report, whatever became of them."""
    fates = (Outcome.IMPORTED, Outcome.UNCHANGED, Outcome.UPDATED, Outcome.REMOVED, Outcome.REFUSED, Outcome.LEFT)
    return {
        kind: sum(report.total(fate, kind) for fate in fates)
        for kind in ("session", "turn", "message", "part", "summary")
    }


async def heads(client: Embedded) -> dict[str, int]:
    return {one.id: one.head.revision async for one in client.list_sessions()}


async def test_damaged_heads_change_nothing_that_is_there(client: Embedded, original: Path, path: Path) -> None:
    await run(client, path)
    before = await heads(client)
    damage(path, "session", fill=b"\0")
    report = await run(client, path)
    refused = [note for note in report.notes if note.outcome is Outcome.REFUSED]
    assert 0 < len(refused) < COUNT
    assert {(note.kind, note.reason) for note in refused} == {("session", "database disk image is malformed")}
    assert counted(report) == {
        "session": COUNT,
        "turn": COUNT,
        "message": 3 * COUNT,
        "part": 3 * COUNT,
        "summary": COUNT,
    }
    assert report.total(Outcome.UNCHANGED, "session") == COUNT - len(refused)
    assert await heads(client) == before
    shutil.copyfile(original, path)
    assert (await run(client, path)).complete
    assert await heads(client) == before


HIDDEN = "an index lists it, and its table does not have it"


def refused(report: Report) -> set[tuple[str, str, str]]:
    """What was refused: kinds, ids and reasons."""
    return {(note.kind, note.id, note.reason) for note in report.notes if note.outcome is Outcome.REFUSED}


@pytest.mark.parametrize("table", ["session", "message", "part", "project"])
async def test_hidden_rows_are_refused_and_stay_in_the_store(
    client: Embedded, original: Path, path: Path, table: str
) -> None:
    """A page that says it has half of its rows can be read, and the indexes tell that there are others."""
    await run(client, path)
    before, revisions = await exports(client), await heads(client)
    hide(path, table)
    report = await run(client, path)
    lost = {name for kind, name, reason in refused(report) if reason == HIDDEN}
    kind = "table" if table == "project" else table
    assert {(kind, name, HIDDEN) for name in lost} <= refused(report)
    assert lost == {"p"} if table == "project" else 0 < len(lost) < COUNT
    assert await exports(client) == before
    async with turnwire.open(":memory:") as fresh:
        first = await run(fresh, path)
        assert refused(first) == refused(report)
        again = await run(fresh, path)
        assert counted(first) == counted(again)
        assert not any(again.total(fate) for fate in (Outcome.IMPORTED, Outcome.UPDATED, Outcome.REMOVED))
        if table != "message":
            assert counted(first)["message"] == counted(first)["part"] == 3 * COUNT
            assert counted(first)["session"] == counted(first)["turn"] == COUNT
        found = await exports(fresh)
        assert found.keys() == before.keys()
        names = {each["info"]["id"] for one in before.values() for each in one["messages"]}
        there = {each["info"]["id"] for one in found.values() for each in one["messages"]}
        assert names - there == (lost if table == "message" else set())
        parts = {part["id"] for one in before.values() for each in one["messages"] for part in each["parts"]}
        there = {part["id"] for one in found.values() for each in one["messages"] for part in each["parts"]}
        assert (parts - there == lost) if table == "part" else (parts == there or table == "message")
        shutil.copyfile(original, path)
        assert (await run(fresh, path)).complete
        assert await exports(fresh) == before
    assert await heads(client) == revisions


@pytest.mark.parametrize("table", ["part", "message"])
async def test_rows_that_the_index_by_session_hides_too(client: Embedded, path: Path, table: str) -> None:
    """The index by id tells of them, and nothing whose they are: no session is taken to be whole."""
    await run(client, path)
    before, there = await heads(client), await exports(client)
    for each in (table, {"part": "part_session_idx", "message": "message_session_time_created_id_idx"}[table]):
        hide(path, each, rest=3)
    report = await run(client, path)
    assert 0 < len({name for kind, name, reason in refused(report) if (kind, reason) == (table, HIDDEN)}) < COUNT
    assert not report.total(Outcome.REMOVED)
    assert await heads(client) == before
    assert await exports(client) == there


def execute(path: Path, query: str, *values: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(query, values)


@pytest.mark.parametrize("part", [None, "prt_1002"])
@pytest.mark.parametrize("name", ["msg_1000", "msg_1002"])
async def test_links_to_a_message_that_cannot_be_read_stay(
    client: Embedded, path: Path, name: str, part: str | None
) -> None:
    """Answers keep the message that they answer and its turn, and a revert the message or part that it goes back to."""
    revert = {"messageID": "msg_1002", "snapshot": "x"} | ({"partID": part} if part is not None else {})
    execute(path, "UPDATE session SET revert = ? WHERE id = 'ses_100'", json.dumps(revert))
    (data,) = sqlite3.connect(path).execute("SELECT data FROM message WHERE id = ?", (name,)).fetchone()
    await run(client, path)
    before, revisions = await exports(client), await heads(client)
    execute(path, "UPDATE message SET data = '{' || data WHERE id = ?", name)
    report = await run(client, path, apart=True)
    assert ("message", name) in {(kind, id) for kind, id, _ in refused(report)}
    assert await heads(client) == revisions
    # What else changes is brought, with the links that are known.
    execute(path, "UPDATE message SET data = replace(data, 'stop', 'length') WHERE id = 'msg_1001'")
    later = assistant("msg_1003", text("prt_1003"), at=1003, parent="msg_1000")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        add_message(db, "ses_100", later)
    assert (await run(client, path)).total(Outcome.IMPORTED) == 2
    history = await stored.history(client, "ses_100")
    messages = {one.id: one for one in history.messages}
    turn = messages["msg_1000"].turn_id
    for each in ("msg_1001", "msg_1002", "msg_1003"):
        found = messages[each]
        assert isinstance(found, v1.Assistant)
        assert (found.parent_id, found.turn_id, "parentID" in found.extra_json) == ("msg_1000", turn, False)
    changed = messages["msg_1001"]
    assert isinstance(changed, v1.Assistant)
    assert changed.result.finish == "length"
    assert history.revert is not None
    assert (history.revert.message_id, history.revert.part_id) == ("msg_1002", part or "")
    execute(path, "UPDATE message SET data = ? WHERE id = ?", data, name)
    healed = await run(client, path)
    assert (healed.complete, healed.total(Outcome.UPDATED)) == (True, 0)
    after = await exports(client)
    assert after.keys() == before.keys()
    assert len(after["ses_100"]["messages"]) == 4


async def test_a_revert_that_is_cleared_in_the_source_is_cleared_though_a_part_is_damaged(
    client: Embedded, path: Path
) -> None:
    execute(path, "UPDATE session SET revert = ? WHERE id = 'ses_100'", json.dumps({"messageID": "msg_1001"}))
    await run(client, path)
    execute(path, "UPDATE part SET data = '{' || data WHERE id = 'prt_1001'")
    execute(path, "UPDATE session SET revert = NULL WHERE id = 'ses_100'")
    report = await run(client, path)
    assert report.total(Outcome.REMOVED, "revert") == 1
    assert (await stored.history(client, "ses_100")).revert is None


async def test_a_head_that_cannot_be_read_leaves_the_revert(client: Embedded, path: Path) -> None:
    execute(path, "UPDATE session SET revert = ? WHERE id = 'ses_100'", json.dumps({"messageID": "msg_1001"}))
    await run(client, path)
    before = await heads(client)
    damage(path, "session", fill=b"\0")
    assert "ses_100" in {id for _, id, _ in refused(await run(client, path))}
    assert await heads(client) == before


async def test_an_export_whose_head_is_damaged_keeps_the_head_that_is_there(client: Embedded, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(session(100))
    await run(client, file)
    before = await heads(client)
    file.write_text(session(100).replace('"title": "T100', '"title": x"T100', 1))
    report = await run(client, file)
    assert {kind for kind, _, _ in refused(report)} == {"session"}
    assert (report.total(Outcome.REFUSED), report.total(Outcome.UNCHANGED, "session")) == (1, 0)
    assert await heads(client) == before
