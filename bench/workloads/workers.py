"""Appends to a server of two processes behind one port, against one process, and the echo in the same two."""

from __future__ import annotations

from collections.abc import Sequence

from bench import payloads, served
from bench.children import Child, Each, ask_all
from bench.context import Bench, client_work, echo_work
from bench.raw import Raw
from bench.results import OURS, Result, compared
from bench.rounds import Round, Work, interleave

_PROCESSES = 2
_CLIENTS = 4
_CALLERS = 16  # of each client, with a connection each: the system deals out connections by chance
_APPENDS = 24  # in a round, by each caller
_BATCH, _BATCHES, _BATCH_CALLERS = 100, 3, 4
_ONE = "one process"


async def workers(bench: Bench) -> list[Result]:
    """Single appends by 64 callers, streams, and batches of 100."""
    async with (
        bench.serving(bench.folder / "one.db") as one,
        bench.serving(bench.folder / "two.db", _PROCESSES) as two,
        bench.clients(one, _CLIENTS) as to_one,
        bench.clients(two, _CLIENTS) as to_two,
    ):
        return [*await _singles(bench, to_two, to_one), await _batches(bench, to_two, to_one)]


async def _begin(clients: Sequence[Child], name: str, callers: int) -> None:
    names = [[f"{name}.{client}.{caller}" for caller in range(callers)] for client in range(len(clients))]
    await ask_all(clients, "begin", sessions=Each(names), connections=True)


async def _singles(bench: Bench, to_two: list[Child], to_one: list[Child]) -> list[Result]:
    count = bench.scaled(_APPENDS, 8)
    for clients in (to_two, to_one):
        await _begin(clients, "single", _CALLERS)
    await ask_all(to_two, "prepare", count=2)
    (size, *_) = [answer["bytes"] for answer in await ask_all(to_two, "unary")]
    streamed, streamed_one = "stream", "stream, one process"
    works: dict[str, Work] = {
        OURS: client_work(to_two, count),
        _ONE: client_work(to_one, count),
        "echo": echo_work(to_two, count, f"{served.ECHO}{size}"),
        streamed: client_work(to_two, count, do="stream", streamed=True),
        streamed_one: client_work(to_one, count, do="stream", streamed=True),
    }
    sides = await interleave(works, bench.rounds)
    stream = {OURS: sides.pop(streamed), _ONE: sides.pop(streamed_one), "echo": sides["echo"]}
    callers = _CLIENTS * _CALLERS
    unary = f"append of 2 KB by {callers} callers, two processes"
    streams = f"AppendStream, {callers} streams, two processes"
    return [
        compared(
            "workers.unary",
            unary,
            "messages",
            sides,
            limits={"echo": f"{unary} / echo in the same two", _ONE: f"{unary} / one process"},
        ),
        compared(
            "workers.stream",
            streams,
            "messages",
            stream,
            limits={"echo": f"{streams} / unary echo in the same two", _ONE: f"{streams} / one process"},
        ),
    ]


async def _batches(bench: Bench, to_two: list[Child], to_one: list[Child]) -> Result:
    count = bench.scaled(_BATCHES)
    for clients in (to_two, to_one):
        await _begin(clients, "batch", _BATCH_CALLERS)
    raw = Raw(bench.folder / "workers-raw.db")
    sizes = [payloads.message().assistant.ByteSize()] * (count * _CLIENTS * _BATCH_CALLERS * _BATCH)

    async def limit(_: int) -> Round:
        return raw.batches(sizes, _BATCH)

    works = {
        OURS: client_work(to_two, count, batch=_BATCH),
        _ONE: client_work(to_one, count, batch=_BATCH),
        "raw SQLite": limit,
    }
    sides = await interleave(works, bench.rounds)
    raw.close()
    title = f"batches of {_BATCH} through gRPC by {_CLIENTS * _BATCH_CALLERS} callers, two processes"
    limits = {"raw SQLite": f"{title} / raw SQLite executemany", _ONE: f"{title} / one process"}
    return compared("workers.batch.100", title, "messages", sides, limits=limits)
