"""What an open revert hides: places from one on that existed when it was opened."""

from __future__ import annotations

from turnwire.store.base import HEADER_SLOT, SUMMARY_SLOT, RevertSpan


def hides(span: RevertSpan, place: bytes, slot: bytes, born: int) -> bool:
    """Tell whether an open revert hides what has this place and slot since the revision ``born``.

    Any put of a message makes a revert final, so that every message behind its place existed when it was opened. Parts
    that were added since to the message in which it starts are shown.
    """
    if place != span.place or span.slot == HEADER_SLOT:
        return place >= span.place
    return slot != SUMMARY_SLOT and slot >= span.slot and born <= span.start
