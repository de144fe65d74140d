"""Ids of a source as ids of Turnwire: kept where they are legal and not yet taken, else repaired.

A repair depends on the source alone, so that importing again gives the same ids.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from turnwire import ids
from turnwire.formats.jsonlit import Json

_ILLEGAL = re.compile(r"[^A-Za-z0-9._:-]", re.ASCII)
_KEPT = 100
_DIGITS = 8
_MADE_DIGITS = 24


def legal_id(text: str) -> str:
    """The text itself if it can be an id; else one that is made from it."""
    if ids.valid(text):
        return text
    return f"{_ILLEGAL.sub('-', text[:_KEPT])}.{_digest(text)[:_DIGITS]}"


class IdSpace:
    """The ids of one kind in one session. ``originals`` are those in the source; repairs keep clear of them."""

    def __init__(self, originals: Iterable[Json]) -> None:
        self._originals = {original for original in originals if isinstance(original, str)}
        self._taken: set[str] = set()

    def claim(self, original: Json, prefix: str, seed: str) -> tuple[str, str | None]:
        """An id for an object, and why it is not the original one (None: it is).

        ``seed`` is unique in the session and makes the id of an object without one.
        """
        if isinstance(original, str):
            base = legal_id(original)
            reason = None if base == original else "not a legal id, changed"
        else:
            base = prefix + _digest(seed)[:_MADE_DIGITS]
            reason = "missing, one was made"
        free = base
        number = 1
        while free in self._taken or (free != original and free in self._originals):
            number += 1
            free = f"{base[:_KEPT]}.{number}"
        if free != base and reason is None:
            reason = "the id stands in the session already, changed"
        self._taken.add(free)
        return free, reason


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
