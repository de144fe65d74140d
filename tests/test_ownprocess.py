"""Another process of this package finds the modules that this one finds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from turnwire import ownprocess


def test_it_finds_what_this_process_finds_and_nothing_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, found = tmp_path / "here", tmp_path / "found"
    for folder, name in ((here, "json"), (here, "its_own"), (found, "its_own")):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(f"import json, sys; print({folder.name!r}, json.dumps(sys.argv[1:]))")
    monkeypatch.syspath_prepend(str(found))
    command = [*ownprocess.command("its_own"), "an argument"]
    done = subprocess.run(
        command, cwd=here, env=ownprocess.environment(), capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == 'found ["an argument"]\n'
