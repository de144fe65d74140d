"""What findings show of a value."""

from __future__ import annotations

import pytest

from turnwire import v1
from turnwire.validation import values

MESSAGE = v1.Assistant(id="a", parts=[v1.PromptPart(tool=v1.ToolPart(state=v1.ToolState.TOOL_STATE_ERROR))])
PROPERTIES = v1.SessionProperties(labels={"a]b": "x", "k" * 100: "long"})


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("id", '"a"'),
        ("parts[0].tool.state", "TOOL_STATE_ERROR"),
        ("parts[0].tool", ""),
        ("parts[0].kind", ""),
        ("parts[7].id", ""),
        ("nothing.there", ""),
        ("id.more", ""),
        ("a b", ""),
    ],
)
def test_the_value_at_a_path(path: str, shown: str) -> None:
    assert values.at(MESSAGE, path) == shown


def test_values_of_maps() -> None:
    assert values.at(PROPERTIES, 'labels["a]b"]') == '"x"'
    assert values.at(PROPERTIES, f'labels["{"k" * 64}…"]') == f'"{"k" * 78}…'


def test_long_values_are_cut() -> None:
    assert values.short("x" * 78) == f'"{"x" * 78}"'
    assert values.short("x" * 79) == f'"{"x" * 78}…'
    assert values.short("\n" * 200) == '"' + "\\n" * 39 + "…"
    assert values.short(b"\xff\x00") == "ff00"
    assert values.short(True) == "true"
    assert values.short(1.5) == "1.5"
