"""What of an append can be done before the session is looked at: fill in, check by the rules, and serialize.

A message is stored as the server's own serialization of its header without parts, followed by each part on its own, in
the wrapper of its put; the digest covers exactly these bytes, and replay splices them. Nothing here depends on the
session, so that it runs outside of any transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire import errors, ids, rules, v1
from turnwire.log import canonical, wire
from turnwire.store.base import PutPart, row
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

_SIZE = v1.PromptPart.ByteSize
_PARTS_TAG = wire.PARTS_TAG[0]
_MOST_PARTS = 10_000  # of one put
_TERMINAL = (v1.ToolState.TOOL_STATE_COMPLETED, v1.ToolState.TOOL_STATE_ERROR)


def _refers(message: Descriptor) -> bool:
    """Whether a message has ids of other things of its session, in itself or in what is inside it."""
    return any(
        _ref(field) is not None or (field.message_type is not None and _refers(field.message_type))
        for field in message.fields
    )


def _ref(field: FieldDescriptor) -> int | None:
    options = field.GetOptions()
    if not options.HasExtension(options_pb2.ref) or options.Extensions[options_pb2.ref].foreign:
        return None
    return options.Extensions[options_pb2.ref].kind


def _ids(message: Descriptor) -> list[tuple[str, int]]:
    """The fields of a message, but for its parts and what it is the payload of, that are ids of other things."""
    found: list[tuple[str, int]] = []
    for field in message.fields:
        if field.name in ("parts", "user", "assistant"):
            continue
        kind = _ref(field)
        if kind is not None:
            found.append((field.name, kind))
        elif field.message_type is not None and _refers(field.message_type):
            raise NotImplementedError(f"an id inside {field.full_name}")
    return found


#: The message in the put of one, by the number of its payload.
_HOLDERS = {USER: "user", ASSISTANT: "assistant"}

# Ids of other things are looked for in the few fields where the schema has them; a walk through all parts takes longer
# than anything else that is done to them. The turn is looked for in any case.
_IDS = {
    number: [each for each in _ids(message.DESCRIPTOR) if each[0] != "turn_id"]
    for number, message in ((USER, v1.User), (ASSISTANT, v1.Assistant))
}
_PUT_IDS = {USER: _ids(v1.UserPut.DESCRIPTOR), ASSISTANT: _ids(v1.AssistantPut.DESCRIPTOR)}
#: The kinds of parts that have such ids.
_REFERRING = frozenset(
    field.name
    for field in v1.PromptPart.DESCRIPTOR.oneofs_by_name["kind"].fields
    if field.message_type is not None and _refers(field.message_type)
)


@dataclass(slots=True)
class Prepared:
    """An entry that is ready to be admitted.

    ``id`` is that of the turn, message or prompt record, or (in hex) the SHA-256 of a prompt context or rendering. For
    a put of a message the header is at ``header_offset``; ``parts`` are those that the put carries; ``owner_id`` is the
    message of a put of a part. ``references`` are those to be looked for in the session, but the turn of a message.
    ``message`` is the filled-in payload of all other kinds, ``dated`` whether the caller gave its time.
    """

    field: int
    payload: bytes
    path: str
    ignorable: bool = False
    id: str = ""
    turn_id: str = ""
    owner_id: str = ""
    before_id: str = ""
    header_offset: int = 0
    header_length: int = 0
    sealed: bool = False
    parts: Sequence[PutPart] = ()
    references: Sequence[rules.Reference] = ()
    message: Message | None = None
    dated: bool = True
    limit: int = 0

    @property
    def message_path(self) -> str:
        """The path of the message of a put."""
        return f"{self.path}.{_HOLDERS[self.field]}"

    def part_path(self, index: int) -> str:
        """The path of a part that a put carries."""
        return f"{self.path}.part" if self.field == PART else f"{self.message_path}.parts[{index}]"


def prepare(entries: Iterable[v1.EntryInput], now_us: int, part_bytes: int) -> list[Prepared]:
    """Fill in ids and times, check the rules, and serialize. The entries are changed.

    Raises ``RuleViolation``, ``UnknownToThisServer`` or ``PartTooLarge``, with the path from ``entries`` on.
    """
    return [_prepare(entry, index, now_us, part_bytes) for index, entry in enumerate(entries)]


def properties(message: v1.SessionProperties, path: str, now_us: int) -> Prepared:
    """Make the entry of a session's properties; ``created`` is filled in."""
    if message.HasField("forked_from"):
        text = "is written by the server, in forks only"
        raise errors.RuleViolation([errors.Violation(f"{path}.forked_from", "turnwire.server_only", text)])
    if not message.HasField("created"):
        message.created.FromMicroseconds(now_us)
    rules.require(message, path)
    return Prepared(SESSION, message.SerializeToString(deterministic=True), path, False, message=message)


