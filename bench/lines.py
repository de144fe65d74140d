"""How a measurement talks to the processes that it starts: a JSON object a line, a command in, an answer out.

This side runs in the child, also in the peers' environment, and needs nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Command = Callable[..., Awaitable[Mapping[str, Any] | None]]


async def serve(commands: Mapping[str, Command]) -> None:
    """Do what each line of stdin asks, until there are no more: ``{"do": NAME, …}`` calls ``commands[NAME](**rest)``.

    Whatever else is printed goes to stderr. A command that raises ends the process.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer = await commands[command.pop("do")](**command)
        answers.write(json.dumps(answer or {}) + "\n")
        answers.flush()
