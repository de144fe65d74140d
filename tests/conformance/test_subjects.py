"""The subject of the Python package gives the answers that the vectors want."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.conformance.runner import running
from tests.conformance.runner.running import BAD, Outcome
from tests.conformance.runner.subject import FEATURES, Claim, claims

ROOT = Path(__file__).parents[2]
PYTHON = Path(__file__).parent / "subjects" / "python"


def test_python() -> None:
    claim = Claim.read(PYTHON)
    vectors = running.load()
    results = running.run(claim, vectors)
    assert [(result.vector, result.text) for result in results if result.outcome in BAD] == []
    assert running.misnamed(claim, vectors) == []
    assert Counter(result.outcome for result in results)[Outcome.SKIPPED] == 0
    assert claim.features == FEATURES


def test_every_subject_has_what_all_must_have() -> None:
    for claim in claims(ROOT):
        assert {"encoding", "rules", "fold", "mutation", "digest"} <= set(claim.features), claim.language
        assert all(claim.known_failures.values()), "a known failure has a reason"
