"""Errors as gRPC statuses and back: every reason survives with its text, metadata, detail and violations."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from turnwire import errors, rules, status, v1

DETAILS: dict[str, Message] = {
    "turnwire.v1.RevisionConflict": v1.RevisionConflict(expected=3, actual=5),
    "turnwire.v1.OffsetMismatch": v1.OffsetMismatch(given=3, actual=5),
    "turnwire.v1.SizeLimit": v1.SizeLimit(size=9, limit=8, unit="bytes"),
}
REASONS = sorted(errors.BY_REASON.items())


def made(reason: int) -> errors.TurnwireError:
    cls = errors.BY_REASON[reason]
    if cls is errors.RuleViolation:
        found = [errors.Violation("a.b[0]", "string.pattern", "must match"), errors.Violation("c", "required", "…")]
        return errors.RuleViolation(found)
    detail = DETAILS.get(status._DETAILS[reason])
    return cls("what is wrong", detail=detail, path="entries[0].turn", session_id="ses_1", count=3)


@pytest.mark.parametrize(("reason", "cls"), REASONS, ids=[cls.__name__ for _, cls in REASONS])
def test_every_reason_comes_back(reason: int, cls: type[errors.TurnwireError]) -> None:
    error = made(reason)
    sent = Status.FromString(status.to_status(error).SerializeToString())
    assert code_pb2.Code.Name(sent.code) == cls.status
    back = status.from_status(sent)
    assert type(back) is cls
    assert str(back) == str(error)
    assert back.text == error.text
    assert back.metadata == error.metadata
    assert back.reason_name == error.reason_name
    if isinstance(error, errors.RuleViolation):
        assert isinstance(back, errors.RuleViolation)
        assert back.violations == error.violations
    elif cls is not errors.UnknownToThisServer:
        assert back.detail == error.detail


def test_every_reason_of_the_schema_has_a_class() -> None:
    assert errors.BY_REASON.keys() == set(v1.Reason.values()) - {0}


def test_what_is_sent() -> None:
    sent = status.to_status(made(v1.Reason.REASON_REVISION_CONFLICT))
    info, detail = ErrorInfo(), v1.RevisionConflict()
    assert sent.details[0].Unpack(info)
    assert sent.details[1].Unpack(detail)
    assert (info.domain, info.reason) == ("turnwire", "REVISION_CONFLICT")
    assert dict(info.metadata) == {"path": "entries[0].turn", "session_id": "ses_1", "count": "3"}
    assert (detail.expected, detail.actual) == (3, 5)
    assert sent.message == "entries[0].turn: what is wrong"


def test_violations_are_field_violations() -> None:
    sent = status.to_status(made(v1.Reason.REASON_RULE_VIOLATION))
    request = BadRequest()
    assert sent.details[1].Unpack(request)
    assert [(each.field, each.reason, each.description) for each in request.field_violations] == [
        ("a.b[0]", "string.pattern", "must match"),
        ("c", "required", "…"),
    ]


def test_an_unknown_kind_has_a_field_violation_too() -> None:
    for error in (
        rules.failure([errors.Violation("x.kind", rules.UNKNOWN, "is unset")]),
        errors.UnknownToThisServer("is unset", path="x.kind"),
    ):
        back = status.from_status(status.to_status(error))
        assert isinstance(back.detail, BadRequest)
        assert [each.field for each in back.detail.field_violations] == ["x.kind"]


def test_a_status_fits_into_the_trailers() -> None:
    """gRPC peers take 8 KiB of metadata by default; beyond it the whole status would be lost."""
    many = [errors.Violation(f"entries[{n}].user.user.parts[{n}].text", "x.y", "ü" * 200) for n in range(1000)]
    sent = status.to_status(errors.RuleViolation(many))
    assert len(sent.SerializeToString()) * 4 / 3 + len(sent.message.encode()) * 3 < 7000
    back = status.from_status(sent)
    assert isinstance(back, errors.RuleViolation)
    assert back.metadata["violations"] == "1000"
    assert back.violations == tuple(many[: len(back.violations)])
    long = errors.InvalidDelta("ü" * 100_000, path="labels[" + "k" * 100_000 + "]", part_id="\ud83d")
    sent = status.to_status(long)
    assert len(sent.SerializeToString()) * 4 / 3 + len(sent.message.encode()) * 3 < 7000


def test_a_reason_of_a_later_version() -> None:
    sent = Status(code=code_pb2.Code.FAILED_PRECONDITION, message="later")
    sent.details.add().Pack(ErrorInfo(domain="turnwire", reason="OF_LATER", metadata={"a": "b"}))
    back = status.from_status(sent)
    assert type(back) is errors.FailedPrecondition
    assert back.reason_name == "OF_LATER"
    assert back.metadata == {"a": "b"}
    sent.code = code_pb2.Code.PERMISSION_DENIED
    assert type(status.from_status(sent)) is errors.Unrecognized


def test_details_of_others_are_passed_over() -> None:
    sent = Status(code=code_pb2.Code.NOT_FOUND, message="x")
    sent.details.add().Pack(ErrorInfo(domain="example.com", reason="SESSION_NOT_FOUND"))
    assert type(status.from_status(sent)) is errors.NotFound
    sent.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff")
    assert type(status.from_status(sent)) is errors.NotFound
    assert type(status.from_status(Status(code=99, message="x"))) is errors.Unrecognized


PLAIN = [
    ("UNAVAILABLE", "refused", errors.ConnectionFailed),
    ("DEADLINE_EXCEEDED", "Deadline Exceeded", errors.DeadlineExceeded),
    ("CANCELLED", "", errors.Cancelled),
    ("UNIMPLEMENTED", "Method not found!", errors.Unimplemented),
    ("RESOURCE_EXHAUSTED", "too many pings", errors.ResourceExhausted),
    ("INTERNAL", "x", errors.Internal),
    ("UNKNOWN", "x", errors.Unrecognized),
    ("PERMISSION_DENIED", "x", errors.Unrecognized),
]


@pytest.mark.parametrize(("code", "text", "cls"), PLAIN)
def test_failures_on_the_way(code: str, text: str, cls: type[errors.TurnwireError]) -> None:
    rpc = grpc.aio.AioRpcError(grpc.StatusCode[code], grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)
    back = status.from_rpc(rpc)
    assert type(back) is cls
    assert back.reason_name == ""
    assert text in str(back)
    assert str(back)


def test_a_message_that_grpc_refuses_for_its_size() -> None:
    text = "SERVER: Received message larger than max (17825863 vs. 16777216)"
    back = status.plain("RESOURCE_EXHAUSTED", text)
    assert isinstance(back, errors.RequestTooLarge)
    assert back.detail == v1.SizeLimit(size=17825863, limit=16777216, unit="bytes")


def test_a_response_that_the_client_itself_refuses_for_its_size() -> None:
    back = status.plain(
        "RESOURCE_EXHAUSTED", "Stream removed (CLIENT: Received message larger than max (4194412 vs. 4194304))"
    )
    assert type(back) is errors.ResourceExhausted
    assert str(back) == "a response has 4,194,412 bytes, more than the 4,194,304 that this client takes"


def test_from_rpc_reads_the_trailers() -> None:
    sent = status.to_status(made(v1.Reason.REASON_STORE_BUSY))
    for raw, cls in ((sent.SerializeToString(), errors.StoreBusy), (b"\xff\xff", errors.ConnectionFailed)):
        trailers = grpc.aio.Metadata((status.DETAILS_KEY, raw))
        rpc = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailers, details="x")
        assert type(status.from_rpc(rpc)) is cls
