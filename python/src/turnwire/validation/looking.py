"""What all rules of the session layer share: the rows, how to look things up, and how to say what is wrong."""

from __future__ import annotations

from turnwire import v1
from turnwire.validation import content, values
from turnwire.validation.findings import Findings
from turnwire.validation.references import References
from turnwire.validation.state import MessageRow, PartRow, State


class Looking:
    """A session as far as it has been read."""

    def __init__(self, rows: State, found: Findings, references: References) -> None:
        self.rows = rows
        self.found = found
        self.references = references

    def live(self, revision: int, id: str, path: str, unknown: str) -> MessageRow | None:
        """A message that must be part of the history."""
        row = self.rows.messages.get(id) if id else None
        if row is None:
            if id:
                self.references.unknown(unknown, revision, path, id)
            return None
        if not self.rows.is_live(row):
            self.wrong("session.ref.gone", revision, path, id)
            return None
        return row

    def live_part(self, revision: int, id: str, path: str) -> PartRow | None:
        """A part that must be part of the history."""
        row = self.rows.parts.get(id)
        if row is None:
            self.references.unknown("session.ref.part", revision, path, id)
            return None
        if self.rows.part_owner(row) is None:
            self.wrong("session.ref.gone", revision, path, id)
            return None
        return row

    def content(
        self, revision: int, message: v1.PromptPart | v1.User | v1.Assistant, wrong: content.Wrong, lead: str
    ) -> None:
        value = values.at(message, wrong.path)
        path = f"{lead}.{wrong.path}"
        self.found.add(wrong.rule, revision=revision, path=path, value=value, expected=wrong.expected)

    def wrong(self, rule: str, revision: int, path: str, value: object, expected: str = "") -> None:
        shown = values.short(value) if value != "" else ""
        self.found.add(rule, revision=revision, path=path, value=shown, expected=expected)
