"""Admission: what an append does to a session, or why it is refused.

``plan`` is a pure function of the session as it is and the entries as they were prepared. It gives every entry its
revision, keeps the index in step, and checks what only the session can tell: that references exist (after the whole
request), that ids are free, that deltas fit, that reverts are opened and cleared in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnwire import errors, rules, v1
from turnwire.log import deltas, places, prepare, reverts
from turnwire.log.draft import Draft
from turnwire.log.prepare import Part, Prepared
from turnwire.store.base import (
    CALL,
    CONTEXT,
    HEADER_SLOT,
    MESSAGE,
    PART,
    PROMPT,
    RENDERING,
    SUMMARY_SLOT,
    TURN,
    Name,
    Node,
    RevertSpan,
)
from turnwire.v1 import options_pb2

_SPACES: dict[int, tuple[int, str, type[errors.TurnwireError]]] = {
    options_pb2.REF_KIND_TURN: (TURN, "turn", errors.UnknownTurn),
    options_pb2.REF_KIND_MESSAGE: (MESSAGE, "message", errors.UnknownMessage),
    options_pb2.REF_KIND_PART: (PART, "part", errors.UnknownPart),
    options_pb2.REF_KIND_PROMPT: (PROMPT, "prompt", errors.UnknownPrompt),
}
_TURN = options_pb2.REF_KIND_TURN
_ROLES = {prepare.USER: options_pb2.ROLE_USER, prepare.ASSISTANT: options_pb2.ROLE_ASSISTANT}


def plan(draft: Draft, entries: Sequence[Prepared]) -> list[v1.AppendResult]:
    """Lay the entries over the draft, in order, and return one result for each.

    Raises a ``TurnwireError`` with the path of the field that is at fault; the draft is then of no use.
    """
    results = [admit(draft, entry) for entry in entries]
    for entry in entries:
        if entry.references:
            _check_references(draft, entry)
    return results


def admit(draft: Draft, entry: Prepared) -> v1.AppendResult:
    """Lay one entry over the draft, without its references; what it does depends on what came before it only.

    So an entry of a log, laid over the entries before it, does again what it did when it was appended, whatever was in
    one request with it then.
    """
    match entry.field:
        case prepare.USER | prepare.ASSISTANT:
            return _put_message(draft, entry)
        case prepare.PART:
            return _put_part(draft, entry)
        case prepare.DELTA:
            return deltas.append(draft, entry)
        case prepare.TURN:
            return _turn(draft, entry)
        case prepare.CONTEXT:
            return _context(draft, entry)
        case prepare.PROMPT:
            return _prompt(draft, entry)
        case prepare.RENDERING:
            return _rendering(draft, entry)
        case prepare.SUMMARY:
            return _summary(draft, entry)
        case prepare.REMOVAL:
            return _removal(draft, entry)
        case prepare.REVERT:
            return _revert(draft, entry)
        case prepare.REVERT_CLEAR:
            return _revert_clear(draft, entry)
        case _:
            return _properties(draft, entry)


def _record(draft: Draft, entry: Prepared) -> int:
    return draft.record(entry.field, entry.payload, ignorable=entry.ignorable)


def _properties(draft: Draft, entry: Prepared) -> v1.AppendResult:
    revision = _record(draft, entry)
    assert isinstance(entry.message, v1.SessionProperties)
    draft.set_properties(entry.message, revision)
    return v1.AppendResult(revision=revision)


# Turns, prompts and what goes with them: written once.


def _turn(draft: Draft, entry: Prepared) -> v1.AppendResult:
    there = draft.name(TURN, entry.id)
    if there is None:
        revision = _record(draft, entry)
        draft.set_name(Name(TURN, entry.id, revision, draft.awaited.pop(entry.id, b"")))
        return v1.AppendResult(revision=revision, id=entry.id)
    stored = draft.entry(there.born).payload
    if not _equal_turn(stored, entry):
        raise errors.TurnConflict("the turn exists with other content", path=entry.path, turn_id=entry.id)
    return v1.AppendResult(revision=there.born, existing=True, id=entry.id)


def _equal_turn(stored: bytes, entry: Prepared) -> bool:
    if stored == entry.payload:
        return True
    if entry.dated:
        return False
    turn = v1.Turn.FromString(entry.payload)
    turn.created.CopyFrom(v1.Turn.FromString(stored).created)
    return turn.SerializeToString(deterministic=True) == stored


def _context(draft: Draft, entry: Prepared) -> v1.AppendResult:
    there = draft.name(CONTEXT, entry.id)
    if there is not None:
        return v1.AppendResult(revision=there.born, existing=True)
    revision = _record(draft, entry)
    draft.set_name(Name(CONTEXT, entry.id, revision))
    return v1.AppendResult(revision=revision)


def _prompt(draft: Draft, entry: Prepared) -> v1.AppendResult:
    record = entry.message
    assert isinstance(record, v1.PromptRecord)
    if draft.name(PROMPT, entry.id) is not None:
        raise errors.IdInUse("a prompt record has this id", path=f"{entry.path}.id", prompt_id=entry.id)
    if record.base_revision > draft.session.head:
        raise errors.RevisionOutOfRange(
            f"the head is {draft.session.head}",
            detail=v1.RevisionConflict(expected=record.base_revision, actual=draft.session.head),
            path=f"{entry.path}.base_revision",
        )
    if record.base_prompt_id and draft.name(PROMPT, record.base_prompt_id) is None:
        text = "the session has no such prompt record before this one"
        path = f"{entry.path}.base_prompt_id".lstrip(".")
        raise errors.UnknownPrompt(text, path=path, prompt_id=record.base_prompt_id)
    if record.context_digest and draft.name(CONTEXT, record.context_digest.hex()) is None:
        raise errors.UnknownContext("the session has no such context", path=f"{entry.path}.context_digest")
    revision = _record(draft, entry)
    draft.set_name(Name(PROMPT, entry.id, revision))
    return v1.AppendResult(revision=revision, id=entry.id)


def _rendering(draft: Draft, entry: Prepared) -> v1.AppendResult:
    rendering = entry.message
    assert isinstance(rendering, v1.PromptRendering)
    content = f"={entry.id}"  # no id of a prompt
    there = draft.name(RENDERING, content)
    if there is not None:
        return v1.AppendResult(revision=there.born, existing=True)
    revision = _record(draft, entry)
    draft.set_name(Name(RENDERING, content, revision))
    # A row for each rendering of the record, by which they are found from the last one back.
    draft.set_name(Name(RENDERING, rendering.prompt_id, revision))
    return v1.AppendResult(revision=revision)


# Messages and parts


def _put_message(draft: Draft, entry: Prepared) -> v1.AppendResult:
    if draft.session.revert:
        _finish_revert(draft)
    name = draft.name(MESSAGE, entry.id)
    header = draft.live(name)
    if header is not None and header.kind != entry.field:
        path = f"{entry.path}.{'user' if entry.field == prepare.USER else 'assistant'}.id"
        raise errors.IdInUse("a message of the other role has this id", path=path, message_id=entry.id)
    if header is None:
        place = _new_place(draft, entry)
        born = draft.next
        draft.set_name(Name(MESSAGE, entry.id, born, place, HEADER_SLOT))
    else:
        if entry.before_id:
            raise errors.PlaceIsFixed("the message has its place", path=f"{entry.path}.before_id", message_id=entry.id)
        place, born = header.place, header.born
    revision = _record(draft, entry)
    offset, length = entry.header_offset, entry.header_length
    # A turn that comes later in the request is not noted: a reader finds it by its id, and a fork that ends before it
    # has no revision that its own log lacks.
    turn = draft.name(TURN, entry.turn_id)
    turn_revision = turn.born if turn is not None else 0
    if turn is None:
        draft.awaited[entry.turn_id] = min(place, draft.awaited.get(entry.turn_id, place))
    elif not turn.place or place < turn.place:
        draft.set_name(turn._replace(place=place))
    node = Node(place, HEADER_SLOT, entry.field, revision, born, 0, offset, length, entry.sealed, turn_revision, 0)
    part_ids = [part.id for part in entry.parts]
    if header is None and draft.unknown(PART, part_ids):
        _put_new(draft, node, entry.parts)
    else:
        draft.put(node)
        slots = [_place_part(draft, part, place, revision, before_id="", path=part.path) for part in entry.parts]
        for part, slot in zip(entry.parts, slots, strict=True):
            _claim_call(draft, part, place, slot, revision)
    return v1.AppendResult(revision=revision, id=entry.id, part_ids=part_ids)


def _put_new(draft: Draft, header: Node, parts: Sequence[Part]) -> None:
    """Put a message and its parts, whose ids are all new, in a place where nothing is."""
    place, revision = header.place, header.revision
    nodes = [header]
    for part, slot in zip(parts, places.firsts(len(parts)), strict=True):
        draft.set_name(Name(PART, part.id, revision, place, slot))
        if part.call_id:  # the rules have seen to it that no other part of the put has it
            draft.set_name(Name(CALL, _call(place, part), revision, place, slot))
        nodes.append(Node(place, slot, part.kind, revision, revision, 0, part.offset, part.length, part.sealed, 0, 0))
    draft.put_new(nodes)


def _new_place(draft: Draft, entry: Prepared) -> bytes:
    if not entry.before_id:
        return places.after(draft.last_place())
    name = draft.name(MESSAGE, entry.before_id)
    if name is None:  # it comes later in the request, and then goes behind; else _check_references refuses
        return places.after(draft.last_place())
    before = draft.live(name)
    if before is None:
        raise _gone(draft, MESSAGE, entry.before_id, f"{entry.path}.before_id")
    return places.between(draft.place_before(before.place), before.place)


def _put_part(draft: Draft, entry: Prepared) -> v1.AppendResult:
    header = _live_message(draft, entry.owner_id, f"{entry.path}.message_id")
    (part,) = entry.parts
    # What a restore brings may be of a kind that only a later schema knows; an append has no such part.
    if part.kind and _ROLES[header.kind] not in prepare.KIND_ROLES[part.kind]:
        role = options_pb2.Role.Name(_ROLES[header.kind])
        text = f"a message of {role} does not hold this kind of part"
        path = f"{part.path}.{prepare.KIND_NAMES[part.kind]}"
        raise errors.RuleViolation([errors.Violation(path, rules.HELD_BY, text)])
    revision = _record(draft, entry)
    slot = _place_part(draft, part, header.place, revision, before_id=entry.before_id, path=entry.path)
    _claim_call(draft, part, header.place, slot, revision)
    return v1.AppendResult(revision=revision, part_ids=[part.id])


def _place_part(draft: Draft, part: Part, place: bytes, revision: int, *, before_id: str, path: str) -> bytes:
    """Set a part, in its place if it has one in this message, else in a new place; returns its slot."""
    name = draft.name(PART, part.id)
    there = draft.live(name)
    if there is not None and there.place != place:
        raise errors.IdInUse("a part of another message has this id", path=f"{part.path}.id", part_id=part.id)
    if there is None:
        if name is not None and removed_alone(name):
            raise errors.PartRemoved("the part was removed", path=f"{part.path}.id", part_id=part.id)
        slot = _new_slot(draft, place, before_id, path)
        born = revision
        draft.set_name(Name(PART, part.id, born, place, slot))
    else:
        if before_id:
            raise errors.PlaceIsFixed("the part has its place", path=f"{path}.before_id", part_id=part.id)
        slot, born = there.slot, there.born
    draft.put(Node(place, slot, part.kind, revision, born, 0, part.offset, part.length, part.sealed, 0, 0))
    return slot


def removed_alone(name: Name) -> bool:
    """Whether a name is that of a part which was removed by itself, and not with its message."""
    return name.space == PART and not name.place


def _new_slot(draft: Draft, place: bytes, before_id: str, path: str) -> bytes:
    if not before_id:
        return places.after(draft.last_slot(place))
    name = draft.name(PART, before_id)
    if name is None:  # it comes later in the request, and then goes behind; else _check_references refuses
        return places.after(draft.last_slot(place))
    before = draft.live(name)
    if before is None:
        raise _gone(draft, PART, before_id, f"{path}.before_id")
    if before.place != place:
        raise errors.UnknownPart("the message has no such part", path=f"{path}.before_id", part_id=before_id)
    return places.between(draft.slot_before(place, before.slot), before.slot)


def _claim_call(draft: Draft, part: Part, place: bytes, slot: bytes, revision: int) -> None:
    """Note that a call id is taken in a message; a live part that really has it refuses another."""
    if not part.call_id:
        return
    id = _call(place, part)
    holder = draft.name(CALL, id)
    if holder is not None and holder.slot == slot:
        return
    node = draft.node(place, holder.slot) if holder is not None else None
    if node is not None and _has_call(draft, node, part.call_id):
        text = "two tool parts of one message have this call id"
        raise errors.DuplicateCallId(text, path=f"{part.path}.tool.call_id", call_id=part.call_id)
    draft.set_name(Name(CALL, id, revision, place, slot))


def _call(place: bytes, part: Part) -> str:
    return f"{place.hex()}:{part.call_id}"


def _has_call(draft: Draft, node: Node, call_id: str) -> bool:
    # The part may have got another call id since.
    return _part_of(draft, node).tool.call_id == call_id


def _part_of(draft: Draft, node: Node) -> v1.PromptPart:
    payload = draft.entry(node.revision).payload
    return v1.PromptPart.FromString(payload[node.offset : node.offset + node.length])


def _live_message(draft: Draft, id: str, path: str) -> Node:
    header = draft.live(draft.name(MESSAGE, id))
    if header is None:
        raise _gone(draft, MESSAGE, id, path)
    return header


def _gone(draft: Draft, space: int, id: str, path: str) -> errors.TurnwireError:
    if space == MESSAGE:
        if draft.name(MESSAGE, id) is None:
            return errors.UnknownMessage("the session has no such message", path=path, message_id=id)
        return errors.MessageRemoved("the message was removed", path=path, message_id=id)
    if draft.name(PART, id) is None:
        return errors.UnknownPart("the message has no such part", path=path, part_id=id)
    return errors.PartRemoved("the part was removed", path=path, part_id=id)


def _summary(draft: Draft, entry: Prepared) -> v1.AppendResult:
    assert isinstance(entry.message, v1.MessageSummary)
    header = _live_message(draft, entry.message.message_id, f"{entry.path}.message_id")
    there = draft.node(header.place, SUMMARY_SLOT)
    revision = _record(draft, entry)
    born = there.born if there is not None else revision
    draft.put(Node(header.place, SUMMARY_SLOT, prepare.SUMMARY, revision, born, 0, 0, len(entry.payload), True, 0, 0))
    return v1.AppendResult(revision=revision)


def _removal(draft: Draft, entry: Prepared) -> v1.AppendResult:
    removal = entry.message
    assert isinstance(removal, v1.Removal)
    if removal.WhichOneof("target") == "message_id":
        header = _live_message(draft, removal.message_id, f"{entry.path}.message_id")
        nodes = draft.message_nodes(header.place)
    else:
        part = draft.live(draft.name(PART, removal.part_id))
        if part is None:
            raise _gone(draft, PART, removal.part_id, f"{entry.path}.part_id")
        nodes = [part]
    revision = _record(draft, entry)
    draft.end(nodes, revision)
    if removal.WhichOneof("target") == "part_id":
        draft.set_name(Name(PART, removal.part_id, revision))
    return v1.AppendResult(revision=revision)


# Reverts


def _revert(draft: Draft, entry: Prepared) -> v1.AppendResult:
    revert = entry.message
    assert isinstance(revert, v1.Revert)
    if draft.session.revert:
        raise errors.RevertAlreadyOpen(f"the revert of revision {draft.session.revert} is open", path=entry.path)
    header = _live_message(draft, revert.message_id, f"{entry.path}.message_id")
    slot = HEADER_SLOT
    if revert.HasField("part_id"):
        part = draft.live(draft.name(PART, revert.part_id))
        if part is None:
            raise _gone(draft, PART, revert.part_id, f"{entry.path}.part_id")
        if part.place != header.place:
            text = "the message has no such part"
            raise errors.UnknownPart(text, path=f"{entry.path}.part_id", part_id=revert.part_id)
        slot = part.slot
    revision = _record(draft, entry)
    draft.set_span(RevertSpan(revision, 0, header.place, slot))
    return v1.AppendResult(revision=revision)


def _revert_clear(draft: Draft, entry: Prepared) -> v1.AppendResult:
    start = draft.session.revert
    if not start:
        raise errors.NoOpenRevert("no revert is open", path=entry.path)
    revision = _record(draft, entry)
    draft.set_span(draft.span(start)._replace(end=revision))
    return v1.AppendResult(revision=revision)


def _finish_revert(draft: Draft) -> None:
    """Remove what the open revert hides, as of the entry that comes next."""
    span = draft.span(draft.session.revert)
    nodes = [
        node
        for node in draft.nodes_from(span.place, span.slot)
        if reverts.hides(span, node.place, node.slot, node.born)
    ]
    draft.end(nodes, draft.next)
    for node in nodes:
        if node.place == span.place and span.slot != HEADER_SLOT:  # parts of a message that stays
            draft.set_name(Name(PART, _part_of(draft, node).id, draft.next))
    draft.set_span(span._replace(end=draft.next))


def _check_references(draft: Draft, entry: Prepared) -> None:
    """References must exist after the whole request. One to something removed since stays a good reference."""
    for reference in entry.references:
        if reference.value == entry.turn_id and reference.kind == _TURN and entry.turn_id not in draft.awaited:
            continue  # it was there when the message was put, or has come since
        space, noun, refusal = _SPACES[reference.kind]
        if draft.name(space, reference.value) is None:
            error = refusal(f"the session has no such {noun}", path=reference.path)
            error.metadata[f"{noun}_id"] = reference.value
            raise error
