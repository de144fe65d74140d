"""The rules about parts: their places, states, call ids and deltas.

Nothing here trusts an entry: it may break any rule of the schema, which is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from turnwire import v1
from turnwire.log import prepare
from turnwire.validation import content, state
from turnwire.validation.looking import Looking
from turnwire.validation.state import MessageRow, PartRow

_KINDS: Final = {name: number for number, name in prepare.KIND_NAMES.items()}
_TARGETS: Final = {
    prepare.TEXT_KIND: ("text",),
    prepare.REASONING_KIND: ("text",),
    prepare.TOOL_KIND: ("raw_input", "output"),
}
# It is needed before the entry, and not only in the same append; so it is looked for where it is used.
_OWNER: Final = frozenset(("message_id",))


class Parts(Looking):
    """The parts of the messages of a session."""

    def put_part(self, revision: int, put: v1.PartPut) -> None:
        """A put of a part."""
        thens: dict[str, Callable[[], None]] = {}
        row = self.live(revision, put.message_id, "part.message_id", "session.orphan_part")
        if row is not None:
            made = self.part(revision, 0, put.message_id, row, put.part, "part.part", put.before_id, thens)
            if made is not None and made.call:
                self.claim_call(revision, put.message_id, row, made, put.part.id, "part.part")
        self.references.check(revision, "part", put, _OWNER, thens)

    def part(
        self,
        revision: int,
        index: int,
        message_id: str,
        owner: MessageRow,
        part: v1.PromptPart,
        path: str,
        before_id: str,
        thens: dict[str, Callable[[], None]],
    ) -> PartRow | None:
        """Put a part into its place; None if it cannot be there."""
        if not part.id:
            return None
        old = self.rows.parts.get(part.id)
        if old is not None:
            holder = self.rows.part_owner(old)
            if holder is None:
                former = self.rows.messages.get(old.message)
                if former is None or self.rows.removed_alone(old, former):
                    self.wrong("session.part_removed", revision, f"{path}.id", part.id)
                    return None
                old = None
            elif old.message != message_id:
                self.wrong("session.part_moved", revision, f"{path}.id", part.id, f"it is in {old.message}")
                return None
        number = _KINDS.get(part.WhichOneof("kind") or "", 0)
        if old is not None:
            if before_id:
                right = "must be unset after the first put"
                self.wrong("session.place", revision, "part.before_id", before_id, right)
            if number != old.kind and number and old.kind:
                self.wrong(
                    "session.part_kind",
                    revision,
                    f"{path}.{prepare.KIND_NAMES[number]}",
                    "",
                    f"must be {prepare.KIND_NAMES[old.kind]}",
                )
            elif number == prepare.TOOL_KIND:
                wrong = content.change(old.state, part.tool.state)
                if wrong is not None:
                    self.content(revision, part, wrong, path)
            self.count(owner, old, -1)
            slot, born = old.slot, old.born
        else:
            slot, born = self._slot(revision, index, message_id, before_id, part.id), revision
        made = PartRow(message_id, owner.born, slot, born, revision, number)
        self._fill(made, part)
        self.count(owner, made, 1)
        self.rows.parts.put(part.id, made)
        for wrong in content.part(part):
            self.content(revision, part, wrong, path)
        if number == _KINDS["compaction"] and part.compaction.tail_start_id:
            inside = path.partition(".")[2]
            tail = part.compaction.tail_start_id
            where = f"{path}.compaction.tail_start_id"
            thens[f"{inside}.compaction.tail_start_id"] = partial(self._tail, revision, tail, owner.place, where)
        return made

    def _slot(self, revision: int, index: int, message_id: str, before_id: str, id: str) -> str:
        """The place of a new part in its message."""
        number = state.step(revision, index)
        if before_id == id:
            self.wrong("session.ref.self", revision, "part.before_id", before_id)
            return state.at_end(number)
        anchor = self.rows.parts.get(before_id) if before_id else None
        if anchor is None:
            return state.at_end(number)
        if self.rows.part_owner(anchor) is None:
            self.wrong("session.ref.gone", revision, "part.before_id", before_id)
        elif anchor.message != message_id:
            right = f"must be a part of {message_id}"
            self.wrong("session.ref.part", revision, "part.before_id", before_id, right)
        else:
            return state.before(anchor.slot, number)
        return state.at_end(number)

    def _fill(self, made: PartRow, part: v1.PromptPart) -> None:
        match part.WhichOneof("kind"):
            case "tool":
                tool = part.tool
                made.state, made.call = tool.state, tool.call_id
                made.sealed = tool.state in content.FINAL
                if not made.sealed:
                    made.text, made.output = _utf8(tool.raw_input), _utf8(tool.output)
            case "text":
                made.sealed = part.text.time.HasField("end")
                made.text = 0 if made.sealed else _utf8(part.text.text)
            case "reasoning":
                made.sealed = part.reasoning.time.HasField("end")
                made.text = 0 if made.sealed else _utf8(part.reasoning.text)
            case "step_finish":
                made.usage = content.amounts(part.step_finish.usage)
            case _:
                pass

    def count(self, owner: MessageRow, part: PartRow, sign: int) -> None:
        """Add what a part means for its message, or take it away."""
        if part.kind == prepare.TOOL_KIND and part.state in (content.PENDING, content.RUNNING):
            owner.open_calls += sign
        elif part.kind == _KINDS["compaction"]:
            owner.compactions += sign
        elif part.usage is not None:
            owner.steps += sign
            owner.spent = content.added(owner.spent, part.usage, sign) if owner.spent is not None else part.usage
            if sign > 0:
                owner.last = part.usage
            elif not owner.steps:
                owner.spent = None

    def claim_call(self, revision: int, message_id: str, owner: MessageRow, made: PartRow, id: str, path: str) -> None:
        key = f"{message_id} {owner.born} {made.call}"
        holder = self.rows.calls.get(key)
        other = self.rows.parts.get(holder) if holder is not None and holder != id else None
        # Two in one put are the schema's to tell.
        if other is not None and other.put != revision and other.call == made.call and self.rows.part_owner(other):
            self.wrong("session.call_id", revision, f"{path}.tool.call_id", made.call, f"part {holder} has it")
        self.rows.calls.put(key, id)

    def _tail(self, revision: int, tail: str, place: str, path: str) -> None:
        row = self.rows.messages.get(tail)
        assert row is not None
        if not self.rows.is_live(row) or (row.place and place and row.place >= place):
            self.wrong("session.compaction.tail", revision, path, tail, "must be a message before this one")

    def delta(self, revision: int, delta: v1.PartDelta) -> None:
        """Text for the end of a part."""
        part = self.rows.parts.get(delta.part_id)
        if part is None:
            self.references.unknown("session.ref.part", revision, "delta.part_id", delta.part_id)
            return
        owner = self.rows.part_owner(part)
        target = delta.WhichOneof("target")
        if owner is None:
            self.wrong("session.ref.gone", revision, "delta.part_id", delta.part_id)
        elif target is None or not part.kind:
            pass
        elif target not in _TARGETS.get(part.kind, ()):
            takes = " or ".join(_TARGETS.get(part.kind, ("no delta",)))
            right = f"a part of kind {prepare.KIND_NAMES[part.kind]} takes {takes}"
            self.wrong("session.delta.target", revision, f"delta.{target}", getattr(delta, target), right)
        elif part.sealed or owner.sealed:
            self.wrong("session.delta.sealed", revision, "delta.part_id", delta.part_id)
        else:
            length = part.output if target == "output" else part.text
            if delta.offset != length and part.put > self.references.blind_from:
                self.wrong("session.delta.offset", revision, "delta.offset", delta.offset, f"must be {length}")
            length = delta.offset + _utf8(getattr(delta, target))
            if target == "output":
                part.output = length
            else:
                part.text = length


def _utf8(text: str) -> int:
    """How many bytes a text has, which may be large."""
    return len(text) if text.isascii() else len(text.encode())
