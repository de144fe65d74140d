"""Whether stored sessions, and messages that a caller has, are sound."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing

from google.protobuf.message import Message

from turnwire import v1
from turnwire.calls.base import Base
from turnwire.calls.given import built
from turnwire.calls.log import each_of
from turnwire.prompt.build import RoleLike
from turnwire.prompt.build import role as role_number


class ValidationCalls(Base):
    """The methods that validate; ``docs/validation.md`` lists the rules."""

    async def validate_session(
        self,
        session_id: str,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        on_progress: Callable[[int], object] | None = None,
        on_summary: Callable[[v1.ValidationSummary], object] | None = None,
    ) -> AsyncGenerator[v1.Finding, None]:
        """What is wrong with a session, or worth knowing, in the order of its log; nothing, if it is sound.

        ``select`` and ``ignore``: layers, ids of rules, or what ids begin with up to a dot (``session.ref``).
        ``on_progress`` is called with the revision up to which the session was read, ``on_summary`` once, at the end.
        Findings show values, cut short. Raises `UnknownFilter` for no such name, `SessionNotFound`, `SessionDeleted`,
        and `CorruptData` where the store cannot even say how far the session goes.
        """
        request = built(v1.ValidateSessionRequest, session_id=session_id, select=tuple(select), ignore=tuple(ignore))
        responses = self._transport.stream(
            "ValidateSession", request, v1.ValidateSessionResponse, timeout=self._timeout
        )
        async with aclosing(responses):
            async for response in responses:
                for finding in response.findings:
                    yield finding
                if on_progress is not None:
                    on_progress(response.revision)
                if response.HasField("summary") and on_summary is not None:
                    on_summary(response.summary)

    async def validate_messages(
        self,
        messages: Iterable[Message] | AsyncIterable[Message],
        *,
        stored: bool | None = None,
        role: RoleLike | None = None,
    ) -> AsyncGenerator[list[v1.Finding], None]:
        """What is wrong with each of some messages of the schema: a list for each, in order, empty if it is right.

        A ``turnwire.v1.ValidateMessagesRequest`` among them asks for the message that it holds, in binary or JSON.
        ``stored`` and ``role`` are those of `turnwire.validate`, which does the same in this process.
        """
        number = role_number(role) if role is not None else v1.Role.ROLE_UNSPECIFIED

        async def requests() -> AsyncGenerator[Message, None]:
            async for message in each_of(messages):
                if isinstance(message, v1.ValidateMessagesRequest):
                    yield message
                else:
                    name = message.DESCRIPTOR.full_name
                    binary = message.SerializeToString()
                    yield v1.ValidateMessagesRequest(type=name, binary=binary, stored=stored, role=number)

        responses = self._transport.exchange(
            "ValidateMessages", requests(), v1.ValidateMessagesResponse, timeout=self._timeout
        )
        async with aclosing(responses):
            async for response in responses:
                yield list(response.findings)
