"""Admission: what an append does to a session, or why it is refused.

``plan`` is a pure function of the session as it is and the entries as they were prepared. It gives every entry its
revision, keeps the index in step, and checks what only the session can tell: that references exist (after the whole
request), that ids are free, that deltas fit, that reverts are opened and cleared in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnwire import errors, v1
from turnwire.log import deltas, living, prepare, puts, reverts
from turnwire.log.draft import Admitted, Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import CONTEXT, MESSAGE, PART, PROMPT, RENDERING, SUMMARY_SLOT, TURN, Name, Node
from turnwire.v1 import options_pb2

_SPACES: dict[int, tuple[int, str, type[errors.TurnwireError]]] = {
    options_pb2.REF_KIND_TURN: (TURN, "turn", errors.UnknownTurn),
    options_pb2.REF_KIND_MESSAGE: (MESSAGE, "message", errors.UnknownMessage),
    options_pb2.REF_KIND_PART: (PART, "part", errors.UnknownPart),
    options_pb2.REF_KIND_PROMPT: (PROMPT, "prompt", errors.UnknownPrompt),
}
_TURN = options_pb2.REF_KIND_TURN
_PARENT = ".assistant.parent_id"


def plan(draft: Draft, entries: Sequence[Prepared]) -> list[Admitted]:
    """Lay the entries over the draft, in order, and return one result for each.

    Raises a ``TurnwireError`` with the path of the field that is at fault; the draft is then of no use.
    """
    admit = _ADMIT_NEW if puts.all_new(draft, entries) else _ADMIT
    results = [admit.get(entry.field, _properties)(draft, entry) for entry in entries]
    for entry in entries:
        if entry.references or (entry.turn_id and draft.awaited):
            _check_references(draft, entry)
    return results


def admit(draft: Draft, entry: Prepared) -> Admitted:
    """Lay one entry over the draft, without its references; what it does depends on what came before it only.

    So an entry of a log, laid over the entries before it, does again what it did when it was appended, whatever was in
    one request with it then.
    """
    return _ADMIT.get(entry.field, _properties)(draft, entry)


def _properties(draft: Draft, entry: Prepared) -> Admitted:
    revision = draft.add(entry)
    assert isinstance(entry.message, v1.SessionProperties)
    draft.set_properties(entry.message, revision)
    return Admitted(revision=revision)


# Turns, prompts and what goes with them: written once.


def _turn(draft: Draft, entry: Prepared) -> Admitted:
    there = draft.name(TURN, entry.id)
    if there is None:
        revision = draft.add(entry)
        draft.set_name(Name(TURN, entry.id, revision, draft.awaited.pop(entry.id, b"")))
        return Admitted(revision=revision, id=entry.id)
    stored = draft.entry(there.born).payload
    if not _equal_turn(stored, entry):
        raise errors.TurnConflict("the turn exists with other content", path=entry.path, turn_id=entry.id)
    return Admitted(revision=there.born, existing=True, id=entry.id)


def _equal_turn(stored: bytes, entry: Prepared) -> bool:
    if stored == entry.payload:
        return True
    if entry.dated:
        return False
    turn = v1.Turn.FromString(entry.payload)
    turn.created.CopyFrom(v1.Turn.FromString(stored).created)
    return turn.SerializeToString(deterministic=True) == stored


def _context(draft: Draft, entry: Prepared) -> Admitted:
    there = draft.name(CONTEXT, entry.id)
    if there is not None:
        return Admitted(revision=there.born, existing=True)
    revision = draft.add(entry)
    draft.set_name(Name(CONTEXT, entry.id, revision))
    return Admitted(revision=revision)


def _prompt(draft: Draft, entry: Prepared) -> Admitted:
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
    revision = draft.add(entry)
    draft.set_name(Name(PROMPT, entry.id, revision))
    return Admitted(revision=revision, id=entry.id)


def _rendering(draft: Draft, entry: Prepared) -> Admitted:
    rendering = entry.message
    assert isinstance(rendering, v1.PromptRendering)
    content = f"={entry.id}"  # no id of a prompt
    there = draft.name(RENDERING, content)
    if there is not None:
        return Admitted(revision=there.born, existing=True)
    revision = draft.add(entry)
    draft.set_name(Name(RENDERING, content, revision))
    # A row for each rendering of the record, by which they are found from the last one back.
    draft.set_name(Name(RENDERING, rendering.prompt_id, revision))
    return Admitted(revision=revision)


def _summary(draft: Draft, entry: Prepared) -> Admitted:
    assert isinstance(entry.message, v1.MessageSummary)
    header = living.message(draft, entry.message.message_id, f"{entry.path}.message_id")
    there = draft.node(header.place, SUMMARY_SLOT)
    revision = draft.add(entry)
    born = there.born if there is not None else revision
    draft.put(Node(header.place, SUMMARY_SLOT, prepare.SUMMARY, revision, born, 0, 0, len(entry.payload), True, 0, 0))
    return Admitted(revision=revision)


def _removal(draft: Draft, entry: Prepared) -> Admitted:
    removal = entry.message
    assert isinstance(removal, v1.Removal)
    if removal.WhichOneof("target") == "message_id":
        header = living.message(draft, removal.message_id, f"{entry.path}.message_id")
        nodes = draft.message_nodes(header.place)
    else:
        part = draft.live(draft.name(PART, removal.part_id))
        if part is None:
            raise living.gone(draft, PART, removal.part_id, f"{entry.path}.part_id")
        nodes = [part]
    revision = draft.add(entry)
    draft.end(nodes, revision)
    if removal.WhichOneof("target") == "part_id":
        draft.set_name(Name(PART, removal.part_id, revision))
    return Admitted(revision=revision)


_ADMIT: dict[int, Callable[[Draft, Prepared], Admitted]] = {
    prepare.USER: puts.message,
    prepare.ASSISTANT: puts.message,
    prepare.PART: puts.part,
    prepare.DELTA: deltas.append,
    prepare.TURN: _turn,
    prepare.CONTEXT: _context,
    prepare.PROMPT: _prompt,
    prepare.RENDERING: _rendering,
    prepare.SUMMARY: _summary,
    prepare.REMOVAL: _removal,
    prepare.REVERT: reverts.open,
    prepare.REVERT_CLEAR: reverts.clear,
}
_ADMIT_NEW = {**_ADMIT, prepare.USER: puts.new, prepare.ASSISTANT: puts.new}


def _check_references(draft: Draft, entry: Prepared) -> None:
    """References must exist after the whole request. One to something removed since stays a good reference."""
    if entry.turn_id and entry.turn_id in draft.awaited:
        raise _unknown(_TURN, entry.turn_id, f"{entry.message_path}.turn_id")
    for reference in entry.references:
        name = draft.name(_SPACES[reference.kind][0], reference.value)
        if name is None:
            raise _unknown(reference.kind, reference.value, reference.path)
        if entry.field == prepare.ASSISTANT and reference.path.endswith(_PARENT):
            parent = draft.live(name)
            if parent is not None and parent.kind != prepare.USER:
                text = "an assistant message answers a user message"
                raise errors.RuleViolation([errors.Violation(reference.path, "turnwire.parent_role", text)])


def _unknown(kind: int, id: str, path: str) -> errors.TurnwireError:
    _, noun, refusal = _SPACES[kind]
    error = refusal(f"the session has no such {noun}", path=path)
    error.metadata[f"{noun}_id"] = id
    return error
