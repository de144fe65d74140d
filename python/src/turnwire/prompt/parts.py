"""One part of a message as prompts hold it: shared, never changed, parsed and hashed at most once.

A prompt of a thousand messages has many thousand parts, of which a mutation touches one or two. So parts are
handed on by reference from history to prompt to prompt; what is done with a part is: put another in its
place.
"""

from __future__ import annotations

import hashlib

from turnwire import v1
from turnwire.log import canonical
from turnwire.log.wire import part_id, read_varint

# The tag of PromptPart.id: field 1, length-delimited.
_ID_TAG = v1.PromptPart.ID_FIELD_NUMBER << 3 | 2

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Part:
    """A part, made of a message (``Part(message)``) or of stored bytes (``Part.stored(id, data)``).

    The message is held by reference: it must not be changed afterwards.
    """

    __slots__ = ("_data", "_id", "_message", "_sha256")

    def __init__(self, message: v1.PromptPart | None, data: bytes = b"", part_id: str | None = None) -> None:
        self._message = message
        self._data = data
        self._id = part_id
        self._sha256 = b""

    @classmethod
    def stored(cls, part_id: str | None, data: bytes) -> Part:
        """Hold a part as it is stored, its id included. It is parsed only when somebody asks for its content.

        ``part_id``; None: it is read off the bytes when somebody asks, which begin with it as a store's do.

        Prefer this where stored bytes are at hand: a digest over the bytes themselves stays the same when a
        later build, which knows more fields, would write them in another order.
        """
        return cls(None, data, part_id)

    @property
    def id(self) -> str:
        """The stored part's id, empty for a part that a mutation wrote."""
        if self._id is None:
            self._id = part_id(self._data) if self._data else self.message.id
        return self._id

    @property
    def message(self) -> v1.PromptPart:
        """The parsed part, shared with the history: copy it before changing it.

        Raises google.protobuf.message.DecodeError when the stored bytes are damaged.
        """
        if self._message is None:
            self._message = v1.PromptPart.FromString(self._data)
        return self._message

    @property
    def data(self) -> bytes:
        """The part's bytes with its id: as stored, else the deterministic serialization."""
        return self._data or canonical.part(self.message)

    @property
    def sha256(self) -> bytes:
        """The SHA-256 of the part's bytes without its id, 32 bytes."""
        if not self._sha256:
            self._sha256 = hashlib.sha256(without_id(self.data)).digest()
        return self._sha256

    @property
    def kind(self) -> str:
        """The name of the member of ``PromptPart.kind``; empty for a kind that this build does not know."""
        return self.message.WhichOneof("kind") or ""

    @property
    def fixed(self) -> bool:
        """Whether a mutation may neither replace nor remove the part: it is signed, or of an unknown kind.

        A later build may find a signature in a kind that this one cannot read. It must not refuse a mutation
        that this build has recorded, so this build refuses it too.
        """
        kind = self.kind
        if kind == "text":
            return self.message.text.provider.signed
        if kind == "reasoning":
            return self.message.reasoning.provider.signed
        if kind == "tool":
            return self.message.tool.provider.signed
        return kind == ""

    def __repr__(self) -> str:
        return f"Part(id={self.id!r})"


def without_id(data: bytes) -> bytes:
    """Take ``PromptPart.id`` out of a serialized part; every other byte stays, in its place.

    Only the tags and lengths of the top level are looked at. That is exact for every encoding but the
    deprecated groups, which occur only among unknown fields of a foreign schema: such a part is parsed and
    written anew. Raises google.protobuf.message.DecodeError on bytes that are no part.
    """
    try:
        # Nearly every part: the id, and behind it one field, its kind.
        if data[0] == _ID_TAG and data[1] < 0x80:
            begin = 2 + data[1]
            tag = data[begin]
            if tag < 0x80 and tag & 7 == _BYTES and tag != _ID_TAG:
                length, position = read_varint(data, begin + 1)
                if position + length == len(data):
                    return data[begin:]
    except IndexError:
        return _rewritten(data)
    kept: list[bytes] = []
    position = start = 0
    size = len(data)
    try:
        while position < size:
            field = position
            tag = data[position]
            position += 1
            if tag >= 0x80:
                tag, position = read_varint(data, field)
            wire_type = tag & 7
            if wire_type == _BYTES:
                length = data[position]
                position += 1
                if length >= 0x80:
                    length, position = read_varint(data, position - 1)
                position += length
            elif wire_type == _VARINT:
                _, position = read_varint(data, position)
            elif wire_type == _FIXED64:
                position += 8
            elif wire_type == _FIXED32:
                position += 4
            else:
                return _rewritten(data)
            if tag == _ID_TAG:
                kept.append(data[start:field])
                start = position
    except IndexError:
        return _rewritten(data)
    if position != size:
        return _rewritten(data)
    if not kept:
        return data
    kept.append(data[start:])
    return b"".join(kept)


def _rewritten(data: bytes) -> bytes:
    part = v1.PromptPart.FromString(data)
    part.ClearField("id")
    return canonical.part(part)
