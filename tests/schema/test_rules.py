"""No rule goes or changes unnoticed."""

from __future__ import annotations

from tests.schema import rules


def test_the_rules_are_those_of_the_list() -> None:
    now, kept = rules.current(), rules.kept()
    gone = [line for line in kept if line not in now]
    new = [line for line in now if line not in kept]
    assert (gone, new) == ([], []), "rules changed; if that was meant: python -m tests.schema.rules"
