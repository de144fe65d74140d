"""Fair ratios on a machine that does other things too: the works take turns, and the median round counts."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one work: how many units it did in how many seconds.

    ``latencies``: the seconds of single calls, where the work has any. ``failed``: calls that failed; their units are
    not among ``units``.
    """

    units: float
    seconds: float
    latencies: Sequence[float] = ()
    failed: int = 0

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.units / self.seconds

    @classmethod
    def between(cls, marks: Sequence[float], units: float) -> Round:
        """The round of calls one after another; ``marks``: the clock before the first and after each."""
        return cls(units, marks[-1] - marks[0], [after - before for before, after in itertools.pairwise(marks)])


#: A work gets the number of its round, and may time itself; whoever returns a number of units is timed from outside.
Work = Callable[[int], Awaitable[Round | float]]


@dataclass(slots=True)
class Side:
    """All rounds of one work."""

    rounds: list[Round] = field(default_factory=list[Round])

    @property
    def rate(self) -> float:
        """Units a second, median round."""
        return statistics.median(each.rate for each in self.rounds)

    @property
    def failed(self) -> int:
        """Calls that failed, of all rounds."""
        return sum(each.failed for each in self.rounds)

    def percentiles(self) -> tuple[float, float, float] | None:
        """The seconds of a call at p50, p95 and p99 over all rounds; None if calls were not timed singly."""
        seconds = sorted(one for each in self.rounds for one in each.latencies)
        return (percentile(seconds, 50), percentile(seconds, 95), percentile(seconds, 99)) if seconds else None


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The least of the ordered values which at least ``percent`` percent of them do not exceed (nearest rank)."""
    if not ordered:
        raise ValueError("nothing has no percentiles")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def ratio(ours: Side, other: Side) -> float:
    """Our rate over the other's: the median over the rounds, so that what slows both down does not count."""
    pairs = zip(ours.rounds, other.rounds, strict=True)
    return statistics.median(one.rate / another.rate for one, another in pairs)


async def interleave(works: Mapping[str, Work], rounds: int) -> dict[str, Side]:
    """Let works take turns, after one round that does not count. Who begins changes from round to round."""
    sides = {name: Side() for name in works}
    for at in range(rounds + 1):
        order = [*works.items()]
        order = order[at % len(order) :] + order[: at % len(order)]
        for name, work in order:
            begun = time.perf_counter()
            done = await work(at)
            seconds = time.perf_counter() - begun
            if at:
                sides[name].rounds.append(done if isinstance(done, Round) else Round(done, seconds))
    return sides
