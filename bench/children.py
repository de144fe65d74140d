"""The processes that a measurement starts and talks to; the parent's side of `bench.lines`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bench.rounds import Round

ROOT = Path(__file__).parents[1]
_LONGEST_ANSWER = 256 * 1024 * 1024
_ENDING_S = 30.0


class Child:
    """A process that answers commands. Made by `started`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have a command done; returns the answer. Raises ChildProcessError if the process ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write((json.dumps({"do": do, **arguments}) + "\n").encode())
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            code = await self._process.wait()
            raise ChildProcessError(f"a process of the measurement ended with {code} when asked to {do}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def resident(self) -> int:
        """Its resident memory, bytes."""
        return resident(self.pid)


@asynccontextmanager
async def started(
    module: str, *arguments: str, python: str | Path = sys.executable, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[Child]:
    """A process that runs a module of this repository; it ends when the block is left."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-m",
        module,
        *arguments,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST_ANSWER,
        env={**environment, "PYTHONPATH": str(ROOT), "GRPC_VERBOSITY": "NONE"},
    )
    try:
        yield Child(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _ENDING_S)
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def several(
    count: int, module: str, *arguments: str, python: str | Path = sys.executable
) -> AsyncGenerator[list[Child]]:
    """``count`` such processes."""
    async with AsyncExitStack() as stack:
        starting = [stack.enter_async_context(started(module, *arguments, python=python)) for _ in range(count)]
        yield [await each for each in starting]


async def ask_all(children: Iterable[Child], do: str, **arguments: Any) -> list[dict[str, Any]]:
    """Have a command done by all at once; an argument that is a list of their number gives each its own."""
    children = [*children]
    each = [
        {name: value.values[at] if isinstance(value, Each) else value for name, value in arguments.items()}
        for at in range(len(children))
    ]
    return await asyncio.gather(*(child.ask(do, **own) for child, own in zip(children, each, strict=True)))


class Each:
    """An argument that differs from child to child."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


def joined(answers: Iterable[dict[str, Any]]) -> Round:
    """One round of several processes: from when the first began until the last had ended, by the machine's clock."""
    answers = [*answers]
    seconds = max(each["ended"] for each in answers) - min(each["begun"] for each in answers)
    latencies = [one for each in answers for one in each.get("latencies", ())]
    failed = sum(each.get("failed", 0) for each in answers)
    return Round(sum(each["units"] for each in answers), seconds, latencies, failed)


def resident(pid: int) -> int:
    """The resident memory of a process and of all processes below it, bytes."""
    total = 0
    waiting = [pid]
    while waiting:
        at = waiting.pop()
        try:
            status = Path(f"/proc/{at}/status").read_text()
            tasks = [*Path(f"/proc/{at}/task").iterdir()]
        except OSError:
            continue  # it has ended
        lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        total += sum(int(line.split()[1]) * 1024 for line in lines)
        for task in tasks:
            try:
                waiting += map(int, (task / "children").read_text().split())
            except OSError:
                continue
    return total
