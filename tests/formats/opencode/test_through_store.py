"""An import that went through a store and its log comes back just the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import turnwire
from tests.formats.samples import CORPORA, DATA, NO_CORPORA, content, exact, export_files
from turnwire.formats import Outcome, Report, SessionImport, sessions, stored
from turnwire.formats.load import Log, load
from turnwire.formats.opencode import OPENCODE


async def through_store(client: Log, session: SessionImport) -> str:
    """The export of a session after it was loaded, and loaded again, which changes nothing."""
    await load(client, session, Report())
    assert await load(client, session, Report()) is Outcome.UNCHANGED
    return OPENCODE.export(await stored.history(client, session.session_id))


@pytest.mark.parametrize("file", sorted(DATA.glob("*.json")), ids=lambda file: file.stem)
async def test_the_files_of_the_project(file: Path) -> None:
    async with turnwire.open(":memory:") as client:
        (session,) = sessions(OPENCODE, file, Report())
        assert exact(await through_store(client, session)) == exact(content(file))


@pytest.mark.skipif(not export_files(), reason=NO_CORPORA)
async def test_every_session_of_the_corpora() -> None:
    for file in export_files():
        async with turnwire.open(":memory:") as client:
            (session,) = sessions(OPENCODE, file, Report())
            assert exact(await through_store(client, session)) == exact(content(file)), file.relative_to(CORPORA)
