"""The sessions of a file of entries, one after another.

What takes a record is to be iterated to its end: it yields now and then, for what was found to be taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import DecodeError

from turnwire import errors, v1
from turnwire.log import raw, wire
from turnwire.validation import messages, protojson, values
from turnwire.validation.findings import Findings
from turnwire.validation.messages import NONE
from turnwire.validation.registry import Selection
from turnwire.validation.session import SessionCheck

_DIGEST_BYTES: Final = 32
#: The number of a payload of which only its name in JSON is known; no schema has it yet.
_LATER_FIELD: Final = 299


class Logs:
    """Give it the records of a file in their order, then `end`; `take` what was found at any time."""

    def __init__(
        self, found: Findings, selection: Selection, source: str, wanted: frozenset[str] = frozenset()
    ) -> None:
        """``found`` gets what is about no entry. ``wanted``: the sessions of these ids only (none: all)."""
        self.entries = 0
        self.sessions = 0
        self.seen: frozenset[str] = frozenset()  # of the ids that are wanted
        self._wanted = wanted
        self._skipping = bool(wanted)  # what comes belongs to a session that is not wanted, or to none
        self._found = found
        self._selection = selection
        self._source = source
        self._run: SessionCheck | None = None
        self._head: v1.Head | None = None
        self._taken: list[v1.Finding] = []

    def session(self, session: v1.Session, place: str) -> Iterator[None]:
        """A session begins, as it was shown when the file was written."""
        yield from self.end()
        self._skipping = bool(self._wanted) and session.id not in self._wanted
        if self._skipping:
            return
        self.seen |= self._wanted & {session.id}
        messages.check(session, self._found, lead="session.", place=place)
        self._begin(session.id)
        self._head = session.head

    def entry(self, data: bytes, place: str, later: frozenset[str] = NONE, origin: str = "") -> Iterator[None]:
        """The next serialized entry; ``later`` and ``origin`` are those of `SessionCheck.entry`."""
        if self._skipping:
            return
        try:
            entry = raw.entry(data)
        except ValueError as error:
            self._damaged(data, place, str(error))
            return
        del data  # it may be large
        if self._run is None or (self._head is None and entry.revision == 1 and self._run.checked):
            yield from self.end()
            self._begin("")
        run = self._run
        assert run is not None
        if not run.checked and entry.revision > 1:
            run.begin_behind(entry.revision)
        if len(entry.digest) != _DIGEST_BYTES:
            right = f"must have {_DIGEST_BYTES} bytes"
            shown = values.short(entry.digest)
            run.found.add("bytes.len", revision=entry.revision, path="digest", value=shown, expected=right, place=place)
        self.entries += 1
        run.entry(entry, later, origin)
        self._taken += run.take()

    def message(self, entry: v1.Entry, place: str, later: frozenset[str], payload: str = "") -> Iterator[None]:
        """The next entry, as a message that was read from JSON; ``later`` is that of `SessionCheck.entry`.

        ``payload``: the member that is its payload, which only a later schema knows, and which was left out.
        """
        if payload:
            data = entry.SerializeToString(deterministic=True) + wire.field(_LATER_FIELD, b"")
            origin = protojson.origin(payload, v1.Entry.DESCRIPTOR)
            return self.entry(data, place, later | {""}, origin)
        try:
            data = raw.serialized(entry)
        except errors.InvalidArgument:  # the rules will tell
            data = entry.SerializeToString(deterministic=True)
        return self.entry(data, place, later)

    def end(self, *, cut: bool = False) -> Iterator[None]:
        """The session that was begun ends here; ``cut``: because the file cannot be read on."""
        if self._run is not None:
            if cut:
                self._run.cut()
            if self._run.checked:
                for _ in self._run.ending(self._head):
                    self._taken += self._run.take()
                    yield
            self._taken += self._run.take()
            self._run.close()
        self._run = self._head = None

    def take(self) -> list[v1.Finding]:
        """What was found since this was last asked."""
        taken, self._taken = [*self._found.take(), *self._taken], []
        return taken

    def _begin(self, session_id: str) -> None:
        self._run = SessionCheck(session_id, selection=self._selection, source=self._source)
        self.sessions += 1

    def _damaged(self, data: bytes, place: str, why: str) -> None:
        rule, revision = "storage.form", 0
        try:
            revision = v1.Entry.FromString(data).revision
        except DecodeError:
            rule, why = "storage.bytes", ""
        if self._run is None:
            self._begin("")
        assert self._run is not None
        self.entries += 1
        self._run.damaged(rule, revision=max(revision, 0), place=place, text=why)
        self._taken += self._run.take()
