"""Profiles: the choices that assembling leaves open, under names that prompt records keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from turnwire import errors

#: The version of the rules of this package. A prompt record keeps the version it was made by and is always
#: computed by it, so a change that could alter a single prompt adds a version here and keeps the rules of
#: those before.
ASSEMBLY_VERSION = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """The choices of one profile.

    ``empty_summary``: a summary without text completes a compaction too.
    ``summary_in_place``: the messages between the compaction message and the first summary that names it as
    parent, complete or not, stay before the kept tail. Else the summary that completed the compaction follows
    the compaction message directly, and what stood between them comes after the tail, with the rest.
    ``lost_tail_keeps_all``: a compaction whose tail start is not before it in the history (removed, say)
    leaves nothing out. Else it just has no tail.
    """

    name: str
    empty_summary: bool = False
    summary_in_place: bool = False
    lost_tail_keeps_all: bool = False


DEFAULT = Profile("default")

#: What opencode 1.18 sends for the same history.
OPENCODE = Profile("opencode", empty_summary=True, summary_in_place=True, lost_tail_keeps_all=True)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in (DEFAULT, OPENCODE)})


def profile_named(name: str) -> Profile:
    """The profile of a name; an empty name is "default". Raises UnknownProfile."""
    profile = PROFILES.get(name or DEFAULT.name)
    if profile is None:
        raise errors.UnknownProfile(f"the known profiles are {', '.join(PROFILES)}", profile=name)
    return profile


def require_version(version: int) -> None:
    """Refuse a prompt record whose rules this build does not have: UnknownToThisServer."""
    if version != ASSEMBLY_VERSION:
        raise errors.UnknownToThisServer(
            f"assembly version {version} is not known, only {ASSEMBLY_VERSION}", path="assembly_version"
        )
