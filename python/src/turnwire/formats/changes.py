"""What an import has to append to a session that is there already: only what its source has new, changed or lost.

What counts as changed is decided by content, against what the same source brought last: so an object that was changed
or taken out here, and not in the source, is left as it is here. An object that the source has no more is taken out if
that source brought it last. Everything is pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message as AnyMessage

from turnwire import v1
from turnwire.formats import extras, ledger, stored
from turnwire.formats.base import Message, SessionImport
from turnwire.formats.report import Outcome
from turnwire.formats.returned import Returned
from turnwire.formats.stored import NOTHING, REVERT, Key, Stored, digest, header
from turnwire.log.fold import FoldedMessage

#: Properties that are no import's to change.
_NOT_OURS: Final = frozenset({"labels", "forked_from", "extra_json", "parent"})


@dataclass(slots=True)
class Wished:
    """A message as its source has it: its header, its parts in order, and before which message it was put."""

    header: Message
    before_id: str
    parts: list[v1.PromptPart] = field(default_factory=list[v1.PromptPart])
    summary: v1.MessageSummary | None = None


@dataclass(slots=True)
class Changes:
    """What to append, in order, and what becomes of the objects of the source, by outcome and kind.

    ``properties`` are those to put, or None if they stay. ``revert`` is the digest of the source's revert. ``kept``
    messages are not in this source, and stay since it did not bring them. ``reordered``: messages that are there have
    another order in the source now; they keep their places.
    """

    entries: list[v1.EntryInput] = field(default_factory=list[v1.EntryInput])
    revert: str = ""
    properties: v1.SessionProperties | None = None
    counts: Counter[tuple[Outcome, str]] = field(default_factory=Counter[tuple[Outcome, str]])
    kept: int = 0
    reordered: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is to be done."""
        return not self.entries and self.properties is None


def changes(session: SessionImport, there: Stored) -> Changes:
    """Compare a session with what is stored of it."""
    return _Comparison(session, there).changes()


