"""What a workload finds out: rates of ours, of the limit and of the peers, and the ratios between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.rounds import Side, ratio

OURS = "turnwire"
Kind = Literal["ours", "limit", "peer"]


@dataclass(frozen=True, slots=True)
class Row:
    """One side of a workload: units a second, and milliseconds of a call at p50, p95 and p99 where calls were timed."""

    who: str
    kind: Kind
    rate: float
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    failed: int = 0
    note: str = ""

    @classmethod
    def of(cls, who: str, kind: Kind, side: Side, note: str = "") -> Row:
        """The row of a side."""
        found = side.percentiles()
        p50, p95, p99 = (None, None, None) if found is None else (each * 1e3 for each in found)
        return cls(who, kind, side.rate, p50, p95, p99, failed=side.failed, note=note)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One ratio within one run. ``key`` names it for goals and the regression guard; ``better`` tells which way.

    ``guarded``: whether the guard holds it against the committed one. Against peers it does not: they are not part of
    the quick run.
    """

    key: str
    text: str
    value: float
    better: Literal["high", "low"] = "high"
    guarded: bool = True
    note: str = ""


@dataclass(slots=True)
class Result:
    """One workload's rows and ratios. ``unit``: what the rates count."""

    key: str
    title: str
    unit: str
    rows: list[Row] = field(default_factory=list[Row])
    ratios: list[Ratio] = field(default_factory=list[Ratio])
    notes: list[str] = field(default_factory=list[str])

    def dump(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            "rows": [_set(row) for row in self.rows],
            "ratios": [_set(each) for each in self.ratios],
            "notes": self.notes,
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Result:
        """From `dump`."""
        rows = [Row(**row) for row in data["rows"]]
        ratios = [Ratio(**each) for each in data["ratios"]]
        return cls(data["key"], data["title"], data["unit"], rows, ratios, list(data["notes"]))


def compared(
    key: str,
    title: str,
    unit: str,
    sides: Mapping[str, Side],
    *,
    limits: Mapping[str, str],
    notes: Mapping[str, str] | None = None,
    guarded: bool = True,
) -> Result:
    """The result of works that took turns: `OURS` against every other.

    ``limits``: the sides that are limits, by name, with the text of the ratio; all others are peers.
    ``notes``: a remark about a side, by name.
    """
    said = notes or {}
    made = Result(key, title, unit)
    ours = sides[OURS]
    for who, side in sides.items():
        kind: Kind = "ours" if who == OURS else "limit" if who in limits else "peer"
        made.rows.append(Row.of(who, kind, side, said.get(who, "")))
        if who != OURS:
            text = limits.get(who, f"{title} / {who}")
            made.ratios.append(Ratio(f"{key}/{who}", text, ratio(ours, side), guarded=guarded and who in limits))
    return made


def _set(row: Row | Ratio) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__ if getattr(row, name) is not None}
