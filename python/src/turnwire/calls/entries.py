"""Entries as a client writes them: a payload becomes an entry by its type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf.message import Message

from turnwire import v1
from turnwire.calls.given import built

#: What can be appended: an entry, or a payload that becomes one. A user or assistant message becomes its put.
EntryLike: TypeAlias = (
    v1.EntryInput
    | v1.SessionProperties
    | v1.Turn
    | v1.User
    | v1.UserPut
    | v1.Assistant
    | v1.AssistantPut
    | v1.PartPut
    | v1.PartDelta
    | v1.MessageSummary
    | v1.Removal
    | v1.Revert
    | v1.RevertClear
    | v1.PromptContext
    | v1.PromptRecord
)

_FIELDS: dict[str, str] = {
    field.message_type.full_name: field.name
    for field in v1.EntryInput.DESCRIPTOR.oneofs_by_name["payload"].fields
    if field.message_type is not None
}


def entry(payload: EntryLike) -> v1.EntryInput:
    """The entry of a payload, which is copied. Raises TypeError for what is no payload."""
    made = v1.EntryInput()
    _copy(payload, made)
    return made


def _copy(payload: EntryLike, made: v1.EntryInput) -> None:
    match payload:
        case v1.EntryInput():
            made.CopyFrom(payload)
        case v1.User():
            made.user.user.CopyFrom(payload)
        case v1.Assistant():
            made.assistant.assistant.CopyFrom(payload)
        case _:
            descriptor = getattr(payload, "DESCRIPTOR", None)
            name = _FIELDS.get(descriptor.full_name) if descriptor is not None else None
            if name is None:
                raise TypeError(f"a {type(payload).__name__} is no payload of an entry")
            target: Message = getattr(made, name)
            target.CopyFrom(payload)
            target.SetInParent()


def append_request(
    session_id: str,
    entries: Iterable[EntryLike],
    *,
    create: v1.SessionProperties | bool = False,
    expected_revision: int | None = None,
    request_id: str | None = None,
) -> v1.AppendRequest:
    """One append, for `append_stream`; the arguments are those of `append`."""
    properties = create if isinstance(create, v1.SessionProperties) else v1.SessionProperties() if create else None
    request = built(
        v1.AppendRequest,
        session_id=session_id,
        create=properties,
        expected_revision=expected_revision,
        request_id=request_id,
    )
    add = request.entries.add
    for payload in entries:
        _copy(payload, add())
    return request


def repeats_safely(request: v1.AppendRequest) -> bool:
    """Whether a request can be sent twice without a request id: deltas alone tell a retry by their offsets."""
    return not request.HasField("expected_revision") and all(each.HasField("delta") for each in request.entries)
