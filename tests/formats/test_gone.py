"""Sessions that are gone from their source: kept and told, deleted only on demand and only if nothing was added."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import turnwire
from tests.formats.opencode.stores import add, database, tree
from tests.formats.opencode.test_database import ONE, named
from turnwire import errors
from turnwire.embedded import Embedded
from turnwire.formats import Outcome, Report, Wanted
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import Brought, bring

KEPT = "no longer in the source, kept"


@pytest.fixture
async def client() -> AsyncIterator[Embedded]:
    async with turnwire.open(":memory:") as opened:
        yield opened


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database with a session, one that it started, and one more."""
    opened = database(tmp_path / "opencode.db", ONE, named("2", parentID="ses_1"), named("3"))
    yield opened
    opened.close()


async def run(
    client: Embedded, path: Path, wanted: Wanted | None = None, *, remove: bool = False, dry: bool = False
) -> tuple[list[Brought], Report]:
    report = Report()
    sources = OPENCODE.sources(path, report)
    found = bring(client, OPENCODE, sources, report, wanted or Wanted(), remove_gone=remove, dry_run=dry, apart=False)
    return [one async for one in found], report


def drop(db: sqlite3.Connection, name: str) -> None:
    """Delete a session as opencode does."""
    for query in ("session WHERE id", "message WHERE session_id", "part WHERE session_id"):
        db.execute(f"DELETE FROM {query} = ?", (name,))


async def there(client: Embedded) -> set[str]:
    return {one.id async for one in client.list_sessions()}


async def test_it_stays_and_the_report_says_so(client: Embedded, db: sqlite3.Connection, tmp_path: Path) -> None:
    await run(client, tmp_path)
    drop(db, "ses_1")
    for _ in range(2):
        brought, report = await run(client, tmp_path)
        assert brought[-1] == Brought("ses_1", Outcome.LEFT, str(tmp_path / "opencode.db"))
        assert [(note.outcome, note.kind, note.id, note.reason) for note in report.notes] == [
            (Outcome.LEFT, "session", "ses_1", KEPT)
        ]
        assert report.complete
    assert await there(client) == {"ses_1", "ses_2", "ses_3"}


async def test_on_demand_it_is_deleted_and_what_it_started_is_not(
    client: Embedded, db: sqlite3.Connection, tmp_path: Path
) -> None:
    await run(client, tmp_path)
    drop(db, "ses_1")
    _, report = await run(client, tmp_path, remove=True, dry=True)
    assert (report.total(Outcome.REMOVED, "session"), len(await there(client))) == (1, 3)
    brought, report = await run(client, tmp_path, remove=True)
    assert brought[-1].outcome is Outcome.REMOVED
    assert (report.total(Outcome.REMOVED, "session"), report.notes) == (1, [])
    assert await there(client) == {"ses_2", "ses_3"}
    with pytest.raises(errors.SessionDeleted):
        await client.get_session("ses_1")


async def test_what_holds_more_than_its_source_brought_stays(
    client: Embedded, db: sqlite3.Connection, tmp_path: Path
) -> None:
    """Something that was added here, another source's share in it, and forks, which were made here."""
    await run(client, tmp_path)
    await client.update_session("ses_1", labels={"mine": "yes"})
    (tmp_path / "other").mkdir()
    other = json.loads(named("2", parentID="ses_1"))
    other["messages"][0]["parts"][0]["text"] = "another's"
    database(tmp_path / "other" / "opencode.db", json.dumps(other)).close()
    await run(client, tmp_path / "other")
    changed = json.loads(named("2", parentID="ses_1"))
    changed["messages"][0]["parts"][0]["text"] = "changed again"
    drop(db, "ses_2")
    add(db, json.dumps(changed))
    await run(client, tmp_path / "opencode.db")
    await client.fork_session("ses_3", new_session_id="ses_fork")
    for name in ("ses_1", "ses_2"):
        drop(db, name)
    _, report = await run(client, tmp_path / "opencode.db", remove=True)
    more = f"{KEPT}: it holds what this source did not bring"
    assert {note.id: note.reason for note in report.notes} == {"ses_1": more, "ses_2": more}
    assert await there(client) == {"ses_1", "ses_2", "ses_3", "ses_fork"}


async def test_nothing_is_gone_from_a_source_that_was_not_read_whole(
    client: Embedded, db: sqlite3.Connection, tmp_path: Path
) -> None:
    await run(client, tmp_path)
    drop(db, "ses_1")
    db.execute("UPDATE message SET data = '{' WHERE id = 'msg_31'")
    for wanted in (None, Wanted(frozenset({"ses_3"})), Wanted(since_ms=1)):
        _, report = await run(client, tmp_path, wanted, remove=True)
        assert report.total(Outcome.LEFT) == report.total(Outcome.REMOVED, "session") == 0
    assert await there(client) == {"ses_1", "ses_2", "ses_3"}


async def test_a_tree_whose_sessions_moved_into_a_database(client: Embedded, tmp_path: Path) -> None:
    """They are read from the database beside it, and are not gone from the tree; an export file is no store at all."""
    tree(tmp_path / "data" / "storage", ONE, named("2"))
    await run(client, tmp_path / "data")
    database(tmp_path / "data" / "opencode.db", ONE).close()
    _, report = await run(client, tmp_path / "data", remove=True)
    assert report.total(Outcome.LEFT, "session") == 0
    (tmp_path / "data" / "storage" / "session" / "p" / "ses_2.json").unlink()
    (tmp_path / "one.json").write_text(named("4"))
    await run(client, tmp_path / "one.json")
    (tmp_path / "one.json").write_text(named("5"))
    _, report = await run(client, tmp_path / "one.json", remove=True)
    assert report.notes == []
    assert await there(client) == {"ses_1", "ses_2", "ses_4", "ses_5"}
