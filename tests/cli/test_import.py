"""``turnwire import opencode``: again, half, beside others, and what is wrong with a file."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import DATA, EXPORT, SESSION, run, serving
from turnwire import errors, v1
from turnwire.embedded import open as open_store
from turnwire.engine import Limits
from turnwire.formats import ledger
from turnwire.formats.base import SessionImport, sessions
from turnwire.formats.load import BATCH_BYTES, BATCH_ENTRIES, batches, load
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import Brought, bring
from turnwire.formats.report import Outcome, Report


def imported(file: Path = EXPORT) -> SessionImport:
    report = Report()
    (session,) = sessions(OPENCODE, file, report)
    return session


def test_for_people_and_again(tmp_path: Path) -> None:
    args = ("--db", tmp_path / "new" / "a.db", "import", "opencode", EXPORT)
    first = run(*args)
    assert (first.code, first.err) == (0, "")
    assert first.out == "1 source read\nimported: 1 session, 3 turns, 9 messages, 25 parts, 3 summaries\n"
    again = run(*args)
    assert (again.code, again.out) == (0, first.out.replace("imported", "unchanged"))


def test_for_scripts(tmp_path: Path) -> None:
    args = ("--db", tmp_path / "a.db", "--json", "import", "opencode", EXPORT)
    line, report = run(*args).lines
    assert line == {"sessionId": SESSION, "outcome": "imported", "source": str(EXPORT)}
    assert report["counts"]["imported"] == {"session": 1, "turn": 3, "message": 9, "part": 25, "summary": 3}
    assert report["notes"] == []


def test_again_after_a_prompt_was_recorded(db: Path) -> None:
    assert run("--db", db, "prompt", SESSION, "--record").code == 0
    ran = run("--db", db, "import", "opencode", EXPORT)
    assert (ran.code, ran.out.splitlines()[1].startswith("unchanged: 1 session")) == (0, True)
    assert run("--db", db, "show", SESSION, "--json").lines[-1]["head"]["revision"] == "17"


def test_what_changed_in_the_source_is_an_update(db: Path, tmp_path: Path) -> None:
    other = json.loads(EXPORT.read_text())
    other["info"]["title"] = "changed"
    other["messages"][3]["parts"][0]["text"] = "changed"
    file = tmp_path / "other.json"
    file.write_text(json.dumps(other, ensure_ascii=False))
    dry = run("--db", db, "import", "opencode", file, "--dry-run")
    assert dry.out.splitlines()[1:] == [
        *("unchanged: 3 turns, 9 messages, 24 parts, 3 summaries", "updated: 1 session, 1 part")
    ]
    assert run("--db", db, "import", "opencode", EXPORT, "--json").lines[0]["outcome"] == "unchanged"
    ran = run("--db", db, "import", "opencode", file, "--json")
    assert (ran.code, ran.lines[0]["outcome"]) == (0, "updated")
    exported = run("--db", db, "export", SESSION, "--format", "opencode")
    assert json.loads(exported.out) == other


def test_a_session_made_here_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.db"

    async def make() -> None:
        async with open_store(file) as store:
            await store.create_session(SESSION, title="mine")

    asyncio.run(make())
    ran = run("--db", file, "import", "opencode", EXPORT, DATA / "compaction.json", "--json")
    assert ran.code == 1
    assert [line["outcome"] for line in ran.lines[:-1]] == ["refused", "imported"]
    (note,) = ran.lines[-1]["notes"]
    assert (note["id"], note["reason"]) == (
        *(SESSION, "a session of this id exists, and was not imported from this program"),
    )


def test_single_sessions_and_those_that_changed_since(tmp_path: Path) -> None:
    args = ("--db", tmp_path / "a.db", "import", "opencode", DATA, "--json", "--dry-run")
    assert [line["sessionId"] for line in run(*args, "--session", SESSION).lines[:-1]] == [SESSION]
    assert len(run(*args).lines) == 7
    assert len(run(*args, "--since", "2100-01-01").lines) == 1
    assert len(run(*args, "--since", "2000-01-01").lines) == 7
    assert not (tmp_path / "a.db").exists()
    assert run(*args, "--since", "soon").code == 2


def test_a_deleted_session_is_refused(db: Path) -> None:
    assert run("--db", db, "delete", SESSION, "--yes").code == 0
    ran = run("--db", db, "import", "opencode", EXPORT)
    assert ran.code == 1
    assert "was deleted, and its id is never used again" in ran.out


def test_one_bad_file_stops_no_other(tmp_path: Path) -> None:
    for name, content in (("cut.json", EXPORT.read_bytes()[:900]), ("other.json", b"[1]"), ("empty.json", b"")):
        (tmp_path / name).write_bytes(content)
    bad = [tmp_path / name for name in ("cut.json", "other.json", "empty.json", "none.json")]
    ran = run("--db", tmp_path / "a.db", "import", "opencode", *bad, EXPORT, "--json")
    assert ran.code == 1
    assert ran.lines[-2] == {"sessionId": SESSION, "outcome": "imported", "source": str(EXPORT)}
    refused = {Path(note["source"]).name for note in ran.lines[-1]["notes"] if note["outcome"] == "refused"}
    assert refused == {"cut.json", "other.json", "empty.json", "none.json"}


def test_directories_and_gzip(tmp_path: Path) -> None:
    inside = tmp_path / "exports" / "deep"
    inside.mkdir(parents=True)
    (inside / "one.json.gz").write_bytes(gzip.compress(EXPORT.read_bytes()))
    (inside / "notes.json").write_text("{}")
    (inside / "two.json").write_bytes((DATA / "compaction.json").read_bytes())
    ran = run("--db", tmp_path / "a.db", "import", "opencode", tmp_path / "exports")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "2 sources read")
    (tmp_path / "bare").mkdir()
    ran = run("--db", tmp_path / "a.db", "import", "opencode", tmp_path / "bare")
    assert ran.code == 1
    assert "nothing of opencode's is there" in ran.out


def test_a_part_over_the_limit_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwire.cli.source.open_store", partial(open_store, limits=Limits(part_bytes=10_000)))
    large = json.loads(EXPORT.read_text().replace(SESSION, "ses_large"))
    large["messages"][0]["parts"][0]["text"] = "x" * 10_000
    name = large["messages"][0]["parts"][0]["id"]
    file = tmp_path / "large.json"
    file.write_text(json.dumps(large))
    args = ("--db", tmp_path / "a.db", "import", "opencode", file, EXPORT, "--json")
    heads: list[str] = []
    for outcomes in (["imported", "imported"], ["unchanged", "unchanged"]):
        ran = run(*args)
        assert ran.code == 1
        assert [line["outcome"] for line in ran.lines[:-1]] == outcomes
        (note,) = ran.lines[-1]["notes"]
        assert (note["kind"], note["id"]) == ("part", name)
        assert note["reason"].startswith("PART_TOO_LARGE: ")
        heads.append(run("--db", tmp_path / "a.db", "show", "ses_large", "--json").lines[-1]["head"]["revision"])
    assert heads[0] == heads[1]
    del large["messages"][0]["parts"][0]
    assert json.loads(run("--db", tmp_path / "a.db", "export", "ses_large", "--format", "opencode").out) == large


def test_every_corpus_export_is_taken_and_is_unchanged_again(tmp_path: Path) -> None:
    args = ("--db", tmp_path / "a.db", "import", "opencode", DATA, "--json")
    first, again = run(*args), run(*args)
    outcomes = {line["outcome"] for line in first.lines[:-1]}
    assert outcomes <= {"imported", "refused"}
    assert "imported" in outcomes
    assert [line["outcome"] for line in again.lines[:-1]] == [
        line["outcome"].replace("imported", "unchanged") for line in first.lines[:-1]
    ]


class Breaking:
    """A client that is cut off after so many appends. With ``lost`` the last one goes through, but not its reply."""

    def __init__(self, inner: Any, appends: int, *, lost: bool = False) -> None:
        self.inner = inner
        self.left = appends
        self.lost = lost

    async def append(self, *args: Any, **keywords: Any) -> v1.AppendResponse:
        if not self.left:
            if self.lost:
                await self.inner.append(*args, **keywords)
            raise errors.ConnectionFailed("cut off")
        self.left -= 1
        response: v1.AppendResponse = await self.inner.append(*args, **keywords)
        return response

    def read_entries(self, session_id: str, first: int = 1, last: int | None = None) -> AsyncIterator[v1.Entry]:
        entries: AsyncIterator[v1.Entry] = self.inner.read_entries(session_id, first, last)
        return entries

    async def get_session(self, session_id: str) -> v1.Session:
        session: v1.Session = await self.inner.get_session(session_id)
        return session


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("appends", [0, 1, 2])
async def test_a_load_that_was_cut_off_goes_on(monkeypatch: pytest.MonkeyPatch, appends: int, lost: bool) -> None:
    monkeypatch.setattr("turnwire.formats.load.BATCH_ENTRIES", 5)
    session = imported()
    async with open_store(":memory:") as whole, open_store(":memory:") as store:
        assert await load(whole, session, Report()) is Outcome.IMPORTED
        with pytest.raises(errors.ConnectionFailed):
            await load(Breaking(store, appends, lost=lost), session, Report())
        report = Report()
        outcome = await load(store, session, report)
        present = 5 * (appends + lost)
        assert outcome is (Outcome.IMPORTED if not present else Outcome.UNCHANGED if present == 15 else Outcome.UPDATED)
        assert report.total(Outcome.IMPORTED, "message") + report.total(Outcome.UNCHANGED, "message") == 9
        assert await load(store, session, Report()) is Outcome.UNCHANGED
        ours, theirs = await store.history(session.session_id), await whole.history(session.session_id)
        assert (ours.turns, ours.messages) == (theirs.turns, theirs.messages)


async def test_a_session_without_messages() -> None:
    session = SessionImport("ses_bare", imported().properties, program="opencode")
    async with open_store(":memory:") as store:
        assert await load(store, session, Report()) is Outcome.IMPORTED
        assert await load(store, session, Report()) is Outcome.UNCHANGED
        shown = await store.get_session("ses_bare")
        assert (ledger.unmarked(shown.properties), shown.head.revision) == (session.properties, 1)


async def test_two_loads_at_once_leave_one_session() -> None:
    async with open_store(":memory:") as store:
        outcomes = await asyncio.gather(*(load(store, imported(), Report()) for _ in range(8)))
        assert set(outcomes) <= {Outcome.IMPORTED, Outcome.UNCHANGED}
        assert (await store.get_session(SESSION)).head.revision == 16


def test_batches() -> None:
    small = v1.EntryInput(revert_clear={})
    assert [len(batch) for batch in batches([small] * 2500)] == [BATCH_ENTRIES, BATCH_ENTRIES, 502]
    large = v1.EntryInput(part=v1.PartPut(message_id="m", part={"text": {"text": "x" * (BATCH_BYTES // 2 - 100)}}))
    huge = v1.EntryInput(part=v1.PartPut(message_id="m", part={"text": {"text": "x" * (BATCH_BYTES + 1)}}))
    assert [len(batch) for batch in batches([large, large, large, huge, small, small])] == [2, 1, 1, 2]
    assert list(batches([])) == []


def test_through_a_server(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db") as (address, _):
        args = ("--server", address, "import", "opencode", DATA, "--json")
        assert {line["outcome"] for line in run(*args).lines[:-1]} == {"imported"}
        assert {line["outcome"] for line in run(*args).lines[:-1]} == {"unchanged"}
        exported = run("--server", address, "export", SESSION, "--format", "opencode")
    assert json.loads(exported.out) == json.loads(EXPORT.read_text())


async def test_reading_in_a_process_of_its_own_is_the_same() -> None:
    """Sessions, remarks and counts; and when it breaks off that is no success."""
    found: list[tuple[list[Brought], Report]] = []
    for apart in (False, True):
        report = Report()
        async with open_store(":memory:") as store:
            sources = OPENCODE.sources(DATA, report)
            brought = [one async for one in bring(store, OPENCODE, sources, report, apart=apart)]
            found.append((brought, report))
    assert found[0][0] == found[1][0]
    assert found[0][1].to_json() == found[1][1].to_json()
    assert found[1][1].total(Outcome.REPAIRED) == 1


async def test_a_reading_process_that_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwire.formats.worker.order", lambda *_: b"{}")
    async with open_store(":memory:") as store:
        with pytest.raises(RuntimeError, match="broke off"):
            async for _ in bring(store, OPENCODE, [], Report(), apart=True):
                pass


@pytest.mark.parametrize("program", ["opencode", "turnwire"])
def test_a_path_that_names_nothing_is_wrong_usage(tmp_path: Path, program: str) -> None:
    """Beside others it is refused and stops none."""
    none = tmp_path / "none.json"
    ran = run("--db", tmp_path / "a.db", "import", program, none)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"turnwire: error: there is no file or directory {none}\n"
    assert not (tmp_path / "a.db").exists()


def test_sessions_that_are_asked_for_and_are_not_there(tmp_path: Path) -> None:
    args = ("--db", tmp_path / "a.db", "import", "opencode", DATA, "--json")
    ran = run(*args, "--session", "ses_none", "--session", SESSION, "--session", "ses_neither")
    assert ran.code == 1
    assert [line["sessionId"] for line in ran.lines[:-1]] == [SESSION]
    assert [(note["outcome"], note["id"], note["reason"]) for note in ran.lines[-1]["notes"]] == [
        ("refused", name, "there is no session of this id in what was read") for name in ("ses_neither", "ses_none")
    ]
    assert run(*args, "--session", "ses_none").code == 1
    ran = run(*args, "--session", "ses_none", "--session", SESSION, "--since", "2100-01-01")
    assert (ran.code, [note["id"] for note in ran.lines[-1]["notes"]]) == (1, ["ses_none"])
    assert run(*args, "--session", SESSION, "--since", "2100-01-01").code == 0


def test_removing_what_is_gone_needs_the_whole_source(tmp_path: Path) -> None:
    args = ("--db", tmp_path / "a.db", "import", "opencode", DATA, "--remove-gone")
    assert run(*args).code == 0
    for more in (("--session", SESSION), ("--since", "2h")):
        ran = run(*args, *more)
        assert (ran.code, "--remove-gone needs all" in ran.err) == (2, True)
