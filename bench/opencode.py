"""Measure beside opencode's own server, over one stored session of 10,000 messages.

Installs the pinned package from npm below build/, writes the session into a database that opencode has made, imports
that database into Turnwire, and reads the session from both servers by turns. Writes build/bench-opencode.json, and
docs/benchmarks.md anew if there is a run of ``make bench``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console

import turnwire
from bench import children, machine, report
from bench.__main__ import DOCUMENT, OPENCODE_RESULTS, RESULTS
from bench.children import Child, joined, resident
from bench.context import Bench, Served
from bench.opencode_db import add_session
from bench.report import Run
from bench.results import OURS, Ratio, Result, compared
from bench.rounds import Round, interleave
from turnwire import v1

#: The version whose database the importer was tried with last.
VERSION = "1.18.33"
_PACKAGE = children.ROOT / "build" / "bench-opencode"
_MESSAGES, _LAST, _LAST_TIMES = 10_000, 20, 20
_ROUNDS = 3
_STARTING_S, _ENDING_S = 60.0, 15.0
_OPENCODE = "opencode"
_LISTENING = re.compile(rb"listening on (http://[0-9.:]+)")


def install() -> Path:
    """opencode's program for this machine, from npm. Raises FileNotFoundError without npm, OSError if none runs."""
    marker = _PACKAGE / f".installed-{VERSION}"
    if not marker.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm is needed to install opencode, and is not on the path")
        _PACKAGE.mkdir(parents=True, exist_ok=True)
        # The platform's program is a package of its own; the script would only link it.
        command = [npm, "install", "--prefix", str(_PACKAGE), "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*command, f"opencode-ai@{VERSION}"], check=True, stdout=subprocess.DEVNULL)
        marker.touch()
    # Of the two for a processor the one whose name is shorter is faster, and does not run on older processors.
    for program in sorted(
        _PACKAGE.glob(f"node_modules/opencode-*/bin/{_OPENCODE}"), key=lambda each: len(each.parts[-3])
    ):
        told = subprocess.run([program, "--version"], capture_output=True, env=_environment(_PACKAGE / "home"))
        if told.returncode == 0:
            return program
    raise OSError(f"npm has no opencode {VERSION} that runs on {platform.system()} {platform.machine()}")


def _environment(home: Path) -> dict[str, str]:
    """A home of its own, and nothing fetched from elsewhere."""
    home.mkdir(parents=True, exist_ok=True)
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "STATE")}
    quiet = {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }
    return os.environ | folders | quiet | {"HOME": str(home)}


