"""The handle of an answer: an assistant message that is streamed part by part."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeGuard

from turnwire import errors, ids, v1
from turnwire.calls.given import built, json_text, utf8
from turnwire.handle.batch import LATER, Batcher
from turnwire.handle.content import Content, part_of
from turnwire.handle.times import now
from turnwire.handle.tool import ToolCall

if TYPE_CHECKING:
    from turnwire.handle.session import Session

_FINISHED = "the answer is finished"


class Answer:
    """An assistant message that is being written; made by ``Turn.answer``.

    The block puts the message at its beginning. At its end the message is finished, if `finish` was not called, with
    "stop", or, when an exception leaves the block, with a failure (aborted for a cancellation).

    `text` and `reasoning` go to the end of the part that is being written and begin a new one when the kind changes.
    What they are given is taken in even when they raise what an append raises, and must not be given again: what is
    refused is written anew, with the whole part, by the next call for it, by `end_part` or by `finish`.

    Errors of appends that were put off come out of the next call, at the latest of `finish` or the end of the block;
    where another exception leaves the block they are added to it as a note. What an append is refused for is raised as
    it is, see ``append`` of the client.

    Once the answer is finished, or its block has ended, every call that would write raises RuntimeError. When the end
    could not be written now, since the server is not there, the store is full or another writer came before a guarded
    session, `flush` and `finish` may be tried again even then.
    """

    #: The header of the message, as it was last put.
    message: v1.Assistant
    id: str
    #: Whether the end of the message is written.
    finished: bool

    def __init__(self, session: Session, message: v1.Assistant, *, flush_bytes: int, flush_seconds: float) -> None:
        self._batcher = Batcher(session, flush_bytes=flush_bytes, flush_seconds=flush_seconds)
        self.message = message
        self.id = message.id
        self.finished = False
        self._ending = False  # the header with the end has been put, though perhaps not reached the log
        self._over = ""  # why nothing may be written even if the end is not: the block has ended
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
        self._batcher.require_open()
        if self._current is None:
            return
        provider = None
        if metadata or signed or model is not None:
            provider = v1.ProviderMetadata(
                metadata_json=json_text("metadata_json", metadata), model=model, signed=signed
            )
        part = self._whole(self._current)
        kind = part.reasoning if part.HasField("reasoning") else part.text
        kind.time.end.CopyFrom(now())
        if provider is not None:
            kind.provider.CopyFrom(provider)
        try:
            await self._batcher.put(v1.PartPut(message_id=self.id, part=part))
        except LATER:
            self._current, self._pieces = None, []
            raise
        self._current, self._pieces = None, []

    async def part(self, part: Content) -> str:
        """Put any part at the end, or, by its id, in the place that it has. Returns its id."""
        self._batcher.require_open()
        made = part_of(part)
        self._current, self._pieces = None, []
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
        self._batcher.require_open()
        tool = built(
            v1.ToolPart,
            call_id=call_id or f"call_{secrets.token_hex(8)}",
            name=name,
            state=v1.ToolState.TOOL_STATE_PENDING,
            input_json=json_text("input_json", input) if input is not None else "",
            provider=provider,
        )
        self._current, self._pieces = None, []
        call = ToolCall(self._batcher, self.id, v1.PromptPart(id=ids.new(ids.PART), tool=tool))
        await call.put()
        return call

    async def flush(self) -> None:
        """Append what still waits. Raises what an append raises, put off or not."""
        try:
            await self._batcher.flush()
        except LATER:
            raise
        except errors.TurnwireError:
            if not self._batcher.waiting and not self.finished:  # the end was refused too
                self._ending, self._batcher.ended = False, self._over
            raise
        self.finished = self.finished or self._ending

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
        ended it takes nothing more. Raises RuntimeError when it was finished before. When an append that was put off is
        refused, that is raised and the message is not ended.
        """
        if self.finished:
            raise RuntimeError(_FINISHED)
        message = v1.Assistant()
        message.CopyFrom(self.message)
        message.time.completed.CopyFrom(now())
        if usage is not None:
            message.usage.CopyFrom(usage)
        message.result.MergeFrom(built(v1.Result, finish=finish, structured_json=structured_json, failure=failure))
        self._batcher.ended = _FINISHED  # also for what other tasks write meanwhile
        part = self._current
        mended = [v1.PartPut(message_id=self.id, part=self._whole(part))] if self._is_broken(part) else []
        try:
            await self._batcher.put(*mended, message)
        except LATER:
            self._ending, self.message = True, message  # the next call tries again
            raise
        except BaseException:
            self._batcher.ended = self._over
            raise
        self._ending, self.message, self.finished = True, message, True
        await self._batcher.close()
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
        self._over = "the block of the answer has ended"
        try:
            try:
                if self._ending:
                    # Finished as the caller said, though that may not be written yet.
                    await self.flush()
                elif error is None:
                    await self.finish()
                else:
                    await self.fail(error)
            finally:
                self._batcher.ended = self._batcher.ended or self._over
                await self._batcher.close()
        except Exception as failure:
            if error is None:
                raise
            # The exception that left the block is the one to see.
            error.add_note(f"the end of the answer {self.id} was not written: {failure}")

    async def _write(self, kind: str, text: str) -> None:
        self._batcher.require_open()
        utf8("text", text)
        part = self._current
        if part is None or part.WhichOneof("kind") != kind:
            part = v1.PromptPart(id=ids.new(ids.PART))
            if kind == "text":
                part.text.time.start.CopyFrom(now())
            else:
                part.reasoning.time.start.CopyFrom(now())
            self._batcher.begin(v1.PartPut(message_id=self.id, part=part))
            self._current, self._pieces = part, []
        self._pieces.append(text)
        if self._is_broken(part):
            await self._batcher.put(v1.PartPut(message_id=self.id, part=self._whole(part)))
        else:
            self._batcher.text(part.id, "text", text)
            await self._batcher.due()

    def _is_broken(self, part: v1.PromptPart | None) -> TypeGuard[v1.PromptPart]:
        return part is not None and part.id in self._batcher.broken

    def _whole(self, part: v1.PromptPart) -> v1.PromptPart:
        """The part that is being written, with all its text."""
        whole = v1.PromptPart()
        whole.CopyFrom(part)
        (whole.reasoning if whole.HasField("reasoning") else whole.text).text = "".join(self._pieces)
        return whole
