"""Embedded appends on slower disks: how near to raw SQLite an append is depends on how long both wait for an fsync."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from bench.children import Child, started
from bench.context import Bench
from bench.results import OURS, Result, compared
from bench.rounds import Round, Work, interleave

_SOURCE = Path(__file__).parents[1] / "slow_disk.c"
_SLOWER_US = (0, 200, 1000)
_PARTS = (1, 2, 8)
_APPENDS = 100
_SIDES = {OURS: "ours", "raw SQLite": "raw", "raw SQLite with our WAL": "tuned", "the floor in Python": "floor"}


async def disks(bench: Bench) -> list[Result]:
    """Single appends of 2 KB, on this disk and with an fsync that takes longer. Needs a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        bench.say("      left out: there is no C compiler to make an fsync slower with")
        return []
    library = bench.folder / "slow_disk.so"
    made = await asyncio.create_subprocess_exec(compiler, "-shared", "-fPIC", "-O2", "-o", library, _SOURCE, "-ldl")
    if await made.wait():
        raise RuntimeError(f"{compiler} could not compile {_SOURCE}")
    results: list[Result] = []
    for slower in _SLOWER_US:
        environment = os.environ | {"LD_PRELOAD": str(library), "SYNC_US": str(slower)}
        for parts in _PARTS:
            folder = bench.folder / f"disk-{slower}-{parts}"
            folder.mkdir()
            async with started("bench.slow_disk", str(folder), str(parts), environment=environment) as child:
                results.append(await _appends(bench, child, slower, parts))
    return results


async def _appends(bench: Bench, child: Child, slower: int, parts: int) -> Result:
    count = bench.scaled(_APPENDS, 20)

    def work(do: str) -> Work:
        async def run(_: int) -> Round:
            return Round(count, (await child.ask(do, count=count))["seconds"])

        return run

    sides = await interleave({who: work(do) for who, do in _SIDES.items()}, bench.rounds)
    disk = f"an fsync of {slower:,} µs more" if slower else "an fsync as it is"
    title = f"embedded append of 2 KB in {parts} {'part' if parts == 1 else 'parts'}, {disk}"
    limits = {who: f"{title} / {who}" for who in _SIDES if who != OURS}
    # Not guarded: nothing but the disk is new beside the embedded appends, and some machines have no compiler.
    return compared(f"disk.{slower}.parts{parts}", title, "messages", sides, limits=limits, guarded=False)
