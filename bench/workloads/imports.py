"""Importing a database of opencode, in a process of its own: messages a second into the embedded store, and memory."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from bench import children
from bench.children import Child, joined
from bench.context import Bench
from bench.opencode_db import make_database
from bench.raw import Raw
from bench.results import OURS, Ratio, Result, compared
from bench.rounds import Round, interleave

_SOURCE_BYTES = 64_000_000
_ROUNDS = 2


async def imports(bench: Bench) -> list[Result]:
    """A database of about 64 MB; the limit reads the same rows, parses them, and writes them to raw SQLite."""
    source = bench.folder / "opencode.db"
    messages = make_database(source, bench.scaled(_SOURCE_BYTES, 400_000))
    memory: list[int] = []

    async def ours(at: int) -> Round:
        async with children.started("bench.importer") as child:
            found = await _import(child, source, bench.folder / f"imported{at}.db")
        memory.append(found["resident"])
        done = joined([found])
        assert done.units == messages, (done.units, messages)
        return done

    async def limit(at: int) -> float:
        # Timed from outside, reading and parsing included.
        _copy(source, bench.folder / f"copied{at}.db")
        return messages

    sides = await interleave({OURS: ours, "raw copy": limit}, min(_ROUNDS, bench.rounds))
    title = f"import of an opencode database of {source.stat().st_size / 1e6:.0f} MB"
    text = f"{title} / its rows parsed as JSON and written to raw SQLite"
    result = compared("import", title, "messages", sides, limits={"raw copy": text})
    rate = sides[OURS].rate
    result.ratios.append(
        Ratio("import.rate", "messages/s of an opencode database, imported into the store", rate, guarded=False)
    )
    result.notes.append(f"The import held at most {max(memory) / 1e6:.0f} MB, its worker process included.")
    return [result]


async def _import(child: Child, source: Path, target: Path) -> dict[str, Any]:
    return await child.ask("run", source=str(source), target=str(target))


def _copy(source: Path, target: Path) -> None:
    """Read each message with its parts, parse them, and write the bytes a thousand rows to a transaction."""
    raw = Raw(target)
    db = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
    sizes: list[int] = []
    for table in ("message", "part"):
        for (data,) in db.execute(f"SELECT data FROM {table}"):
            json.loads(data)
            sizes.append(len(data))
    raw.batches(sizes, 1000)
    db.close()
    raw.close()