@asynccontextmanager
async def _serving(program: Path, home: Path) -> AsyncGenerator[Served]:
    """``opencode serve`` on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = _environment(home)
    server = await asyncio.create_subprocess_exec(
        program, "serve", "--hostname", "127.0.0.1", "--port", str(port), cwd=home, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Served(await asyncio.wait_for(_address(server), _STARTING_S), server.pid)
    finally:
        if server.returncode is None:
            server.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(server.wait(), _ENDING_S)
            except TimeoutError:
                server.kill()
                await server.wait()


async def _address(server: asyncio.subprocess.Process) -> str:
    assert server.stdout is not None
    async for line in server.stdout:
        found = _LISTENING.search(line)
        if found:
            return found[1].decode()
    raise ChildProcessError(f"opencode ended with {await server.wait()} before it listened")


def _get(url: str, times: int) -> Round:
    """Read an address to the last byte; nothing is parsed on this side."""
    latencies: list[float] = []
    body = b""
    for _ in range(times):
        begun = time.perf_counter()
        with urllib.request.urlopen(url, timeout=300) as response:
            body = response.read()
        latencies.append(time.perf_counter() - begun)
    return Round(len(json.loads(body)) * times, sum(latencies), latencies)


async def measure(program: Path, folder: Path, messages: int) -> Run:
    """Make the session, import it, and read it from both."""
    home = folder / "home"
    async with _serving(program, home):
        pass  # makes the database
    session, count = add_session(home / "data" / "opencode" / "opencode.db", messages)
    path = folder / "turnwire.db"
    async with children.started("bench.importer") as importer:
        imported = joined([await importer.ask("run", source=str(home / "data" / "opencode"), target=str(path))])
    assert imported.units == count, (imported.units, count)
    async with turnwire.open(path) as store:
        ids = [item.id async for item in store.replay(session) if isinstance(item, v1.User | v1.Assistant)]
    bench = Bench(folder, 1, _ROUNDS, None, print)
    async with (
        _serving(program, home) as theirs,
        bench.serving(path) as ours,
        bench.clients(ours, 1) as (client,),
    ):
        url = f"{theirs.address}/session/{session}/message"
        rest = {_OPENCODE: resident(theirs.pid), OURS: resident(ours.pid)}
        last = await _compared(client, session, url + f"?limit={_LAST}", ids[-_LAST], _LAST_TIMES, _LAST)
        whole = await _compared(client, session, url, None, 1, count)
        full = {_OPENCODE: resident(theirs.pid), OURS: resident(ours.pid)}
    memory = Result("opencode.memory", "resident memory of the servers", "bytes")
    for key, when, used in (("rest", "at rest", rest), ("full", "after the reads", full)):
        text = f"resident memory {when}, Turnwire / opencode"
        note = f"{used[OURS] / 1e6:.0f} MB, {used[_OPENCODE] / 1e6:.0f} MB"
        value = used[OURS] / used[_OPENCODE]
        memory.ratios.append(Ratio(f"opencode.memory.{key}", text, value, "low", guarded=False, note=note))
    size = sum(each.stat().st_size for each in folder.glob("turnwire.db*"))
    source = sum(each.stat().st_size for each in (home / "data" / "opencode").glob("opencode.db*"))
    said = (
        f"opencode {VERSION}, the package opencode-ai of npm, on a database that it made itself and into which a "
        f"recorded session was written again and again: {count:,} messages, {source / 1e6:.0f} MB. Its answer is read "
        f"to the last byte and not parsed; Turnwire's is parsed into messages. The import of that database took "
        f"{imported.seconds:.1f} s and made {size / 1e6:.0f} MB."
    )
    return Run(machine.describe(), {_OPENCODE: said}, [whole, last, memory])


async def _compared(client: Child, session: str, url: str, from_id: str | None, times: int, count: int) -> Result:
    async def ours(_: int) -> Round:
        found = joined([await client.ask("replay", session=session, from_id=from_id, times=times)])
        assert found.units == count * times, (found.units, count)
        return found

    async def theirs(_: int) -> Round:
        found = await asyncio.to_thread(_get, url, times)
        assert found.units == count * times, (found.units, count)
        return found

    sides = await interleave({OURS: ours, _OPENCODE: theirs}, _ROUNDS)
    key = "opencode.10000" if from_id is None else "opencode.last20"
    title = f"{count:,} messages of one session" if from_id is None else f"the last {count} messages of that session"
    return compared(key, title, "messages", sides, limits={})


def main() -> int:
    """Run the command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.opencode", description=__doc__)
    parser.add_argument("--messages", type=int, default=_MESSAGES, help="length of the session (default %(default)s)")
    options = parser.parse_args()
    try:
        program = install()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"opencode could not be installed: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="turnwire-bench-", ignore_cleanup_errors=True) as folder:
        run = asyncio.run(measure(program, Path(folder), options.messages))
    console = Console()
    console.print(report.rows_table(run.results), report.ratios_table(run.ratios()))
    if options.messages != _MESSAGES:
        return 0
    OPENCODE_RESULTS.write_text(json.dumps(run.dump(), indent=1, ensure_ascii=False) + "\n")
    written = [OPENCODE_RESULTS]
    if RESULTS.exists():
        whole = Run.load(json.loads(RESULTS.read_text()))
        if whole.peers:  # a whole run, not a part of it
            DOCUMENT.write_text(report.document(whole, run))
            written.append(DOCUMENT)
    console.print("wrote " + " and ".join(str(each.relative_to(children.ROOT)) for each in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
