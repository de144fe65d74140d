"""Entries as the bytes that a server streams and a file keeps, taken apart without changing a byte.

Parsing an entry and serializing it again may change its bytes where a later schema wrote it. So what has to come to the
same digest is cut out of the serialization instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError, Message

from turnwire import v1
from turnwire.log import digest, prepare, wire
from turnwire.log.prepare import Prepared
from turnwire.store.base import PutPart

_PARTS: Final = 15
#: The numbers of payloads in ``Entry``; later fields of the envelope begin at 300.
_PAYLOADS: Final = range(10, 300)
#: The payloads that have ids of their own.
_NAMED: Final = (prepare.TURN, prepare.USER, prepare.ASSISTANT, prepare.PROMPT)
_MOST_VARINT: Final = 10
_ANY_SIZE: Final = 2**62


class Field(NamedTuple):
    """One field of a serialized message: its number, the bytes that it takes, tag included, and those of its value."""

    number: int
    start: int
    value: int
    end: int


class RawEntry(NamedTuple):
    """One entry; ``field`` is the number of its payload, whose bytes are those that the digest covers."""

    revision: int
    recorded_us: int
    digest: bytes
    ignorable: bool
    field: int
    payload: bytes


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of a serialized message, in their order. Raises ValueError for what is none."""
    end = len(data) if end is None else end
    at = start
    while at < end:
        tag, value = _varint(data, at, end)
        match tag & 7:
            case 0:
                _, after = _varint(data, value, end)
            case 1:
                after = value + 8
            case 2:
                length, value = _varint(data, value, end)
                after = value + length
            case 5:
                after = value + 4
            case _:
                raise ValueError(f"no field at byte {at}")
        if after > end or not tag >> 3:
            raise ValueError(f"no whole field at byte {at}")
        yield Field(tag >> 3, at, value, after)
        at = after


def entry(data: bytes) -> RawEntry:
    """Take a serialized ``turnwire.v1.Entry`` apart. Raises ValueError."""
    found = [field for field in fields(data) if field.number in _PAYLOADS]
    if len(found) != 1:
        raise ValueError(f"an entry with {len(found)} payloads")
    try:
        envelope = v1.Entry.FromString(data)
    except DecodeError:
        raise ValueError("no entry") from None
    if envelope.recorded.nanos % 1000:
        raise ValueError("a time of recording that is not to the microsecond")
    recorded_us = envelope.recorded.seconds * 1_000_000 + envelope.recorded.nanos // 1000
    if not digest.FIRST_US <= recorded_us <= digest.LAST_US:
        raise ValueError("a time of recording that no digest can hold")
    payload = data[found[0].value : found[0].end]
    return RawEntry(envelope.revision, recorded_us, envelope.digest, envelope.ignorable, found[0].number, payload)


def serialized(entry: v1.Entry) -> bytes:
    """An entry with its payload as the server writes it, for one that was read from JSON.

    Raises ``RuleViolation`` or ``UnknownToThisServer`` for a message or part that no server would take.
    """
    name = entry.WhichOneof("payload")
    if name is None:
        return entry.SerializeToString(deterministic=True)
    payload: Message = getattr(entry, name)
    number = v1.Entry.DESCRIPTOR.fields_by_name[name].number
    if number in (prepare.USER, prepare.ASSISTANT, prepare.PART):
        given = v1.EntryInput()
        getattr(given, name).CopyFrom(payload)
        data = prepare.prepare([given], 0, _ANY_SIZE)[0].payload
        del given  # it may be large
    else:
        data = payload.SerializeToString(deterministic=True)
    envelope = v1.Entry(revision=entry.revision, digest=entry.digest, ignorable=entry.ignorable)
    envelope.recorded.CopyFrom(entry.recorded)
    return b"".join((envelope.SerializeToString(), wire.tag(number), wire.varint(len(data)), data))


