"""The handle of a tool call: pending, running, and in the end completed or failed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from turnwire import jsontext, v1
from turnwire.calls.given import fill, json_text, utf8
from turnwire.handle.batch import LATER, Batcher, Target
from turnwire.handle.times import now

_TERMINAL = (v1.ToolState.TOOL_STATE_COMPLETED, v1.ToolState.TOOL_STATE_ERROR)


class ToolCall:
    """A call in an answer; made by ``Answer.tool``. Each change of state puts the whole part anew.

    A call that goes on when its answer is finished can still be put in its last state, but nothing can be streamed into
    it; the same holds for a call that has ended. Streaming then raises RuntimeError.
    """

    #: The part as it was last put.
    part: v1.PromptPart
    id: str
    call_id: str

    def __init__(self, batcher: Batcher, message_id: str, part: v1.PromptPart) -> None:
        self._batcher = batcher
        self._message_id = message_id
        self._raw: list[str] = []
        self._output: list[str] = []
        self.part = part
        self.id = part.id
        self.call_id = part.tool.call_id

    @property
    def state(self) -> v1.ToolState.ValueType:
        """Where the call stands."""
        return self.part.tool.state

    async def input_delta(self, text: str) -> None:
        """Add to the input as the model streams it."""
        await self._add("raw_input", self._raw, text)

    async def output_delta(self, text: str) -> None:
        """Add to the output while the tool runs."""
        await self._add("output", self._output, text)

    async def running(
        self,
        input: str | Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        metadata: str | Mapping[str, Any] | None = None,
    ) -> None:
        """The call runs. Without ``input`` it is what was streamed, if that is JSON."""
        with self._changing():
            self._tell(input, title, metadata)
            tool = self.part.tool
            tool.state = v1.ToolState.TOOL_STATE_RUNNING
            tool.time.start.CopyFrom(now())
            await self.put()

    async def completed(
        self,
        output: str | None = None,
        *,
        input: str | Mapping[str, Any] | None = None,
        title: str | None = None,
        metadata: str | Mapping[str, Any] | None = None,
        attachments: Iterable[v1.ToolAttachment] = (),
    ) -> None:
        """The call ended well. Without ``output`` it is what was streamed."""
        with self._changing():
            self._tell(input, title, metadata)
            tool = self.part.tool
            fill(tool, output=output if output is not None else "".join(self._output))
            tool.state = v1.ToolState.TOOL_STATE_COMPLETED
            tool.attachments.extend(attachments)
            await self._end()

    async def failed(
        self,
        error: str,
        *,
        input: str | Mapping[str, Any] | None = None,
        title: str | None = None,
        metadata: str | Mapping[str, Any] | None = None,
    ) -> None:
        """The call ended badly; ``error`` says why, for the model. Output that was streamed is kept."""
        with self._changing():
            self._tell(input, title, metadata)
            tool = self.part.tool
            fill(tool, error=error)
            tool.state = v1.ToolState.TOOL_STATE_ERROR
            if self._output:
                tool.output = "".join(self._output)
            await self._end()

    async def put(self) -> None:
        """Put the part as it now is; ``part`` may have been changed in ways that have no method."""
        tool = self.part.tool
        if self.state not in _TERMINAL and self._output:
            tool.output = "".join(self._output)
        await self._batcher.put(v1.PartPut(message_id=self._message_id, part=self.part))

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Take a change of the part back if it was refused, so that the next one does not bring it along."""
        before = v1.PromptPart()
        before.CopyFrom(self.part)
        try:
            yield
        except LATER:  # it waits
            raise
        except Exception:
            self.part = before
            raise

    def _tell(
        self, input: str | Mapping[str, Any] | None, title: str | None, metadata: str | Mapping[str, Any] | None
    ) -> None:
        tool = self.part.tool
        told = json_text("metadata_json", metadata) if metadata is not None else None
        if input is not None:
            tool.input_json = json_text("input_json", input)
        elif not tool.input_json:
            streamed = "".join(self._raw)
            if streamed and jsontext.check(streamed) is None:
                tool.input_json = streamed
            elif streamed:
                tool.raw_input = streamed
        fill(tool, title=title, metadata_json=told)

    async def _add(self, target: Target, pieces: list[str], text: str) -> None:
        if self.state in _TERMINAL:
            raise RuntimeError("the tool call has ended")
        self._batcher.require_open()
        utf8(target, text)
        pieces.append(text)
        if self.id in self._batcher.broken:  # some of it was refused: put it whole
            if not self.part.tool.input_json:
                self.part.tool.raw_input = "".join(self._raw)
            await self.put()
        else:
            self._batcher.text(self.id, target, text)
            await self._batcher.due()

    async def _end(self) -> None:
        tool = self.part.tool
        if not tool.time.HasField("start"):
            tool.time.start.CopyFrom(now())
        tool.time.end.CopyFrom(now())
        await self.put()
