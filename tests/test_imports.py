"""Every module can be the first that is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import turnwire

ROOT = Path(turnwire.__file__).parent

# What others made is loaded once; then each module is imported in a child that has nothing of the package yet.
SCRIPT = """
import os, sys, traceback
import google.protobuf.message, google.rpc.status_pb2, grpc.aio, rich.console, typer
for name in sys.argv[1:]:
    assert not any(each.split(".")[0] == "turnwire" for each in sys.modules)
    child = os.fork()
    if not child:
        try:
            __import__(name)
        except BaseException as error:
            print(name, type(error).__name__, error, flush=True)
            traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)
print("done")
"""


def modules() -> list[str]:
    """The names of all modules of the package."""
    found: list[str] = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


@pytest.mark.timeout(600)  # each of them loads much of the package anew
def test_every_module_can_be_the_first_to_be_imported() -> None:
    names = modules()
    assert {"turnwire", "turnwire.handle", "turnwire.handle.answer", "turnwire.cli.program"} <= {*names}
    done = subprocess.run([sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n", done.stdout + done.stderr
