"""The rules about what an entry does to the history: puts of messages, removals, reverts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from turnwire import v1
from turnwire.validation import content, state
from turnwire.validation.findings import Findings
from turnwire.validation.parts import Parts
from turnwire.validation.references import References
from turnwire.validation.state import MessageRow, PartRow, Span, State

_USER, _ASSISTANT = v1.Role.ROLE_USER, v1.Role.ROLE_ASSISTANT
_NONE: Final[frozenset[str]] = frozenset()


class History(Parts):
    """The history of a session as far as the rules need it."""

    def __init__(self, rows: State, found: Findings, references: References) -> None:
        super().__init__(rows, found, references)
        self._open: Span | None = None  # the open revert
        self._open_message = ""

    def role_of(self, message_id: str) -> int:
        """The role of a message of the history; 0: there is none."""
        row = self.rows.live_message(message_id)
        return row.role if row is not None else 0

    def put(self, revision: int, put: v1.UserPut | v1.AssistantPut) -> None:
        """A put of a message."""
        if self._open is not None:
            self._finish_revert(self._open)
        message: v1.User | v1.Assistant
        if isinstance(put, v1.UserPut):
            name, role, message = "user", _USER, put.user
        else:
            name, role, message = "assistant", _ASSISTANT, put.assistant
        lead = f"{name}.{name}"
        row = self._placed(revision, put.before_id, message, role, name) if message.id else None
        if row is None:
            return
        thens: dict[str, Callable[[], None]] = {}
        self._header(revision, row, message, lead, thens)
        calls: list[tuple[PartRow, str, str]] = []
        seen: set[str] = set()
        for index, part in enumerate(message.parts):
            path = f"{lead}.parts[{index}]"
            if part.id in seen:
                self.wrong("session.part_twice", revision, f"{path}.id", part.id)
                continue
            seen.add(part.id)
            made = self.part(revision, index, message.id, row, part, path, "", thens)
            if made is not None and made.call:
                calls.append((made, part.id, path))
        for made, id, path in calls:
            self.claim_call(revision, message.id, row, made, id, path)
        self.references.check(revision, name, put, _NONE, thens)

    def _placed(
        self, revision: int, before_id: str, message: v1.User | v1.Assistant, role: int, name: str
    ) -> MessageRow | None:
        """The row of a message, in its place; None if it cannot be this message."""
        path = f"{name}.before_id"
        if before_id == message.id:
            self.wrong("session.ref.self", revision, path, before_id)
            before_id = ""
        row = self.rows.live_message(message.id)
        if row is not None:
            if row.role != role:
                self.wrong("session.role", revision, f"{name}.{name}.id", message.id)
                return None
            if before_id:
                self.wrong("session.place", revision, path, before_id, "must be unset after the first put")
            if row.turn != message.turn_id:
                self.wrong(
                    "session.turn_changed", revision, f"{name}.{name}.turn_id", message.turn_id, f"must be {row.turn}"
                )
            return row
        place = state.at_end(state.step(revision))
        anchor = self.rows.messages.get(before_id) if before_id else None
        if anchor is not None:
            if self.rows.is_live(anchor):
                place = state.before(anchor.place, state.step(revision))
            else:
                self.wrong("session.ref.gone", revision, path, before_id)
        row = MessageRow(role, revision, place)
        self.rows.messages.put(message.id, row)
        return row

    def _header(
        self,
        revision: int,
        row: MessageRow,
        message: v1.User | v1.Assistant,
        lead: str,
        thens: dict[str, Callable[[], None]],
    ) -> None:
        row.turn, row.header = message.turn_id, revision
        for wrong in content.header(message):
            self.content(revision, message, wrong, lead)
        if isinstance(message, v1.User):
            return
        row.sealed = message.time.HasField("completed")
        row.summary = message.result.kind == v1.ResultKind.RESULT_KIND_SUMMARY
        row.usage = content.amounts(message.usage) if message.HasField("usage") else None
        row.parent = message.parent_id
        if not row.parent:
            return
        path = f"{lead}.parent_id"
        if row.parent == message.id:
            self.wrong("session.ref.self", revision, path, row.parent)
        else:
            turn, parent = message.turn_id, row.parent
            thens["assistant.parent_id"] = partial(self._parent, revision, parent, turn, path)

    def _parent(self, revision: int, parent: str, turn: str, path: str) -> None:
        row = self.rows.messages.get(parent)
        assert row is not None
        if row.role != _USER:
            self.wrong("session.parent_role", revision, path, parent, "must be a user message")
        elif row.turn != turn:
            self.wrong("session.parent_turn", revision, path, parent, f"must have the turn {turn}, and has {row.turn}")

    def summary(self, revision: int, summary: v1.MessageSummary) -> None:
        self.live(revision, summary.message_id, "summary.message_id", "session.ref.message")

    def removal(self, revision: int, removal: v1.Removal) -> None:
        """A message or a part is taken out."""
        if removal.WhichOneof("target") == "message_id":
            row = self.live(revision, removal.message_id, "removal.message_id", "session.ref.message")
            if row is not None:
                row.removed = True
        elif removal.part_id:
            part = self.live_part(revision, removal.part_id, "removal.part_id")
            if part is not None:
                owner = self.rows.messages.get(part.message)
                assert owner is not None
                self.count(owner, part, -1)
                part.removed = True

    # Reverts

    def revert(self, revision: int, revert: v1.Revert) -> None:
        """Places are hidden from one on."""
        if self._open is not None:
            self.wrong("session.revert.open", revision, "revert", "", f"that of revision {self._open.start} is open")
            return
        row = self.live(revision, revert.message_id, "revert.message_id", "session.ref.message")
        if row is None:
            return
        slot = ""
        if revert.part_id:
            part = self.live_part(revision, revert.part_id, "revert.part_id")
            if part is None:
                return
            if part.message != revert.message_id:
                right = f"must be a part of {revert.message_id}"
                self.wrong("session.ref.part", revision, "revert.part_id", revert.part_id, right)
                return
            slot = part.slot
        self._open, self._open_message = Span(revision, row.place, slot), revert.message_id

    def revert_clear(self, revision: int) -> None:
        """The open revert is undone."""
        if self._open is None and not self.references.blind_from:
            self.wrong("session.revert.none", revision, "revert_clear", "")
        self._open = None

    def _finish_revert(self, span: Span) -> None:
        self._open = None
        if span.place:  # else what it took is not known
            self.rows.take_out(span)
        row = self.rows.messages.get(self._open_message)
        if row is not None and span.slot:
            row.cut = True
