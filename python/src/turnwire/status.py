"""Errors as gRPC statuses, and back again.

A status holds the code, a text for people, an ``ErrorInfo`` with the reason and its metadata, and the reason's detail
message if the schema names one. All of it travels in HTTP/2 trailers, for which peers allow 8 KiB by default, so that
long texts are cut and of many violations only the first are listed; ``metadata["violations"]`` always has their number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError, Message
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from turnwire import errors, v1
from turnwire.calls.sizes import too_large
from turnwire.v1 import errors_pb2

if TYPE_CHECKING:
    import grpc.aio

#: The trailer that carries a serialized ``google.rpc.Status``.
DETAILS_KEY = "grpc-status-details-bin"

_TEXT = 512  # characters of one text
_VALUE = 300  # characters of one metadata value or path
_LIST_BYTES = 3000  # of all violations

_PREFIX = "REASON_"
_DETAILS: dict[int, str] = {
    value.number: value.GetOptions().Extensions[errors_pb2.detail]
    for value in errors_pb2.DESCRIPTOR.enum_types_by_name["Reason"].values
}
_DETAIL_TYPES: dict[str, type[Message]] = {
    cls.DESCRIPTOR.full_name: cls
    for cls in (ErrorInfo, BadRequest, v1.OffsetMismatch, v1.RevisionConflict, v1.SizeLimit)
}
_GROUPS: dict[str, type[errors.TurnwireError]] = {
    group.status: group for group in errors.TurnwireError.__subclasses__() if group.status != "UNKNOWN"
}
_GROUPS["CANCELLED"] = errors.Cancelled
_TOO_LARGE = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)")


def to_status(error: errors.TurnwireError) -> Status:
    """The status that an error is sent as."""
    status = Status(code=code_pb2.Code.Value(error.status), message=_cut(str(error), _TEXT))
    metadata = {key: _cut(value, _VALUE) for key, value in error.metadata.items()}
    status.details.add().Pack(ErrorInfo(reason=error.reason_name, domain=errors.DOMAIN, metadata=metadata))
    detail = _detail(error)
    if detail is not None:
        status.details.add().Pack(detail)
    return status


def from_status(status: Status) -> errors.TurnwireError:
    """The exception that a status was made of. A status that Turnwire did not make gives a plain one; see `plain`."""
    code = code_pb2.Code.Name(status.code) if status.code in code_pb2.Code.values() else "UNKNOWN"
    info = ErrorInfo()
    details: list[Message] = []
    for packed in status.details:
        detail = _unpacked(packed.type_url.rpartition("/")[2], packed.value)
        if isinstance(detail, ErrorInfo):
            if detail.domain == errors.DOMAIN:
                info = detail
        elif detail is not None:
            details.append(detail)
    if not info.reason:
        return plain(code, status.message)
    metadata = dict(info.metadata)
    path = metadata.get("path", "")
    text = status.message.removeprefix(f"{path}: ") if path else status.message
    name = _PREFIX + info.reason
    number = v1.Reason.Value(name) if name in v1.Reason.keys() else 0  # noqa: SIM118  # no mapping
    wanted = _DETAILS.get(number, "")
    detail = next((each for each in details if each.DESCRIPTOR.full_name == wanted), None)
    cls = errors.BY_REASON.get(number)
    if cls is not None:
        return cls.restored(text, metadata, detail)
    group = _GROUPS.get(code, errors.Unrecognized)
    return group.restored(text, metadata, foreign_reason=info.reason)


def from_rpc(error: grpc.aio.AioRpcError) -> errors.TurnwireError:
    """The exception for a call that failed: Turnwire's own, or what stands for a failure on the way."""
    trailers = error.trailing_metadata()
    raw = next((value for key, value in trailers if key == DETAILS_KEY), None) if trailers is not None else None
    if isinstance(raw, bytes):
        try:
            return from_status(Status.FromString(raw))
        except DecodeError:
            pass
    return plain(error.code().name, error.details() or "")


def plain(code: str, text: str) -> errors.TurnwireError:
    """The exception for a status without details, by the name of its code."""
    sizes = _TOO_LARGE.search(text) if code == "RESOURCE_EXHAUSTED" else None
    if sizes is not None:
        size, limit = map(int, sizes.groups())
        if "CLIENT: Received" in text:
            told = f"a response has {size:,} bytes, more than the {limit:,} that this client takes"
            return errors.ResourceExhausted(told)
        return too_large(size, limit)
    if code == "UNAVAILABLE":
        return errors.ConnectionFailed(text or "the server cannot be reached")
    group = _GROUPS.get(code)
    if group is not None:
        return group(text or code.lower().replace("_", " "))
    return errors.Unrecognized(text or "the call failed", status=code)


def _detail(error: errors.TurnwireError) -> Message | None:
    if isinstance(error, errors.RuleViolation):
        return _bad_request(error.violations)
    if _DETAILS.get(error.reason) != BadRequest.DESCRIPTOR.full_name:
        return error.detail
    if isinstance(error.detail, BadRequest):
        found = error.detail.field_violations
        return _bad_request(tuple(errors.Violation(each.field, each.reason, each.description) for each in found))
    return _bad_request((errors.Violation(error.path, "turnwire.unknown", error.text),))


def _bad_request(violations: tuple[errors.Violation, ...]) -> BadRequest:
    request = BadRequest()
    size = 0
    for path, rule, text in violations:
        path, text = _cut(path, _VALUE), _cut(text, _TEXT)
        size += len(path.encode()) + len(rule) + len(text.encode())
        if size > _LIST_BYTES and request.field_violations:
            break
        request.field_violations.add(field=path, reason=rule, description=text)
    return request


def _unpacked(full_name: str, value: bytes) -> Message | None:
    cls = _DETAIL_TYPES.get(full_name)
    try:
        return cls.FromString(value) if cls is not None else None
    except DecodeError:
        return None


def _cut(text: str, length: int) -> str:
    # Characters beyond ASCII take three in the trailer of the text.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= length else text[: length - 1] + "…"
