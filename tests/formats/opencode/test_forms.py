"""Every database and every tree of the corpora: through a store, and out as the exports of the same sessions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.formats.samples import CORPORA, NO_CORPORA, content, exact, export_files
from turnwire.formats import Outcome, Report, extras, sessions, stored
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import bring

pytestmark = pytest.mark.skipif(not export_files(), reason=NO_CORPORA)


def stores() -> list[Path]:
    """The databases and storage trees."""
    return sorted([*CORPORA.glob("opencode-*/*/raw/opencode.db*"), *CORPORA.glob("opencode-*/*/raw/storage")])


def name_of(path: Path) -> str:
    return "/".join(path.relative_to(CORPORA).parts[:2])


def exports(folder: Path) -> dict[str, Any]:
    """The exports in a folder by the ids of their sessions."""
    trees = [exact(content(file)) for file in folder.glob("exports/*.json*")]
    return {tree["info"]["id"]: tree for tree in trees}


async def through(client: turnwire.Embedded, path: Path, report: Report) -> dict[str, Any]:
    """Import what is at a path, and export all of it."""
    found: dict[str, Any] = {}
    async for one in bring(client, OPENCODE, OPENCODE.sources(path, report), report, apart=False):
        found[one.session_id] = exact(OPENCODE.export(await stored.history(client, one.session_id)))
    return found


@pytest.mark.parametrize("path", stores(), ids=name_of)
async def test_a_store_comes_out_as_its_exports(path: Path) -> None:
    report = Report()
    async with turnwire.open(":memory:") as client:
        found = await through(client, path, report)
        again = Report()
        assert await through(client, path, again) == found
    assert report.complete
    assert again.total(Outcome.UNCHANGED, "session") == report.total(Outcome.IMPORTED, "session") == len(found)
    expected = exports(path.parents[1])
    if name_of(path) == "opencode-1.18.33/upgraded-from-1.2.27-cli-multiturn":
        # Never exported. 1.18 computed two more members of the sessions that 1.2.27 had exported.
        expected = exports(CORPORA / "opencode-1.2.27" / "migrated-from-1.1.65-cli-multiturn")
        for tree in found.values():
            assert float(tree["info"].pop("cost")) >= 0
            assert set(tree["info"].pop("tokens")) == {"input", "output", "reasoning", "cache"}
    assert found.keys() == expected.keys()
    for session_id, tree in expected.items():
        assert found[session_id] == tree, session_id


@pytest.mark.parametrize("path", sorted(CORPORA.glob("opencode-1.18.33/cli-*/raw/opencode.db*")), ids=name_of)
def test_a_database_and_the_export_give_equal_bytes(path: Path) -> None:
    """But for what stands beside a session: so importing the one after the other finds nothing new."""
    by_id = {one.session_id: one for one in sessions(OPENCODE, path.parents[1] / "exports", Report())}
    for one in sessions(OPENCODE, path, Report()):
        exported = by_id[one.session_id]
        assert [entry.SerializeToString(deterministic=True) for entry in one.entries] == [
            entry.SerializeToString(deterministic=True) for entry in exported.entries
        ]
        spaces = extras.spaces(one.properties.extra_json)
        assert spaces["opencode"] == extras.spaces(exported.properties.extra_json)["opencode"]


async def test_all_of_the_corpora_at_once() -> None:
    """A directory of all: what other forms bring of a session is the same, but for what only one of them has."""
    report = Report()
    async with turnwire.open(":memory:") as client:
        outcomes: Counter[str] = Counter()
        async for one in bring(client, OPENCODE, OPENCODE.sources(CORPORA, report), report, apart=True):
            outcomes[one.outcome] += 1
        assert outcomes.total() == 300 + 197 + 102
        assert outcomes[Outcome.REFUSED] == 0
        children = [one async for one in client.list_sessions() if one.properties.HasField("parent")]
        linked = [one for one in children if one.properties.parent.HasField("part_id")]
        assert (len(children), len(linked)) == (16, 15)
        for child in linked:
            history = await client.history(child.properties.parent.session_id)
            parts = {part.id: part for message in history.messages for part in message.parts}
            task = parts[child.properties.parent.part_id].tool
            assert task.name == "task"
            assert child.id in task.metadata_json
