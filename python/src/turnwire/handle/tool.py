"""The handle of a tool call: pending, running, and in the end completed or failed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from turnwire import jsontext, v1
from turnwire.handle.batch import Batcher
from turnwire.handle.times import now

_TERMINAL = (v1.ToolState.TOOL_STATE_COMPLETED, v1.ToolState.TOOL_STATE_ERROR)


def json_text(value: str | Mapping[str, Any]) -> str:
    """JSON as text: a text as it is, anything else written down. Raises ValueError for NaN and the like."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) if value else "{}"


class ToolCall:
    """A call in an answer; made by ``Answer.tool``. Each change of state puts the whole part anew."""

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
        await self._batcher.text(self.id, "raw_input", text)
        self._raw.append(text)

    async def output_delta(self, text: str) -> None:
        """Add to the output while the tool runs."""
        await self._batcher.text(self.id, "output", text)
        self._output.append(text)

    async def running(
        self,
        input: str | Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        metadata: str | Mapping[str, Any] | None = None,
    ) -> None:
        """The call runs. Without ``input`` it is what was streamed, if that is JSON."""
        self._set_input(input)
        tool = self.part.tool
        tool.state = v1.ToolState.TOOL_STATE_RUNNING
        tool.time.start.CopyFrom(now())
        self._tell(title, metadata)
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
        self._set_input(input)
        tool = self.part.tool
        tool.state = v1.ToolState.TOOL_STATE_COMPLETED
        tool.output = output if output is not None else "".join(self._output)
        tool.attachments.extend(attachments)
        await self._end(title, metadata)

    async def failed(
        self,
        error: str,
        *,
        input: str | Mapping[str, Any] | None = None,
        title: str | None = None,
        metadata: str | Mapping[str, Any] | None = None,
    ) -> None:
        """The call ended badly; ``error`` says why, for the model. Output that was streamed is kept."""
        self._set_input(input)
        tool = self.part.tool
        tool.state = v1.ToolState.TOOL_STATE_ERROR
        tool.error = error
        if self._output:
            tool.output = "".join(self._output)
        await self._end(title, metadata)

    async def put(self) -> None:
        """Put the part as it now is; ``part`` may have been changed in ways that have no method."""
        tool = self.part.tool
        if self.state not in _TERMINAL and self._output:
            tool.output = "".join(self._output)
        await self._batcher.put(v1.PartPut(message_id=self._message_id, part=self.part))
        self._batcher.has(self.id, "raw_input", tool.raw_input)
        self._batcher.has(self.id, "output", tool.output)

    def _set_input(self, given: str | Mapping[str, Any] | None) -> None:
        tool = self.part.tool
        if given is not None:
            tool.input_json = json_text(given)
        elif not tool.input_json:
            streamed = "".join(self._raw)
            if streamed and jsontext.check(streamed) is None:
                tool.input_json = streamed
            elif streamed:
                tool.raw_input = streamed

    def _tell(self, title: str | None, metadata: str | Mapping[str, Any] | None) -> None:
        if title is not None:
            self.part.tool.title = title
        if metadata is not None:
            self.part.tool.metadata_json = json_text(metadata)

    async def _end(self, title: str | None, metadata: str | Mapping[str, Any] | None) -> None:
        tool = self.part.tool
        if not tool.time.HasField("start"):
            tool.time.start.CopyFrom(now())
        tool.time.end.CopyFrom(now())
        self._tell(title, metadata)
        await self.put()
