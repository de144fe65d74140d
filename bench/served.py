"""``turnwire serve`` in a process of its own, with the limits of its figures in the very same server.

The limits are methods beside the service's own, in the same grpc.aio server, process and event loop, however ``serve``
is started: an echo, which does nothing but take bytes and give bytes, and a stream of bytes that are in memory.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from turnwire import v1
from turnwire.server import Options, Workers

SERVICE = "turnwire.bench.Limits"
#: A unary method that answers with so many bytes: ``ECHO + "100"``.
ECHO = f"/{SERVICE}/Echo"
#: Takes a ReplayRequest whose session id is the name of a file beside the store; streams what `keep` wrote there.
MEMORY = f"/{SERVICE}/Memory"

_LENGTH = 4


def keep(path: Path, responses: list[bytes]) -> None:
    """Write responses down for `MEMORY`."""
    with path.open("wb") as file:
        for response in responses:
            file.write(len(response).to_bytes(_LENGTH, "big") + response)


@cache
def _kept(path: Path) -> list[bytes]:
    data = path.read_bytes()
    found: list[bytes] = []
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + _LENGTH], "big")
        found.append(data[at + _LENGTH : at + _LENGTH + length])
        at += _LENGTH + length
    return found


class _Limits(grpc.GenericRpcHandler):
    """The handlers of the limits. A class of its own since the echo's method says how long its answer is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_stream_rpc_method_handler(self._stream)
        self._echoes: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        method = str(handler_call_details.method)
        if method == MEMORY:
            return self._memory
        if not method.startswith(ECHO):
            return None
        if method not in self._echoes:
            answer = b"x" * int(method.removeprefix(ECHO))

            async def echo(_: bytes, __: grpc.aio.ServicerContext[Any, Any]) -> bytes:
                return answer

            self._echoes[method] = grpc.unary_unary_rpc_method_handler(echo)
        return self._echoes[method]

    async def _stream(self, raw: bytes, _: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[bytes]:
        name = v1.ReplayRequest.FromString(raw).session_id
        for response in _kept(self._folder / name):
            yield response


def add_limits(folder: Path) -> None:
    """Have every server that this process makes serve the limits too; ``folder``: where `MEMORY` finds its files."""
    make = grpc.aio.server

    def with_limits(*args: Any, **kwargs: Any) -> grpc.aio.Server:
        made = make(*args, **kwargs)
        made.add_generic_rpc_handlers((_Limits(folder),))
        return made

    grpc.aio.server = with_limits


def main(path: str, workers: int = 1) -> None:
    """Serve the store in a file, as the command line does, and say where as JSON."""
    if workers > 1:
        several = Workers(path, workers, options=Options("127.0.0.1:0"), logging=False, module="bench.served_worker")
        asyncio.run(several.serve_until_signal(lambda: print(json.dumps({"address": several.address}), flush=True)))
        return
    add_limits(Path(path).parent)
    from turnwire.cli import main as turnwire

    sys.argv = ["turnwire", "--json", "--db", path, "serve", "--port", "0", "--log-format", "none"]
    turnwire()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