def _prepare(entry: v1.EntryInput, index: int, now_us: int, part_bytes: int) -> Prepared:
    name = entry.WhichOneof("payload")
    if name is None:
        raise errors.UnknownToThisServer("no payload that this server knows", path=f"entries[{index}].payload")
    return _named(entry, name, f"entries[{index}].{name}", now_us, part_bytes)


def one(entry: v1.EntryInput, path: str, now_us: int, part_bytes: int) -> Prepared:
    """The same for one entry whose payload is set and stands at ``path`` of the request."""
    name = entry.WhichOneof("payload")
    assert name is not None
    return _named(entry, name, path, now_us, part_bytes)


def _named(entry: v1.EntryInput, name: str, path: str, now_us: int, part_bytes: int) -> Prepared:
    payload = getattr(entry, name)
    number = _NUMBERS[name]
    if number in _HOLDERS:
        prepared = _message_put(payload, number, path, now_us, part_bytes)
    elif number == PART:
        prepared = _part_put(payload, path, part_bytes)
    elif number == SESSION:
        prepared = properties(payload, path, now_us)
    else:
        prepared = _plain(payload, number, path, now_us, part_bytes)
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
    if not isinstance(payload, v1.PartDelta):  # which is held to the limit of the part that it makes
        large = f"{path}.mutations".lstrip(".") if isinstance(payload, v1.PromptRecord) else path
        _check_size(len(stored), part_bytes, large)
    if isinstance(payload, v1.PromptContext | v1.PromptRendering):
        id = sha256(stored).hexdigest()
    else:
        id = payload.id if isinstance(payload, v1.Turn | v1.PromptRecord) else ""
    prepared = Prepared(number, stored, path, False, id=id, message=payload, dated=dated, limit=part_bytes)
    prepared.references = references(payload, path)
    return prepared


def _message_put(put: v1.UserPut | v1.AssistantPut, number: int, path: str, now_us: int, part_bytes: int) -> Prepared:
    message: v1.User | v1.Assistant = getattr(put, _HOLDERS[number])
    id = message.id
    if not id:
        id = message.id = ids.new(ids.MESSAGE)
    time = message.time
    if not time.HasField("created"):
        created = time.created
        created.seconds = now_us // 1_000_000
        created.nanos = now_us % 1_000_000 * 1000
    parts = list(message.parts)
    prepared = Prepared(number, b"", path, False, id, message.turn_id, "", put.before_id)
    if len(parts) > _MOST_PARTS:
        detail = v1.SizeLimit(size=len(parts), limit=_MOST_PARTS, unit="parts")
        text = f"{len(parts):,} parts in one put, more than the limit of {_MOST_PARTS:,}"
        raise errors.RequestTooLarge(text, detail=detail, path=f"{prepared.message_path}.parts")
    part_ids = _fill_in_ids(parts, prepared)
    rules.require(put, path, stored=True)
    prepared.references = _header_references(put, message, prepared)
    if isinstance(message, v1.Assistant):
        prepared.sealed = message.time.HasField("completed")
    payload = put.SerializeToString(deterministic=True)
    sizes = [*map(_SIZE, parts)]
    kinds = [part.WhichOneof("kind") for part in parts]
    mapped = "retry" in kinds and any(map(canonical.has_map, parts))
    as_written = not mapped and not canonical.may_have_long_tags(payload)
    places = _places(payload, message, sizes) if as_written else None
    if places is None:  # or a later schema's fields came behind the parts
        payload, places, sizes = _with_parts_last(put, message, parts)
    prepared.payload = payload
    start, (end, *offsets) = places
    prepared.header_offset, prepared.header_length = start, end - start
    refers = False
    made: list[PutPart] = []
    for part, part_id, kind, offset, length in zip(parts, part_ids, kinds, offsets, sizes, strict=True):
        if length > part_bytes:
            _check_size(length, part_bytes, prepared.part_path(len(made)))
        refers = refers or kind in _REFERRING
        made.append(stored_part(part, part_id, offset, length, kind))
    if end - start > part_bytes:
        _check_size(end - start, part_bytes, prepared.message_path)
    prepared.parts = made
    if refers:
        prepared.references = references(put, path)
    return prepared


def _self(path: str) -> errors.RuleViolation:
    return errors.RuleViolation([errors.Violation(path, "turnwire.self", "names the very thing that it is in")])


def _fill_in_ids(parts: list[v1.PromptPart], prepared: Prepared) -> list[str]:
    """Give each part an id that has none. Returns all ids."""
    found = [part.id for part in parts]
    if not all(found):
        for index, part in enumerate(parts):
            if not found[index]:
                found[index] = part.id = ids.new(ids.PART)
    if len(found) > 1 and len(set(found)) < len(found):
        index = next(index for index, id in enumerate(found) if id in found[:index])
        path = f"{prepared.part_path(index)}.id"
        raise errors.IdInUse("two parts of one put have this id", path=path, part_id=found[index])
    return found


