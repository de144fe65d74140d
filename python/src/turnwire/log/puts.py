"""Puts of messages and parts: where they go, and whose place they take."""

from __future__ import annotations

from collections.abc import Sequence

from turnwire import errors, rules
from turnwire.log import living, places, prepare, reverts, whole
from turnwire.log.draft import Admitted, Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import CALL, HEADER_SLOT, MESSAGE, PART, TURN, Name, Node, Put, PutPart, row
from turnwire.v1 import options_pb2

_ROLES = {prepare.USER: options_pb2.ROLE_USER, prepare.ASSISTANT: options_pb2.ROLE_ASSISTANT}


def all_new(draft: Draft, entries: Sequence[Prepared]) -> bool:
    """Whether, of several messages in one request, these and all parts in it are new: asked once for all of them.

    Nothing else in a request makes names of messages or parts, so that `new` then holds for each.
    """
    message_ids = [entry.id for entry in entries if entry.field in _ROLES]
    if len(message_ids) < 2:
        return False
    part_ids = [part.id for entry in entries for part in entry.parts]
    if len(set(message_ids)) < len(message_ids) or len(set(part_ids)) < len(part_ids):
        return False
    return draft.fresh(message_ids, part_ids)


def new(draft: Draft, entry: Prepared) -> Admitted:
    """Admit a put of a message that is new, and so are its parts."""
    if draft.session.revert:
        reverts.finish(draft)
    place = _place_before(draft, entry) if entry.before_id else places.after(draft.last_place())
    revision = draft.record(entry.field, entry.payload, ignorable=entry.ignorable)
    turn = _turn(draft, entry, place)
    kind, offset, length, sealed = entry.field, entry.header_offset, entry.header_length, entry.sealed
    put = row(Put, (entry.id, place, kind, revision, offset, length, sealed, turn, entry.parts))
    draft.put_whole(put)
    return row(Admitted, (revision, entry.id, [part.id for part in entry.parts], False))


def message(draft: Draft, entry: Prepared) -> Admitted:
    """Admit a put of a message: of a new one, in a new place; else of its header and of the parts that it carries."""
    part_ids = [part.id for part in entry.parts]
    if draft.fresh((entry.id,), part_ids):
        return new(draft, entry)
    if draft.session.revert:
        reverts.finish(draft)
    header = draft.live(draft.name(MESSAGE, entry.id))
    born = 0
    if header is None:
        place = _place_before(draft, entry) if entry.before_id else places.after(draft.last_place())
    else:
        if header.kind != entry.field:
            text = "a message of the other role has this id"
            raise errors.IdInUse(text, path=f"{entry.message_path}.id", message_id=entry.id)
        if entry.before_id:
            raise errors.PlaceIsFixed("the message has its place", path=f"{entry.path}.before_id", message_id=entry.id)
        place, born = header.place, header.born
    revision = draft.record(entry.field, entry.payload, ignorable=entry.ignorable)
    turn = _turn(draft, entry, place)
    kind, offset, length, sealed = entry.field, entry.header_offset, entry.header_length, entry.sealed
    if header is None:
        born = revision
        draft.set_name(Name(MESSAGE, entry.id, born, place, HEADER_SLOT))
    draft.put(Node(place, HEADER_SLOT, kind, revision, born, 0, offset, length, sealed, turn, 0))
    slots = [_set_part(draft, part, place, revision, entry.part_path(index)) for index, part in enumerate(entry.parts)]
    for index, (part, slot) in enumerate(zip(entry.parts, slots, strict=True)):
        _claim_call(draft, part, place, slot, revision, entry.part_path(index))
    return Admitted(revision, entry.id, part_ids)


def _turn(draft: Draft, entry: Prepared, place: bytes) -> int:
    """Note that a message of a turn is at a place; returns the revision of the turn, or 0.

    A turn that comes later in the request has none: a reader finds it by its id, and a fork that ends before it has no
    revision that its own log lacks.
    """
    turn = draft.name(TURN, entry.turn_id)
    if turn is None:
        draft.awaited[entry.turn_id] = min(place, draft.awaited.get(entry.turn_id, place))
        return 0
    if not turn.place or place < turn.place:
        draft.set_name(turn._replace(place=place))
    return turn.born


