"""Stores that hold the session of `support.EXPORT`, in a file and behind a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import support


@pytest.fixture(scope="session", params=["db", "server"])
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The option that names a store with the session: a file, or a server process. Tests may add to the store."""
    db = tmp_path_factory.mktemp("store") / "turnwire.db"
    support.import_into(["--db", str(db)], support.EXPORT)
    if request.param == "db":
        yield ["--db", str(db)]
        return
    with support.serving(db) as (address, _):
        yield ["--server", address]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with the session, of this test alone."""
    path = tmp_path / "turnwire.db"
    support.import_into(["--db", str(path)], support.EXPORT)
    return path


@pytest.fixture
def copy(where: list[str]) -> str:
    """A fork of the session, of this test alone."""
    ran = support.run(*where, "--json", "fork", support.SESSION)
    assert ran.code == 0, ran
    session: str = ran.lines[0]["id"]
    return session
