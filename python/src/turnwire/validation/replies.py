"""Checks the replies to request ids that a store keeps: whoever repeats a request gets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError, Message

from turnwire import rules, v1
from turnwire.v1 import session_service_pb2
from turnwire.validation import values
from turnwire.validation.findings import Findings

_SHA256_BYTES: Final = 32
#: By method what is kept. Of a stream that is the end alone, since the rest can be read again.
_RESPONSES: Final[Mapping[str, type[Message]]] = {
    method.name: getattr(v1, method.output_type.name)
    for method in session_service_pb2.DESCRIPTOR.services_by_name["SessionService"].methods
} | {"MutatePrompt": v1.PromptEnd, "RenderPrompt": v1.RenderEnd}
_OF_ANOTHER: Final = "ForkSession"  # whose reply shows the session that was made


class Kept(Protocol):
    """A reply as it is kept, of whatever types; `turnwire.store.sqlite_check.KeptReply`."""

    @property
    def request_id(self) -> object: ...
    @property
    def method(self) -> object: ...
    @property
    def sha256(self) -> object: ...
    @property
    def response(self) -> object: ...


def check(kept: Kept, session_id: str, last: int, digest: Callable[[int], bytes], found: Findings) -> None:
    """Check a reply of a session, whose log goes up to the revision ``last``.

    ``digest`` gives the log's digest at a revision; b"" where it cannot be told.
    """
    wrong = _wrong(kept, session_id, last, digest)
    if wrong:
        place = f"reply of {values.short(kept.method)} to request {values.short(kept.request_id)}"
        found.add("storage.reply", place=place, expected=wrong)


def _wrong(kept: Kept, session_id: str, last: int, digest: Callable[[int], bytes]) -> str:
    """What is right, where something is not."""
    cls = _RESPONSES.get(kept.method) if isinstance(kept.method, str) else None
    if cls is None:
        return "a method of the service"
    if not isinstance(kept.request_id, str) or not kept.request_id:
        return "the id of a request"
    if not isinstance(kept.sha256, bytes) or len(kept.sha256) != _SHA256_BYTES:
        return f"a SHA-256 of the request, in {_SHA256_BYTES} bytes"
    name = cls.DESCRIPTOR.full_name
    if not isinstance(kept.response, bytes):
        return f"a serialized {name}"
    try:
        response: Any = cls.FromString(kept.response)
    except DecodeError:
        return f"a serialized {name}"
    violations = rules.check(response)
    if violations:
        return f"a serialized {name}, whose {violations[0].path} {violations[0].text}"
    shown = response
    if "session" in cls.DESCRIPTOR.fields_by_name:
        shown = response.session
        if not shown.id or (shown.id != session_id and kept.method != _OF_ANOTHER):
            return f"a serialized {name} with the session"
    if not shown.HasField("head") or not shown.head.revision:
        return f"a serialized {name} with the session's head"
    if kept.method == _OF_ANOTHER:
        return ""
    head: v1.Head = shown.head
    if head.revision > last:
        return f"a head up to revision {last:,}"
    right = digest(head.revision)
    return f"the digest that the log has at revision {head.revision:,}" if right not in (b"", head.digest) else ""
