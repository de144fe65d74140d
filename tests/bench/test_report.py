"""Results into ratios, and the document that is made of them."""

from __future__ import annotations

import json

import pytest

from bench.goals import GOALS
from bench.report import Run, by_key, document
from bench.results import OURS, Ratio, Result, Row, compared
from bench.rounds import Round, Side

MACHINE = {"date": "today", "processor": "a chip", "durability": "SQLite in WAL mode: and more", "fsync_us": 200}


def result() -> Result:
    sides = {
        OURS: Side([Round(100, 1, [0.001, 0.002, 0.003])]),
        "memory": Side([Round(100, 0.5)]),
        "langgraph": Side([Round(10, 1, failed=3)]),
    }
    limits = {"memory": "replay / the same bytes from memory"}
    return compared("replay.10000", "replay", "messages", sides, limits=limits, notes={"langgraph": "of 10 messages"})


def test_ours_is_held_against_limits_and_peers() -> None:
    made = result()
    assert by_key(made.ratios) == {"replay.10000/memory": 0.5, "replay.10000/langgraph": 10.0}
    assert [(each.text, each.guarded) for each in made.ratios] == [
        ("replay / the same bytes from memory", True),
        ("replay / langgraph", False),
    ]
    assert made.rows == [
        Row(OURS, "ours", 100.0, 1000 * 0.002, 1000 * 0.003, 1000 * 0.003),
        Row("memory", "limit", 200.0),
        Row("langgraph", "peer", 10.0, failed=3, note="of 10 messages"),
    ]


def test_a_run_is_kept_as_json() -> None:
    run = Run(MACHINE, {"langgraph": "1.0"}, [result()])
    kept = json.loads(json.dumps(run.dump()))
    assert kept["ratios"] == {"replay.10000/memory": 0.5, "replay.10000/langgraph": 10.0}
    goals = {each["key"]: each for each in kept["goals"]}
    assert goals["replay.10000/memory"] == {"key": "replay.10000/memory", "bound": 0.65, "value": 0.5, "met": False}
    assert goals["replay.10000/peers"]["met"] is True
    assert goals["growth.append"]["met"] is None
    assert Run.load(kept) == run


def test_the_document_has_goals_ratios_and_absolutes() -> None:
    run = Run(MACHINE, {"langgraph": "langgraph 1.0, journal_mode=wal"}, [result()])
    text = document(run, None)
    memory = "replay of 10,000 messages through gRPC / the same bytes from memory"
    assert f"| {memory} | ≥ 0.65 | 0.50 | not met |" in text
    (goal,) = (goal for goal in GOALS if goal.text == memory)
    assert f"* {memory}: {goal.obstacle}" in text
    assert "| replay / langgraph | 10.00 |  |" in text
    assert "| turnwire | 100 | 2.00 | 3.00 | 3.00 |  |" in text
    assert "| langgraph | 10.00 |  |  |  | of 10 messages; 3 calls failed |" in text
    assert "Here: langgraph 1.0, journal_mode=wal." in text
    assert "| an fdatasync of 16 KiB, µs | 200 |" in text
    assert text.index("## Goals") < text.index("## Ratios") < text.index("## Absolutes")
    assert "opencode's server |" in text
    assert "## Beside opencode" not in text


def test_the_document_takes_in_the_run_beside_opencode() -> None:
    beside = Result("opencode.10000", "10,000 messages", "messages", [Row(OURS, "ours", 5.0)])
    beside.ratios.append(Ratio("opencode.10000/opencode", "10,000 messages / opencode", 25.0))
    text = document(Run(MACHINE, {}, []), Run(MACHINE, {"opencode": "opencode 1.18"}, [beside]))
    assert "| 10,000 messages of one session / opencode's server | ≥ 20 | 25.0 | met |" in text
    assert "## Beside opencode's server" in text
    assert "* opencode 1.18" in text
    assert "Not part of this run." in text


@pytest.mark.parametrize(
    ("value", "expected"), [(0.618, "0.62"), (19.999, "20.00"), (20.04, "20.0"), (123.4, "123"), (12345.6, "12,346")]
)
def test_numbers_have_the_figures_that_count(value: float, expected: str) -> None:
    run = Run(MACHINE, {}, [Result("k", "t", "u", ratios=[Ratio("k", "the ratio", value)])])
    assert f"| the ratio | {expected} |  |" in document(run, None)
