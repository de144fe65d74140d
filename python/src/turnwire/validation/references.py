"""References between the entries of a session: what is named must be there.

A reference may point forwards within one append, so that one that finds nothing waits until another append begins, or
for as many entries as an append may have. Then it is a finding, whatever comes later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from google.protobuf.message import Message

from turnwire import rules, v1
from turnwire.validation import values
from turnwire.validation.findings import Findings
from turnwire.validation.state import State

#: The most entries of one append; see the comment of ``Append``.
APPEND_ENTRIES: Final = 1000

TURN: Final = "t"
PROMPT: Final = "p"
CONTEXT: Final = "c"
RENDERING: Final = "r"

_NONE: Final[Mapping[str, Callable[[], None]]] = {}


class _Waiting(NamedTuple):
    revision: int
    kind: int
    path: str
    value: str
    then: Callable[[], None] | None


class References:
    """The references of a session.

    ``blind_from``: the last revision at which something could not be read (0: all was); what is not there may have been
    put by what was missed, and then nothing is said.
    """

    def __init__(self, state: State, found: Findings) -> None:
        self.blind_from = 0
        self._state = state
        self._found = found
        self._waiting: deque[_Waiting] = deque()

    def check(
        self,
        revision: int,
        name: str,
        message: Message,
        given: frozenset[str],
        thens: Mapping[str, Callable[[], None]] = _NONE,
    ) -> None:
        """Look for what a payload names, but at the paths ``given``, which are looked at by themselves.

        ``name`` is the payload's in the entry. ``thens``: by their paths, what to do once the thing is there.
        """
        for path, kind, foreign, value in rules.references(message):
            if foreign or path in given:
                continue
            then = thens.get(path)
            if self.there(kind, value):
                if then is not None:
                    then()
            else:
                self._waiting.append(_Waiting(revision, kind, f"{name}.{path}", value, then))

    def there(self, kind: int, id: str) -> bool:
        """Whether the log has had a thing of a kind (`turnwire.v1.RefKind`) and an id so far."""
        match kind:
            case v1.RefKind.REF_KIND_TURN:
                return TURN + id in self._state.records
            case v1.RefKind.REF_KIND_PROMPT:
                return PROMPT + id in self._state.records
            case v1.RefKind.REF_KIND_PART:
                return id in self._state.parts
            case _:
                return id in self._state.messages

    def settle(self, revision: int) -> None:
        """Give up on those that could only be met by the append that they were in, as of an entry."""
        while self._waiting and self._waiting[0].revision + APPEND_ENTRIES <= revision:
            self._end(self._waiting.popleft())

    def end(self) -> None:
        """Give up on all: there are no more entries of the append that they were in."""
        while self._waiting:
            self._end(self._waiting.popleft())

    def unknown(self, rule: str, revision: int, path: str, value: str) -> None:
        """Note that something which is named is not there, unless what was missed may have put it."""
        if not self.blind_from:
            self._found.add(rule, revision=revision, path=path, value=values.short(value))

    def _end(self, one: _Waiting) -> None:
        if not self.there(one.kind, one.value):
            self.unknown(_RULES[one.kind], one.revision, one.path, one.value)
        elif one.then is not None:
            one.then()


_RULES: Final[dict[int, str]] = {
    v1.RefKind.REF_KIND_TURN: "session.ref.turn",
    v1.RefKind.REF_KIND_MESSAGE: "session.ref.message",
    v1.RefKind.REF_KIND_PART: "session.ref.part",
    v1.RefKind.REF_KIND_PROMPT: "session.ref.prompt",
}
