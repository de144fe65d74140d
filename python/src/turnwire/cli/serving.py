"""``turnwire serve``: the server in the foreground."""

from __future__ import annotations

import asyncio
import os
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from turnwire.cli.app import Call, command
from turnwire.cli.output import Line
from turnwire.cli.usage import Usage
from turnwire.embedded import MEMORY
from turnwire.engine import Engine, Limits
from turnwire.server import ADDRESS, Options, Server, Workers, to_stream
from turnwire.store.base import Store
from turnwire.store.memory import MemoryStore
from turnwire.store.sqlite import SqliteStore

_LIMITS: Final = Limits()
_OPTIONS: Final = Options()
_HOST, _, _PORT = ADDRESS.rpartition(":")
_PANEL: Final = "Limits"
_SMALLEST_REQUEST: Final = 64 * 1024


class LogForm(StrEnum):
    """How the request log is written."""

    TEXT = "text"
    JSON = "json"
    NONE = "none"


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "serve")(serve)


async def serve(
    call: Call,
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Where to listen.", show_default=_HOST)] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="The port; 0: any free one.", show_default=_PORT),
    ] = None,
    socket: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Listen on a unix socket instead.", show_default=False)
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes that share port and file, each with some of the connections; one a processor at most.",
        ),
    ] = 1,
    log_format: Annotated[LogForm, typer.Option(help="The request log, on stderr.")] = LogForm.TEXT,
    grace: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long calls get to finish when the server ends.")
    ] = _OPTIONS.grace,
    part_bytes: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="The largest part.", rich_help_panel=_PANEL)
    ] = _LIMITS.part_bytes,
    request_bytes: Annotated[
        int, typer.Option(min=_SMALLEST_REQUEST, metavar="BYTES", help="The largest request.", rich_help_panel=_PANEL)
    ] = _LIMITS.request_bytes,
    append_entries: Annotated[
        int, typer.Option(min=1, metavar="N", help="The most entries in one append.", rich_help_panel=_PANEL)
    ] = _LIMITS.append_entries,
) -> None:
    """Serve the store in the file over gRPC, until SIGTERM or Ctrl-C.

    Writes one line to stdout when it listens: "listening on ADDRESS", with --json {"address", "db", "pid"}. Then
    SIGTERM or Ctrl-C lets the calls under way finish; a second one ends them. There are no credentials yet: whoever
    reaches the address can read and write everything.
    """
    if call.source.server is not None:
        raise Usage("serve serves a file: give --db and no --server")
    if socket is not None and (host is not None or port is not None):
        raise Usage("--socket excludes --host and --port")
    if workers > 1 and socket is not None:
        raise Usage("--workers share a port, and --socket has none")
    if workers > 1 and call.source.name == MEMORY:
        raise Usage("--workers share a file, and a store in memory has none")
    if part_bytes >= request_bytes:
        raise Usage("--part-bytes must be less than --request-bytes, or no request could carry such a part")
    if log_format is not LogForm.NONE:
        to_stream(sys.stderr, form="json" if log_format is LogForm.JSON else "text")
    address = f"unix:{socket}" if socket is not None else _address(host or _HOST, port)
    limits = Limits(part_bytes=part_bytes, request_bytes=request_bytes, append_entries=append_entries)
    options = Options(address, grace=grace, log_format="json" if log_format is LogForm.JSON else "text")
    path = call.source.file(create=True)

    def ready(address: str) -> None:
        if call.out.json:
            call.out.object({"address": address, "db": call.source.name, "pid": os.getpid()})
        else:
            call.out.lines([Line(0, Text(f"listening on {address}"))])
        call.out.flush()

    if workers > 1:
        logging = log_format is not LogForm.NONE
        several = Workers(path, workers, limits=limits, options=options, logging=logging)
        await several.serve_until_signal(lambda: ready(several.address))
        return
    async with Server(Engine(await _store(path, limits), limits=limits), options) as server:
        await server.serve_until_signal(lambda: ready(server.address))
    if server.held_up:  # gRPC would hold up the end of the interpreter too, and nothing is left to be done
        call.out.flush()
        os._exit(0)


async def _store(path: Path, limits: Limits) -> Store:
    if str(path) == MEMORY:
        return MemoryStore(part_bytes=limits.part_bytes)
    # It may wait for other processes.
    return await asyncio.to_thread(partial(SqliteStore.open, path, part_bytes=limits.part_bytes))


def _address(host: str, port: int | None) -> str:
    number = _PORT if port is None else port
    return f"[{host}]:{number}" if ":" in host and not host.startswith("[") else f"{host}:{number}"
