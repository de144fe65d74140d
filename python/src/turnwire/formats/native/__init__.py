"""Turnwire's own form: whole logs, entry by entry, as binary or as JSON lines.

The binary form is a sequence of records, each a key byte, its length as a varint, and so many bytes:

* ``0x0A``: a ``turnwire.v1.Session``. It begins a session, and says by its head how far the file goes.
* ``0x12``: a ``turnwire.v1.Entry``, byte for byte as the server has it. They follow in order; the last one has the
  revision and the digest of the session's head.

So a file is, to protobuf, one message with the repeated fields 1 (sessions) and 2 (entries), and any protobuf library
reads it, as a stream or whole. A session whose first entry is not revision 1 goes on from an earlier file. One without
entries has nothing new since then.

The JSON form has the same records, one a line: ``{"session": {…}}`` and ``{"entry": {…}}``, as canonical ProtoJSON. It
is for people and scripts: fields that this build's schema does not know are left out, and then it cannot be read back.
"""

from __future__ import annotations

from turnwire.formats.native.reading import SessionLog, is_native, read
from turnwire.formats.native.restoring import restore
from turnwire.formats.native.writing import Writer, write

__all__ = ["SessionLog", "Writer", "is_native", "read", "restore", "write"]
