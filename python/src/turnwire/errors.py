"""The exception tree: one class per reason of ``turnwire.v1.Reason``, grouped by gRPC status.

::

    TurnwireError
    ├── InvalidArgument      RuleViolation, UnknownToThisServer, PartTooLarge, RequestTooLarge, InvalidPageToken,
    │                        UnknownFilter, InvalidFieldMask, InvalidDelta, TransientPartHasId, UnknownProfile
    ├── NotFound             SessionNotFound, SessionDeleted, MessageNotFound, PromptNotFound, TurnNotFound
    ├── AlreadyExists        SessionAlreadyExists, TurnConflict, IdInUse, RequestIdReused
    ├── FailedPrecondition   UnknownTurn, UnknownMessage, UnknownPart, UnknownPrompt, UnknownContext, MessageRemoved,
    │                        PartRemoved, PartSealed, DeltaOffsetMismatch, DuplicateCallId, PlaceIsFixed,
    │                        RevertAlreadyOpen, NoOpenRevert, UnknownPayload, NoMessageOfRole, AnchorUnknown,
    │                        AnchorCompacted, AnchorRemoved, AnchorNotInPrompt, SignedPart, EmptyPrompt,
    │                        StoreReadOnly, StoreForeign, StoreTooNew
    ├── Aborted              RevisionConflict
    ├── OutOfRange           RevisionOutOfRange
    ├── ResourceExhausted    StoreFull
    ├── Unavailable          StoreBusy, ShuttingDown, ConnectionFailed *, Cancelled *
    ├── DataLoss             CorruptData
    ├── Internal             InternalError
    ├── DeadlineExceeded *
    ├── Unimplemented *
    └── Unrecognized *

Those with a star have no reason: they come from the way to a server and not from Turnwire. A group itself, such as
``NotFound``, is raised for a reason that this version does not know.

Status and detail message of a reason are read off the descriptors, so that the schema stays their only source. An
exception never holds message content: its text names fields, ids and numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple, Self

from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest

from turnwire.v1 import errors_pb2

DOMAIN = "turnwire"


class Violation(NamedTuple):
    """One broken rule: ``path`` of the field in the request, ``rule`` id, ``text`` that says what is right."""

    path: str
    rule: str
    text: str


class TurnwireError(Exception):
    """Any refusal or failure of Turnwire.

    ``reason`` is the number in ``turnwire.v1.Reason``, ``reason_name`` its name without prefix, ``status`` the name of
    the gRPC status code. ``metadata`` says what it is about: ``path`` is the field of the request, the rest are ids
    and numbers. ``detail`` is the message that goes with the reason, if it has one.
    """

    reason: ClassVar[errors_pb2.Reason.ValueType] = errors_pb2.REASON_UNSPECIFIED
    status: ClassVar[str] = "UNKNOWN"

    def __init__(self, text: str, *, detail: Message | None = None, **metadata: str | int) -> None:
        super().__init__(text)
        self.text = text
        self.detail = detail
        self.metadata: dict[str, str] = {key: str(value) for key, value in metadata.items()}
        self._foreign_reason = ""

    @classmethod
    def restored(
        cls, text: str, metadata: Mapping[str, str], detail: Message | None = None, *, foreign_reason: str = ""
    ) -> Self:
        """Make the exception again from what was sent. ``foreign_reason``: a name that this version does not know."""
        error = cls(text, detail=detail)
        error.metadata = dict(metadata)
        error._foreign_reason = foreign_reason
        return error

    @property
    def reason_name(self) -> str:
        """The reason's name without its prefix, for example ``REVISION_CONFLICT``; empty if there is none."""
        if self._foreign_reason or self.reason == errors_pb2.REASON_UNSPECIFIED:
            return self._foreign_reason
        return errors_pb2.Reason.Name(self.reason).removeprefix("REASON_")

    @property
    def path(self) -> str:
        """The field of the request that it is about, for example ``entries[0].user.user.turn_id``; may be empty."""
        return self.metadata.get("path", "")

    def at(self, prefix: str) -> TurnwireError:
        """Put ``prefix`` before the path, and return the exception itself."""
        path = self.metadata.get("path")
        self.metadata["path"] = f"{prefix}.{path}" if path else prefix
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class InvalidArgument(TurnwireError):
    """The request can never be right as it is."""

    status = "INVALID_ARGUMENT"


class NotFound(TurnwireError):
    """What the request names is not there."""

    status = "NOT_FOUND"


class AlreadyExists(TurnwireError):
    """What the request makes is there already, and different."""

    status = "ALREADY_EXISTS"


class FailedPrecondition(TurnwireError):
    """The request does not fit the state that things are in."""

    status = "FAILED_PRECONDITION"


