"""A grpc.aio server that serves nothing: the limit of starting and of memory."""

from __future__ import annotations

import asyncio
import json
import signal

import grpc.aio


async def main() -> None:
    """Listen, say where, and wait for SIGTERM."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print(json.dumps({"address": f"127.0.0.1:{port}"}), flush=True)
    await ended.wait()
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(main())
