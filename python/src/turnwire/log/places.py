"""Places: keys whose byte order is the order of messages in a session, and of parts in a message.

A key is a path of whole numbers, each in an encoding of its own length that keeps their order, so that the byte order
of two keys is the order of the paths, a path before its extensions. There is always room between two keys, before the
first and after the last; keys stay short where things are added at the end, or one after another at one point.
"""

from __future__ import annotations

_SMALL = 64  # numbers from -64 to 63 take one byte
_ZERO = 0x80


def after(key: bytes | None) -> bytes:
    """A key after ``key`` and everything that extends its first number (None: the first key of all)."""
    if key is None:
        return _FIRST
    lead = key[0] - _ZERO
    if lead >= _SMALL:
        return _encode(int.from_bytes(key[1 : lead - _SMALL + 2], "big") + 1)
    return _encode((lead if lead >= -_SMALL else _decode(key)[0]) + 1)


def firsts(count: int) -> list[bytes]:
    """The first keys of all, one after another."""
    return _FIRSTS[:count] if count <= _SMALL else [_encode(number) for number in range(count)]


def before(key: bytes) -> bytes:
    """A key before ``key``."""
    return _encode(_decode(key)[0] - 1)


def between(low: bytes | None, high: bytes) -> bytes:
    """A key between two keys, ``low < high`` (None: before the first)."""
    if low is None:
        return before(high)
    path = _decode(low)
    for depth, number in enumerate(path):
        candidate = b"".join(map(_encode, (*path[:depth], number + 1)))
        if low < candidate < high:
            return candidate
    if high.startswith(low):
        return low + before(high[len(low) :])
    return low + _encode(0)


def _encode(number: int) -> bytes:
    if -_SMALL <= number < _SMALL:
        return bytes((_ZERO + number,))
    if number > 0:
        size = (number.bit_length() + 7) // 8
        return (_ZERO + _SMALL + size - 1 << 8 * size | number).to_bytes(size + 1, "big")
    size = ((-number).bit_length() + 7) // 8
    return bytes((_ZERO - _SMALL - size,)) + (number + (1 << 8 * size)).to_bytes(size, "big")


def _decode(key: bytes) -> list[int]:
    path: list[int] = []
    at = 0
    while at < len(key):
        lead = key[at] - _ZERO
        at += 1
        if -_SMALL <= lead < _SMALL:
            path.append(lead)
        elif lead >= _SMALL:
            size = lead - _SMALL + 1
            path.append(int.from_bytes(key[at : at + size], "big"))
            at += size
        else:
            size = -lead - _SMALL
            path.append(int.from_bytes(key[at : at + size], "big") - (1 << 8 * size))
            at += size
    return path


_FIRST = _encode(0)
_FIRSTS = [_encode(number) for number in range(_SMALL)]
