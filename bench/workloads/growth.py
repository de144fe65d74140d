"""What an append costs at the end of a long log, and how many bytes it takes on disk."""

from __future__ import annotations

import time
from pathlib import Path

import turnwire
from bench import payloads
from bench.context import Bench, texts
from bench.results import OURS, Ratio, Result, Row
from bench.rounds import Round, Side, Work, interleave, ratio
from turnwire import v1
from turnwire.embedded import Embedded

_ENTRIES = (10, 1_000, 100_000)
_EACH = 100  # appends in a round
_BATCH = 1_000
#: How long a peer's session grows: `SqliteSaver` writes all that is there again with every append.
_PEER_ENTRIES = {"openai-agents": 1_000, "langgraph": 300, "google-adk": 1_000}
_PEER_EACH = 20
_DELTAS, _DELTA_BYTES = 10_000, 24


async def growth(bench: Bench) -> list[Result]:
    """The cost of the append, and the bytes on disk, after 10, 1,000 and 100,000 entries."""
    return [await _cost(bench), await _bytes(bench)]


async def _cost(bench: Bench) -> Result:
    sizes = {entries: entries if entries == 10 else bench.scaled(entries, 100) for entries in _ENTRIES}
    async with turnwire.open(bench.folder / "growth.db") as store:
        for entries, size in sizes.items():
            if entries != 10:
                await _long(store, f"s{entries}", size)
        # Ten to each, so that the first look at a session does not make its appends dear.
        short = [f"short{at // 10}" for at in range(_EACH * (bench.rounds + 1))]
        for session in dict.fromkeys(short):
            await _long(store, session, 10)

        def work(names: list[str]) -> Work:
            waiting = [(name, [payloads.message()]) for name in names]

            async def run(at: int) -> Round:
                marks = [time.perf_counter()]
                for name, entries in waiting[at * _EACH : (at + 1) * _EACH]:
                    await store.append(name, entries)
                    marks.append(time.perf_counter())
                return Round.between(marks, _EACH)

            return run

        works = {str(entries): work([f"s{entries}"] * len(short)) for entries in _ENTRIES} | {"10": work(short)}
        sides = await interleave(works, bench.rounds)
    result = Result("growth.cost", "append at the end of a session", "messages")
    for entries, size in sizes.items():
        result.rows.append(Row.of(OURS, "ours", sides[str(entries)], f"at entry {size:,}"))
    first, last = sides[str(_ENTRIES[0])], sides[str(_ENTRIES[-1])]
    text = f"append at entry {sizes[_ENTRIES[-1]]:,} / at entry 10, cost"
    result.ratios.append(Ratio("growth.append", text, 1 / ratio(last, first), "low"))
    await _peers_cost(bench, result)
    return result


async def _long(store: Embedded, session: str, entries: int) -> None:
    """A session of so many entries, its properties and its turn included."""
    await store.create_session(session)
    waiting = [payloads.turn(), *(payloads.message() for _ in range(min(entries, _BATCH) - 2))]
    await store.append(session, waiting)
    for begin in range(_BATCH, entries, _BATCH):
        await store.append(session, [payloads.message() for _ in range(min(_BATCH, entries - begin))])


async def _peers_cost(bench: Bench, result: Result) -> None:
    """A peer's session grows append by append; its first appends against its last ones."""
    messages = texts(2, 2048)
    async with bench.peer_processes("growth") as peers:
        for peer, (process,) in peers.items():
            entries = bench.scaled(_PEER_ENTRIES[peer], 3 * _PEER_EACH)
            await process.ask("prepare", sessions=["s"], messages=messages, count=entries)
            latencies = (await process.ask("append"))["latencies"]
            first = _side(latencies[_PEER_EACH : 2 * _PEER_EACH])
            last = _side(latencies[-_PEER_EACH:])
            result.rows.append(Row.of(peer, "peer", first, f"at entry {_PEER_EACH}"))
            result.rows.append(Row.of(peer, "peer", last, f"at entry {entries:,}"))
    for peer in peers:  # whose processes have closed their files
        entries = bench.scaled(_PEER_ENTRIES[peer], 3 * _PEER_EACH)
        size = _file_bytes(bench.folder / f"growth-{peer}.db") / (entries * 2048)
        text = f"{peer}: bytes of the file / bytes of the texts at {entries:,} entries"
        result.ratios.append(Ratio(f"growth.bytes/{peer}", text, size, "low", guarded=False))


def _side(latencies: list[float]) -> Side:
    """Consecutive calls as a side of one round."""
    return Side([Round(len(latencies), sum(latencies), latencies)])


def _file_bytes(path: Path) -> int:
    """Bytes of a database, with the WAL beside it."""
    return sum(each.stat().st_size for each in path.parent.glob(path.name + "*") if not each.name.endswith("-shm"))


async def _bytes(bench: Bench) -> Result:
    result = Result("growth.disk", "bytes on disk", "bytes")
    for entries in _ENTRIES:
        size = entries if entries == 10 else bench.scaled(entries, 100)
        value = await _file_ratio(bench.folder / f"bytes{entries}.db", size, parts=2)
        key = "growth.bytes" if entries == _ENTRIES[-1] else f"growth.bytes.{entries}"
        text = f"file after a checkpoint / payload bytes at {size:,} entries of 2 KB"
        # A file of ten entries is all tables and indexes.
        result.ratios.append(Ratio(key, text, value, "low", guarded=entries != 10))
    for parts in (1, 8):
        size = bench.scaled(20_000, 100)
        value = await _file_ratio(bench.folder / f"parts{parts}.db", size, parts=parts)
        text = f"file after a checkpoint / payload bytes at {size:,} entries of 2 KB in {parts} parts"
        result.ratios.append(Ratio(f"growth.bytes.parts{parts}", text.replace("1 parts", "1 part"), value, "low"))
    beside = await _delta_bytes(bench.folder / "deltas.db", bench.scaled(_DELTAS, 500))
    result.ratios.append(Ratio("growth.delta", "bytes on disk of a delta beside its text", beside, "low"))
    return result


async def _file_ratio(path: Path, entries: int, parts: int) -> float:
    """Bytes of the file of a closed store over bytes of payloads, for whole 2 KB messages of so many parts."""
    stored = 0
    async with turnwire.open(path) as store:
        await store.append("s", [payloads.turn()], create=True)
        for begin in range(0, entries, _BATCH):
            batch = [payloads.message(parts) for _ in range(min(_BATCH, entries - begin))]
            stored += sum(entry.assistant.ByteSize() for entry in batch)
            await store.append("s", batch)
    return path.stat().st_size / stored


async def _delta_bytes(path: Path, count: int) -> float:
    """Bytes that one delta takes in the file beside its text, each appended by itself."""
    opening = payloads.message(1, 400)
    part = opening.assistant.assistant.parts[0]
    offset = len(part.text.text)
    async with turnwire.open(path) as store:
        await store.append("s", [payloads.turn(), opening], create=True)
    before = path.stat().st_size
    async with turnwire.open(path) as store:
        for at in range(count):
            begin = offset + at * _DELTA_BYTES
            await store.append("s", [v1.PartDelta(part_id=part.id, offset=begin, text="d" * _DELTA_BYTES)])
    return (path.stat().st_size - before) / count - _DELTA_BYTES
