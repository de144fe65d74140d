"""A fault of the program while one session is mapped or loaded: that session is refused, and its neighbours come."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.formats.opencode.stores import database
from tests.formats.opencode.test_database import ONE, named
from turnwire import v1
from turnwire.embedded import Embedded
from turnwire.formats import Outcome, Report, SessionImport
from turnwire.formats.opencode import Opencode, SessionRecord
from turnwire.formats.pipeline import bring

TOLD = "a fault of the program: ZeroDivisionError; TURNWIRE_TRACEBACK=1 shows where"


class Mapping(Opencode):
    """An importer that fails at one session, when a part of it has been reported on."""

    def map(self, record: SessionRecord, report: Report) -> SessionImport | None:
        if record.id == "ses_2":
            report.repaired("part", "/part/p", "/text", "half")
            raise ZeroDivisionError("secret content")
        return super().map(record, report)


class Reading(Opencode):
    """An importer that fails after one session."""

    def read(self, *_: Any) -> Any:
        yield next(super().read(*_))
        raise ZeroDivisionError("secret content")


class Loading:
    """A client that fails at one session."""

    def __init__(self, client: Embedded) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def append(self, session_id: str, entries: Iterable[Any], **more: Any) -> v1.AppendResponse:
        if session_id == "ses_2":
            raise ZeroDivisionError("secret content")
        return await self._client.append(session_id, entries, **more)


async def run(path: Path, importer: Opencode, *, loading: bool = False) -> tuple[list[str], Report]:
    """Import three sessions; returns which of them are there."""
    database(path / "opencode.db", ONE, named("2"), named("3")).close()
    report = Report()
    async with turnwire.open(":memory:") as client:
        log: Any = Loading(client) if loading else client
        async for _ in bring(log, importer, importer.sources(path, report), report, apart=False):
            pass
        return sorted([one.id async for one in client.list_sessions()]), report


@pytest.mark.parametrize("loading", [False, True])
async def test_it_costs_the_session(tmp_path: Path, loading: bool, capfd: pytest.CaptureFixture[str]) -> None:
    there, report = await run(tmp_path, Opencode() if loading else Mapping(), loading=loading)
    assert there == ["ses_1", "ses_3"]
    assert [(note.outcome, note.kind, note.id, note.reason) for note in report.notes] == [
        (Outcome.REFUSED, "session", "ses_2", TOLD)
    ]
    assert (report.total(Outcome.IMPORTED, "session"), report.complete) == (2, False)
    assert capfd.readouterr().err == ""


async def test_while_reading_it_costs_the_rest_of_the_source(tmp_path: Path) -> None:
    there, report = await run(tmp_path, Reading())
    assert there == ["ses_1"]
    assert [(note.kind, note.source, note.reason) for note in report.notes] == [
        ("file", str(tmp_path / "opencode.db"), TOLD)
    ]


async def test_its_stack_is_shown_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNWIRE_TRACEBACK", "1")
    await run(tmp_path, Mapping())
    assert 'raise ZeroDivisionError("secret content")' in capfd.readouterr().err
