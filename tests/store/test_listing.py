"""Listing sessions: order, filters and pages, on every store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.builders import append, delete, fork, opened, properties, refused, turn, user
from turnwire import errors, v1
from turnwire.engine import Caller, Engine
from turnwire.store.base import SessionQuery, Store
from turnwire.store.sqlite import SqliteStore


async def listed(engine: Engine, caller: Caller | None = None, size: int = 0, **wanted: object) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    token = ""
    while True:
        request = v1.ListSessionsRequest(
            page_size=size,
            page_token=token,
            filter=v1.SessionFilter(**wanted),  # type: ignore[arg-type]  # filters by the names of fields
        )
        response = await engine.list_sessions(caller or Caller(), request)
        assert not size or len(response.sessions) <= size
        found += [session.id for session in response.sessions]
        token = response.next_page_token
        if not token:
            return found


@pytest.fixture
def clocked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The engine's clock: the time in its first element."""
    clock = [1_000_000]
    monkeypatch.setattr(engine, "now_us", lambda: clock[0])
    return clock


async def test_the_last_written_comes_first(engine: Engine, clocked: list[int]) -> None:
    for id in ("b", "a", "c"):
        clocked[0] += 1
        await opened(engine, id)
    assert await listed(engine) == ["c", "a", "b"]
    clocked[0] += 1
    await append(engine, "b", user("u"))
    assert await listed(engine) == ["b", "c", "a"]


