"""The few pieces of the protobuf wire format by which stored bytes are spliced without parsing them."""

from __future__ import annotations

from functools import lru_cache

#: Tag of ``parts`` in User, Assistant, PromptMessage and MoreParts: number 15, length-delimited.
PARTS_TAG = b"\x7a"


def varint(number: int) -> bytes:
    """A number, not negative, as a varint."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends. Raises IndexError where the bytes end before it does."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at + 1
        shift += 7


def tag(number: int) -> bytes:
    """The tag of a length-delimited field."""
    return varint(number << 3 | 2)


def field(number: int, value: bytes) -> bytes:
    """A length-delimited field: tag, length, bytes."""
    return tag(number) + varint(len(value)) + value


def part(value: bytes) -> bytes:
    """A part as an element of ``parts``."""
    return part_prefix(len(value)) + value


@lru_cache(16_384)
def part_prefix(length: int) -> bytes:
    """Tag and length of a part as an element of ``parts``."""
    return PARTS_TAG + varint(length)


def part_id(stored: bytes) -> str:
    """The id of a stored part, which its serialization begins with."""
    if stored[:1] != b"\x0a":
        return ""
    length, at = stored[1], 2
    if length >= 0x80:  # an id has at most 128 bytes
        length, at = length & 0x7F | stored[2] << 7, 3
    return stored[at : at + length].decode()
