"""A process that appends: ours, raw SQLite and the floor in Python. ``python -m bench.slow_disk FOLDER PARTS``.

`bench.workloads.disks` starts it with an fsync that takes longer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import turnwire
from bench import lines, payloads
from bench.floor import Floor
from bench.raw import Raw
from turnwire import v1
from turnwire.store.sqlite_file import WAL_PAGES


async def main(folder: Path, parts: int) -> None:
    """Answer commands, each of which takes how many messages to append and tells the seconds."""
    raw, tuned = Raw(folder / "raw.db"), Raw(folder / "tuned.db", wal_pages=WAL_PAGES)
    floor = Floor(folder / "floor.db")

    async def limit(side: Raw, count: int) -> Mapping[str, Any]:
        sizes = [payloads.message(parts).assistant.ByteSize() for _ in range(count)]
        return {"seconds": side.singles(sizes).seconds}

    async def messages(append: Callable[[Sequence[v1.EntryInput]], Awaitable[object]], count: int) -> Mapping[str, Any]:
        made = [payloads.message(parts) for _ in range(count)]
        begun = time.perf_counter()
        for each in made:
            await append([each])
        return {"seconds": time.perf_counter() - begun}

    async with turnwire.open(folder / "ours.db") as store:
        await store.append("s", [payloads.turn()], create=True)
        await lines.serve(
            {
                "ours": partial(messages, partial(store.append, "s")),
                "floor": partial(messages, floor.append),
                "raw": partial(limit, raw),
                "tuned": partial(limit, tuned),
            }
        )
    for side in (raw, tuned, floor):
        side.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
