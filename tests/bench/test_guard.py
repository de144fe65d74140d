"""The regression guard: worse by more than a quarter fails, in whichever direction worse is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from bench import guard
from bench.results import Ratio


@pytest.mark.parametrize(
    ("better", "before", "now", "change", "fell"),
    [
        ("high", 0.8, 0.8, 0.0, False),
        ("high", 1.0, 0.75, -0.25, False),
        ("high", 0.8, 0.59, -0.2625, True),
        ("high", 0.8, 1.6, 1.0, False),
        ("low", 0.75, 1.0, -0.25, False),
        ("low", 1.2, 1.65, -0.27272727, True),
        ("low", 1.2, 0.6, 1.0, False),
    ],
)
def test_fell(better: Literal["high", "low"], before: float, now: float, change: float, fell: bool) -> None:
    (compared,) = guard.compare([Ratio("k", "text", now, better)], {"k": before})
    assert compared.change == pytest.approx(change)
    assert compared.fell is fell


def test_a_new_ratio_does_not_fail_and_an_unguarded_one_is_left_out() -> None:
    ratios = [Ratio("new", "new", 0.1), Ratio("peer", "peer", 0.1, guarded=False)]
    (compared,) = guard.compare(ratios, {"peer": 10.0})
    assert (compared.ratio.key, compared.before, compared.change, compared.fell) == ("new", None, None, False)


def test_what_is_not_measured_any_more_is_told() -> None:
    assert guard.missing([Ratio("a", "a", 1.0)], {"b": 1.0, "a": 1.0, "c": 2.0}) == ["b", "c"]


def test_a_baseline_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    ratios = [Ratio("a", "a", 0.123456), Ratio("b", "b", 2.0, "low"), Ratio("c/peer", "c", 9.0, guarded=False)]
    guard.write(ratios, {"python": "3"}, path)
    assert guard.read(path) == {"a": 0.1235, "b": 2.0}
    assert json.loads(path.read_text())["machine"] == {"python": "3"}
    with pytest.raises(FileNotFoundError):
        guard.read(tmp_path / "none.json")
