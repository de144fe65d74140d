"""The process that reads the sources ends when nobody reads what it sends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.formats.opencode.stores import database
from tests.formats.opencode.test_database import ONE
from turnwire.formats import Report, Wanted, worker
from turnwire.formats.opencode import OPENCODE


def test_it_leaves_quietly_when_the_import_is_gone(tmp_path: Path) -> None:
    database(tmp_path / "opencode.db", ONE).close()
    order = worker.order(OPENCODE.program, OPENCODE.sources(tmp_path, Report()), Wanted())
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-m", worker.__name__], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(order)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