async def test_sessions_of_one_instant_are_listed_by_id(engine: Engine, clocked: list[int]) -> None:
    for id in ("b", "B", "a", "a-1", "a.1", "Z"):
        await opened(engine, id)
    assert await listed(engine) == ["B", "Z", "a", "a-1", "a.1", "b"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_pages_together_are_the_whole_list(engine: Engine, clocked: list[int], size: int) -> None:
    for number in range(7):
        clocked[0] += number % 2
        await opened(engine, f"s{number}")
    assert await listed(engine, size=size) == ["s5", "s6", "s3", "s4", "s1", "s2", "s0"]


async def test_filters(engine: Engine, clocked: list[int]) -> None:
    for id, labels, directory, archived in (
        ("s1", {"team": "a", "env": "x"}, "/src", False),
        ("s2", {"team": "a"}, "/srv", True),
        ("s3", {"team": "b", "env": "x"}, None, False),
        ("s4", {}, "", True),
    ):
        clocked[0] += 1_000_000
        made = properties()
        made.labels.update(labels)
        if directory is not None:
            made.directory = directory
        if archived:
            made.archived.FromSeconds(5)
        await append(engine, id, turn(), create=made)
    assert await listed(engine, labels={"team": "a"}) == ["s2", "s1"]
    assert await listed(engine, labels={"team": "a", "env": "x"}) == ["s1"]
    assert await listed(engine, labels={"team": "c"}) == []
    assert await listed(engine, labels={"nothing": ""}) == []
    assert await listed(engine, directory="/src") == ["s1"]
    assert await listed(engine, directory="") == ["s4"]
    assert await listed(engine, archived=True) == ["s4", "s2"]
    assert await listed(engine, archived=False, labels={"env": "x"}) == ["s3", "s1"]
    sought = {"recorded_from": v1.Head().recorded, "recorded_before": v1.Head().recorded}
    sought["recorded_from"].FromMicroseconds(3_000_000)
    sought["recorded_before"].FromMicroseconds(5_000_000)
    assert await listed(engine, **sought) == ["s3", "s2"]
    assert await listed(engine, recorded_from=sought["recorded_before"]) == ["s4"]


async def test_filters_follow_the_properties_in_force(engine: Engine) -> None:
    made = properties(directory="/old")
    made.labels["k"] = "1"
    await append(engine, "s", turn(), create=made)
    made = properties(directory="/new")
    made.labels["k"] = "2"
    await append(engine, "s", v1.EntryInput(session=made))
    assert await listed(engine, labels={"k": "1"}) == []
    assert await listed(engine, directory="/old") == []
    assert await listed(engine, labels={"k": "2"}, directory="/new") == ["s"]
    # A fork has those that were in force where it was made.
    await fork(engine, "s", "f", 2)
    assert await listed(engine, directory="/old") == ["f"]
    await delete(engine, "s")
    assert await listed(engine, labels={"k": "2"}) == []


async def test_by_parent(engine: Engine) -> None:
    await opened(engine, "root")
    for id, of in (("c1", "root"), ("c2", "root"), ("g", "c1")):
        made = properties()
        made.parent.session_id = of
        await append(engine, id, turn(), create=made)
    assert sorted(await listed(engine, parent_session_id="root")) == ["c1", "c2"]
    assert await delete(engine, "root", children=True) == ["root", "c1", "c2", "g"]
    assert await listed(engine) == []


async def test_children_stay_unless_asked_for(engine: Engine) -> None:
    await opened(engine, "root")
    made = properties()
    made.parent.session_id = "root"
    await append(engine, "child", turn(), create=made)
    assert await delete(engine, "root") == ["root"]
    assert await listed(engine) == ["child"]
    assert await listed(engine, parent_session_id="root") == ["child"]


async def test_c109_a_filter_is_a_value_and_never_a_query(engine: Engine, store: Store) -> None:
    await opened(engine, "s")
    for text in ("a') OR 1=1 --", "' OR ''='", '"', "%", "x\0y"):
        with refused(errors.RuleViolation):
            await listed(engine, labels={text: text})
        assert await listed(engine, labels={"k": text}) == []
        assert await listed(engine, directory=text) == []
        for query in (
            SessionQuery(labels=((text, text),)),
            SessionQuery(directory=text),
            SessionQuery(parent=text),
        ):
            assert await store.sessions("", query, 10, None) == []
        assert await store.sessions(text, SessionQuery(), 10, None) == []
    assert await listed(engine) == ["s"]


async def test_c111_another_tenant_sees_nothing(engine: Engine) -> None:
    other = Caller("other")
    await opened(engine, "s", user("u"))
    assert await listed(engine, other) == []
    with refused(errors.SessionNotFound):
        await append(engine, "s", user("v"), caller=other)
    await append(engine, "s", turn("their"), create=True, caller=other)
    assert await listed(engine, other) == ["s"]
    assert (await engine.delete_session(other, v1.DeleteSessionRequest(session_id="s"))).session_ids == ["s"]
    assert await listed(engine) == ["s"]


async def test_c71_a_thousand_sessions(engine: Engine, clocked: list[int]) -> None:
    ids = [f"s{number:04}" for number in range(1000)]
    for id in ids:
        clocked[0] += 1
        await engine.create_session(Caller(), v1.CreateSessionRequest(session_id=id))
    assert await listed(engine, size=300) == ids[::-1]


@pytest.mark.parametrize(
    ("damage", "shown"),
    [
        ("recorded_us = recorded_us | (1 << 62)", True),
        ("first_us = first_us | (1 << 62)", True),
        ("head = 9223372036854775807", True),
        ("revert = (1 << 40)", True),
        ("key = key | (1 << 40)", False),  # nothing of it can be found then
    ],
)
async def test_one_damaged_row_stops_no_other(tmp_path: Path, damage: str, shown: bool) -> None:
    path = tmp_path / "a.db"
    engine = Engine(SqliteStore.open(path))
    for id in ("a", "b", "c", "d", "e"):
        await opened(engine, id)
        await append(engine, id, turn("t"), user("m"))
    await engine.close()
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE session SET {damage} WHERE id = 'c'")
    db.close()
    engine = Engine(SqliteStore.open(path))
    expected = {"a", "b", "d", "e"} | ({"c"} if shown else set())
    for size in (0, 1, 2):
        found = await listed(engine, size=size)
        assert len(found) == len(expected)
        assert set(found) == expected
    await engine.close()
