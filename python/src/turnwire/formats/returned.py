"""Parts that come back to a source, under ids that the log has used up.

A part that was removed by itself can never be put again under its id. One that comes back is put under the next free
id of the form ``prt_1.2``, and its own id stands in its extras, so that an export has it. Which id a part has is found
from the log alone: importing again gives the same one. What was removed here, and is in the source as it was, stays
removed: it keeps the id that is used up, and is not put.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.stored import Stored, digest

_KEPT: Final = 100


class Returned:
    """Gives the parts of a session the ids that the log has for them; ``wished`` are their ids in the import."""

    def __init__(self, there: Stored, source: str, program: str, wished: Iterable[str]) -> None:
        self._there = there
        self._source = source
        self._program = program
        self._wished = set(wished)
        #: The ids that were given, by those in the import.
        self.names: dict[str, str] = {}

    def named(self, part: v1.PromptPart, message_id: str) -> v1.PromptPart:
        """A part as it is to be put: itself, or a copy under another id."""
        retired = self._there.folded.retired
        if part.id not in retired:
            return part
        last, free = self._last(part.id, message_id)
        chosen = self._renamed(part, last)
        if last in retired and self._there.by(self._source, ("part", last)) != digest(chosen):
            chosen = self._renamed(part, free)
        if chosen.id != part.id:
            self.names[part.id] = chosen.id
        return chosen

    def _last(self, name: str, message_id: str) -> tuple[str, str]:
        """The id under which a part was put last, and the next one that is free."""
        there = self._there
        last = name
        number = 1
        while True:
            number += 1
            next_ = f"{name[:_KEPT]}.{number}"
            if next_ in self._wished or next_ in there.native:
                continue
            if ("part", next_) not in there.brought:
                return last, next_
            owner = there.owners.get(("part", next_), message_id)
            if owner == message_id:
                last = next_

    def _renamed(self, part: v1.PromptPart, name: str) -> v1.PromptPart:
        if name == part.id:
            return part
        copy = v1.PromptPart()
        copy.CopyFrom(part)
        copy.id = name
        copy.extra_json = extras.with_original_id(part.extra_json, self._program, part.id)
        return copy
