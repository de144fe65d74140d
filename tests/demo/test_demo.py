"""The demo, as `make demo` runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from turnwire import demo

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("directory", [ROOT, Path("/")])
def test_every_claim_holds(directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "turnwire.demo"], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^(\d+)\. ", done.stdout, re.MULTILINE) == [str(number) for number in range(1, 12)]
    assert done.stdout.endswith("All claims hold.\n")
    assert "✗" not in done.stdout
    for told in (
        "imported: 1 session, 3 turns, 9 messages, 25 parts, 3 summaries",
        "8 user        mutation 1",
        demo.SUMMARIZE,
        "✓ the replay at revision 16 has the same bytes as before",
        "✓ so its digest moved",
        "✓ it drained and ended with exit code 0",
    ):
        assert told in done.stdout


def test_a_claim_that_does_not_hold_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    shown = demo.Demo()
    shown.claim("water is dry", False)
    assert shown.end() == 1
    assert capsys.readouterr().out == "   ✗ does NOT hold: water is dry\n\n1 claim did not hold.\n"


def test_without_a_checkout_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_checkout", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    assert demo.main() == 2
    assert "so run it in a checkout" in capsys.readouterr().err
