"""Writes Turnwire's own form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Final

from google.protobuf import json_format
from google.protobuf.message import Message

from turnwire import errors, v1
from turnwire.calls.service import Service
from turnwire.formats.native.raw_entries import RawEntries
from turnwire.log import wire

SESSION_NUMBER: Final = 1
ENTRY_NUMBER: Final = 2


class Writer:
    """Writes records through ``put``, as binary or as JSON lines in UTF-8.

    ``incomplete`` counts the records of which JSON had to leave something out.
    """

    def __init__(self, put: Callable[[bytes], object], *, json_lines: bool = False) -> None:
        self._put = put
        self._json = json_lines
        self.incomplete = 0

    def session(self, session: v1.Session) -> None:
        """Begin a session."""
        if self._json:
            self._line("session", session)
        else:
            self._put(wire.field(SESSION_NUMBER, session.SerializeToString(deterministic=True)))

    def entry(self, entry: bytes) -> None:
        """Write an entry, given serialized."""
        if self._json:
            self._line("entry", v1.Entry.FromString(entry))
        else:
            self._put(wire.field(ENTRY_NUMBER, entry))

    def _line(self, name: str, message: Message) -> None:
        size = message.ByteSize()
        message.DiscardUnknownFields()
        self.incomplete += message.ByteSize() != size
        self._put(json.dumps({name: json_format.MessageToDict(message)}, ensure_ascii=False).encode() + b"\n")


async def write(client: Service, session_id: str, writer: Writer, *, after: int = 0) -> v1.Head:
    """Write a session from behind a revision on, up to its head as it is now, which is returned.

    Raises `SessionNotFound`, `SessionDeleted`, and `RevisionOutOfRange` if the session has no such revision.
    """
    session = await client.get_session(session_id)
    head = session.head.revision
    if after > head:
        detail = v1.RevisionConflict(expected=after, actual=head)
        raise errors.RevisionOutOfRange(f"the head is {head}", detail=detail, path="after")
    writer.session(session)
    if after < head:
        entries: AsyncIterator[bytes] = RawEntries(client).read(session_id, after + 1, head)
        async for entry in entries:
            writer.entry(entry)
    return session.head
