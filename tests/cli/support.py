"""Running the command line in this process and as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message
from typer.testing import CliRunner

from turnwire.cli.program import app

M = TypeVar("M", bound=Message)

DATA = Path(__file__).parents[1] / "data" / "opencode"
#: A session of three turns, of which two ran tools; 16 entries.
EXPORT = DATA / "three-turns.json"
SESSION = "ses_dd402e65bffeFToCFt6N3IgihJ"
FIRST_TURN = "trn_22bfd1a61001NE77hQ8v3aaM3q_c09c70571e810c01"
LAST_TURN = "trn_22bfd4b30001PqtvpeHmVb4cDL_bad638d9dd242423"
FIRST_USER = "msg_22bfd1a61001NE77hQ8v3aaM3q"
LAST_USER = "msg_22bfd4b30001PqtvpeHmVb4cDL"

_ENVIRONMENT = ("TURNWIRE_DB", "TURNWIRE_SERVER", "TURNWIRE_TRACEBACK", "FORCE_COLOR", "NO_COLOR")
WAIT = 30


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str
    raw: bytes = b""

    @property
    def lines(self) -> list[Any]:
        """The JSON objects on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    def messages(self, kind: type[M]) -> list[M]:
        """The messages on stdout; each line must be the canonical ProtoJSON of one."""
        found: list[M] = []
        for line in self.out.splitlines():
            message = json_format.Parse(line, kind())
            assert json.loads(line) == json_format.MessageToDict(message)
            found.append(message)
        return found


def run(*args: str | Path, input: str | None = None, env: dict[str, str] | None = None) -> Ran:
    """Run the command line in this process."""
    environment: dict[str, str | None] = dict.fromkeys(_ENVIRONMENT)
    result = CliRunner().invoke(app, list(map(str, args)), input=input, env=environment | (env or {}))
    return Ran(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)


def environment(**more: str) -> dict[str, str]:
    """The environment for a process of its own, without what could change what it does."""
    return {name: value for name, value in os.environ.items() if name not in _ENVIRONMENT} | more


def command(*args: str | Path) -> list[str]:
    """The arguments for a process of its own."""
    return [sys.executable, "-m", "turnwire", *map(str, args)]


def process(*args: str | Path, **more: str) -> Ran:
    """Run the command line as a process."""
    done = subprocess.run(command(*args), capture_output=True, env=environment(**more), timeout=WAIT, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), done.stdout)


@contextmanager
def serving(db: Path, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server process; gives its address."""
    arguments = command("--db", db, "serve", "--port", "0", "--log-format", "none", *args)
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, env=environment()) as server:
        try:
            assert server.stdout is not None
            assert server.stderr is not None
            line = server.stdout.readline().strip()
            assert line.startswith("listening on "), server.stderr.read()
            yield line.removeprefix("listening on "), server
        finally:
            if server.poll() is None:
                server.kill()


def import_into(where: Sequence[str], *files: Path) -> Ran:
    """Import files of ``opencode export``."""
    ran = run(*where, "import", "opencode", *files)
    assert ran.code == 0, ran
    return ran
