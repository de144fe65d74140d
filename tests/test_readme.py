"""What the README tells a newcomer to do works: its program, and each of its commands, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """The commands of a shell block without comments, `export` apart."""
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [line for line in lines if line and line[0] != "export"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the program of the README has run."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "tests").symlink_to(ROOT / "tests")
    (program,) = blocks("python")
    ran = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "['What does the README say?', 'Answer in one sentence.']",
        "It says that Turnwire stores sessions.",
    ]
    return folder


def test_the_commands_of_make_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in commands(blocks("sh")[0]):
        assert command[0] == "make"
        assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), command


def test_every_command_runs_in_the_order_given(folder: Path) -> None:
    environment = os.environ | {"TURNWIRE_DB": "sessions.db"}
    environment.pop("TURNWIRE_SERVER", None)
    outputs: dict[str, str] = {}
    for command in commands(blocks("sh")[1]):
        assert command[0] == "turnwire"
        ran = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (command, ran.stderr)
        outputs[" ".join(command[1:3])] = ran.stdout
    assert "ses_readme" in outputs["sessions"]
    assert "It says that Turnwire stores sessions." in outputs["show ses_readme"]
    assert "Answer in one sentence." not in outputs["show ses_readme"]
    assert '"Answer in one sentence."' not in outputs["render ses_readme"]
    assert '{"role":"user","content":"What does the README say?"}' in outputs["render ses_readme"]
    assert "in 1 message of 1 session" in outputs["stats ses_readme"]
    assert '"head"' in outputs["replay ses_readme"]
    assert "ses_fork" in outputs["fork ses_readme"]
    assert "sound" in outputs["verify --all"]
    assert '"$schema"' in outputs["schema Assistant"]


def test_the_folders_it_names_are_there() -> None:
    (tree,) = blocks("text")
    for line in tree.splitlines():
        base = ROOT / "python/src/turnwire" if line.startswith(" ") else ROOT
        for name in line.strip().split("  ")[0].split():
            assert (base / name).exists(), name


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150
