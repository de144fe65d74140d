"""What we send with the profile "opencode" is what the real opencode sent, byte for byte (oracle: see its README)."""

from __future__ import annotations

import pytest

from tests.rendering import oracle

CASES = oracle.cases()

pytestmark = pytest.mark.skipif(not CASES, reason=oracle.MISSING)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_entries_are_those_that_opencode_sent(case: oracle.Case) -> None:
    expected = oracle.expected(case)
    assert expected
    assert oracle.actual(case) == expected


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.name)
def test_rendering_again_gives_the_same_bytes(case: oracle.Case) -> None:
    first, second = oracle.rendered(case), oracle.rendered(case)
    assert first == second
    assert first.sha256 == second.sha256
