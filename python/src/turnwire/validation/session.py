"""Checks a session, entry by entry in the order of the log, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire import v1
from turnwire.log import digest, prepare, raw
from turnwire.store.sqlite_schema import DIGEST_EVERY
from turnwire.validation import messages, unknown, values
from turnwire.validation.chain import Chain
from turnwire.validation.closing import Closing
from turnwire.validation.findings import Findings
from turnwire.validation.history import History
from turnwire.validation.messages import NONE
from turnwire.validation.records import Records
from turnwire.validation.references import References
from turnwire.validation.registry import Selection
from turnwire.validation.state import State
from turnwire.validation.wrong_digests import WrongDigests

#: Name and class of the payloads by their numbers in ``Entry``.
_PAYLOADS: Final[dict[int, tuple[str, type[Message]]]] = {
    field.number: (field.name, getattr(v1, field.message_type.name))
    for field in v1.Entry.DESCRIPTOR.oneofs_by_name["payload"].fields
    if field.message_type is not None
}


class RawEntry(Protocol):
    """An entry with its payload as it is stored; `turnwire.store.base.EntryRow` and `turnwire.log.raw.RawEntry`."""

    @property
    def revision(self) -> int: ...
    @property
    def recorded_us(self) -> int: ...
    @property
    def field(self) -> int: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def ignorable(self) -> bool: ...
    @property
    def digest(self) -> bytes: ...


class SessionCheck:
    """One session. Give it all entries in order, then `end`; `take` what was found at any time, and `close` it.

    After something that could not be read, what depends on it is not looked at: one damage is one finding.
    """

    def __init__(
        self, session_id: str = "", *, selection: Selection | None = None, source: str = "", enveloped: bool = True
    ) -> None:
        """``session_id`` may be unknown; the chain of digests is then followed from the second entry on.

        ``enveloped``: whether the entries have times and digests, as those of a log do.
        """
        self.checked = 0
        self.last = 0
        self.found = Findings(selection, session_id=session_id, source=source)
        self._rows = State()
        self._references = References(self._rows, self.found)
        self._records = Records(self._rows, self.found, self._references)
        self._history = History(self._rows, self.found, self._references)
        self._enveloped = enveloped
        self._chain = Chain(session_id)
        self._wrong = WrongDigests(self.found)
        self._recorded_us = 0  # of the last entry
        self._latest_us = 0
        self._back: deque[tuple[int, str, str]] = deque()  # revisions at which the clock ran back, with what was there
        self._timed = True  # the time of the entry before could be read
        self._cut = False

    def entry(self, entry: RawEntry, later: frozenset[str] = NONE, origin: str = "") -> None:
        """Check the next entry.

        ``later``: the paths, from the entry on, where its reader left out what only a later schema knows. It was told
        of, and is in the digest. ``origin``: where a payload may come from that only a later schema knows; else its
        number says so.
        """
        self.checked += 1
        revision = entry.revision
        if revision != self.last + 1:
            self._gap(revision)
            if revision <= self.last:  # it stands twice or out of order, and cannot be laid over what came after
                return
        self.last = revision
        if self._enveloped:
            self._envelope(entry, whole=not later)
        if not 0 < entry.field <= digest.LAST_FIELD:
            return
        known = _PAYLOADS.get(entry.field)
        if revision == 1 and entry.field != prepare.SESSION:
            self.found.add("session.first", revision=1, value=known[0] if known is not None else "")
        if known is None:
            text = origin or unknown.origin(v1.Entry, entry.field)
            right = "it may be ignored" if entry.ignorable else ""
            self.found.add("storage.unknown_payload", revision=revision, text=text, expected=right)
            self._blind()
        else:
            self._payload(entry, *known, later)
        self._references.settle(revision)
        self._rows.trim()

    def missed(self, first: int, last: int, rule: str, text: str = "") -> None:
        """Entries could not be read: go on behind them, and report that under a rule."""
        told = f"revisions {first} to {last}" if last > first else f"revision {first}"
        if rule == "session.revision":
            text = text or f"{told} {'are' if last > first else 'is'} missing"
        self.found.add(rule, revision=first, value=told, text=text)
        self.last = last
        self._lose_chain()

    def damaged(self, rule: str, *, revision: int = 0, place: str = "", text: str = "") -> None:
        """Something that should have been an entry is none; ``revision``: as it says itself."""
        self.found.add(rule, revision=revision, place=place, text=text)
        self.last += 1
        self._lose_chain()

    def begin_behind(self, revision: int) -> None:
        """The first entry will be one that goes on from entries which are not there."""
        self.found.add("storage.continues", revision=revision)
        self.last = revision - 1
        self._lose_chain()

    def cut(self) -> None:
        """The entries break off, so that nothing can be said of the end, and what is missing may be behind it."""
        self._cut = True
        self._lose_chain()

    def end(self, head: v1.Head | None = None) -> None:
        """There are no more entries; ``head`` is what is said elsewhere to be the end of the log."""
        for _ in self.ending(head):
            pass

    def ending(self, head: v1.Head | None = None) -> Iterator[None]:
        """The same, which yields now and then, for what was found to be taken: it may be much."""
        self._wrong.tell(head.recorded.ToMicroseconds() - self._latest_us if head is not None else 0)
        self._references.end()
        self._tell_back(self.last)
        if self._cut:
            return
        yield from Closing(self._rows, self.found, self._references).end()
        if head is not None:
            self._head(head)

    def _head(self, head: v1.Head) -> None:
        said_us = head.recorded.ToMicroseconds()
        if head.revision != self.last:
            self._wrong_head("revision", str(head.revision), str(self.last))
        elif not self._chain.known:  # the last entry could not be read
            return
        elif not self._chain.may_be(head.digest):
            self._wrong_head("digest", values.short(head.digest), values.short(self._chain.told))
        # A clock that ran back leaves both, and a time that was changed is told of as a wrong digest.
        elif said_us not in (self._recorded_us, self._latest_us) and not self._chain.doubtful:
            self._wrong_head("recorded", _time(said_us), _time(self._recorded_us))

    def _wrong_head(self, name: str, said: str, there: str) -> None:
        self.found.add("session.head", path=f"head.{name}", value=said, expected=f"the last entry has {there}")

    def take(self) -> list[v1.Finding]:
        """What was found since this was last asked."""
        return self.found.take()

    def summary(self) -> v1.ValidationSummary:
        """How many entries were checked, and what was found in all."""
        return self.found.summary(self.checked)

    def close(self) -> None:
        """Let go of what was spilled into a temporary file."""
        self._rows.close()

    def _gap(self, revision: int) -> None:
        self.found.add("session.revision", revision=revision, expected=f"must be {self.last + 1}")
        if revision > self.last:
            self.last = revision - 1
            self._lose_chain()

    def _lose_chain(self) -> None:
        """Something is not there. A store computes digests from one that it keeps, so that those behind may be off."""
        self._chain.lose(self.last + DIGEST_EVERY)
        self._blind()

    def _blind(self) -> None:
        self._references.blind_from = max(self.last, 1)

    def _envelope(self, entry: RawEntry, *, whole: bool) -> None:
        if not digest.FIRST_US <= entry.recorded_us <= digest.LAST_US:
            if self._timed:  # many that lie beside each other are told of once: one number spoils them all
                text = "from here on a time of recording that no digest can hold"
                self.found.add("storage.form", revision=entry.revision, path="recorded", text=text)
            self._timed = False
            self._lose_chain()
            return
        self._timed = True
        if not 0 < entry.field <= digest.LAST_FIELD:
            text = "a payload with a number that no field can have"
            self.found.add("storage.form", revision=entry.revision, text=text)
            self._lose_chain()
            return
        if not whole:
            self._chain.follow(entry.digest)
        # What is read entry by entry around damage comes without digests.
        elif self._chain.link(entry.revision, entry.recorded_us, entry.field, entry.payload, entry.digest):
            right = f"the entries up to here have {self._chain.told.hex()[:16]}…"
            value = f"{entry.digest.hex()[:16]}…"
            self._wrong.add(entry.revision, value, right)
            self._back.clear()  # a time that was changed, and no clock
        if entry.recorded_us < self._recorded_us and not self._chain.doubtful:
            right = f"the one before was recorded at {_time(self._recorded_us)}"
            value = _time(entry.recorded_us)
            self._back.append((entry.revision, value, right))
        if entry.recorded_us != self._recorded_us and not self._chain.doubtful:
            self._references.end()  # the entries of one append have one time, so that another has begun
        self._recorded_us = entry.recorded_us
        self._latest_us = max(self._latest_us, entry.recorded_us)
        self._tell_back(entry.revision - DIGEST_EVERY)
        self._wrong.settle(entry.revision)

    def _form(self, places: Callable[[bytes], object], entry: RawEntry, name: str) -> None:
        try:
            places(entry.payload)
        except ValueError as error:
            self.found.add("storage.form", revision=entry.revision, path=name, text=str(error))

    def _tell_back(self, until: int) -> None:
        """Tell of the clock that ran back, up to a revision: behind it the next kept digest may still be wrong."""
        while self._back and self._back[0][0] <= until:
            revision, value, right = self._back.popleft()
            self.found.add("session.recorded", revision=revision, path="recorded", value=value, expected=right)

    def _payload(self, entry: RawEntry, name: str, cls: type[Message], later: frozenset[str]) -> None:
        revision = entry.revision
        try:
            message: Message = cls.FromString(entry.payload)
        except DecodeError:
            right = f"a serialized {cls.DESCRIPTOR.full_name}"
            self.found.add("storage.bytes", revision=revision, path=name, expected=right)
            self._blind()
            return
        history, records = self._history, self._records
        role = history.role_of(message.message_id) if isinstance(message, v1.PartPut) else 0
        messages.check(message, self.found, stored=True, role=role, revision=revision, lead=f"{name}.", later=later)
        match message:
            case v1.UserPut() | v1.AssistantPut():
                if not _has_later(message):  # which a reader of an earlier schema writes behind the parts
                    self._form(raw.message_places, entry, name)
                history.put(revision, message)
            case v1.PartPut():
                self._form(raw.part_place, entry, name)
                history.put_part(revision, message)
            case v1.PartDelta():
                history.delta(revision, message)
            case v1.Turn():
                records.turn(revision, message)
            case v1.SessionProperties():
                records.properties(revision, message)
            case v1.MessageSummary():
                history.summary(revision, message)
            case v1.Removal():
                history.removal(revision, message)
            case v1.Revert():
                history.revert(revision, message)
            case v1.RevertClear():
                history.revert_clear(revision)
            case v1.PromptContext():
                records.context(revision, entry.payload)
            case v1.PromptRecord():
                records.prompt(revision, message)
            case v1.PromptRendering():
                records.rendering(revision, message, entry.payload)
            case _:  # a payload that was added to the schema, and whose rules are still to be written
                raise NotImplementedError(name)


def _time(us: int) -> str:
    """A time as RFC 3339, or as the microseconds that no calendar has."""
    time = Timestamp()
    try:
        time.FromMicroseconds(us)
        return time.ToJsonString()
    except ValueError:
        return f"{us} microseconds"


def _has_later(put: v1.UserPut | v1.AssistantPut) -> bool:
    """Whether the header of a message has fields of a later schema."""
    return bool(len(UnknownFieldSet(put.user if isinstance(put, v1.UserPut) else put.assistant)))
