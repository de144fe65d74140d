"""Appends to a server by callers in several client processes, against an echo in the same server, and the peers."""

from __future__ import annotations

from bench import payloads, served
from bench.children import Each, ask_all, joined
from bench.context import Bench, Served, client_work, echo_work, peer_work, texts
from bench.raw import Raw
from bench.results import OURS, Result, compared
from bench.rounds import Round, Work, interleave

#: Callers, and how many processes they come from.
_CALLERS = {1: 1, 16: 4, 64: 4}
_APPENDS = {1: 400, 16: 1600, 64: 2560}  # in a round, by all callers
_PEER_APPENDS = {1: 60, 16: 96, 64: 128}
_BATCHES = {10: 100, 100: 20, 1000: 4}  # in a round, by four callers
_STREAM, _BARE = "AppendStream", "without request ids"


async def appends(bench: Bench) -> list[Result]:
    """Single appends by 1, 16 and 64 callers, AppendStream, and batches of 10, 100 and 1,000."""
    results: list[Result] = []
    async with bench.serving(bench.folder / "appends.db") as server:
        for callers, processes in _CALLERS.items():
            results += await _unary(bench, server, callers, processes)
        for batch, count in _BATCHES.items():
            results.append(await _batches(bench, server, batch, count))
    return results


async def _unary(bench: Bench, server: Served, callers: int, processes: int) -> list[Result]:
    key = f"append.unary.{callers}"
    each = callers // processes
    count = bench.scaled(_APPENDS[callers] // callers, 2)
    async with bench.clients(server, processes) as clients, bench.peer_processes(key, processes) as peers:
        names = [[f"{key}.{process}.{caller}" for caller in range(each)] for process in range(processes)]
        await ask_all(clients, "begin", sessions=Each(names))
        await ask_all(clients, "prepare", count=2)
        (size, *_) = [answer["bytes"] for answer in await ask_all(clients, "unary")]
        echo = f"{served.ECHO}{size}"
        works: dict[str, Work] = {OURS: client_work(clients, count), "echo": echo_work(clients, count, echo)}
        if callers == max(_CALLERS):
            works[_STREAM] = client_work(clients, count, do="stream", streamed=True)
            works[_BARE] = client_work(clients, count, request_ids=False)
        few = bench.scaled(_PEER_APPENDS[callers] // callers)
        for peer, found in peers.items():
            works[peer] = peer_work(found, texts(2, 2048), callers=each, count=few)
        sides = await interleave(works, bench.rounds)
    bare, stream = sides.pop(_BARE, None), sides.pop(_STREAM, None)
    people = "1 caller" if callers == 1 else f"{callers} callers"
    title = f"append of 2 KB by {people}"
    results = [compared(key, title, "messages", sides, limits={"echo": f"{title} / echo"})]
    if bare is not None and stream is not None:
        others = {who: side for who, side in sides.items() if who != OURS}
        text = "AppendStream, 4 streams / unary echo by 64 callers"
        results.append(
            compared("append.stream", "AppendStream", "messages", {OURS: stream} | others, limits={"echo": text})
        )
        text = "append without a request id by 64 callers / echo"
        results.append(
            compared(
                "append.bare",
                "append without a request id by 64 callers",
                "messages",
                {OURS: bare, "echo": sides["echo"]},
                limits={"echo": text},
            )
        )
    return results


async def _batches(bench: Bench, server: Served, batch: int, count: int) -> Result:
    key = f"append.batch.{batch}"
    each = bench.scaled(count // 4)
    raw = Raw(bench.folder / f"{key}-raw.db")
    sizes = [payloads.message().assistant.ByteSize()] * (each * 4 * batch)
    async with bench.clients(server, 4) as clients:
        await ask_all(clients, "begin", sessions=Each([[f"{key}.{process}"] for process in range(4)]))

        async def limit(_: int) -> float:
            raw.batches(sizes, batch)
            return len(sizes)

        async def ours(_: int) -> Round:
            await ask_all(clients, "prepare", count=each, batch=batch)
            return joined(await ask_all(clients, "unary"))

        sides = await interleave({OURS: ours, "raw SQLite": limit}, bench.rounds)
    raw.close()
    title = f"batches of {batch:,} through gRPC by 4 callers"
    limits = {"raw SQLite": f"{title} / raw SQLite executemany"}
    return compared(key, title, "messages", sides, limits=limits)
