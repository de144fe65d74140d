"""Checks the replies to request ids that a store keeps: whoever repeats a request gets them."""

from __future__ import annotations

from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError, Message

from turnwire import rules, v1
from turnwire.v1 import session_service_pb2
from turnwire.validation import values
from turnwire.validation.findings import Findings

_SHA256_BYTES: Final = 32
_RESPONSES: Final[dict[str, type[Message]]] = {
    method.name: getattr(v1, method.output_type.name)
    for method in session_service_pb2.DESCRIPTOR.services_by_name["SessionService"].methods
}


class Kept(Protocol):
    """A reply as it is kept; `turnwire.store.sqlite_check.KeptReply`."""

    @property
    def request_id(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def sha256(self) -> bytes: ...
    @property
    def response(self) -> bytes: ...


def check(kept: Kept, head: int, found: Findings) -> None:
    """Check a reply; ``head`` is the last revision of the log."""
    wrong = _wrong(kept, head)
    if wrong:
        place = f"reply of {values.short(kept.method)} to request {values.short(kept.request_id)}"
        found.add("storage.reply", place=place, expected=wrong)


def _wrong(kept: Kept, head: int) -> str:
    """What is right, where something is not."""
    cls = _RESPONSES.get(kept.method)
    if cls is None:
        return "a method of the service"
    if len(kept.sha256) != _SHA256_BYTES:
        return f"a SHA-256 of the request, in {_SHA256_BYTES} bytes"
    try:
        response: Any = cls.FromString(kept.response)
    except DecodeError:
        return f"a serialized {cls.DESCRIPTOR.full_name}"
    violations = rules.check(response)
    if violations:
        return f"a serialized {cls.DESCRIPTOR.full_name}, whose {violations[0].path} {violations[0].text}"
    if isinstance(response, v1.AppendResponse) and response.head.revision > head:
        return f"a head up to revision {head:,}"
    return ""
