"""What of an append can be done before the session is looked at: fill in, check by the rules, and serialize.

A message is stored as the server's own serialization of its header without parts, followed by each part on its own, in
the wrapper of its put; the digest covers exactly these bytes, and replay splices them. Nothing here depends on the
session, so that it runs outside of any transaction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from google.protobuf.message import Message

from turnwire import errors, ids, rules, v1
from turnwire.log import wire
from turnwire.v1 import options_pb2

#: Field numbers of ``Entry.payload``.
SESSION, TURN, USER, ASSISTANT, PART, DELTA = range(10, 16)
SUMMARY, REMOVAL, REVERT, REVERT_CLEAR, CONTEXT, PROMPT, RENDERING = range(16, 23)

_NUMBERS = {f.name: f.number for f in v1.Entry.DESCRIPTOR.oneofs_by_name["payload"].fields}
_KIND_NUMBERS = {f.name: f.number for f in v1.PromptPart.DESCRIPTOR.oneofs_by_name["kind"].fields}
KIND_NAMES = {number: name for name, number in _KIND_NUMBERS.items()}

#: Number of the kind of a part -> roles whose messages may hold it, read off the schema.
KIND_ROLES: dict[int, frozenset[int]] = {
    f.number: frozenset(f.GetOptions().Extensions[options_pb2.held_by])
    for f in v1.PromptPart.DESCRIPTOR.oneofs_by_name["kind"].fields
}
TEXT_KIND, REASONING_KIND, TOOL_KIND = (_KIND_NUMBERS[name] for name in ("text", "reasoning", "tool"))

_TERMINAL = (v1.ToolState.TOOL_STATE_COMPLETED, v1.ToolState.TOOL_STATE_ERROR)


@dataclass(slots=True)
class Part:
    """A part as it will be stored: ``length`` bytes at ``offset`` of the payload."""

    id: str
    kind: int
    offset: int
    length: int
    sealed: bool
    call_id: str
    path: str


@dataclass(slots=True)
class Prepared:
    """An entry that is ready to be admitted.

    ``id`` is that of the turn, message or prompt record, or (in hex) the SHA-256 of a prompt context or rendering. For
    a put of a message the header is at ``header_offset``; ``parts`` are those that the put carries; ``owner_id`` is the
    message of a put of a part. ``message`` is the filled-in payload of all other kinds, ``dated`` whether the caller
    gave its time.
    """

    field: int
    payload: bytes
    path: str
    ignorable: bool
    id: str = ""
    turn_id: str = ""
    owner_id: str = ""
    before_id: str = ""
    message: Message | None = None
    dated: bool = True
    header_offset: int = 0
    header_length: int = 0
    sealed: bool = False
    parts: list[Part] = dataclasses.field(default_factory=list)
    references: list[rules.Reference] = dataclasses.field(default_factory=list)


def prepare(entries: Iterable[v1.EntryInput], now_us: int, part_bytes: int) -> list[Prepared]:
    """Fill in ids and times, check the rules, and serialize. The entries are changed.

    Raises ``RuleViolation``, ``UnknownToThisServer`` or ``PartTooLarge``, with the path from ``entries`` on.
    """
    return [_prepare(entry, f"entries[{index}]", now_us, part_bytes) for index, entry in enumerate(entries)]


def properties(message: v1.SessionProperties, path: str, now_us: int) -> Prepared:
    """Make the entry of a session's properties; ``created`` is filled in."""
    if message.HasField("forked_from"):
        text = "is written by the server, in forks only"
        raise errors.RuleViolation([errors.Violation(f"{path}.forked_from", "turnwire.server_only", text)])
    if not message.HasField("created"):
        message.created.FromMicroseconds(now_us)
    rules.require(message, path)
    return Prepared(SESSION, message.SerializeToString(deterministic=True), path, False, message=message)


def _prepare(entry: v1.EntryInput, at: str, now_us: int, part_bytes: int) -> Prepared:
    name = entry.WhichOneof("payload")
    if name is None:
        raise errors.UnknownToThisServer("no payload that this server knows", path=f"{at}.payload")
    return one(entry, f"{at}.{name}", now_us, part_bytes)


def one(entry: v1.EntryInput, path: str, now_us: int, part_bytes: int) -> Prepared:
    """The same for one entry whose payload is set and stands at ``path`` of the request."""
    name = entry.WhichOneof("payload")
    assert name is not None
    payload = getattr(entry, name)
    if isinstance(payload, v1.SessionProperties):
        prepared = properties(payload, path, now_us)
    elif isinstance(payload, v1.UserPut | v1.AssistantPut):
        prepared = _message_put(payload, _NUMBERS[name], path, now_us, part_bytes)
    elif isinstance(payload, v1.PartPut):
        prepared = _part_put(payload, path, part_bytes)
    else:
        prepared = _plain(payload, _NUMBERS[name], path, now_us, part_bytes)
    prepared.ignorable = entry.ignorable
    return prepared


