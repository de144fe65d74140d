"""A process that imports a database of opencode, so that its memory counts from nothing; see `bench.lines`."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import turnwire
from bench import lines
from turnwire.formats import Outcome, Report
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import bring


async def run(source: str, target: str) -> Mapping[str, Any]:
    """Import one database; tells the most resident memory beside how long it took."""
    report = Report()
    begun = time.perf_counter()
    async with turnwire.open(target) as store:
        async for _ in bring(store, OPENCODE, OPENCODE.sources(Path(source), report), report):
            pass
    ended = time.perf_counter()
    used = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # The larger of the two processes counts twice, so that it is no less than what both took at any time.
    return {
        "begun": begun,
        "ended": ended,
        "units": report.total(Outcome.IMPORTED, "message"),
        "resident": 2 * max(used) * 1024,
    }


if __name__ == "__main__":
    asyncio.run(lines.serve({"run": run}))
