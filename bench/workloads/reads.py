"""Replay and resume through gRPC into parsed messages, against the same bytes from memory, and the peers' reading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

import turnwire
from bench import served, sessions
from bench.children import Child, joined
from bench.context import Bench, Served, texts
from bench.results import OURS, Result, compared
from bench.rounds import Round, Work, interleave
from turnwire import methods, v1

#: Google ADK takes events one by one, and reads as fast per message from a session of this length.
_ADK_MOST = 1000
_LEAST = 1000  # messages below which a session is not made smaller
_LAST_TURNS = 2


@dataclass(frozen=True, slots=True)
class _Read:
    """One way to replay: the name, a session of ``messages``, the last turns alone, and how often in a round."""

    key: str
    messages: int
    last_turns: int | None
    times: int


_READS = (
    _Read("replay.10", 10, None, 50),
    _Read("replay.1000", 1_000, None, 3),
    _Read("replay.10000", 10_000, None, 1),
    _Read("replay.last20", 10_000, _LAST_TURNS, 30),
)


async def reads(bench: Bench) -> list[Result]:
    """Replay of 10, 1,000 and 10,000 messages and of the last 20 of 10,000, and the prompt of 1,000."""
    results: list[Result] = []
    sizes = {each.messages: min(each.messages, bench.scaled(each.messages, _LEAST)) // 10 * 10 for each in _READS}
    path = bench.folder / "reads.db"
    async with turnwire.open(path) as store:
        for messages, size in sizes.items():
            await sessions.fill(store, f"s{messages}", size)
    async with (
        bench.serving(path) as server,
        bench.clients(server, 1) as (client,),
        bench.peer_processes("reads") as peers,
    ):
        lengths: dict[str, dict[int, int]] = {}
        for peer, (process,) in peers.items():
            lengths[peer] = {}
            for messages, size in sizes.items():
                length = min(size, _ADK_MOST) if peer == "google-adk" else size
                lengths[peer][messages] = length
                parts = texts(sessions.PARTS, sessions.PARTS * sessions.PART_BYTES)
                await process.ask("fill", session=f"s{messages}", messages=parts, count=length)
        for read in _READS:
            results.append(await _replay(bench, server, client, peers, read, sizes[read.messages], lengths))
        results.append(await _resume(bench, client, peers, sizes[1_000]))
    return results


async def _replay(
    bench: Bench,
    server: Served,
    client: Child,
    peers: dict[str, list[Child]],
    read: _Read,
    size: int,
    lengths: dict[str, dict[int, int]],
) -> Result:
    session = f"s{read.messages}"
    count = size if read.last_turns is None else min(size, read.last_turns * sessions.TURN_MESSAGES)
    request = v1.ReplayRequest(session_id=session)
    if read.last_turns is not None:
        request.last_turns = read.last_turns
    kept = f"{read.key}.bin"
    bytes_read = await _keep(server, request, bench.folder / kept)

    def work(name: str, *, memory: bool) -> Work:
        async def run(_: int) -> Round:
            turns = None if memory else read.last_turns
            answer = await client.ask("replay", session=name, last_turns=turns, times=read.times, memory=memory)
            found = joined([answer])
            assert found.units == count * read.times, (read.key, found.units)
            return found

        return run

    def peer_reads(process: Child) -> Work:
        async def run(_: int) -> Round:
            last = None if read.last_turns is None else count
            return joined([await process.ask("read", session=session, last=last, times=max(1, read.times // 5))])

        return run

    works = {OURS: work(session, memory=False), "memory": work(kept, memory=True)}
    works |= {peer: peer_reads(process) for peer, (process,) in peers.items()}
    sides = await interleave(works, bench.rounds)
    title = f"replay of {count:,} messages" if read.last_turns is None else f"replay of the last {count} of {size:,}"
    notes = {peer: f"of {of[read.messages]:,} messages" for peer, of in lengths.items() if of[read.messages] != size}
    limits = {"memory": f"{title} / the same bytes from memory"}
    result = compared(read.key, title, "messages", sides, limits=limits, notes=notes)
    result.notes.append(f"{title}: {bytes_read:,} bytes; a time is that of a whole replay.")
    return result


async def _keep(server: Served, request: v1.ReplayRequest, path: Path) -> int:
    """Write down what the server answers, for the limit; returns how many bytes that is."""
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(server.address, options=options) as channel:
        raw_channel: Any = channel  # its types know no calls without serializers
        call = raw_channel.unary_stream(methods.METHODS["Replay"].path)(request.SerializeToString())
        responses = [response async for response in call]
    served.keep(path, responses)
    return sum(map(len, responses))


async def _resume(bench: Bench, client: Child, peers: dict[str, list[Child]], size: int) -> Result:
    times = 2
    turn = sessions.turn_id(size // sessions.TURN_MESSAGES - 1)

    async def ours(_: int) -> Round:
        return joined([await client.ask("resume", session="s1000", turn=turn, times=times)])

    async def limit(_: int) -> Round:
        return joined([await client.ask("replay", session="replay.1000.bin", times=times, memory=True)])

    def peer_reads(process: Child) -> Work:
        async def run(_: int) -> Round:
            return joined([await process.ask("read", session="s1000", times=1)])

        return run

    works: dict[str, Work] = {OURS: ours, "memory": limit}
    works |= {peer: peer_reads(process) for peer, (process,) in peers.items()}
    sides = await interleave(works, bench.rounds)
    title = f"prompt of a session of {size:,} messages"
    limits = {"memory": f"{title} / its replay from memory"}
    result = compared("resume", title, "messages", sides, limits=limits)
    result.notes.append("A peer has no prompt to compute: it reads its items.")
    return result
