"""The regression guard: ratios of a run against the committed ones of `BASELINE`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results import Ratio

BASELINE = Path(__file__).with_name("baseline.json")

#: How much worse than the committed one a ratio may be, as a fraction of it. Ratios of quick runs differ by a tenth
#: from each other.
TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class Compared:
    """A ratio and the committed one; None for one that is new."""

    ratio: Ratio
    before: float | None

    @property
    def change(self) -> float | None:
        """By which fraction it got better (above 0) or worse (below 0), as if higher was always better."""
        if self.before is None:
            return None
        now, before = self.ratio.value, self.before
        return now / before - 1 if self.ratio.better == "high" else before / now - 1

    @property
    def fell(self) -> bool:
        """Whether it is worse by more than `TOLERANCE`."""
        return self.change is not None and self.change < -TOLERANCE


def compare(ratios: Iterable[Ratio], baseline: Mapping[str, float]) -> list[Compared]:
    """The guarded ratios beside the committed ones."""
    return [Compared(each, baseline.get(each.key)) for each in ratios if each.guarded]


def missing(ratios: Iterable[Ratio], baseline: Mapping[str, float]) -> list[str]:
    """Keys of the baseline that the run did not measure."""
    return sorted(baseline.keys() - {each.key for each in ratios})


def read(path: Path = BASELINE) -> dict[str, float]:
    """The committed ratios by key. Raises FileNotFoundError if there are none yet."""
    found: dict[str, float] = json.loads(path.read_text())["ratios"]
    return found


def write(ratios: Iterable[Ratio], machine: Mapping[str, Any], path: Path = BASELINE) -> None:
    """Make the guarded ratios of a run the committed ones."""
    kept = {each.key: round(each.value, 4) for each in ratios if each.guarded}
    path.write_text(json.dumps({"machine": dict(machine), "ratios": kept}, indent=1, ensure_ascii=False) + "\n")
