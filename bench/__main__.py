"""Measure everything in one run: ratios against the limits of this machine, and the peers.

Writes build/bench.json, and docs/benchmarks.md after a whole run. --quick measures the limits alone, small, and holds
the ratios against the committed ones in bench/baseline.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from bench import guard, machine, report
from bench.children import ROOT, started
from bench.context import Bench
from bench.goals import judge
from bench.peers import PEERS
from bench.report import Run, by_key
from bench.workloads import WORKLOADS

#: Where the peers live; made by ``make bench``.
PEERS_PYTHON = ROOT / "build" / "bench-venv" / "bin" / "python"
RESULTS = ROOT / "build" / "bench.json"
OPENCODE_RESULTS = ROOT / "build" / "bench-opencode.json"
DOCUMENT = ROOT / "docs" / "benchmarks.md"

_ROUNDS = 7
_QUICK_ROUNDS = 5
_QUICK_SCALE = 0.1


async def measure(bench: Bench, names: list[str]) -> Run:
    """Run workloads, one after another."""
    described = machine.describe()
    peers: dict[str, str] = {}
    for name in PEERS if bench.peers is not None else ():
        path = bench.folder / f"about-{name}.db"
        async with started("bench.peers.worker", name, str(path), python=bench.peers or "") as process:
            about = await process.ask("about")
            peers[name] = f"{about['version']}, {about['journal']}"
    run = Run(described, peers, [])
    for at, name in enumerate(names, 1):
        begun = time.monotonic()
        bench.say(f"[{at}/{len(names)}] {name} …")
        found = await WORKLOADS[name](bench)
        run.results += found
        for result in found:
            for each in result.ratios:
                bench.say(f"      {each.text}: {each.value:.2f}")
        bench.say(f"      {time.monotonic() - begun:.0f} s")
    return run


def main() -> int:
    """Run the command line; returns its exit code."""
    options = _options()
    names = [name for name in WORKLOADS if not options.only or name in options.only]
    scale = options.scale or (_QUICK_SCALE if options.quick else 1.0)
    rounds = options.rounds or (_QUICK_ROUNDS if options.quick else _ROUNDS)
    peers = None if options.quick or options.no_peers else options.peers
    if peers is not None and not peers.exists():
        print(f"the peers are not installed: {peers} is missing (make bench installs them, --no-peers does without)")
        return 2
    said = Console(stderr=True, highlight=False)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="turnwire-bench-") as folder:
        bench = Bench(Path(folder), scale, rounds, peers, lambda text: said.print(text, markup=False, soft_wrap=True))
        run = asyncio.run(measure(bench, names))
    said.print(f"measured in {time.monotonic() - begun:.0f} s")
    out = RESULTS.with_stem("bench-quick") if options.quick else RESULTS
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(run.dump(), indent=1, ensure_ascii=False) + "\n")
    if options.write_baseline:
        guard.write(run.ratios(), run.machine)
        said.print(f"wrote {guard.BASELINE.relative_to(ROOT)}")
        return 0
    return _guarded(run, whole=not options.only) if options.quick else _told(run, options, whole=scale == 1)


def _told(run: Run, options: argparse.Namespace, *, whole: bool) -> int:
    """Print the tables, and write the document after a whole run with the peers."""
    opencode = Run.load(json.loads(OPENCODE_RESULTS.read_text())) if OPENCODE_RESULTS.exists() else None
    judged = judge(by_key([*run.ratios(), *(opencode.ratios() if opencode else ())]))
    console = Console()
    for table in (report.rows_table(run.results), report.ratios_table(run.ratios()), report.goals_table(judged)):
        console.print(table)
    if whole and run.peers and not options.only:
        DOCUMENT.write_text(report.document(run, opencode))
        console.print(f"wrote {DOCUMENT.relative_to(ROOT)} and {RESULTS.relative_to(ROOT)}")
    return 1 if options.strict and any(each.met is False for each in judged) else 0


def _guarded(run: Run, *, whole: bool) -> int:
    """Hold the ratios against the committed ones; 1 if one fell, or was not measured any more in a whole run."""
    try:
        baseline = guard.read()
    except FileNotFoundError:
        print("there are no committed ratios; --write-baseline makes them")
        return 2
    compared = guard.compare(run.ratios(), baseline)
    lost = guard.missing(run.ratios(), baseline) if whole else []
    Console().print(report.guard_table(compared))
    for key in lost:
        print(f"not measured any more: {key}")
    return 1 if lost or any(each.fell for each in compared) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument(
        "--scale", type=float, help=f"size of the measurements (1: as published; quick: {_QUICK_SCALE})"
    )
    parser.add_argument("--rounds", type=int, help=f"rounds of each comparison ({_ROUNDS}; quick: {_QUICK_ROUNDS})")
    parser.add_argument("--peers", type=Path, default=PEERS_PYTHON, metavar="PYTHON", help="the peers' interpreter")
    parser.add_argument("--no-peers", action="store_true", help="measure without the peers")
    parser.add_argument("--quick", action="store_true", help="small, without peers, against bench/baseline.json")
    parser.add_argument(
        "--write-baseline", action="store_true", help="with --quick: make the ratios the committed ones"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is not met")
    options = parser.parse_args()
    if options.write_baseline and (not options.quick or options.only or options.scale):
        parser.error("--write-baseline goes with --quick, and with neither --only nor --scale")
    return options


if __name__ == "__main__":
    sys.exit(main())
