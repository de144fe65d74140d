"""docs/render.md names every pass in its order and every rule, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

from turnwire.rendering import Rule
from turnwire.rendering.passes import ORDER

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "render.md").read_text()


def test_the_passes_are_listed_in_their_order() -> None:
    listed = re.findall(r"^\| \d+ \| `(\w+)`", TEXT, re.MULTILINE)
    assert listed == [step.__name__ for step, _ in ORDER]


def test_every_rule_is_named() -> None:
    assert [rule.value for rule in Rule if f"`{rule.value}`" not in TEXT] == []


def test_the_example_does_what_it_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    scope: dict[str, object] = {}
    exec(code, scope)
    rendering = scope["rendering"]
    assert getattr(rendering, "body", "") in code
