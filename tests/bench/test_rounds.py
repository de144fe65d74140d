"""Ratios and percentiles, and who has a turn when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.rounds import Round, Side, Work, interleave, percentile, ratio


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([7.0], 50, 7.0),
        ([7.0], 99, 7.0),
        ([1.0, 2.0], 50, 1.0),
        ([1.0, 2.0, 3.0], 50, 2.0),
        ([*map(float, range(1, 101))], 50, 50.0),
        ([*map(float, range(1, 101))], 95, 95.0),
        ([*map(float, range(1, 101))], 99, 99.0),
        ([*map(float, range(1, 11))], 95, 10.0),
        ([1.0, 2.0, 3.0], 0, 1.0),
        ([1.0, 2.0, 3.0], 100, 3.0),
    ],
)
def test_percentile_is_the_nearest_rank(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_percentile_is_not_exceeded_by_so_many(values: list[float], percent: float) -> None:
    found = percentile(sorted(values), percent)
    assert found in values
    assert sum(each <= found for each in values) >= len(values) * percent / 100 - 1e-9


def test_nothing_has_no_percentiles() -> None:
    with pytest.raises(ValueError, match="no percentiles"):
        percentile([], 50)


def side(*rounds: tuple[float, float]) -> Side:
    return Side([Round(units, seconds) for units, seconds in rounds])


def test_a_ratio_is_the_median_of_its_rounds_and_not_the_ratio_of_medians() -> None:
    ours = side((100, 1), (100, 2), (100, 4))
    other = side((100, 0.5), (100, 2), (100, 1))
    assert ratio(ours, other) == 0.5
    assert ours.rate / other.rate == 0.5
    # What slows one round of both down does not count.
    slowed = side((100, 10), (100, 2), (100, 4))
    assert ratio(slowed, side((100, 5), (100, 2), (100, 1))) == 0.5


def test_sides_may_do_different_numbers_of_units() -> None:
    assert ratio(side((1000, 1)), side((10, 2))) == 200


def test_a_side_pools_the_calls_of_its_rounds() -> None:
    made = Side([Round(2, 1, (0.3, 0.1), failed=1), Round(4, 1, (0.2, 0.4), failed=2), Round(6, 1, ())])
    assert made.percentiles() == (0.2, 0.4, 0.4)
    assert made.failed == 3
    assert made.rate == 4
    assert side((1, 1)).percentiles() is None


def test_calls_one_after_another_are_timed_between_marks() -> None:
    made = Round.between([1.0, 1.5, 3.5], units=20)
    assert (made.seconds, made.latencies, made.rate) == (2.5, [0.5, 2.0], 8.0)


async def test_works_take_turns_and_the_first_round_does_not_count() -> None:
    seen: list[tuple[str, int]] = []

    def work(name: str, units: float) -> Work:
        async def run(at: int) -> Round | float:
            seen.append((name, at))
            return Round(units, 2.0) if name == "a" else units

        return run

    sides = await interleave({"a": work("a", 10), "b": work("b", 20), "c": work("c", 30)}, rounds=3)
    assert [name for name, _ in seen] == [*"abc", *"bca", *"cab", *"abc"]
    assert [at for _, at in seen] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert {name: len(made.rounds) for name, made in sides.items()} == {"a": 3, "b": 3, "c": 3}
    assert sides["a"].rate == 5
    assert [each.units for each in sides["b"].rounds] == [20, 20, 20]
    assert all(each.seconds > 0 for each in sides["b"].rounds)
