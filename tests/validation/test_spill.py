"""Tables that may become larger than memory give back what was put, wherever it lies."""

from __future__ import annotations

import pytest

from tests.builders import assistant, delta, put, text, tool, user
from tests.validation.logs import found, rules_of
from turnwire.validation import spill
from turnwire.validation.spill import Spill, Table


@pytest.fixture(autouse=True)
def few_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_HOT", 3)


def test_rows_come_back(request: pytest.FixtureRequest) -> None:
    file = Spill()
    request.addfinalizer(file.close)
    table: Table[list[int]] = Table(file, "t", list, list)
    for at in range(100):
        table.put(f"id{at}", [at])
        table.trim()
    assert all(table.get(f"id{at}") == [at] for at in range(100))
    assert table.get("none") is None
    assert "id5" in table
    row = table.get("id7")
    assert row is not None
    row.append(70)  # a row that was got may be changed
    table.trim()
    for at in range(50, 60):
        table.get(f"id{at}")
    table.trim()
    assert table.get("id7") == [7, 70]
    assert dict(table.rows()) == {f"id{at}": [at, 70] if at == 7 else [at] for at in range(100)}


def test_a_session_is_checked_the_same() -> None:
    messages = [user(f"u{at}", text(f"p{at}", "x")) for at in range(30)]
    calls = [assistant(f"a{at}", tool(f"c{at}"), parent=f"u{at}") for at in range(30)]
    deltas = [delta(f"p{at}", 1, "y") for at in range(30)]
    assert rules_of(found(*messages, *calls, *deltas)) == []
    wrong = [delta("p3", 1, "z"), put("a7", tool("d", "c1")), user("u9", turn="t2")]
    assert rules_of(found(*messages, *calls, *deltas, *wrong)) == [
        "session.delta.offset",
        "session.call_id",
        "session.turn_changed",
        "session.ref.turn",
    ]
