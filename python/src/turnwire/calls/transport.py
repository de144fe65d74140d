"""What a transport does: bring requests to the methods of the service and responses back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from turnwire import damage, errors, v1

Response = TypeVar("Response", bound=Message)


def read(response: type[Response], data: bytes) -> Response:
    """The message of a reply. Raises ``CorruptData``: a server sends stored bytes as they are, damaged ones too."""
    try:
        return response.FromString(data)
    except DecodeError:
        raise damage.corrupt() from None


class Transport(Protocol):
    """The way to an engine: over gRPC, or in this process.

    Methods are named as in the schema. A ``timeout`` is in seconds for the whole call; None: the transport's default,
    which for streams is no limit. Failures are raised as `turnwire.errors.TurnwireError`; a call that is cancelled
    raises CancelledError and ends on the other side too, as does a stream whose iterator is closed.
    """

    #: Whether a reply can be lost on the way, so that a write may have to be sent again under its request id.
    loses_replies: bool

    async def unary(
        self, method: str, request: Message, response: type[Response], *, timeout: float | None
    ) -> Response:
        """Call a unary method. The request is taken over and may be changed."""
        ...

    def stream(
        self, method: str, request: Message, response: type[Response], *, timeout: float | None
    ) -> AsyncGenerator[Response, None]:
        """Call a method that streams its responses."""
        ...

    def append_stream(
        self, requests: AsyncIterable[v1.AppendRequest], *, timeout: float | None
    ) -> AsyncGenerator[v1.AppendResponse | errors.TurnwireError, None]:
        """Call AppendStream: one outcome for each request, in order."""
        ...

    def exchange(
        self, method: str, requests: AsyncIterable[Message], response: type[Response], *, timeout: float | None
    ) -> AsyncGenerator[Response, None]:
        """Call a method that streams both ways and answers each request by itself; AppendStream apart."""
        ...

    async def close(self) -> None:
        """Close it. Idempotent."""
        ...
