"""The chain of digests of a log, followed from entry to entry beside those that are kept."""

from __future__ import annotations

from typing import Final

from turnwire.log import digest

#: The most digests of which one may be right at a time; each is one more hash of every entry that follows.
_MOST: Final = 4


class Chain:
    """The digests that a log may have so far.

    A digest that is not the one of the entries is damage, of the entries or of itself. Which of both only a later one
    tells: it fits the entries, or the digest that was kept. So after one that is wrong both are gone on from, and the
    damage is told once.
    """

    def __init__(self, session_id: str = "") -> None:
        """``session_id`` may be unknown; the chain is then followed from the second entry on."""
        # As the entries have it, then as it follows from each kept one that was wrong, in their order; none: not known.
        self._may_be = [digest.start(session_id)] if session_id else []
        self._unsure_until = 0

    @property
    def known(self) -> bool:
        """Whether the digest of the last entry is known."""
        return bool(self._may_be)

    @property
    def doubtful(self) -> bool:
        """Whether a digest was wrong, and entries that it covers may be what was changed."""
        return len(self._may_be) > 1

    def may_be(self, kept: bytes) -> bool:
        """Whether a digest can be that of the last entry."""
        return kept in self._may_be

    @property
    def told(self) -> bytes:
        """The digest that the entries, as they are, have up to the last; to be asked where it is `known`."""
        return self._may_be[0]

    def lose(self, unsure_until: int) -> None:
        """Something is not there; up to a revision the digests may be computed from one before it, and be off."""
        self._may_be, self._unsure_until = [], unsure_until

    def follow(self, kept: bytes) -> None:
        """Go on by an entry that is not known as a whole, with its digest as it is kept."""
        self._may_be = [kept] if kept else []

    def link(self, revision: int, recorded_us: int, field: int, payload: bytes, kept: bytes) -> bool:
        """Go on by an entry, with the digest that is kept for it (empty: none is). Tells if that one is wrong."""
        if not self._may_be:
            self.follow(kept)
            return False
        self._may_be = [digest.link(each, revision, recorded_us, field, payload) for each in self._may_be]
        if not kept:
            return False
        if kept in self._may_be:
            # Those that were kept after it were wrong by themselves.
            del self._may_be[self._may_be.index(kept) + 1 :]
            return False
        if revision <= self._unsure_until:
            self._may_be, self._unsure_until = [kept], 0
            return False
        self._may_be = [self._may_be[0], *self._may_be[1:][2 - _MOST :], kept]
        return True