def _places(payload: bytes, message: v1.User | v1.Assistant, sizes: Sequence[int]) -> tuple[int, list[int]] | None:
    """Where the header and each part begin in a serialized put of a message; ``sizes`` are those of the parts.

    None where the parts may not be the last fields of the message: what this schema knows of it comes before them.
    """
    if len(UnknownFieldSet(message)):
        return None
    length, start = wire.read_varint(payload, 1)
    at = start + length
    found: list[int] = []
    for size in reversed(sizes):
        at -= size
        found.append(at)
        at -= 2 if size < 0x80 else 3 if size < 0x4000 else 1 + len(wire.varint(size))  # tag and length
        if payload[at] != _PARTS_TAG:
            return None
    found.append(at)
    found.reverse()
    return start, found


def _with_parts_last(
    put: v1.UserPut | v1.AssistantPut, message: v1.User | v1.Assistant, parts: list[v1.PromptPart]
) -> tuple[bytes, tuple[int, list[int]], list[int]]:
    """A put serialized piece by piece, the places of header and parts in it, and the sizes of the parts. The put is of
    no use after that."""
    stored = [canonical.part(part) for part in parts]
    del message.parts[:]
    header = message.SerializeToString(deterministic=True)
    # The wrapper's other fields, unknown ones included, follow the message.
    if isinstance(put, v1.UserPut):
        put.ClearField("user")
    else:
        put.ClearField("assistant")
    framed = [wire.part(each) for each in stored]
    whole = wire.field(1, b"".join((header, *framed)))
    at = len(whole) - sum(map(len, framed))
    start, found = at - len(header), [at]
    for each, part in zip(framed, stored, strict=True):
        at += len(each)
        found.append(at - len(part))
    return whole + put.SerializeToString(deterministic=True), (start, found), [*map(len, stored)]


def _part_put(put: v1.PartPut, path: str, part_bytes: int) -> Prepared:
    part = put.part
    part.id = part.id or ids.new(ids.PART)
    rules.require(put, path, stored=True)
    if put.before_id == part.id:
        raise _self(f"{path}.before_id")
    stored = canonical.part(part)
    _check_size(len(stored), part_bytes, f"{path}.part")
    prepared = Prepared(PART, b"", path, owner_id=put.message_id, before_id=put.before_id)
    prepared.references = references(put, path)
    lead = wire.tag(2) + wire.varint(len(stored))
    prepared.parts = (stored_part(part, part.id, len(lead), len(stored), part.WhichOneof("kind")),)
    put.ClearField("part")
    prepared.payload = lead + stored + put.SerializeToString(deterministic=True)
    return prepared


def _header_references(
    put: v1.UserPut | v1.AssistantPut, message: v1.User | v1.Assistant, prepared: Prepared
) -> Sequence[rules.Reference]:
    """The same as ``references`` for a put whose parts have none, but for the turn. Refuses those to itself."""
    found: list[rules.Reference] = []
    for name, kind in _IDS[prepared.field]:
        value = getattr(message, name)
        if value:
            found.append(rules.Reference(f"{prepared.message_path}.{name}", kind, False, value))
    for name, kind in _PUT_IDS[prepared.field]:
        value = getattr(put, name)
        if value:
            found.append(rules.Reference(f"{prepared.path}.{name}", kind, False, value))
    for reference in found:
        if reference.value == prepared.id and reference.kind == options_pb2.REF_KIND_MESSAGE:
            raise _self(reference.path)
    return found


def references(payload: Message, path: str) -> list[rules.Reference]:
    return [
        rules.Reference(f"{path}.{at}", kind, foreign, value)
        for at, kind, foreign, value in rules.references(payload)
        if not foreign
    ]


def stored_part(part: v1.PromptPart, id: str, offset: int, length: int, kind: str | None) -> PutPart:
    """A part in the payload of its put; ``kind`` is the member of the oneof, None for that of a later schema."""
    sealed = False
    call_id = ""
    if kind == "text":
        text = part.text
        sealed = text.HasField("time") and text.time.HasField("end")
    elif kind == "tool":
        tool = part.tool
        sealed = tool.state in _TERMINAL
        call_id = tool.call_id
    elif kind == "reasoning":
        sealed = part.reasoning.time.HasField("end")
    return row(PutPart, (id, _KIND_NUMBERS[kind] if kind else 0, offset, length, sealed, call_id))


def _check_size(size: int, limit: int, path: str) -> None:
    """Hold a part, or what else a response cannot split, to the limit of a part."""
    if size > limit:
        detail = v1.SizeLimit(size=size, limit=limit, unit="bytes")
        text = f"{size:,} bytes, more than the limit of {limit:,}"
        raise errors.PartTooLarge(text, detail=detail, path=path)
