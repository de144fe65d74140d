"""What a run found, as tables for the terminal, as JSON, and as ``docs/benchmarks.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.goals import Judged, judge
from bench.guard import TOLERANCE, Compared
from bench.peers import PEERS
from bench.results import Ratio, Result, Row

_VERDICTS = {True: "[green]met[/green]", False: "[red]NOT MET[/red]", None: "[dim]not measured[/dim]"}


@dataclass(slots=True)
class Run:
    """One run: where it took place, what each peer said of itself, and the results."""

    machine: dict[str, Any]
    peers: dict[str, str]
    results: list[Result]

    def ratios(self) -> list[Ratio]:
        """The ratios of all results, in order."""
        return [each for result in self.results for each in result.ratios]

    def dump(self) -> dict[str, Any]:
        """As JSON has it."""
        values = by_key(self.ratios())
        return {
            "machine": self.machine,
            "peers": self.peers,
            "goals": [each.dump() for each in judge(values)],
            "ratios": values,
            "results": [result.dump() for result in self.results],
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Run:
        """From `dump`."""
        results = [Result.load(each) for each in data["results"]]
        return cls(dict(data["machine"]), dict(data["peers"]), results)


def by_key(ratios: Iterable[Ratio]) -> dict[str, float]:
    """The values alone."""
    return {each.key: each.value for each in ratios}


# For the terminal


def goals_table(judged: Sequence[Judged]) -> Table:
    """The goals with what was measured."""
    table = Table(title="Goals")
    for column in ("ratio within this run", "goal", "measured", "verdict"):
        table.add_column(column)
    for each in judged:
        table.add_row(each.goal.text, _bound(each), _number(each.value), _VERDICTS[each.met])
    return table


def ratios_table(ratios: Sequence[Ratio]) -> Table:
    """All ratios."""
    table = Table(title="Ratios within this run")
    for column in ("ratio", "value", "better", ""):
        table.add_column(column)
    for each in ratios:
        table.add_row(each.text, _number(each.value), _better(each), each.note)
    return table


def rows_table(results: Sequence[Result]) -> Table:
    """All rates."""
    table = Table(title="Absolutes, of this machine")
    for column in ("workload", "who", "per second", "p50 ms", "p95 ms", "p99 ms", ""):
        table.add_column(column)
    for result in results:
        for at, row in enumerate(result.rows):
            table.add_row("" if at else result.title, row.who, *_cells(row))
        table.add_section()
    return table


def guard_table(compared: Sequence[Compared]) -> Table:
    """The ratios of a quick run beside the committed ones."""
    table = Table(title=f"Ratios against the committed ones; worse by more than {TOLERANCE:.0%} fails")
    for column in ("ratio", "committed", "now", "change", ""):
        table.add_column(column)
    for each in compared:
        change = "" if each.change is None else f"{each.change:+.0%}"
        verdict = "[red]FELL[/red]" if each.fell else "[dim]new[/dim]" if each.before is None else ""
        table.add_row(each.ratio.text, _number(each.before), _number(each.ratio.value), change, verdict)
    return table


# For docs/benchmarks.md


def document(run: Run, opencode: Run | None) -> str:
    """The whole document. ``opencode``: the run of ``make bench-opencode``, if there was one."""
    judged = judge(by_key([*run.ratios(), *(opencode.ratios() if opencode else ())]))
    parts = [
        "# Benchmarks",
        "Written by `make bench`, which builds what it needs and measures all of this in one run; "
        "`make bench-opencode` adds opencode's server. Ratios compare within the run, on one machine, over the same "
        "bytes, by works that take turns; the median round counts. Absolutes are those of this machine and no other.",
        _machine(run.machine),
        "## Goals",
        _table(
            ("ratio", "goal", "measured", ""),
            [(each.goal.text, _bound(each), _number(each.value), each.word) for each in judged],
        ),
        *_obstacles(judged),
        "## Ratios",
        "Above 1 Turnwire is faster than what it is compared with; where less is better the table says so. The limits "
        "are raw SQLite with the same durability, an echo of the same sizes in the same grpc.aio server, and the same "
        "bytes streamed from memory by the same server to the same client.",
        _ratios(run.ratios()),
        "## Absolutes",
        *(_absolutes(result) for result in run.results if result.rows or result.notes),
        "## How the peers were measured",
        f"All with {run.machine['durability'].partition(':')[0]}, in processes of their own, through what they offer "
        "to everybody, over messages with the same texts. A failed call is one that gave up since its file was locked.",
        "\n".join(f"* **{name}**. {_said(name, run)}" for name in PEERS),
        *(_opencode(opencode) if opencode is not None else ()),
    ]
    return "\n\n".join(parts) + "\n"


def _machine(machine: Mapping[str, Any]) -> str:
    names = {
        "date": "when",
        "processor": "processor",
        "cpus": "processors",
        "memory_gb": "memory, GB",
        "system": "system",
        "fsync_us": "an fdatasync of 16 KiB, µs",
        "load_before": "load before the run",
        "python": "Python",
        "sqlite": "SQLite",
        "grpcio": "grpcio",
        "protobuf": "protobuf",
        "turnwire": "Turnwire",
        "durability": "durability",
    }
    return _table(("", ""), [(text, str(machine[name])) for name, text in names.items() if name in machine])


def _obstacles(judged: Sequence[Judged]) -> list[str]:
    missed = [each.goal for each in judged if each.met is False]
    if not missed:
        return []
    lines = [f"* {goal.text}: {goal.obstacle or 'see [performance.md](performance.md).'}" for goal in missed]
    return ["What stands in the way:", "\n".join(lines)]


def _ratios(ratios: Sequence[Ratio]) -> str:
    return _table(("ratio", "value", ""), [(each.text, _number(each.value), _remark(each)) for each in ratios])


def _remark(each: Ratio) -> str:
    return "; ".join(text for text in ("less is better" if each.better == "low" else "", each.note) if text)


def _absolutes(result: Result) -> str:
    columns = ("", f"{result.unit}/s", "p50 ms", "p95 ms", "p99 ms", "")
    rows = [(row.who, *_cells(row)) for row in result.rows]
    parts = [f"### {result.title[0].upper()}{result.title[1:]}", *([_table(columns, rows)] if rows else ())]
    return "\n\n".join([*parts, *result.notes])


def _said(name: str, run: Run) -> str:
    return f"{PEERS[name]} Here: {run.peers[name]}." if name in run.peers else f"{PEERS[name]} Not part of this run."


def _opencode(run: Run) -> list[str]:
    return [
        "## Beside opencode's server",
        f"Written by `make bench-opencode` ({run.machine['date']}).",
        "\n".join(f"* {text}" for text in run.peers.values()),
        _ratios(run.ratios()),
        *(_absolutes(result) for result in run.results),
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _cells(row: Row) -> list[str]:
    failed = f"{row.failed} calls failed" if row.failed else ""
    remark = "; ".join(each for each in (row.note, failed) if each)
    return [_number(row.rate), *(_number(each) for each in (row.p50, row.p95, row.p99)), remark]


def _bound(each: Judged) -> str:
    return f"{'≥' if each.goal.better == 'high' else '≤'} {each.goal.bound:g}"


def _better(each: Ratio) -> str:
    return "less" if each.better == "low" else "more"


def _number(value: float | None) -> str:
    """Three figures that count, at most two places."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 20 else f"{value:.2f}"