class _Comparison:
    def __init__(self, session: SessionImport, there: Stored) -> None:
        self._session = session
        self._stored = there
        self._source = session.source
        self._result = Changes()
        self._wished: dict[str, Wished] = {}
        self._turns: dict[str, v1.Turn] = {}
        self._put_turns: set[str] = set()
        self._order: list[str] = []
        self._revert: v1.Revert | None = None
        self._read()
        self._relink()
        if there.folded.retired:
            self._rename()

    def changes(self) -> Changes:
        result = self._result
        if self._session.whole:
            self._remove()
        self._put()
        self._count_turns()
        self._finish_revert()
        result.properties = self._properties()
        result.kept = sum(
            1 for message in self._stored.folded.places if message.id not in self._wished and self._is_anothers(message)
        )
        there = [message.id for message in self._stored.folded.places if message.id in self._wished]
        result.reordered = there != [name for name in self._order if self._stored.folded.places.get(name) is not None]
        count = result.counts
        if not self._session.headless:  # which the reader has refused
            same = result.properties is None and not result.entries
            count[Outcome.UNCHANGED if same else Outcome.UPDATED, "session"] += 1
        return result

    def _read(self) -> None:
        """Bring the entries of the import into the order of its history."""
        for entry in self._session.entries:
            match entry.WhichOneof("payload"):
                case "turn":
                    self._turns[entry.turn.id] = entry.turn
                case "user":
                    self._place(entry.user.user, entry.user.before_id)
                case "assistant":
                    self._place(entry.assistant.assistant, entry.assistant.before_id)
                case "part":
                    self._wished[entry.part.message_id].parts.append(entry.part.part)
                case "summary":
                    self._wished[entry.summary.message_id].summary = entry.summary
                case "revert":
                    self._revert = entry.revert
                case other:
                    raise ValueError(f"an import holds no {other} entry")

    def _place(self, message: Message, before_id: str) -> None:
        self._wished[message.id] = Wished(header(message), before_id, list(message.parts))
        self._order.insert(self._order.index(before_id) if before_id else len(self._order), message.id)

    def _relink(self) -> None:
        """Give the answers to messages that could not be read the link and the turn that are known from before."""
        places = self._stored.folded.places
        for one in self._session.unlinked:
            wished = self._wished[one.message_id].header
            message, parent = places.get(one.message_id), places.get(one.parent_id)
            known = message.header if message is not None else None
            if not isinstance(wished, v1.Assistant):
                continue
            if one.parent_id and isinstance(known, v1.Assistant) and known.parent_id == one.parent_id:
                turn = known.turn_id
            elif parent is not None and isinstance(parent.header, v1.User):
                turn = parent.header.turn_id
            else:
                if isinstance(known, v1.Assistant) and not known.HasField("parent_id"):
                    wished.turn_id = known.turn_id
                continue
            wished.parent_id, wished.turn_id, wished.extra_json = one.parent_id, turn, one.extra_json

    def _rename(self) -> None:
        """Give the parts that came back other ids than those that are used up."""
        names = [part.id for wished in self._wished.values() for part in wished.parts]
        returned = Returned(self._stored, self._source, self._session.program, names)
        for name, wished in self._wished.items():
            wished.parts = [returned.named(part, name) for part in wished.parts]
        if self._revert is not None and self._revert.part_id in returned.names:
            revert = v1.Revert()
            revert.CopyFrom(self._revert)
            revert.part_id = returned.names[revert.part_id]
            self._revert = revert

    # What is gone

    def _remove(self) -> None:
        for message in self._stored.folded.places:
            wished = self._wished.get(message.id)
            if wished is None:
                if self._is_ours(("message", message.id)):
                    self._result.entries.append(v1.EntryInput(removal=v1.Removal(message_id=message.id)))
                    self._count(Outcome.REMOVED, "message")
                    self._count(Outcome.REMOVED, "part", len(message.places))
                continue
            names = {part.id for part in wished.parts}
            for part in message.places:
                if part.id not in names and self._is_ours(("part", part.id)):
                    self._result.entries.append(v1.EntryInput(removal=v1.Removal(part_id=part.id)))
                    self._count(Outcome.REMOVED, "part")

    def _is_ours(self, key: Key) -> bool:
        return self._stored.last.get(key) == self._source and self._stored.by(self._source, key) != NOTHING

    def _is_anothers(self, message: FoldedMessage) -> bool:
        return self._stored.last.get(("message", message.id), self._source) != self._source

    # What is new or changed

    def _put(self) -> None:
        places = self._stored.folded.places
        before = _following(self._order, {name for name in self._order if places.get(name) is not None})
        ranks = {name: rank for rank, name in enumerate(self._order)}
        for name, wished in self._wished.items():
            message = places.get(name)
            if message is not None and type(message.header) is not type(wished.header):
                # A message of the other role: its id gets a new place.
                self._result.entries.append(v1.EntryInput(removal=v1.Removal(message_id=name)))
                self._insert(wished, before[name])
            elif message is not None:
                self._update(wished, message)
                self._summarize(wished, message.summary)
            elif self._is_wanted(("message", name), digest(wished.header)):
                candidates = [each for each in (before[name], wished.before_id) if each]
                self._insert(wished, min(candidates, key=ranks.__getitem__, default=""))
            else:  # it was taken out here, and has not changed there
                self._count(Outcome.UNCHANGED, "message")
                self._count(Outcome.UNCHANGED, "part", len(wished.parts))
                self._count(Outcome.UNCHANGED, "summary", int(wished.summary is not None))

    def _insert(self, wished: Wished, before_id: str) -> None:
        self._turn(wished.header.turn_id)
        self._result.entries.append(_put(wished.header, before_id))
        self._count(Outcome.IMPORTED, "message")
        for part in wished.parts:
            self._result.entries.append(_part(wished.header.id, part))
            self._count(Outcome.IMPORTED, "part")
        if wished.summary is not None:
            self._result.entries.append(v1.EntryInput(summary=wished.summary))
            self._count(Outcome.IMPORTED, "summary")

    def _update(self, wished: Wished, message: FoldedMessage) -> None:
        content = digest(wished.header)
        if self._differs(("message", message.id), content, digest(message.header)):
            self._turn(wished.header.turn_id)
            self._result.entries.append(_put(wished.header, ""))
            self._count(Outcome.UPDATED, "message")
        else:
            self._count(Outcome.UNCHANGED, "message")
        names = [part.id for part in wished.parts]
        before = _following(names, {name for name in names if message.places.get(name) is not None})
        for part in wished.parts:
            there = message.places.get(part.id)
            if there is not None:
                changed = self._differs(("part", part.id), digest(part), digest(there.built()))
                if changed:
                    self._result.entries.append(_part(message.id, part))
                self._count(Outcome.UPDATED if changed else Outcome.UNCHANGED, "part")
            elif self._is_wanted(("part", part.id), digest(part)):
                self._result.entries.append(_part(message.id, part, before[part.id]))
                self._count(Outcome.IMPORTED, "part")
            else:
                self._count(Outcome.UNCHANGED, "part")

    def _summarize(self, wished: Wished, there: v1.MessageSummary | None) -> None:
        name = wished.header.id
        summary = wished.summary
        if summary is None:
            if there is None or not self._is_ours(("summary", name)) or not self._session.whole:
                return
            # There is no taking out of a summary: one that says so stands in its place.
            summary = v1.MessageSummary(message_id=name, extra_json=ledger.GONE)
        if there is not None and self._session.unread:
            summary.extra_json = extras.keep(summary.extra_json, there.extra_json, self._session.unread)
        content = digest(summary)
        if there is None:
            wanted = self._is_wanted(("summary", name), content)
            outcome = Outcome.IMPORTED if wanted else Outcome.UNCHANGED
        else:
            wanted = self._differs(("summary", name), content, digest(there))
            outcome = Outcome.UPDATED if wanted else Outcome.UNCHANGED
        if wanted:
            self._result.entries.append(v1.EntryInput(summary=summary))
        if wished.summary is not None:
            self._count(outcome, "summary")
        elif wanted:
            self._count(Outcome.REMOVED, "summary")

    def _turn(self, name: str) -> None:
        """Put the turn of a message first, if it is not there."""
        turn = self._turns.get(name)
        if turn is not None and name not in self._stored.folded.turns and name not in self._put_turns:
            self._result.entries.append(v1.EntryInput(turn=turn))
            self._put_turns.add(name)

    def _count_turns(self) -> None:
        """Count the turns of the source, but for those in whose place known ones stand."""
        used = {wished.header.turn_id for wished in self._wished.values()}
        self._count(Outcome.IMPORTED, "turn", len(self._put_turns))
        self._count(Outcome.UNCHANGED, "turn", len((self._turns.keys() & used) - self._put_turns))

    def _differs(self, key: Key, content: bytes, there: bytes) -> bool:
        """Whether what is there has to become the source's: it changed in the source, and is not that already."""
        return content not in (there, self._stored.by(self._source, key))

    def _is_wanted(self, key: Key, content: bytes) -> bool:
        """Whether what is not there has to be put: it is new or changed in the source, and not only taken out here."""
        return self._stored.by(self._source, key) != content

    # Revert and properties

    def _finish_revert(self) -> None:
        """Clear an open revert before anything else is put, and open the one that is to be open at the end."""
        opened = self._stored.folded.revert
        there = opened.revert if opened is not None else None
        known = self._stored.by(self._source, REVERT)
        wished = (known or NOTHING).decode() if self._session.revert_unread else stored.revert_digest(self._revert)
        changed = wished != (known or NOTHING).decode()
        target = self._revert if changed else there
        entries = self._result.entries
        if there is not None and (entries or there != target):
            entries.insert(0, v1.EntryInput(revert_clear=v1.RevertClear()))
            there = None
        if target is not None and there is None:
            entries.append(v1.EntryInput(revert=target))
        self._result.revert = wished
        if self._revert is not None or changed:
            outcome = Outcome.UNCHANGED
            if changed:
                outcome = Outcome.IMPORTED if not known else Outcome.UPDATED if wished else Outcome.REMOVED
            self._count(outcome, "revert")

    def _properties(self) -> v1.SessionProperties | None:
        """The properties as they are to be; None if they are so already."""
        if self._session.headless:
            return None
        there = ledger.unmarked(self._stored.folded.properties)
        old = self._stored.properties.get(self._source, v1.SessionProperties())
        new = v1.SessionProperties()
        new.CopyFrom(self._session.properties)
        new.extra_json = extras.keep(new.extra_json, old.extra_json, self._session.unread)
        result = v1.SessionProperties()
        result.CopyFrom(there)
        for field_ in v1.SessionProperties.DESCRIPTOR.fields:
            if field_.name not in _NOT_OURS and _value(old, field_.name) != _value(new, field_.name):
                _take(result, new, field_.name)
        # A source that does not know the part of the parent takes nothing away.
        same = there.parent.session_id == new.parent.session_id and not new.parent.HasField("part_id")
        if new.HasField("parent") and new.parent != old.parent and not same:
            result.parent.CopyFrom(new.parent)
        elif old.HasField("parent") and not new.HasField("parent"):
            result.ClearField("parent")
        result.extra_json = _merged(old.extra_json, there.extra_json, new.extra_json)
        result.ClearField("forked_from")
        there.ClearField("forked_from")
        return None if result == there else result

    def _count(self, outcome: Outcome, kind: str, number: int = 1) -> None:
        if number:
            self._result.counts[outcome, kind] += number


