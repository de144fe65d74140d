"""Tail: entries to fifty readers as they are appended, and what one slow or stopped reader costs the writers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from bench import payloads, served
from bench.children import Child, ask_all, joined
from bench.context import Bench, Served, client_work
from bench.results import OURS, Ratio, Result, Row, compared
from bench.rounds import Round, Work, interleave, ratio
from turnwire import Client, methods, v1

_READERS = 50
_READING = 2  # processes that the readers are in
_CALLERS = 16
_ENTRIES = 160  # in a round
_BEFORE = 2000  # entries that are there before, more than what any buffer on the way takes
_WATCHED = 1600


async def tails(bench: Bench) -> list[Result]:
    """Fan-out, and writers beside a reader that does not keep up."""
    async with bench.serving(bench.folder / "tails.db") as server:
        return [await _fan_out(bench, server), await _stalled(bench, server)]


async def _fan_out(bench: Bench, server: Served) -> Result:
    session, kept = "tail.fanout", "tail.bin"
    each = bench.scaled(_ENTRIES // _CALLERS, 5)
    count = each * _CALLERS
    async with (
        bench.clients(server, 1) as (writer,),
        bench.clients(server, _READING) as readers,
        Client.connect(server.address) as client,
    ):
        await writer.ask("begin", sessions=[session] * _CALLERS)

        async def ours(at: int) -> Round:
            head = (await client.get_session(session)).head.revision
            await ask_all(readers, "tails", session=session, after=head, count=count, readers=_READERS // _READING)
            await writer.ask("prepare", count=each)
            keeping = None if at else asyncio.create_task(_keep(server, session, head, count, bench.folder / kept))
            written, *read = await asyncio.gather(writer.ask("unary"), *(reader.ask("tailed") for reader in readers))
            if keeping is not None:
                await keeping
            ended = max(answer["ended"] for answer in read)
            lags = [lag for answer in read for lag in answer["latencies"]]
            return Round(sum(answer["units"] for answer in read), ended - written["begun"], lags)

        async def limit(_: int) -> Round:
            return joined(await ask_all(readers, "memory", name=kept, readers=_READERS // _READING))

        sides = await interleave({OURS: ours, "memory": limit}, bench.rounds)
    title = f"entries to {_READERS} tail readers while {_CALLERS} callers append"
    limits = {"memory": f"{title} / the same responses from memory"}
    result = compared("tail.fanout", title, "entries delivered", sides, limits=limits)
    result.notes.append("A time of the fan-out is that from an entry's record time to when a reader had parsed it.")
    return result


async def _keep(server: Served, session: str, after: int, count: int, path: Path) -> None:
    """Write down the responses of a tail as they come, for the limit."""
    kept: list[bytes] = []
    entries = 0
    async with grpc.aio.insecure_channel(server.address) as channel:
        request = v1.TailRequest(session_id=session, after_revision=after)
        raw_channel: Any = channel  # its types know no calls without serializers
        call = raw_channel.unary_stream(methods.METHODS["Tail"].path)(request.SerializeToString())
        async for raw in call:
            kept.append(raw)
            entries += len(v1.TailResponse.FromString(raw).entries)
            if entries >= count:
                break
        call.cancel()
    served.keep(path, kept)


async def _stalled(bench: Bench, server: Served) -> Result:
    session = "tail.watched"
    async with (
        bench.clients(server, 2) as writers,
        bench.clients(server, 2) as (stopped, slow),
        Client.connect(server.address) as client,
    ):
        await ask_all(writers, "begin", sessions=[session] * (_CALLERS // 2))
        for _ in range(bench.scaled(_BEFORE, 500) // 100):
            await client.append(session, [payloads.message() for _ in range(100)])
        write = client_work(writers, bench.scaled(_WATCHED // _CALLERS, 25))

        def beside(how: str, reader: Child) -> Work:
            async def work(at: int) -> Round | float:
                async with _reading(reader, session, how):
                    return await write(at)

            return work

        works = {OURS: write, "stopped": beside("stopped", stopped), "slow": beside("slow", slow)}
        sides = await interleave(works, bench.rounds)
    title = f"append by {_CALLERS} callers to one session"
    made = Result("tail.stalled", title, "messages")
    names = {OURS: "without a reader", "stopped": "beside a stopped reader", "slow": "beside a slow reader"}
    for who, side in sides.items():
        made.rows.append(Row.of(OURS, "ours", side, names[who]))
        if who != OURS:
            text = f"{title} {names[who]} / without a reader"
            made.ratios.append(Ratio(f"tail.{who}", text, ratio(side, sides[OURS])))
    return made


@asynccontextmanager
async def _reading(reader: Child, session: str, how: str) -> AsyncGenerator[None]:
    """A process tails a session, and takes a response now and then or is stopped."""
    await reader.ask("stall", session=session, how=how)
    if how == "stopped":
        await _stopped(reader)
    try:
        yield
    finally:
        if how == "stopped":
            os.kill(reader.pid, signal.SIGCONT)
        await reader.ask("go_on")


async def _stopped(reader: Child) -> None:
    """Wait until a process is stopped."""
    while Path(f"/proc/{reader.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        await asyncio.sleep(0.01)
