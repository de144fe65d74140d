"""A database that is imported while it is sound, then damaged, then healed: what is in the store stays throughout."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.formats.opencode.stores import add, database, insert
from tests.formats.opencode.test_damaged_pages import damage, hide
from tests.formats.samples import assistant, document, exact, text, user
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


async def run(client: Embedded, path: Path) -> Report:
    report = Report()
    async for _ in bring(client, OPENCODE, OPENCODE.sources(path, report), report, apart=False):
        pass
    return report


async def exports(client: Embedded) -> dict[str, Any]:
    names = [one.id async for one in client.list_sessions()]
    return {name: exact(OPENCODE.export(await stored.history(client, name))) for name in names}


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
        assert refused(await run(fresh, path)) == refused(report)
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
    if table != "message":
        assert await heads(client) == revisions


@pytest.mark.parametrize("table", ["part", "message"])
async def test_rows_that_the_index_by_session_hides_too(client: Embedded, path: Path, table: str) -> None:
    """The index by id tells of them, and nothing whose they are: no session is taken to be whole."""
    await run(client, path)
    before = await heads(client)
    for each in (table, {"part": "part_session_idx", "message": "message_session_time_created_id_idx"}[table]):
        hide(path, each, rest=3)
    report = await run(client, path)
    assert 0 < len({name for kind, name, reason in refused(report) if (kind, reason) == (table, HIDDEN)}) < COUNT
    assert not report.total(Outcome.REMOVED)
    assert (await heads(client)).keys() == before.keys()