def _following(names: list[str], there: set[str]) -> dict[str, str]:
    """For each name the next one behind it that is there; "" if there is none."""
    following: dict[str, str] = {}
    next_ = ""
    for name in reversed(names):
        following[name] = next_
        if name in there:
            next_ = name
    return following


def _put(message: Message, before_id: str) -> v1.EntryInput:
    before = before_id or None
    if isinstance(message, v1.User):
        return v1.EntryInput(user=v1.UserPut(user=message, before_id=before))
    return v1.EntryInput(assistant=v1.AssistantPut(assistant=message, before_id=before))


def _part(message_id: str, part: v1.PromptPart, before_id: str = "") -> v1.EntryInput:
    return v1.EntryInput(part=v1.PartPut(message_id=message_id, part=part, before_id=before_id or None))


def _value(message: v1.SessionProperties, name: str) -> AnyMessage | str | None:
    value: AnyMessage | str = getattr(message, name)
    # A message's own absence is seen by HasField alone.
    return value if message.HasField(name) else None  # type: ignore[arg-type]  # every one of these has presence


def _take(into: v1.SessionProperties, new: v1.SessionProperties, name: str) -> None:
    into.ClearField(name)  # type: ignore[arg-type]  # a name of the descriptor's
    value = _value(new, name)
    if isinstance(value, AnyMessage):
        getattr(into, name).CopyFrom(value)
    elif value is not None:
        setattr(into, name, value)


def _merged(old: str, there: str, new: str) -> str:
    """Extras by name space: what the source has changed comes from it, all else stays."""
    before, now = extras.spaces(old), extras.spaces(new)
    result = extras.spaces(there)
    for name in before | now:
        if before.get(name) != now.get(name):
            if name in now:
                result[name] = now[name]
            else:
                result.pop(name, None)
    return there if result == extras.spaces(there) else extras.of_spaces(result)
