"""Whatever a document like opencode's holds, export(import(it)) is it, and every entry obeys the rules (C88)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.formats.opencode.documents import Number, documents
from tests.formats.samples import exact, take, there_and_back
from turnwire import rules


def render(value: Any) -> str:
    """JSON text; numbers may be of a given spelling, and what is not ASCII is escaped."""
    if isinstance(value, Number):
        return value.spelling
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {render(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n ".join(map(render, value)) + "]"
    return json.dumps(value)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(documents)
def test_any_document_comes_back(tree: Any) -> None:
    text = render(tree)
    assert exact(there_and_back(text)) == exact(text)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(documents)
def test_any_document_becomes_legal_entries(tree: Any) -> None:
    session = take(render(tree))
    assert rules.check(session.properties) == []
    for entry in session.entries:
        assert rules.check(entry, stored=True) == []