class Aborted(TurnwireError):
    """Another writer came first."""

    status = "ABORTED"


class OutOfRange(TurnwireError):
    """A revision lies outside the log."""

    status = "OUT_OF_RANGE"


class ResourceExhausted(TurnwireError):
    """There is no room."""

    status = "RESOURCE_EXHAUSTED"


class Unavailable(TurnwireError):
    """Not now; trying again is right."""

    status = "UNAVAILABLE"


class DataLoss(TurnwireError):
    """Stored bytes are damaged."""

    status = "DATA_LOSS"


class Internal(TurnwireError):
    """A fault of the program."""

    status = "INTERNAL"


class DeadlineExceeded(TurnwireError):
    """The time allowed for the call ran out. A write may have gone through; a request id makes a retry safe."""

    status = "DEADLINE_EXCEEDED"


class Unimplemented(TurnwireError):
    """The server does not have the method, or does not speak ``turnwire.v1`` at all."""

    status = "UNIMPLEMENTED"


class Unrecognized(TurnwireError):
    """A gRPC status that Turnwire does not send; ``metadata["status"]`` has its name."""


class RuleViolation(InvalidArgument):
    """Rules of the schema are broken; ``violations`` lists each one."""

    reason = errors_pb2.REASON_RULE_VIOLATION

    def __init__(self, violations: Iterable[Violation], **metadata: str | int) -> None:
        self.violations = tuple(violations)
        first = self.violations[0]
        more = f" (and {len(self.violations) - 1} more)" if len(self.violations) > 1 else ""
        super().__init__(f"{first.text}{more}", detail=None, path=first.path, rule=first.rule, **metadata)
        self.metadata["violations"] = str(len(self.violations))

    @classmethod
    def restored(
        cls, text: str, metadata: Mapping[str, str], detail: Message | None = None, *, foreign_reason: str = ""
    ) -> Self:
        """Make the exception again; ``detail`` is the BadRequest. It may list fewer than ``metadata`` counts."""
        found = detail.field_violations if isinstance(detail, BadRequest) else ()
        violations = [Violation(each.field, each.reason, each.description) for each in found]
        if not violations:
            violations = [Violation(metadata.get("path", ""), metadata.get("rule", ""), text)]
        error = cls(violations)
        error.text = text
        error.args = (text,)
        error.metadata = dict(metadata)
        return error

    def at(self, prefix: str) -> RuleViolation:
        self.violations = tuple(
            Violation(f"{prefix}.{path}" if path else prefix, rule, text) for path, rule, text in self.violations
        )
        super().at(prefix)
        return self


class UnknownToThisServer(InvalidArgument):
    reason = errors_pb2.REASON_UNKNOWN_TO_THIS_SERVER


class PartTooLarge(InvalidArgument):
    reason = errors_pb2.REASON_PART_TOO_LARGE


class RequestTooLarge(InvalidArgument):
    reason = errors_pb2.REASON_REQUEST_TOO_LARGE


class InvalidPageToken(InvalidArgument):
    reason = errors_pb2.REASON_INVALID_PAGE_TOKEN


class UnknownFilter(InvalidArgument):
    reason = errors_pb2.REASON_UNKNOWN_FILTER


class InvalidFieldMask(InvalidArgument):
    reason = errors_pb2.REASON_INVALID_FIELD_MASK


class InvalidDelta(InvalidArgument):
    reason = errors_pb2.REASON_INVALID_DELTA


class TransientPartHasId(InvalidArgument):
    reason = errors_pb2.REASON_TRANSIENT_PART_HAS_ID


class UnknownProfile(InvalidArgument):
    reason = errors_pb2.REASON_UNKNOWN_PROFILE


class SessionNotFound(NotFound):
    reason = errors_pb2.REASON_SESSION_NOT_FOUND


class SessionDeleted(NotFound):
    reason = errors_pb2.REASON_SESSION_DELETED


class MessageNotFound(NotFound):
    reason = errors_pb2.REASON_MESSAGE_NOT_FOUND


class PromptNotFound(NotFound):
    reason = errors_pb2.REASON_PROMPT_NOT_FOUND


class TurnNotFound(NotFound):
    reason = errors_pb2.REASON_TURN_NOT_FOUND


class SessionAlreadyExists(AlreadyExists):
    reason = errors_pb2.REASON_SESSION_ALREADY_EXISTS


class TurnConflict(AlreadyExists):
    reason = errors_pb2.REASON_TURN_CONFLICT


class IdInUse(AlreadyExists):
    reason = errors_pb2.REASON_ID_IN_USE


class RequestIdReused(AlreadyExists):
    reason = errors_pb2.REASON_REQUEST_ID_REUSED