def _place_before(draft: Draft, entry: Prepared) -> bytes:
    name = draft.name(MESSAGE, entry.before_id)
    if name is None:  # it comes later in the request, and then goes behind; else it is refused as a reference
        return places.after(draft.last_place())
    before = draft.live(name)
    if before is None:
        raise living.gone(draft, MESSAGE, entry.before_id, f"{entry.path}.before_id")
    return places.between(draft.place_before(before.place), before.place)


def part(draft: Draft, entry: Prepared) -> Admitted:
    """Admit a put of a part of a live message."""
    header = living.message(draft, entry.owner_id, f"{entry.path}.message_id")
    (part,) = entry.parts
    path = entry.part_path(0)
    roles = prepare.KIND_ROLES.get(part.kind)  # None: of a later schema, in a log
    if roles is not None and _ROLES[header.kind] not in roles:
        role = options_pb2.Role.Name(_ROLES[header.kind])
        text = f"a message of {role} does not hold this kind of part"
        violation = errors.Violation(f"{path}.{prepare.KIND_NAMES[part.kind]}", rules.HELD_BY, text)
        raise errors.RuleViolation([violation])
    revision = draft.add(entry)
    slot = _set_part(draft, part, header.place, revision, path, entry)
    _claim_call(draft, part, header.place, slot, revision, path)
    return Admitted(revision, part_ids=(part.id,))


def _set_part(
    draft: Draft, part: PutPart, place: bytes, revision: int, path: str, entry: Prepared | None = None
) -> bytes:
    """Set a part, in its place if it has one in this message, else in a new place; returns its slot.

    ``entry`` is the put of the part alone, which may name the part before which it goes.
    """
    name = draft.name(PART, part.id)
    there = draft.live(name)
    if there is not None and there.place != place:
        raise errors.IdInUse("a part of another message has this id", path=f"{path}.id", part_id=part.id)
    if there is None:
        if name is not None and not name.place:  # by itself, and not with its message
            raise errors.PartRemoved("the part was removed", path=f"{path}.id", part_id=part.id)
        slot = _new_slot(draft, place, entry)
        born = revision
        draft.set_name(Name(PART, part.id, born, place, slot))
    else:
        if entry is not None and entry.before_id:
            raise errors.PlaceIsFixed("the part has its place", path=f"{entry.path}.before_id", part_id=part.id)
        slot, born = there.slot, there.born
    draft.put(Node(place, slot, part.kind, revision, born, 0, part.offset, part.length, part.sealed, 0, 0))
    return slot


def _new_slot(draft: Draft, place: bytes, entry: Prepared | None) -> bytes:
    before_id = entry.before_id if entry is not None else ""
    if not before_id:
        return places.after(draft.last_slot(place))
    assert entry is not None
    path = f"{entry.path}.before_id"
    name = draft.name(PART, before_id)
    if name is None:  # it comes later in the request, and then goes behind; else it is refused as a reference
        return places.after(draft.last_slot(place))
    before = draft.live(name)
    if before is None:
        raise living.gone(draft, PART, before_id, path)
    if before.place != place:
        raise errors.UnknownPart("the message has no such part", path=path, part_id=before_id)
    return places.between(draft.slot_before(place, before.slot), before.slot)


def _claim_call(draft: Draft, part: PutPart, place: bytes, slot: bytes, revision: int, path: str) -> None:
    """Note that a call id is taken in a message; a live part that really has it refuses another."""
    if not part.call_id:
        return
    id = whole.call(place, part.call_id)
    holder = draft.name(CALL, id)
    if holder is not None and holder.slot == slot:
        return
    node = draft.node(place, holder.slot) if holder is not None else None
    # The part may have got another call id since.
    if node is not None and living.part_of(draft, node).tool.call_id == part.call_id:
        text = "two tool parts of one message have this call id"
        raise errors.DuplicateCallId(text, path=f"{path}.tool.call_id", call_id=part.call_id)
    draft.set_name(Name(CALL, id, revision, place, slot))
