"""Digests that do not match, told one by one while they are few, and as one finding where none of many matches.

All digests of a log cover the times of recording, and a store keeps those as distances from one time in the row of the
session. What changes that time makes every digest wrong: one damage, and one finding.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from turnwire.validation.findings import Findings

#: Digests that are wrong with no more entries between them are told together, if they are many: as many entries as an
#: append may have, so that a store keeps a digest of one of them at least.
_NEAR: Final = 1000
#: Up to so many are told one by one.
_FEW: Final = 3


class _Wrong(NamedTuple):
    revision: int
    value: str
    expected: str


class WrongDigests:
    """Holds back those that lie near each other, and tells of them in ``found``."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._first: list[_Wrong] = []
        self._last = self._count = 0

    def add(self, revision: int, value: str = "", expected: str = "") -> None:
        """The digest of an entry is wrong."""
        self._count += 1
        self._last = revision
        if len(self._first) < _FEW:
            self._first.append(_Wrong(revision, value, expected))

    def settle(self, revision: int) -> None:
        """Tell of those to which no other can belong, as of an entry."""
        if self._count and revision > self._last + _NEAR:
            self.tell()

    def tell(self, off_us: int = 0) -> None:
        """Tell of all. ``off_us``: by how much the time of the last entry is not what is said of it elsewhere."""
        if self._count > (1 if off_us else _FEW):
            why = "many entries were changed, or what all of them share: the time that a store counts theirs from"
            if off_us:
                why = f"the time that the store counts those of the entries from is off by {off_us / 1e6:,.6f} seconds"
            self._found.add(
                "session.digest",
                revision=self._first[0].revision,
                path="digest",
                text=f"none of {self._count:,} digests up to revision {self._last:,} matches the entries; {why}",
            )
        else:
            for each in self._first:
                self._found.add(
                    "session.digest", revision=each.revision, path="digest", value=each.value, expected=each.expected
                )
        self._first, self._count = [], 0
