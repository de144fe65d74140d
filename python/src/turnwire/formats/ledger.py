"""The importer's marks in a log: which of its entries an import brought, and from which source.

Every append of an import begins with a put of the session's properties that says so, in a name space of their
``extra_json``::

    {"turnwire/import": {"program": "opencode", "source": "/home/…/opencode.db", "revision": 1, "entries": 57,
                         "digest": "…", "revert": "…"}}

``entries`` entries behind the one at ``revision``, and that one itself, were brought. The append is atomic and expects
the revision, so that a mark is never wrong, however an import ends. Since a mark names its own revision, properties
that someone copies and puts again claim nothing. ``digest`` is that of the whole `SessionImport`, at the last append of
an import that left nothing out: a source with the same digest has nothing new. ``revert`` is the digest of the revert
that the source has (empty: none), at the appends that clear or open one.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.base import SessionImport
from turnwire.formats.jsonlit import Json, dumps, integer

SPACE: Final = "turnwire/import"

#: ``extra_json`` of a message summary that stands where there is none: a summary cannot be taken out.
GONE: Final = f'{{"{SPACE}":{{"gone":true}}}}'

_DIGITS: Final = 18


class Mark(NamedTuple):
    """One mark; see above. ``revert`` None: the append says nothing of it."""

    program: str
    source: str
    revision: int
    entries: int
    digest: str = ""
    revert: str | None = None


def mark_of(properties: v1.SessionProperties) -> Mark | None:
    """The mark in some properties, which counts only at its own revision."""
    if SPACE not in properties.extra_json:
        return None
    found = extras.space(properties.extra_json, SPACE)
    program, source, digest, revert = (found.get(key) for key in ("program", "source", "digest", "revert"))
    revision, entries = (_number(found.get(key)) for key in ("revision", "entries"))
    if not isinstance(program, str) or not isinstance(source, str) or revision is None or entries is None:
        return None
    return Mark(
        program,
        source,
        revision,
        entries,
        digest if isinstance(digest, str) else "",
        revert if isinstance(revert, str) else None,
    )


def marked(properties: v1.SessionProperties, mark: Mark) -> v1.SessionProperties:
    """The properties with a mark, as a copy."""
    tree: dict[str, Json] = {
        "program": mark.program,
        "source": mark.source,
        "revision": integer(mark.revision),
        "entries": integer(mark.entries),
    }
    if mark.digest:
        tree["digest"] = mark.digest
    if mark.revert is not None:
        tree["revert"] = mark.revert
    copy = unmarked(properties)
    copy.extra_json = extras.of_spaces({**extras.spaces(copy.extra_json), SPACE: dumps(tree)})
    return copy


def unmarked(properties: v1.SessionProperties) -> v1.SessionProperties:
    """The properties without a mark, as a copy."""
    copy = v1.SessionProperties()
    copy.CopyFrom(properties)
    if SPACE in copy.extra_json:
        copy.extra_json = extras.of_spaces(
            {name: text for name, text in extras.spaces(copy.extra_json).items() if name != SPACE}
        )
    return copy


def is_gone(summary: v1.MessageSummary) -> bool:
    """Whether a summary stands where the program has none; see `GONE`."""
    return SPACE in summary.extra_json and extras.space(summary.extra_json, SPACE).get("gone") is True


def digest_of(session: SessionImport) -> str:
    """A digest over everything that a session is to have."""
    return digest_over(serialized(session))


def serialized(session: SessionImport) -> list[bytes]:
    """The properties and the entries of a session, serialized so that equal ones are equal bytes."""
    return [
        session.properties.SerializeToString(deterministic=True),
        *(entry.SerializeToString(deterministic=True) for entry in session.entries),
    ]


def digest_over(pieces: Iterable[bytes]) -> str:
    """The digest of what `serialized` gave."""
    total = sha256()
    for data in pieces:
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def _number(value: Json) -> int | None:
    return int(value) if isinstance(value, bytes) and value.isdigit() and len(value) <= _DIGITS else None
