"""Appends to a server by callers in several client processes, against an echo in the same server, and the peers."""

from __future__ import annotations

from bench import payloads, served
from bench.children import Child, Each, ask_all
from bench.context import Bench, client_work, echo_work, peer_work, texts
from bench.raw import Raw
from bench.results import OURS, Result, compared
from bench.rounds import Round, Work, interleave

#: Callers, and how many processes they come from.
_CALLERS = {1: 1, 16: 4, 64: 4}
_APPENDS = {1: 400, 16: 1600, 64: 2560}  # in a round, by all callers
_LEAST = {1: 100, 16: 20, 64: 8}  # by each
_PEER_APPENDS = {1: 60, 16: 96, 64: 128}
_BATCHES = {10: 100, 100: 20, 1000: 4}  # in a round, by four callers
_STREAM, _BARE = "AppendStream", "without request ids"


async def appends(bench: Bench) -> list[Result]:
    """Single appends by 1, 16 and 64 callers, AppendStream, and batches of 10, 100 and 1,000."""
    results: list[Result] = []
    async with (
        bench.serving(bench.folder / "appends.db") as server,
        bench.clients(server, max(_CALLERS.values())) as clients,
    ):
        async with bench.peer_processes("appends", len(clients)) as peers:
            for callers, processes in _CALLERS.items():
                few = {peer: found[:processes] for peer, found in peers.items()}
                results += await _unary(bench, clients[:processes], few, callers)
        for batch, count in _BATCHES.items():
            results.append(await _batches(bench, clients, batch, count))
    return results


async def _unary(bench: Bench, clients: list[Child], peers: dict[str, list[Child]], callers: int) -> list[Result]:
    key = f"append.unary.{callers}"
    processes = len(clients)
    each = callers // processes
    count = bench.scaled(_APPENDS[callers] // callers, _LEAST[callers])
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


async def _batches(bench: Bench, clients: list[Child], batch: int, count: int) -> Result:
    key = f"append.batch.{batch}"
    each = bench.scaled(count // len(clients), max(1, 100 // batch))
    raw = Raw(bench.folder / f"{key}-raw.db")
    sizes = [payloads.message().assistant.ByteSize()] * (each * len(clients) * batch)
    await ask_all(clients, "begin", sessions=Each([[f"{key}.{process}"] for process in range(len(clients))]))

    async def limit(_: int) -> Round:
        return raw.batches(sizes, batch)

    works = {OURS: client_work(clients, each, batch=batch), "raw SQLite": limit}
    sides = await interleave(works, bench.rounds)
    raw.close()
    title = f"batches of {batch:,} through gRPC by {len(clients)} callers"
    limits = {"raw SQLite": f"{title} / raw SQLite executemany"}
    return compared(key, title, "messages", sides, limits=limits)
