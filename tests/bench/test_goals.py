"""Goals: which way is met, against whom, and what was not measured."""

from __future__ import annotations

import pytest

from bench.goals import GOALS, Goal, judge

HIGH = Goal("w/echo", "rate", 0.5)
LOW = Goal("w.cost", "cost", 1.25, "low")


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [(HIGH, 0.5, True), (HIGH, 0.499, False), (HIGH, 3, True), (LOW, 1.25, True), (LOW, 1.26, False), (LOW, 0.2, True)],
)
def test_a_goal_is_met_at_its_bound(goal: Goal, value: float, met: bool) -> None:
    (judged,) = judge({goal.key: value}, (goal,))
    assert (judged.value, judged.met) == (value, met)
    assert judged.word == ("met" if met else "not met")
    assert judged.dump() == {"key": goal.key, "bound": goal.bound, "value": value, "met": met}


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    (judged,) = judge({"other": 1.0}, (HIGH,))
    assert (judged.value, judged.met, judged.word) == (None, None, "not measured")


def test_against_the_peers_the_fastest_counts() -> None:
    goal = Goal("replay/peers", "replay", 3.0)
    ratios = {"replay/openai-agents": 4.0, "replay/langgraph": 2.5, "replay/memory": 0.7, "replay.10/google-adk": 1.0}
    (judged,) = judge(ratios, (goal,))
    assert (judged.value, judged.met) == (2.5, False)
    (judged,) = judge({"replay/memory": 0.7}, (goal,))
    assert judged.value is None


def test_the_goals_are_those_that_were_set() -> None:
    bounds = {goal.key: (goal.bound, goal.better) for goal in GOALS}
    assert len(bounds) == len(GOALS)
    assert bounds["append.unary.64/echo"] == (0.5, "high")
    assert bounds["append.stream/echo"] == (1.2, "high")
    assert bounds["append.batch.100/raw SQLite"] == (0.25, "high")
    assert bounds["embedded.single/raw SQLite"] == (0.75, "high")
    assert bounds["embedded.batch.100/raw SQLite"] == (0.3, "high")
    assert bounds["replay.10000/memory"] == (0.65, "high")
    assert bounds["replay.10000/peers"] == (3.0, "high")
    assert bounds["opencode.10000/opencode"] == (20.0, "high")
    assert bounds["growth.append"] == (1.25, "low")
    assert bounds["growth.bytes"] == (1.3, "low")
    assert bounds["tail.stopped"] == bounds["tail.slow"] == (0.9, "high")
