"""Fair ratios on a machine that does other things too: two works take turns, and the median round counts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """Seconds per round of two works over the same number of units, in the order in which they ran."""

    units: int
    ours: list[float]
    limit: list[float]

    @property
    def ratio(self) -> float:
        """Our rate over the limit's: the median over the rounds."""
        return statistics.median(limit / ours for ours, limit in zip(self.ours, self.limit, strict=True))

    @property
    def ours_us(self) -> float:
        """Our microseconds per unit, median round."""
        return statistics.median(self.ours) / self.units * 1e6

    @property
    def limit_us(self) -> float:
        """The limit's microseconds per unit, median round."""
        return statistics.median(self.limit) / self.units * 1e6


Work = Callable[[int], Awaitable[None]]


async def compare(ours: Work, limit: Work, *, rounds: int, units: int) -> Compared:
    """Let two works take turns, each doing ``units`` units a round, after one round that does not count.

    A work gets the number of its round. Who begins changes from round to round.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for at in range(rounds + 1):
        pair = [(ours, 0), (limit, 1)]
        for work, side in pair if at % 2 else reversed(pair):
            begun = time.perf_counter()
            await work(at)
            if at:
                seconds[side].append(time.perf_counter() - begun)
    return Compared(units, *seconds)
