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
from tests.formats.opencode.test_damaged_pages import damage
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
    for name in ("p", "q", "r", "s"):
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
