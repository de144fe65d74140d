"""Page tokens: where a listing goes on, bound to the query that it is of."""

from __future__ import annotations

import base64
import binascii
import struct
from hashlib import sha256

from google.protobuf.message import Message

from turnwire import errors

_TOKEN = struct.Struct(">8sq")


def token(query: Message, scope: str, number: int, text: str = "") -> str:
    """A token for the place (``number``, ``text``) in the answer to a query in a scope (a tenant, a session)."""
    mark = _mark(query, scope, number, text)
    return base64.urlsafe_b64encode(_TOKEN.pack(mark, number) + text.encode()).decode()


def place(given: str, query: Message, scope: str) -> tuple[int, str]:
    """The place that a token names. Raises ``InvalidPageToken`` for one that is not of this query and scope."""
    try:
        raw = base64.b64decode(given.encode(), altchars=b"-_", validate=True)
        mark, number = _TOKEN.unpack_from(raw)
        text = raw[_TOKEN.size :].decode()
    except (binascii.Error, struct.error, UnicodeError) as error:
        raise errors.InvalidPageToken("not a page token of this server", path="page_token") from error
    if mark != _mark(query, scope, number, text):
        raise errors.InvalidPageToken("not a page token of this query", path="page_token")
    return number, text


def _mark(query: Message, scope: str, number: int, text: str) -> bytes:
    about = f"{query.DESCRIPTOR.full_name}\0{scope}\0{number}\0{text}\0"
    return sha256(about.encode() + query.SerializeToString(deterministic=True)).digest()[:8]
