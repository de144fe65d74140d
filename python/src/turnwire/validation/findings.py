"""Collects findings: each is made by the id of its rule, which knows the rest, unless nobody wants to hear of it."""

from __future__ import annotations

from collections import Counter

from turnwire import v1
from turnwire.validation.registry import Selection, rules
from turnwire.validation.rule import ERROR, NOTE, WARNING


class Findings:
    """What was found and not yet taken, and how much there was in all.

    ``session_id`` and ``source`` are put on every finding. ``selection``: which rules are wanted (None: all).
    """

    def __init__(self, selection: Selection | None = None, *, session_id: str = "", source: str = "") -> None:
        self.session_id = session_id
        self.source = source
        self._selection = selection
        self._rules = rules()
        self._found: list[v1.Finding] = []
        self._counts: Counter[int] = Counter()

    def add(
        self,
        rule: str,
        *,
        revision: int = 0,
        path: str = "",
        text: str = "",
        value: str = "",
        expected: str = "",
        place: str = "",
    ) -> None:
        """Note that a rule is broken. Without ``text`` the finding says what the rule's title says."""
        if self._selection is not None and not self._selection.takes(rule):
            return
        known = self._rules[rule]
        self._counts[known.severity] += 1
        self._found.append(
            v1.Finding(
                rule=rule,
                layer=known.layer,
                severity=known.severity,
                text=text or known.title,
                revision=revision,
                path=path,
                value=value,
                expected=expected,
                session_id=self.session_id,
                source=self.source,
                place=place,
            )
        )

    def take(self) -> list[v1.Finding]:
        """What was found since this was last asked."""
        found, self._found = self._found, []
        return found

    def summary(self, checked: int) -> v1.ValidationSummary:
        """The counts of all findings so far, of so many things that were checked."""
        counts = self._counts
        return v1.ValidationSummary(checked=checked, errors=counts[ERROR], warnings=counts[WARNING], notes=counts[NOTE])