def _plain(payload: Message, number: int, path: str, now_us: int, part_bytes: int) -> Prepared:
    dated = True
    if isinstance(payload, v1.Turn | v1.PromptRecord):
        payload.id = payload.id or ids.new(ids.TURN if number == TURN else ids.PROMPT)
        dated = payload.HasField("created")
        if not dated:
            payload.created.FromMicroseconds(now_us)
    rules.require(payload, path)
    stored = payload.SerializeToString(deterministic=True)
    if isinstance(payload, v1.PartDelta):
        # A text that streams is held to the limit of the part that it makes.
        target = payload.WhichOneof("target") or ""
        _check_size(payload.offset + len(getattr(payload, target).encode()), part_bytes, f"{path}.{target}")
    else:
        large = f"{path}.mutations".lstrip(".") if isinstance(payload, v1.PromptRecord) else path
        _check_size(len(stored), part_bytes, large)
    if isinstance(payload, v1.PromptContext | v1.PromptRendering):
        id = sha256(stored).hexdigest()
    else:
        id = payload.id if isinstance(payload, v1.Turn | v1.PromptRecord) else ""
    prepared = Prepared(number, stored, path, False, id=id, message=payload, dated=dated)
    prepared.references = references(payload, path)
    return prepared


def _message_put(put: v1.UserPut | v1.AssistantPut, number: int, path: str, now_us: int, part_bytes: int) -> Prepared:
    if isinstance(put, v1.UserPut):
        message: v1.User | v1.Assistant = put.user
        path_of_message = f"{path}.user"
    else:
        message = put.assistant
        path_of_message = f"{path}.assistant"
    message.id = message.id or ids.new(ids.MESSAGE)
    if not message.time.HasField("created"):
        message.time.created.FromMicroseconds(now_us)
    seen: set[str] = set()
    for index, part in enumerate(message.parts):
        part.id = part.id or ids.new(ids.PART)
        if part.id in seen:
            part_path = f"{path_of_message}.parts[{index}].id"
            raise errors.IdInUse("two parts of one put have this id", path=part_path, part_id=part.id)
        seen.add(part.id)
    rules.require(put, path, stored=True)
    prepared = Prepared(number, b"", path, False, id=message.id, turn_id=message.turn_id, before_id=put.before_id)
    prepared.references = references(put, path)
    prepared.sealed = isinstance(message, v1.Assistant) and message.time.HasField("completed")
    stored_parts: list[bytes] = []
    at = 0
    for index, part in enumerate(message.parts):
        stored = part.SerializeToString(deterministic=True)
        part_path = f"{path_of_message}.parts[{index}]"
        _check_size(len(stored), part_bytes, part_path)
        framed = wire.part(stored)
        at += len(framed)
        stored_parts.append(framed)
        prepared.parts.append(stored_part(part, at - len(stored), stored, part_path))
    del message.parts[:]
    header = message.SerializeToString(deterministic=True)
    _check_size(len(header), part_bytes, path_of_message)
    lead = wire.tag(1) + wire.varint(len(header) + at)
    # The wrapper's other fields, unknown ones included, follow the message.
    if isinstance(put, v1.UserPut):
        put.ClearField("user")
    else:
        put.ClearField("assistant")
    prepared.payload = b"".join((lead, header, *stored_parts, put.SerializeToString(deterministic=True)))
    prepared.header_offset = len(lead)
    prepared.header_length = len(header)
    for placed in prepared.parts:
        placed.offset += len(lead) + len(header)
    return prepared


def _part_put(put: v1.PartPut, path: str, part_bytes: int) -> Prepared:
    part = put.part
    part.id = part.id or ids.new(ids.PART)
    rules.require(put, path, stored=True)
    stored = part.SerializeToString(deterministic=True)
    _check_size(len(stored), part_bytes, f"{path}.part")
    prepared = Prepared(PART, b"", path, False, owner_id=put.message_id, before_id=put.before_id)
    prepared.references = references(put, path)
    lead = wire.tag(2) + wire.varint(len(stored))
    prepared.parts.append(stored_part(part, len(lead), stored, f"{path}.part"))
    put.ClearField("part")
    prepared.payload = lead + stored + put.SerializeToString(deterministic=True)
    return prepared


def references(payload: Message, path: str) -> list[rules.Reference]:
    return [
        reference._replace(path=f"{path}.{reference.path}")
        for reference in rules.references(payload)
        if not reference.foreign
    ]


def stored_part(part: v1.PromptPart, offset: int, stored: bytes, path: str) -> Part:
    kind = part.WhichOneof("kind")
    if kind is None:
        raise errors.UnknownToThisServer("no kind of part that this server knows", path=f"{path}.kind")
    sealed = False
    call_id = ""
    if kind == "tool":
        sealed = part.tool.state in _TERMINAL
        call_id = part.tool.call_id
    elif kind == "text":
        sealed = part.text.time.HasField("end")
    elif kind == "reasoning":
        sealed = part.reasoning.time.HasField("end")
    return Part(part.id, _KIND_NUMBERS[kind], offset, len(stored), sealed, call_id, path)


def _check_size(size: int, limit: int, path: str) -> None:
    """Hold a part, or what else a response cannot split, to the limit of a part."""
    if size > limit:
        detail = v1.SizeLimit(size=size, limit=limit, unit="bytes")
        text = f"{size:,} bytes, more than the limit of {limit:,}"
        raise errors.PartTooLarge(text, detail=detail, path=path)
