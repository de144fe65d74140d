"""``turnwire stats``: totals by session, model and turn, for people and for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

import turnwire
from tests.cli.support import FIRST_TURN, SESSION, run
from turnwire import v1
from turnwire.cli import charts
from turnwire.totals import Total


@pytest.fixture
def family(tmp_path: Path) -> list[str]:
    """A store with a session, its child and grandchild, and another; each spent ten times the one before."""
    db = tmp_path / "turnwire.db"
    parents = {"ses_a": "", "ses_b": "ses_a", "ses_c": "ses_b", "ses_d": ""}
    with turnwire.blocking.open(db) as tw:
        for at, (id, parent) in enumerate(parents.items()):
            tw.create_session(id, title=id.upper(), parent=v1.ParentLink(session_id=parent) if parent else None)
            session = tw.open_session(id)
            turn = session.start_turn("build", model="acme/small" if at % 2 else "acme/large")
            with turn.answer() as answer:
                cost = None if id == "ses_d" else 0.001 * 10**at
                tokens = v1.Tokens(input=10**at, output=2 * 10**at, cache=v1.CacheTokens(read=3 * 10**at))
                answer.finish("stop", usage=v1.Usage(cost=cost, tokens=tokens))
    return ["--db", str(db)]


def tokens(found: Any) -> list[int]:
    return [each["total"]["tokens"]["total"] for each in found]


def test_people_see_bars(where: list[str]) -> None:
    ran = run(*where, "stats", SESSION)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:3] == [
        "by model",
        "  fake/fake-model",
        "    ████████████████████████  48,036 tokens  $0.0483  6 messages  █ 47,794  ▓ 218  ▒ 24",
    ]
    assert f"  {FIRST_TURN}  build" in ran.out
    assert ran.out.splitlines()[-2:] == [
        "█ input  ▓ output  ▒ reasoning  ░ cache read  ▚ cache write",
        "48,036 tokens in 6 messages of 1 session, $0.0483",
    ]


def test_scripts_see_objects(where: list[str]) -> None:
    session, total = run(*where, "--json", "stats", SESSION).lines
    assert session["sessionId"] == SESSION
    assert [turn["tokens"]["total"] for turn in session["turns"]] == [15_664, 24_180, 8_192]
    assert session["turns"][0]["turnId"] == FIRST_TURN
    assert session["models"][0]["modelId"] == "fake-model"
    assert session["total"] == {
        "messages": 6,
        "unpriced": 0,
        "cost": 0.048278,
        "tokens": {
            "input": 47_794, "output": 218, "reasoning": 24, "cacheRead": 0, "cacheWrite": 0, "total": 48_036,
        },
    }  # fmt: skip
    assert total == {"sessions": 1, "total": session["total"], "models": session["models"]}


def test_children_are_counted_if_asked_for_and_each_once(family: list[str]) -> None:
    *alone, total = run(*family, "--json", "stats", "ses_a").lines
    assert (tokens(alone), total["total"]["tokens"]["total"]) == ([6], 6)
    *found, total = run(*family, "--json", "stats", "ses_a", "--children").lines
    assert [each["sessionId"] for each in found] == ["ses_a", "ses_b", "ses_c"]
    assert [each.get("parentSessionId") for each in found] == [None, "ses_a", "ses_b"]
    assert (tokens(found), total["total"]["tokens"]["total"], total["total"]["cost"]) == ([6, 60, 600], 666, 0.111)
    *found, total = run(*family, "--json", "stats", "ses_b", "ses_a", "ses_b", "--children").lines
    assert sorted(tokens(found)) == [6, 60, 600]
    assert total["sessions"] == 3


def test_all_sessions(family: list[str]) -> None:
    *found, total = run(*family, "--json", "stats").lines
    assert sorted(tokens(found)) == [6, 60, 600, 6000]
    assert total["total"]["unpriced"] == 1
    assert {each["modelId"]: each["tokens"]["total"] for each in total["models"]} == {"large": 606, "small": 6060}
    ran = run(*family, "stats")
    assert "by session" in ran.out
    assert "  ses_d  SES_D" in ran.out
    assert "by turn" not in ran.out
    assert ran.out.splitlines()[-1] == "6,666 tokens in 4 messages of 4 sessions, $0.1110 + ?"
    assert "by turn" in run(*family, "stats", "--turns").out


def test_nothing_spent(tmp_path: Path) -> None:
    db = tmp_path / "turnwire.db"
    with turnwire.blocking.open(db) as tw:
        tw.create_session("ses_1")
    ran = run("--db", db, "stats")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "0 tokens in 0 messages of 1 session, $0.0000")
    assert run("--db", db, "stats", "ses_none").code == 3


def test_a_bar_has_cells_for_the_sum() -> None:
    total = Total(input=1, output=1, cache_read=1)
    assert charts.bar(total, 3).plain == "█" * 8 + "▓" * 8 + "░" * 8
    assert charts.bar(total, 3000).plain == "█"
    assert charts.bar(Total(), 0) == Text()
    assert len(charts.bar(Total(input=7, output=5, reasoning=3, cache_read=2, cache_write=1), 18)) == 24


def test_a_fork_and_its_parent_are_told(db: Path) -> None:
    assert run("--db", db, "fork", SESSION, "--id", "ses_fork").code == 0
    assert "counted twice: what ses_fork took over" in run("--db", db, "stats").err
    ran = run("--db", db, "stats", "--json")
    assert {line["sessionId"]: line.get("forkedFrom") for line in ran.lines[:-1]} == {
        SESSION: None,
        "ses_fork": SESSION,
    }
    assert "counted twice" not in run("--db", db, "stats", "ses_fork").err