class UnknownTurn(FailedPrecondition):
    reason = errors_pb2.REASON_UNKNOWN_TURN


class UnknownMessage(FailedPrecondition):
    reason = errors_pb2.REASON_UNKNOWN_MESSAGE


class UnknownPart(FailedPrecondition):
    reason = errors_pb2.REASON_UNKNOWN_PART


class UnknownPrompt(FailedPrecondition):
    reason = errors_pb2.REASON_UNKNOWN_PROMPT


class UnknownContext(FailedPrecondition):
    reason = errors_pb2.REASON_UNKNOWN_CONTEXT


class MessageRemoved(FailedPrecondition):
    reason = errors_pb2.REASON_MESSAGE_REMOVED


class PartRemoved(FailedPrecondition):
    reason = errors_pb2.REASON_PART_REMOVED


class PartSealed(FailedPrecondition):
    reason = errors_pb2.REASON_PART_SEALED


class DeltaOffsetMismatch(FailedPrecondition):
    reason = errors_pb2.REASON_DELTA_OFFSET_MISMATCH


class DuplicateCallId(FailedPrecondition):
    reason = errors_pb2.REASON_DUPLICATE_CALL_ID


class PlaceIsFixed(FailedPrecondition):
    reason = errors_pb2.REASON_PLACE_IS_FIXED


class RevertAlreadyOpen(FailedPrecondition):
    reason = errors_pb2.REASON_REVERT_ALREADY_OPEN


class NoOpenRevert(FailedPrecondition):
    reason = errors_pb2.REASON_NO_OPEN_REVERT


class UnknownPayload(FailedPrecondition):
    reason = errors_pb2.REASON_UNKNOWN_PAYLOAD


class NoMessageOfRole(FailedPrecondition):
    reason = errors_pb2.REASON_NO_MESSAGE_OF_ROLE


class AnchorUnknown(FailedPrecondition):
    reason = errors_pb2.REASON_ANCHOR_UNKNOWN


class AnchorCompacted(FailedPrecondition):
    reason = errors_pb2.REASON_ANCHOR_COMPACTED


class AnchorRemoved(FailedPrecondition):
    reason = errors_pb2.REASON_ANCHOR_REMOVED


class AnchorNotInPrompt(FailedPrecondition):
    reason = errors_pb2.REASON_ANCHOR_NOT_IN_PROMPT


class SignedPart(FailedPrecondition):
    reason = errors_pb2.REASON_SIGNED_PART


class EmptyPrompt(FailedPrecondition):
    reason = errors_pb2.REASON_EMPTY_PROMPT


class RevisionConflict(Aborted):
    """The head is not the one that the writer decided by. ``refresh`` of a session's handle gives what was added."""

    reason = errors_pb2.REASON_REVISION_CONFLICT


class RevisionOutOfRange(OutOfRange):
    reason = errors_pb2.REASON_REVISION_OUT_OF_RANGE


class StoreFull(ResourceExhausted):
    reason = errors_pb2.REASON_STORE_FULL


class StoreBusy(Unavailable):
    reason = errors_pb2.REASON_STORE_BUSY


class ShuttingDown(Unavailable):
    reason = errors_pb2.REASON_SHUTTING_DOWN


class ConnectionFailed(Unavailable):
    """The server could not be reached, or the connection broke. A write may have gone through."""


class Cancelled(Unavailable):
    """The other side broke the call off, as a server does that ends. A write may have gone through."""

    status = "CANCELLED"


class StoreReadOnly(FailedPrecondition):
    reason = errors_pb2.REASON_STORE_READ_ONLY


class StoreForeign(FailedPrecondition):
    reason = errors_pb2.REASON_STORE_FOREIGN


class StoreTooNew(FailedPrecondition):
    reason = errors_pb2.REASON_STORE_TOO_NEW


class CorruptData(DataLoss):
    reason = errors_pb2.REASON_CORRUPT_DATA


class InternalError(Internal):
    reason = errors_pb2.REASON_INTERNAL


def _walk(base: type[TurnwireError]) -> Iterable[type[TurnwireError]]:
    for child in base.__subclasses__():
        yield child
        yield from _walk(child)


#: The exception class of each reason.
BY_REASON: dict[int, type[TurnwireError]] = {
    cls.reason: cls for cls in _walk(TurnwireError) if cls.reason != errors_pb2.REASON_UNSPECIFIED
}


def _read_statuses() -> None:
    values = errors_pb2.DESCRIPTOR.enum_types_by_name["Reason"].values_by_number
    for number, cls in BY_REASON.items():
        cls.status = values[number].GetOptions().Extensions[errors_pb2.status]


_read_statuses()
