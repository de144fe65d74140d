"""Appends in one process, through `turnwire.open`, against raw SQLite and the peers in a process of theirs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import turnwire
from bench import payloads
from bench.context import Bench, peer_work, texts
from bench.floor import Floor
from bench.raw import Raw
from bench.results import OURS, Ratio, Result, compared
from bench.rounds import Round, Work, interleave, ratio
from turnwire import v1
from turnwire.store.sqlite_file import WAL_PAGES

_SINGLES = 200
_BATCHES = {10: 40, 100: 8, 1000: 2}
_LEAST = 300  # messages in a round of batches
_PEER_MESSAGES = {1: 60, 10: 100, 100: 200, 1000: 1000}
_NO_BATCHES = {"google-adk"}
_FLOOR = "the floor in Python"
_TUNED = "raw SQLite with our WAL"  # which is copied back as often as ours


async def embedded(bench: Bench) -> list[Result]:
    """Single appends of 2 KB messages in one, two and eight parts, and batches of those in two."""
    results: list[Result] = []
    for parts in (2, 1, 8):
        key = "embedded.single" if parts == 2 else f"embedded.single.parts{parts}"
        title = f"embedded append of 2 KB in {parts} {'part' if parts == 1 else 'parts'}"
        results.append(await _appends(bench, key, title, parts, bench.scaled(_SINGLES, 100), 1, peers=parts == 2))
    for batch, count in _BATCHES.items():
        title = f"embedded batches of {batch:,}"
        results.append(
            await _appends(
                bench, f"embedded.batch.{batch}", title, 2, max(bench.scaled(count), _LEAST // batch, 1), batch
            )
        )
    return results


async def _appends(
    bench: Bench, key: str, title: str, parts: int, count: int, batch: int, *, peers: bool = True
) -> Result:
    """``count`` appends a round, of ``batch`` messages each; the units are messages."""
    raw = Raw(bench.folder / f"{key}-raw.db")
    tuned = Raw(bench.folder / f"{key}-tuned.db", wal_pages=WAL_PAGES)
    floor = Floor(bench.folder / f"{key}-floor.db")
    made = [payloads.message(parts) for _ in range(count * batch)]
    sizes = [each.assistant.ByteSize() for each in made]  # those of all rounds, since ids have one length
    async with turnwire.open(bench.folder / f"{key}.db") as store, bench.peer_processes(key) as processes:
        await store.append("s", [payloads.turn()], create=True)

        def messages(append: Callable[[Sequence[v1.EntryInput]], Awaitable[object]]) -> Work:
            waiting = [payloads.message(parts) for _ in range(count * batch * (bench.rounds + 1))]

            async def work(at: int) -> Round:
                first = at * count * batch
                marks = [time.perf_counter()]
                for begin in range(first, first + count * batch, batch):
                    await append(waiting[begin : begin + batch])
                    marks.append(time.perf_counter())
                return Round.between(marks, count * batch)

            return work

        def limit(side: Raw) -> Work:
            async def work(_: int) -> Round:
                return side.singles(sizes) if batch == 1 else side.batches(sizes, batch)

            return work

        works: dict[str, Work] = {
            OURS: messages(partial(store.append, "s")),
            "raw SQLite": limit(raw),
            _TUNED: limit(tuned),
            _FLOOR: messages(floor.append),
        }
        if peers:
            few = bench.scaled(_PEER_MESSAGES[batch] // batch)
            for peer, each in processes.items():
                if batch > 1 and peer in _NO_BATCHES:
                    continue
                works[peer] = peer_work(each, texts(parts, 2048), callers=1, count=few, batch=batch)
        sides = await interleave(works, bench.rounds)
    raw.close()
    tuned.close()
    floor.close()
    limits = {each: f"{title} / {each}" for each in ("raw SQLite", _TUNED, _FLOOR)}
    found = compared(key, title, "messages", sides, limits=limits)
    best = ratio(sides[_FLOOR], sides["raw SQLite"])
    found.ratios.append(Ratio(f"{key}.floor/raw SQLite", f"{title}: {_FLOOR} / raw SQLite", best, guarded=False))
    return found
