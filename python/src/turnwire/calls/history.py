"""A replay put together again: whole messages out of frames."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias

from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire import errors, prompt, v1

#: What a replay yields: each turn once, before the first message that uses it; a message with all its parts; the
#: message's summary if asked for; at the end the head.
ReplayItem: TypeAlias = v1.Turn | v1.User | v1.Assistant | v1.MessageSummary | v1.Head


@dataclass(slots=True)
class SessionHistory:
    """The folded history of a session at the revision of ``head``.

    ``turns`` by id, in the order of their first messages; ``messages`` in their order, whole; ``summaries`` by the id
    of the message, if they were asked for.
    """

    head: v1.Head = field(default_factory=v1.Head)
    turns: dict[str, v1.Turn] = field(default_factory=dict[str, v1.Turn])
    messages: list[v1.User | v1.Assistant] = field(default_factory=list[v1.User | v1.Assistant])
    summaries: dict[str, v1.MessageSummary] = field(default_factory=dict[str, v1.MessageSummary])

    @property
    def revision(self) -> int:
        """The revision that was folded up to."""
        return self.head.revision

    def add(self, item: ReplayItem) -> None:
        """Take in the next item of a replay."""
        match item:
            case v1.Turn():
                self.turns[item.id] = item
            case v1.User() | v1.Assistant():
                self.messages.append(item)
            case v1.MessageSummary():
                self.summaries[item.message_id] = item
            case _:
                self.head = item

    def for_prompt(self) -> prompt.History:
        """The same for `turnwire.prompt.assemble` and `PromptEditor.of`, which compute prompts without a server.

        It does not know what was removed: an anchor on a removed message is unknown here, and removed to the server.
        The messages are shared and must not be changed meanwhile.
        """
        return prompt.History(self.messages, turns=self.turns.values(), revision=self.revision)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One stored message with its turn, its summary if it was asked for and there is one, and the head."""

    message: v1.User | v1.Assistant
    turn: v1.Turn | None
    summary: v1.MessageSummary | None
    head: v1.Head


Responses: TypeAlias = AsyncGenerator[v1.ReplayResponse, None] | AsyncGenerator[v1.GetMessageResponse, None]


async def whole(responses: Responses) -> AsyncGenerator[ReplayItem, None]:
    """The items of a replay from its responses: a message is yielded when all its parts have come.

    Raises `UnknownPayload` for a frame of a later schema, which may hold what belongs to the history.
    """
    message: v1.User | v1.Assistant | None = None
    number = 0
    async with aclosing(responses):
        async for response in responses:
            for frame in response.frames:
                number += 1
                kind = frame.WhichOneof("frame")
                if kind == "parts" and message is not None:
                    message.parts.extend(frame.parts.parts)
                    continue
                if message is not None:
                    yield message
                    message = None
                match kind:
                    case "assistant":
                        message = frame.assistant
                    case "user":
                        message = frame.user
                    case "turn":
                        yield frame.turn
                    case "summary":
                        yield frame.summary
                    case "head":
                        yield frame.head
                    case "parts":
                        raise errors.Internal(f"frame {number} of the replay has parts of no message")
                    case _ if len(UnknownFieldSet(frame)):
                        raise errors.UnknownPayload(f"frame {number} of the replay is of a later schema", frame=number)
                    case _:  # nothing at all
                        pass
    if message is not None:
        yield message


def stored_message(items: Iterable[ReplayItem]) -> StoredMessage:
    """One message from the items of its replay."""
    history = SessionHistory()
    for item in items:
        history.add(item)
    (message,) = history.messages
    return StoredMessage(message, history.turns.get(message.turn_id), history.summaries.get(message.id), history.head)
