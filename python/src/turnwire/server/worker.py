"""One of the processes of `Workers`: ``python -m turnwire.server.worker WORK``, where `Work.argument` makes WORK.

It says on stdout that it listens, and ends as `Server.serve_until_signal` does, or when its stdin ends: then the
process that started it is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from turnwire import errors
from turnwire.engine import Engine
from turnwire.server.requestlog import to_stream
from turnwire.server.server import Server
from turnwire.server.workers import Work
from turnwire.store.sqlite import SqliteStore


async def serve(work: Work) -> None:
    """Serve until a signal comes or stdin ends."""
    if work.logging:
        to_stream(sys.stderr, form=work.options.log_format)
    store = await asyncio.to_thread(SqliteStore.open, work.path, part_bytes=work.limits.part_bytes)
    async with Server(Engine(store, limits=work.limits), work.options) as server:

        def ready() -> None:
            asyncio.get_running_loop().add_reader(sys.stdin, left_alone)
            print(server.address, flush=True)

        await server.serve_until_signal(ready)
    if server.held_up:  # gRPC would hold up the end of the interpreter too, and nothing is left to be done
        os._exit(0)


def left_alone() -> None:
    """End: nothing is ever written to stdin, so that it can be read when the other end has been closed."""
    asyncio.get_running_loop().remove_reader(sys.stdin)
    os.kill(os.getpid(), signal.SIGTERM)


def main(argument: str) -> None:
    """Serve, and say on stderr what prevented it."""
    try:
        asyncio.run(serve(Work.parse(argument)))
    except (errors.TurnwireError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
