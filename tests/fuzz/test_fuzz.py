"""The harness itself: that mutated logs come through, that it sees what it looks for, and the first logs of it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import mutate, target, worker
from turnwire import v1
from turnwire.log import raw

LOGS = 300


def test_a_log_that_is_not_changed_is_restored() -> None:
    for log in worker.seeds():
        assert worker.run(mutate.chained(target.SESSION, log)) == "restored"


def test_the_first_logs_pass_and_every_outcome_comes_up() -> None:
    seeds = worker.seeds()
    outcomes = Counter(worker.run(worker.drawn(seed, seeds)) for seed in range(LOGS))
    assert sorted(outcomes) == sorted(worker.OUTCOMES), [each for each in outcomes if each not in worker.OUTCOMES]
    assert outcomes["restored"] > LOGS // 10


def test_a_seed_gives_the_same_log_each_time() -> None:
    seeds = worker.seeds()
    assert [worker.drawn(seed, seeds) for seed in range(20)] == [worker.drawn(seed, seeds) for seed in range(20)]


def test_digests_are_made_to_hold_after_a_change() -> None:
    log = worker.seeds()[0]
    changed = [log[1], log[0], *log[3:]]
    chained = mutate.chained("s", changed)
    assert [raw.entry(entry).revision for entry in chained] == list(range(1, len(changed) + 1))
    assert mutate.chained("s", chained) == chained


def test_a_failure_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(log: object) -> target.Outcome:
        raise KeyError("unforeseen")

    monkeypatch.setattr(target, "run", fail)
    assert worker.run([v1.Entry().SerializeToString()]).splitlines()[-1] == "KeyError: 'unforeseen'"
