"""The rules about the history as it is at the end of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from turnwire import v1
from turnwire.validation import content
from turnwire.validation.looking import Looking
from turnwire.validation.state import MessageRow

_MESSAGES: Final = 1024


class Closing(Looking):
    """The end of a session."""

    def end(self) -> Iterator[None]:
        """The rules about the history at the head; yields now and then, for what was found to be taken."""
        for number, (id, row) in enumerate(self.rows.messages.rows(), 1):
            if not number % _MESSAGES:
                yield
            if row.role != v1.Role.ROLE_ASSISTANT or not self.rows.is_live(row):
                continue
            if row.sealed and row.open_calls > 0 and not row.cut:
                self.wrong("session.tool.open", row.header, "assistant.assistant", id)
            if row.summary:
                self._summary(row)
            if row.sealed and not row.cut:
                self._usage(row, id)

    def _summary(self, row: MessageRow) -> None:
        parent = self.rows.messages.look(row.parent) if row.parent else None
        if (parent is None or not parent.compactions) and not self.references.blind_from:
            path = "assistant.assistant.parent_id"
            self.wrong(
                "session.compaction.summary", row.header, path, row.parent, "must be a message with a compaction"
            )

    def _usage(self, row: MessageRow, id: str) -> None:
        if row.usage is None or row.spent is None or content.equal(row.usage, row.spent):
            return
        last = row.last is not None and row.steps > 1 and content.equal(row.usage[1:], row.last[1:])
        costs = last and (
            content.equal(row.usage[:1], row.spent[:1]) or content.equal(row.usage[:1], (row.last or [])[:1])
        )
        rule = "session.usage.last_step" if costs else "session.usage.sum"
        right = f"the {row.steps} steps add up to {_told(row.spent)}"
        path = "assistant.assistant.usage"
        self.found.add(rule, revision=row.header, path=path, value=_told(row.usage), expected=right)


def _told(amounts: Iterable[float]) -> str:
    cost, *tokens = amounts
    names = ("input", "output", "reasoning", "cache read", "cache write")
    shown = [f"{name} {number:.0f}" for name, number in zip(names, tokens, strict=True) if number > 0]
    return ", ".join(([f"${cost:.6g}"] if cost >= 0 else []) + shown) or "nothing"
