"""``make bench``: runs every measurement in one go, prints a table, and writes ``build/bench.json``."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import appends, imports, rendering, replay, validation
from turnwire import __version__
from turnwire.rendering import Dialect


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure with its goal; ``good`` tells which way is better."""

    name: str
    value: float
    goal: float
    good: str  # "high" or "low"
    note: str

    @property
    def reached(self) -> bool:
        return self.value >= self.goal if self.good == "high" else self.value <= self.goal


async def _measure(folder: Path, scale: float, console: Console) -> list[Figure]:
    figures: list[Figure] = []

    def add(figure: Figure) -> None:
        figures.append(figure)
        console.print(f"[dim]{figure.name}: {figure.value:.2f}[/dim]")

    for parts in (1, 2, 8):
        part = folder / f"singles{parts}"
        part.mkdir()
        single = await appends.singles(part, parts)
        inside = (await appends.layers(parts))["check, plan and serialize"]
        note = f"{single.ours_us:.0f} µs, raw {single.limit_us:.0f} µs; {inside:.0f} µs without the store"
        add(Figure(f"embedded append of 2 KB in {parts} parts / raw SQLite", single.ratio, 0.6, "high", note))
    growth = await appends.growth(folder, int(100_000 * scale))
    note = f"{growth.ours_us:.0f} µs and {growth.limit_us:.0f} µs"
    name = f"append at entry {int(100_000 * scale):,} / at entry 10, cost"
    add(Figure(name, 1 / growth.ratio, 1.25, "low", note))
    for parts in (1, 2, 8):
        ratio = await appends.file_ratio(folder, parts)
        add(Figure(f"file / payload bytes, 2 KB messages of {parts} parts", ratio, 1.4, "low", "after checkpoint"))
    beside = await appends.delta_bytes(folder)
    add(Figure("bytes on disk of a delta beside its text", beside, 80, "low", "each appended by itself"))
    compared, size = await replay.replay(folder, int(10_000 * scale))
    note = f"{1e6 / compared.ours_us:,.0f} messages/s, memory {1e6 / compared.limit_us:,.0f}; {size / 1e6:.0f} MB"
    add(Figure(f"replay of {int(10_000 * scale):,} messages / from memory", compared.ratio, 0.5, "high", note))
    imported = await imports.imports(folder, int(64_000_000 * scale))
    note = f"{imported.resident / 1e6:.0f} MB resident for a database of {imported.source_bytes / 1e6:.0f} MB"
    add(Figure("messages/s of an opencode database, imported into the store", imported.rate, 3000, "high", note))
    for dialect in Dialect:
        rendered = await rendering.rendering(dialect)
        note = f"{rendered.ours_us * rendered.units / 1e3:.0f} ms"
        name = f"1,000 messages assembled, mutated, rendered for {dialect.value} / json.dumps, cost"
        add(Figure(name, 1 / rendered.ratio, 15, "low", note))
    validated = validation.messages(folder, int(100_000 * scale))
    note = f"{validated.messages / validated.clock:,.0f} messages/s; {validated.processor:.1f} s of the processor"
    name = f"seconds to validate a file of {validated.messages:,} messages of 2 KB in 8 parts"
    add(Figure(name, validated.clock, 30 * scale, "low", note))
    share, rules_us, append_us = await validation.share_of_rules(folder)
    note = f"{rules_us:.0f} of {append_us:.0f} µs"
    add(Figure("share of the schema's rules in an append of 2 KB in 8 parts", share, 0.25, "low", note))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the large measurements (1: as published)")
    options = parser.parse_args()
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="turnwire-bench-") as folder:
        figures = asyncio.run(_measure(Path(folder), options.scale, console))
    machine = {
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "turnwire": __version__,
        "durability": "WAL, synchronous=FULL",
    }
    table = Table(title="Turnwire, ratios within one run", caption=str(machine))
    for column in ("figure", "value", "goal", "reached", "how"):
        table.add_column(column)
    for figure in figures:
        goal = f"{'≥' if figure.good == 'high' else '≤'} {figure.goal:g}"
        table.add_row(figure.name, f"{figure.value:.2f}", goal, "yes" if figure.reached else "NO", figure.note)
    Console().print(table)
    out = Path("build/bench.json")
    out.parent.mkdir(exist_ok=True)
    rows = [asdict(figure) | {"reached": figure.reached} for figure in figures]
    out.write_text(json.dumps({"machine": machine, "figures": rows}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
