"""Fixtures that every area shares."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from turnwire.engine import Engine
from turnwire.store.base import Store
from turnwire.store.memory import MemoryStore

# Timing decides no test: another program may need the processor just now.
settings.register_profile("turnwire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("turnwire")


async def open_store(kind: str, directory: Path) -> Store:
    """A new store of a kind; one that lies in a file puts it into the directory."""
    if kind == "memory":
        return MemoryStore()
    if importlib.util.find_spec("turnwire.store.sqlite") is None:
        pytest.skip("this build has no SQLite store")
    store: Any = importlib.import_module("turnwire.store.sqlite").SqliteStore.open(directory / "turnwire.db")
    opened: Store = await store if inspect.isawaitable(store) else store
    return opened


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store of each kind."""
    opened = await open_store(request.param, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def engine(store: Store) -> Engine:
    """An engine over an empty store of each kind."""
    return Engine(store)
