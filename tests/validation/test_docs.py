"""docs/validation.md is what its tool writes, and names every rule."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from turnwire.validation import rules

ROOT = Path(__file__).parents[2]


def test_it_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "tools/validation_docs.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run make generate"


def test_every_rule_is_named() -> None:
    text = (ROOT / "docs" / "validation.md").read_text("utf-8")
    assert [rule for rule in rules() if f"`{rule}`" not in text] == []