def prepared(entry: RawEntry) -> Prepared:
    """An entry of a log as the admission takes it, with the bytes of its payload as they are.

    Of a payload that this build does not know there is nothing but its bytes. Raises ValueError for a payload that no
    server wrote.
    """
    descriptor = v1.Entry.DESCRIPTOR.fields_by_number.get(entry.field)
    path = f"entries[{entry.revision}]" if descriptor is None else f"entries[{entry.revision}].{descriptor.name}"
    made = Prepared(entry.field, entry.payload, path, entry.ignorable)
    if descriptor is None:
        return made
    try:
        match entry.field:
            case prepare.USER:
                user = v1.UserPut.FromString(entry.payload)
                _message(made, user, user.user)
            case prepare.ASSISTANT:
                assistant = v1.AssistantPut.FromString(entry.payload)
                _message(made, assistant, assistant.assistant)
                made.sealed = assistant.assistant.time.HasField("completed")
            case prepare.PART:
                put = v1.PartPut.FromString(entry.payload)
                made.owner_id, made.before_id = put.message_id, put.before_id
                place = part_place(entry.payload)
                made.parts = (_part(put.part, place),)
                made.references = prepare.references(put, path)
            case _:
                message: Message = getattr(v1.Entry.FromString(wire.field(entry.field, entry.payload)), descriptor.name)
                made.message = message
                made.references = prepare.references(message, path)
                if isinstance(message, v1.Turn | v1.PromptRecord):
                    made.id = message.id
                elif isinstance(message, v1.PromptContext | v1.PromptRendering):
                    made.id = sha256(entry.payload).hexdigest()
    except DecodeError:
        raise ValueError(f"no payload of the kind {descriptor.name}") from None
    named = [made.id] if entry.field in _NAMED else []
    if entry.field in (prepare.USER, prepare.ASSISTANT):
        named.append(made.turn_id)
    if not all((*named, *(part.id for part in made.parts))):
        raise ValueError("what has a place in the history has no id, or a message no turn")
    for several in ([part.id for part in made.parts], [part.call_id for part in made.parts if part.call_id]):
        if len(set(several)) != len(several):
            raise ValueError("a message with two parts of one id, or of one call")
    return made


def part_place(payload: bytes) -> Field:
    """Where the part of a put of one is in a payload. Raises ValueError for a form that no server writes."""
    return _only(payload, 2, "parts")


def _only(payload: bytes, number: int, noun: str) -> Field:
    found = [field for field in fields(payload) if field.number == number]
    if len(found) != 1:
        raise ValueError(f"a put with {len(found)} {noun}")
    return found[0]


def message_places(payload: bytes) -> tuple[Field, list[Field]]:
    """Where the message of a put is in a payload, and where its parts are.

    Raises ValueError for a form that no server writes: the message stands once, and its parts behind all else of it.
    """
    place = _only(payload, 1, "messages")
    inside = list(fields(payload, place.value, place.end))
    parts = [field for field in inside if field.number == _PARTS]
    if any(field.number != _PARTS for field in inside[-len(parts) :] if parts):
        raise ValueError("a message whose parts are not at its end")
    return place, parts


def _message(made: Prepared, put: v1.UserPut | v1.AssistantPut, message: v1.User | v1.Assistant) -> None:
    made.id, made.turn_id, made.before_id = message.id, message.turn_id, put.before_id
    made.references = prepare.references(put, made.path)
    place, parts = message_places(made.payload)
    first = parts[0].start if parts else place.end
    made.header_offset, made.header_length = place.value, first - place.value
    made.parts = [_part(part, at) for part, at in zip(message.parts, parts, strict=True)]


def _part(part: v1.PromptPart, at: Field) -> PutPart:
    return prepare.stored_part(part, part.id, at.value, at.end - at.value, part.WhichOneof("kind"))


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    number = shift = 0
    for index in range(at, min(end, at + _MOST_VARINT)):
        number |= (data[index] & 0x7F) << shift
        if data[index] < 0x80:
            return number, index + 1
        shift += 7
    raise ValueError(f"no number at byte {at}")
