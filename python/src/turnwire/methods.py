"""The methods of ``turnwire.v1.SessionService``, read off its descriptor: what a transport must know of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from google.protobuf.message import Message

from turnwire import v1
from turnwire.v1 import session_service_pb2

_DESCRIPTOR = session_service_pb2.DESCRIPTOR.services_by_name["SessionService"]

#: The service's full name.
SERVICE: str = _DESCRIPTOR.full_name


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its ``name`` in the schema, its ``call`` in Python (snake_case), and what goes in and out.

    ``keeps_replies``: its request has a request id, so that the bytes of a request matter as they were received.
    """

    name: str
    call: str
    path: str
    request: type[Message]
    response: type[Message]
    requests_stream: bool
    responses_stream: bool
    keeps_replies: bool


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _methods() -> dict[str, Method]:
    found: dict[str, Method] = {}
    for each in _DESCRIPTOR.methods:
        request: type[Message] = getattr(v1, each.input_type.name)
        found[each.name] = Method(
            name=each.name,
            call=_snake(each.name),
            path=f"/{SERVICE}/{each.name}",
            request=request,
            response=getattr(v1, each.output_type.name),
            requests_stream=each.client_streaming,
            responses_stream=each.server_streaming,
            keeps_replies="request_id" in request.DESCRIPTOR.fields_by_name,
        )
    return found


#: All methods by their names in the schema.
METHODS: dict[str, Method] = _methods()
