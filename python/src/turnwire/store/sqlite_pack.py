"""Keeping rows small: how ids and the parts of a new message are packed.

A message that was put whole has one row: behind its header stand the parts that came in the same entry, one after
another in places one after another, and of those only the kind and the length need to be said. The run is unpacked
into rows of their own as soon as one of its parts, or the header, becomes another.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence

from turnwire import errors, ids
from turnwire.log import wire
from turnwire.store.base import MESSAGE, PART, PROMPT, TURN, Node, Put

# Ids. Letters and digits in ASCII order stand for the first digits of base 64, so that packed ids keep their order.

_PREFIXES = {TURN: ids.TURN, MESSAGE: ids.MESSAGE, PART: ids.PART, PROMPT: ids.PROMPT}

#: Forms of ids. Those that this package makes have form 0: their prefix is cut off, and the rest is packed.
MADE = 0
_WHOLE = 1  # the prefix was not there
_PLAIN = 2  # not packed
_PAD = 4  # times the number of digits that were added to make whole bytes

_OURS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_PACK = bytes.maketrans(_OURS, _BASE64)
_UNPACK = bytes.maketrans(_BASE64, _OURS)

#: Bytes that are stored of an id of theirs that is made now.
MADE_BYTES = ids.DIGITS // 4 * 3
_ONE = {space: f"{prefix}[0-9A-Za-z]{{{ids.DIGITS}}}" for space, prefix in _PREFIXES.items()}
_MADE = {space: re.compile(f"{one}(?:,{one})*") for space, one in _ONE.items()}
_PUT = re.compile(f"{_ONE[MESSAGE]}(?:,{_ONE[PART]})*")
_PUTS = re.compile(f"{_ONE[MESSAGE]}(?:,{_ONE[PART]}|;{_ONE[MESSAGE]})*")


def pack_id(space: int, id: str) -> tuple[int, bytes | str]:
    """The form of an id and what of it is stored."""
    digits = made_digits(space, id)
    if digits is not None:
        return MADE, a2b_base64(digits.encode().translate(_PACK))
    form = MADE
    prefix = _PREFIXES.get(space)
    if prefix is not None and id.startswith(prefix):
        id = id[len(prefix) :]
    else:
        form = _WHOLE
    pad = -len(id) % 4
    if (len(id) + pad) // 4 * 3 >= len(id) or not (id.isalnum() and id.isascii()):
        return form | _PLAIN, id
    if pad:
        id += "0" * pad
        form += _PAD * pad
    return form, a2b_base64(id.encode().translate(_PACK))


def pack_ids(space: int, ids: Sequence[str]) -> Sequence[tuple[int, bytes | str]]:
    """The same for several ids: those that this package makes are packed at once."""
    made = _MADE.get(space)
    if made is None or not made.fullmatch(",".join(ids)):
        return [pack_id(space, id) for id in ids]
    prefix = _PREFIXES[space]
    packed = a2b_base64("".join(ids).replace(prefix, "").encode().translate(_PACK))
    return [(MADE, packed[at : at + MADE_BYTES]) for at in range(0, len(packed), MADE_BYTES)]


def pack_puts(puts: Sequence[Put]) -> list[bytes] | None:
    """What is stored of the ids of messages, each with its parts behind it, if this package makes such."""
    of = ";".join([",".join([put.id, *[part.id for part in put.parts]]) for put in puts])
    if not _PUTS.fullmatch(of):
        return None
    digits = of.replace("," + ids.PART, "").replace(";" + ids.MESSAGE, "")[len(ids.MESSAGE) :]
    packed = a2b_base64(digits.encode().translate(_PACK))
    return [packed[at : at + MADE_BYTES] for at in range(0, len(packed), MADE_BYTES)]


def made_digits(space: int, id: str) -> str | None:
    """The digits of an id whose form is ``MADE``, which are in the order of what is stored; None for another form."""
    prefix = _PREFIXES.get(space)
    if prefix is None or not id.startswith(prefix):
        return None
    digits = id[len(prefix) :]
    return digits if digits and not len(digits) % 4 and digits.isalnum() and digits.isascii() else None


def made_here(message_id: str, part_ids: Sequence[str]) -> bool:
    """Whether the ids of a message and of parts are such as this package makes; their form is ``MADE``."""
    return _PUT.fullmatch(",".join((message_id, *part_ids))) is not None


def unpack_made(stored: bytes) -> str:
    """The digits of an id from what is stored of one whose form is ``MADE``."""
    return b2a_base64(stored, newline=False).translate(_UNPACK).decode()


def unpack_id(space: int, form: int, stored: bytes | str) -> str:
    """The id of a name."""
    if isinstance(stored, bytes):
        digits = b2a_base64(stored, newline=False).translate(_UNPACK)
        id = digits[: len(digits) - form // _PAD].decode()
    else:
        id = stored
    return id if form & _WHOLE else _PREFIXES[space] + id


# Runs of parts.

_FIRST_SLOT = 0x80  # of the first part of a message, by turnwire.log.places; 64 follow in one byte
_MOST = 64


def pack_run(header: Node, parts: Sequence[Node]) -> tuple[bytes | None, int]:
    """Pack as many as possible of the parts (in order) that came with the first put of a message, and count them.

    For each part: its kind with the mark of being sealed (one byte), and its length.
    """
    at = header.offset + header.length
    packed = bytearray()
    count = 0
    for index, part in enumerate(parts[:_MOST]):
        size = wire.varint(part.length)
        start = at + len(wire.PARTS_TAG) + len(size)
        follows = (bytes((_FIRST_SLOT + index,)), header.revision, header.revision, start, 0, 0)
        if (part.slot, part.revision, part.born, part.offset, part.turn, part.delta) != follows or part.kind >= 128:
            break
        packed.append(part.kind << 1 | part.sealed)
        packed += size
        at = start + part.length
        count += 1
    return bytes(packed) or None, count


def pack_put(put: Put) -> tuple[bytes | None, int]:
    """The same for a message that is as it was put."""
    at = put.offset + put.length
    packed = bytearray()
    count = 0
    for _, kind, offset, length, sealed, _ in put.parts[:_MOST]:
        prefix = wire.part_prefix(length)
        at += len(prefix)
        if offset != at or kind >= 128:
            break
        packed.append(kind << 1 | sealed)
        packed += prefix[len(wire.PARTS_TAG) :]
        at += length
        count += 1
    return bytes(packed) or None, count


def unpack_run(header: Node, packed: bytes) -> list[Node]:
    """The parts that are packed behind a header. Raises ``CorruptData``."""
    try:
        return _unpacked(header, packed)
    except (IndexError, TypeError, ValueError) as error:
        raise errors.CorruptData("a row of the index is damaged", revision=header.revision) from error


def _unpacked(header: Node, packed: bytes) -> list[Node]:
    found: list[Node] = []
    place, revision = header.place, header.revision
    end = header.offset + header.length
    at = 0
    slot = _FIRST_SLOT
    while at < len(packed):
        mark = packed[at]
        at += 1
        start = at
        length = shift = 0
        while True:
            byte = packed[at]
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        offset = end + len(wire.PARTS_TAG) + at - start
        end = offset + length
        found.append(
            Node(place, bytes((slot,)), mark >> 1, revision, revision, 0, offset, length, bool(mark & 1), 0, 0)
        )
        slot += 1
    return found
