"""The handle of an answer: an assistant message that is streamed part by part."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from turnwire import errors, ids, v1
from turnwire.handle.batch import Batcher
from turnwire.handle.times import now
from turnwire.handle.tool import ToolCall, json_text

if TYPE_CHECKING:
    from turnwire.handle.session import Session


class Answer:
    """An assistant message that is being written; made by ``Turn.answer``.

    The block puts the message at its beginning. At its end the message is finished, if `finish` was not called, with
    "stop", or, when an exception leaves the block, with a failure (aborted for a cancellation).

    `text` and `reasoning` go to the end of the part that is being written and begin a new one when the kind changes.
    Errors of appends that were put off come out of the next call. What an append is refused for is raised as it is, see
    ``append`` of the client.
    """

    #: The header of the message, as it was last put.
    message: v1.Assistant
    id: str
    finished: bool

    def __init__(self, session: Session, message: v1.Assistant, *, flush_bytes: int, flush_seconds: float) -> None:
        self._batcher = Batcher(session, flush_bytes=flush_bytes, flush_seconds=flush_seconds)
        self.message = message
        self.id = message.id
        self.finished = False
        self._current: v1.PromptPart | None = None  # the text or reasoning that is being written
        self._pieces: list[str] = []  # of its text

    async def begin(self) -> None:
        """Put the message, empty. The block does it."""
        self.message.time.created.CopyFrom(now())
        await self._batcher.put(self.message)

    async def text(self, text: str) -> None:
        """Add text that the model says."""
        await self._write("text", text)

    async def reasoning(self, text: str) -> None:
        """Add to the model's reasoning."""
        await self._write("reasoning", text)

    async def end_part(
        self,
        *,
        metadata: str | Mapping[str, Any] = "",
        signed: bool = False,
        model: v1.ModelRef | None = None,
    ) -> None:
        """End the text or reasoning that is being written: put it whole, with its end and the provider's metadata.

        Needed where the provider wants its metadata back (a signature of reasoning: ``signed=True``); elsewhere a part
        needs no end of its own and costs less without. ``metadata``: a JSON object, as text or to be written as text.
        """
        part = self._current
        if part is None:
            return
        provider = None
        if metadata or signed or model is not None:
            provider = v1.ProviderMetadata(metadata_json=json_text(metadata), model=model, signed=signed)
        if part.HasField("reasoning"):
            part.reasoning.text = "".join(self._pieces)
            part.reasoning.time.end.CopyFrom(now())
            if provider is not None:
                part.reasoning.provider.CopyFrom(provider)
        else:
            part.text.text = "".join(self._pieces)
            part.text.time.end.CopyFrom(now())
            if provider is not None:
                part.text.provider.CopyFrom(provider)
        self._current, self._pieces = None, []
        await self._batcher.put(v1.PartPut(message_id=self.id, part=part))

    async def part(self, part: v1.PromptPart) -> str:
        """Put any part at the end, or, by its id, in the place that it has. Returns its id."""
        self._current, self._pieces = None, []
        made = v1.PromptPart()
        made.CopyFrom(part)
        made.id = made.id or ids.new(ids.PART)
        await self._batcher.put(v1.PartPut(message_id=self.id, part=made))
        return made.id

    async def tool(
        self,
        name: str,
        *,
        call_id: str = "",
        input: str | Mapping[str, Any] | None = None,
        provider: v1.ProviderMetadata | None = None,
    ) -> ToolCall:
        """Put a tool call that the model makes, in state pending; its handle takes what becomes of it.

        ``call_id``: the provider's (a new one if there is none). ``input``: a JSON document, as text or to be written
        as text; None: it is still to come.
        """
        self._current, self._pieces = None, []
        tool = v1.ToolPart(
            call_id=call_id or f"call_{secrets.token_hex(8)}",
            name=name,
            state=v1.ToolState.TOOL_STATE_PENDING,
            input_json=json_text(input) if input is not None else "",
            provider=provider,
        )
        call = ToolCall(self._batcher, self.id, v1.PromptPart(id=ids.new(ids.PART), tool=tool))
        await call.put()
        return call

    async def flush(self) -> None:
        """Append the text that still waits."""
        await self._batcher.flush()

    async def finish(
        self,
        finish: str | None = "stop",
        *,
        usage: v1.Usage | None = None,
        structured_json: str = "",
        failure: v1.Failure | None = None,
    ) -> v1.Assistant:
        """End the message: append what waits, and the header with its end. Returns the header.

        ``finish``: why the model ended, as the runtime names it; None: it did not end regularly. Once the message has
        ended it takes no more text. Raises RuntimeError when it was finished before.
        """
        if self.finished:
            raise RuntimeError("the answer is finished")
        message = self.message
        message.time.completed.CopyFrom(now())
        if usage is not None:
            message.usage.CopyFrom(usage)
        message.result.MergeFrom(v1.Result(finish=finish, structured_json=structured_json, failure=failure))
        await self._batcher.put(message)
        await self._batcher.close()
        self.finished = True
        return message

    async def fail(self, failure: v1.Failure | BaseException, *, usage: v1.Usage | None = None) -> v1.Assistant:
        """End the message with a failure; an exception becomes one of kind unknown, a cancellation one of aborted."""
        if isinstance(failure, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit):
            failure = v1.Failure(aborted=v1.AbortedFailure(message="the run was stopped"))
        elif isinstance(failure, BaseException):
            text = str(failure).encode("utf-8", "replace").decode()
            failure = v1.Failure(unknown=v1.UnknownFailure(name=type(failure).__name__, message=text))
        return await self.finish(None, usage=usage, failure=failure)

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.finished:
            return
        if error is None:
            await self.finish()
            return
        # The exception that left the block is the one to see.
        with suppress(errors.TurnwireError):
            await self.fail(error)
        await self._batcher.close()

    async def _write(self, kind: str, text: str) -> None:
        part = self._current
        if part is None or part.WhichOneof("kind") != kind:
            part = v1.PromptPart(id=ids.new(ids.PART))
            if kind == "text":
                part.text.time.start.CopyFrom(now())
            else:
                part.reasoning.time.start.CopyFrom(now())
            self._current, self._pieces = part, []
            await self._batcher.put(v1.PartPut(message_id=self.id, part=part))
        await self._batcher.text(part.id, "text", text)
        self._pieces.append(text)
