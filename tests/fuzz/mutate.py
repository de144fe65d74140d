"""Mutations of a log: of its bytes, of the fields inside them, and of the order of its entries.

A change of bytes alone is stopped by the digests, and most changes of fields by the parser. So a share of the mutations
is told the wire format: it takes fields out, doubles, swaps and rewrites them at any depth, with lengths that fit, and
`chained` gives the entries digests that fit again. What is left to stop them is what the code knows of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from turnwire import v1
from turnwire.log import digest, raw, wire

#: Numbers at which readers of numbers fail: signs, borders of 32 and 64 bits, and of one, two, five bytes of a varint.
_NUMBERS = (0, 1, 2, 3, 127, 128, 255, 16_383, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_BYTES = (b"", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", "😀".encode(), b"[" * 200 + b"]" * 200, b'{"a":NaN}', b"p", b"u")
_DEEPEST = 12

Log = list[bytes]


def mutated(entries: Sequence[bytes], others: Sequence[bytes], random: Random) -> Log:
    """One to four changes of a log; ``others``: entries of other logs, to put in."""
    log = list(entries)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if not log:
            break
        at = random.randrange(len(log))
        kind = random.random()
        if kind < 0.25:
            log[at] = _bytes_changed(log[at], random)
        elif kind < 0.8:
            log[at] = _fields_changed(log[at], random)
        else:
            _order_changed(log, at, others, random)
    return log


def chained(session_id: str, entries: Sequence[bytes]) -> Log:
    """The entries with dense revisions and digests that fit; those that are no entries stay as they are."""
    last = digest.start(session_id)
    result: Log = []
    for revision, data in enumerate(entries, start=1):
        try:
            found = raw.entry(data)
        except ValueError:
            result.append(data)
            continue
        last = digest.link(last, revision, found.recorded_us, found.field, found.payload)
        envelope = v1.Entry(revision=revision, digest=last, ignorable=found.ignorable)
        envelope.recorded.FromMicroseconds(found.recorded_us)
        result.append(envelope.SerializeToString() + wire.field(found.field, found.payload))
    return result


def _bytes_changed(data: bytes, random: Random) -> bytes:
    at, length = random.randrange(len(data) + 1), random.choice((1, 1, 2, 8, 64))
    changes: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
        lambda: data[:at] + bytes([data[at % len(data)] ^ 1 << random.randrange(8)]) + data[at + 1 :] if data else b"",
        lambda: data[:at] + data[at + length :],
        lambda: data[:at] + random.randbytes(length) + data[at:],
        lambda: data[:at],
        lambda: data + data[:at],
    )
    return random.choice(changes)()


def _fields_changed(data: bytes, random: Random, depth: int = 0) -> bytes:
    """Change one field of a message, or of one inside it; bytes that are no message are changed as bytes."""
    try:
        found = [data[each.start : each.end] for each in raw.fields(data)]
        places = list(raw.fields(data))
    except ValueError:
        return _leaf(data, random)
    if not found:
        return _leaf(data, random)
    at = random.randrange(len(found))
    place = places[at]
    if data[place.start] & 7 == 2 and place.end > place.value and depth < _DEEPEST and random.random() < 0.75:
        inner = _fields_changed(data[place.value : place.end], random, depth + 1)
        found[at] = wire.field(place.number, inner)
        return b"".join(found)
    kind = random.randrange(8)
    if kind == 0:
        del found[at]
    elif kind == 1:
        found.insert(random.randrange(len(found) + 1), found[at])
    elif kind == 2:
        other = random.randrange(len(found))
        found[at], found[other] = found[other], found[at]
    elif kind == 3:
        found[at] = wire.varint(place.number << 3) + wire.varint(random.choice(_NUMBERS))
    elif kind == 4:
        found[at] = wire.field(random.randrange(1, 40), data[place.value : place.end])
    elif kind == 5:
        found[at] = wire.field(place.number, random.choice(_BYTES))
    elif kind == 6:
        found[at] = wire.field(place.number, wire.field(place.number, found[at]))
    else:
        found.append(wire.field(random.choice((16, 31, 99, 300)), random.choice(_BYTES)))
    return b"".join(found)


def _leaf(data: bytes, random: Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(_BYTES)
    if kind == 1:
        return data * random.choice((2, 3, 200))
    if kind == 2 and data:
        return data[: random.randrange(len(data))]
    return _bytes_changed(data, random)


def _order_changed(log: Log, at: int, others: Sequence[bytes], random: Random) -> None:
    kind = random.randrange(5)
    other = random.randrange(len(log))
    if kind == 0:
        del log[at]
    elif kind == 1:
        log.insert(other, log[at])
    elif kind == 2:
        log[at], log[other] = log[other], log[at]
    elif kind == 3:
        log.insert(at, random.choice(others))
    else:
        log[at] = random.choice(others)
