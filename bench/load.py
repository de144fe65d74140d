"""A client process: what loads a server. ``python -m bench.load ADDRESS`` does what comes over `bench.lines`.

Requests are made and serialized before the clock starts, and replies are looked at when it has stopped, so that a
client costs an append and an echo the same. Reads go through `turnwire.Client`, which parses.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import grpc.aio

import turnwire
from bench import lines, payloads, served
from turnwire import methods, v1
from turnwire.calls.base import new_request_id

_APPEND = methods.METHODS["Append"].path
_STREAM = methods.METHODS["AppendStream"].path
_TAIL = methods.METHODS["Tail"].path
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_SLOW_S = 0.05  # between two responses that a slow reader takes


class Load:
    """The commands of a client process, and what they leave behind for one another."""

    def __init__(self, address: str) -> None:
        self._address = address
        # Without serializers it takes and gives bytes, which its types do not know.
        self._channel: Any = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self._channels: list[Any] = []  # of the sessions
        self._client = turnwire.Client.connect(address, timeout=None)
        self._sessions: list[str] = []
        self._requests: list[list[bytes]] = []
        self._tails: list[asyncio.Task[list[float]]] = []
        self._stalled: Any = None

    def commands(self) -> dict[str, lines.Command]:
        """All commands by name."""
        named = (self.begin, self.prepare, self.unary, self.stream, self.replay, self.resume, self.tails, self.tailed)
        return {each.__name__: each for each in (*named, self.memory, self.stall, self.go_on)}

    async def begin(self, sessions: list[str], *, connections: bool = False) -> None:
        """Create the sessions to append to, one for each caller, each with a turn.

        ``connections``: each caller comes by a connection of its own, and not all by one.
        """
        for session in sessions:
            await self._client.append(session, [payloads.turn()], create=True)
        self._sessions = sessions
        self._channels = [self._channel] * len(sessions)
        if connections:
            own = [*_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
            self._channels = [grpc.aio.insecure_channel(self._address, options=own) for _ in sessions]

    async def prepare(self, count: int, batch: int = 1, *, streamed: bool = False, request_ids: bool = True) -> None:
        """Make ``count`` requests of ``batch`` messages for each caller; request ids as `turnwire.Client` has."""
        self._requests = []
        for session in self._sessions:
            made = [
                v1.AppendRequest(
                    session_id=session,
                    entries=[payloads.message() for _ in range(batch)],
                    request_id=new_request_id() if request_ids else None,
                )
                for _ in range(count)
            ]
            of = [v1.AppendStreamRequest(append=each) if streamed else each for each in made]
            self._requests.append([each.SerializeToString() for each in of])

    async def unary(self, method: str = _APPEND) -> Mapping[str, Any]:
        """Send what was prepared, each caller one request after another."""
        calls = [channel.unary_unary(method) for channel in self._channels]
        latencies: list[float] = []
        replies: list[bytes] = []

        async def caller(call: Any, requests: list[bytes]) -> None:
            clock = time.perf_counter
            for request in requests:
                begun = clock()
                replies.append(await call(request))
                latencies.append(clock() - begun)

        timed = await _timed([partial(caller, *each) for each in zip(calls, self._requests, strict=True)])
        units = len(replies)
        if method == _APPEND:
            units = sum(len(v1.AppendResponse.FromString(each).results) for each in replies)
        return timed | {"units": units, "latencies": latencies, "bytes": len(replies[0])}

    async def stream(self) -> Mapping[str, Any]:
        """Send what was prepared on a stream for each connection, callers in turn, without waiting for replies."""
        sent: dict[Any, list[list[bytes]]] = {}
        for channel, prepared in zip(self._channels, self._requests, strict=True):
            sent.setdefault(channel, []).append(prepared)
        replies: list[bytes] = []

        async def requests(of: list[list[bytes]]) -> AsyncIterator[bytes]:
            for together in zip(*of, strict=True):
                for request in together:
                    yield request

        async def run(channel: Any, of: list[list[bytes]]) -> None:
            async for reply in channel.stream_stream(_STREAM)(requests(of)):
                replies.append(reply)

        timed = await _timed([partial(run, *each) for each in sent.items()])
        outcomes = [one for each in replies for one in v1.AppendStreamResponse.FromString(each).outcomes]
        if not all(each.HasField("append") for each in outcomes):
            raise RuntimeError("an append on the stream was refused")
        return timed | {"units": sum(len(each.append.results) for each in outcomes)}

    async def replay(
        self,
        session: str,
        last_turns: int | None = None,
        from_id: str | None = None,
        times: int = 1,
        *,
        memory: bool = False,
    ) -> Mapping[str, Any]:
        """Replay a session, or its end, into parsed messages; ``memory``: the same call of the limit's method."""
        found = 0
        latencies: list[float] = []

        async def run() -> None:
            nonlocal found
            for _ in range(times):
                begun = time.perf_counter()
                items = self._client.replay(session, last_turns=last_turns, from_message_id=from_id)
                async with aclosing(items):
                    async for item in items:
                        found += isinstance(item, v1.User | v1.Assistant)
                latencies.append(time.perf_counter() - begun)

        own = methods.METHODS["Replay"]
        methods.METHODS["Replay"] = replace(own, path=served.MEMORY) if memory else own
        try:
            timed = await _timed([run])
        finally:
            methods.METHODS["Replay"] = own
        return timed | {"units": found, "latencies": latencies}

    async def resume(self, session: str, turn: str, times: int) -> Mapping[str, Any]:
        """Have the prompt of a turn computed, and not recorded."""
        latencies: list[float] = []
        sizes: list[int] = []

        async def run() -> None:
            for _ in range(times):
                begun = time.perf_counter()
                prompt = await self._client.mutate_prompt(session, turn, dry_run=True)
                latencies.append(time.perf_counter() - begun)
                sizes.append(len(prompt.items))

        timed = await _timed([run])
        return timed | {"units": sum(sizes), "latencies": latencies}

    # Tails

    async def tails(self, session: str, after: int, count: int, readers: int) -> None:
        """Follow a session with so many readers, each until it has ``count`` entries; returns when all caught up."""
        caught_up = [asyncio.Event() for _ in range(readers)]
        request = v1.TailRequest(session_id=session, after_revision=after).SerializeToString()

        async def read(ready: asyncio.Event) -> list[float]:
            lags: list[float] = []
            call = self._channel.unary_stream(_TAIL)(request)
            async for raw in call:
                now = time.time_ns()
                response = v1.TailResponse.FromString(raw)
                lags += ((now - each.recorded.ToNanoseconds()) / 1e9 for each in response.entries)
                if response.HasField("caught_up"):
                    ready.set()
                if len(lags) >= count:
                    break
            call.cancel()
            return lags

        self._tails = [asyncio.create_task(read(each)) for each in caught_up]
        for each in caught_up:
            await each.wait()

    async def tailed(self) -> Mapping[str, Any]:
        """Wait until the readers have read what they wait for. The times are from entries' own to those of reading."""
        begun = time.perf_counter()
        lags = [one for each in await asyncio.gather(*self._tails) for one in each]
        return {"begun": begun, "ended": time.perf_counter(), "units": len(lags), "latencies": lags}

    async def memory(self, name: str, readers: int) -> Mapping[str, Any]:
        """Stream kept responses of a tail from memory with so many readers."""
        request = v1.ReplayRequest(session_id=name).SerializeToString()
        found = 0

        async def read() -> None:
            nonlocal found
            async for raw in self._channel.unary_stream(served.MEMORY)(request):
                found += len(v1.TailResponse.FromString(raw).entries)

        timed = await _timed([read for _ in range(readers)])
        return timed | {"units": found}

    async def stall(self, session: str, how: str) -> None:
        """Follow a session: ``slow`` from now on, and takes a response now and then; ``stopped`` stops the process.

        A stopped process follows from the beginning and answers first; it goes on when it gets SIGCONT. A slow one that
        began there would take a megabyte at each response, many times as much as is written meanwhile.
        """
        after = 0 if how == "stopped" else (await self._client.get_session(session)).head.revision
        request = v1.TailRequest(session_id=session, after_revision=after)
        call = self._channel.unary_stream(_TAIL)(request.SerializeToString())
        await call.read()
        if how == "stopped":
            self._stalled = call
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGSTOP)
            return

        async def read() -> None:
            while await call.read() is not grpc.aio.EOF:
                await asyncio.sleep(_SLOW_S)

        reader = asyncio.create_task(read())
        reader.add_done_callback(lambda _: call.cancel())
        self._stalled = reader

    async def go_on(self) -> None:
        """End the reader of `stall`."""
        self._stalled.cancel()


async def _timed(works: list[Callable[[], Awaitable[None]]]) -> dict[str, Any]:
    """Do works at once; when they began and had ended, by the clock that all processes share."""
    begun = time.perf_counter()
    await asyncio.gather(*(work() for work in works))
    return {"begun": begun, "ended": time.perf_counter()}


async def main(address: str) -> None:
    """Answer commands until there are no more."""
    await lines.serve(Load(address).commands())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
