"""Gathering what an answer streams, so that many small pieces of text become few appends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from turnwire import errors, ids, v1
from turnwire.calls.entries import EntryLike, entry

if TYPE_CHECKING:
    from turnwire.handle.session import Session

Target: TypeAlias = Literal["text", "raw_input", "output"]


@dataclass(slots=True)
class _Batch:
    """Entries that are appended together, under one request id however often it takes."""

    request_id: str = field(default_factory=lambda: ids.new("req_"))
    entries: list[v1.EntryInput] = field(default_factory=list[v1.EntryInput])
    size: int = 0


class Batcher:
    """The appends of one answer, in order.

    Text waits until there is enough of it, or it is old enough. A batch that could not be appended since the server was
    not there stays and is tried again, first, by the next call.
    """

    def __init__(self, session: Session, *, flush_bytes: int, flush_seconds: float) -> None:
        self._session = session
        self._flush_bytes = flush_bytes
        self._flush_seconds = flush_seconds
        self._open = _Batch()
        self._unsent: list[_Batch] = []
        self._lengths: dict[tuple[str, Target], int] = {}  # bytes of UTF-8 that a part will have
        self._sending = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._late: asyncio.Task[None] | None = None  # a flush that the timer began
        self._failure: errors.TurnwireError | None = None  # of such a flush

    async def put(self, *entries: EntryLike) -> None:
        """Append entries now, with all that waits before them."""
        self._open.entries += map(entry, entries)
        await self.flush()

    async def text(self, part_id: str, target: Target, text: str) -> None:
        """Add text to the end of a part. Raises UnicodeEncodeError for a lone surrogate; then nothing is added."""
        size = len(text.encode())
        if not size:
            return
        offset = self._lengths.get((part_id, target), 0)
        self._lengths[part_id, target] = offset + size
        last = self._open.entries[-1].delta if self._open.entries else None
        if last is not None and last.part_id == part_id and last.WhichOneof("target") == target:
            match target:
                case "text":
                    last.text += text
                case "raw_input":
                    last.raw_input += text
                case "output":
                    last.output += text
        else:
            delta = v1.PartDelta(part_id=part_id, offset=offset)
            match target:
                case "text":
                    delta.text = text
                case "raw_input":
                    delta.raw_input = text
                case "output":
                    delta.output = text
            self._open.entries.append(v1.EntryInput(delta=delta))
        self._open.size += size
        if self._open.size >= self._flush_bytes or self._failure is not None:
            await self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._begin_late)

    def has(self, part_id: str, target: Target, text: str) -> None:
        """A part was put whole: from now on deltas start behind this text."""
        self._lengths[part_id, target] = len(text.encode())

    async def flush(self) -> None:
        """Append all that waits. Raises what the append raises, or what a flush by the timer raised before."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._open.entries:
            self._unsent.append(self._open)
            self._open = _Batch()
        async with self._sending:
            failure, self._failure = self._failure, None
            if failure is not None and not isinstance(failure, errors.Unavailable | errors.DeadlineExceeded):
                raise failure
            while self._unsent:
                batch = self._unsent[0]
                try:
                    await self._session.append(*batch.entries, request_id=self._request_id(batch))
                except (errors.Unavailable, errors.DeadlineExceeded):
                    raise
                except errors.TurnwireError:
                    # It will never go through; what comes later must not wait behind it for ever.
                    del self._unsent[0]
                    raise
                del self._unsent[0]

    async def close(self) -> None:
        """End the timer; what still waits is given up."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._late is not None:
            await asyncio.gather(self._late, return_exceptions=True)

    def _request_id(self, batch: _Batch) -> str | None:
        """Where a batch could get lost and then be written twice, its id. Deltas tell a retry by their offsets."""
        lossy = self._session.service.loses_replies
        deltas = not self._session.guarded and all(each.HasField("delta") for each in batch.entries)
        return batch.request_id if lossy and not deltas else None

    def _begin_late(self) -> None:
        self._timer = None
        self._late = asyncio.get_running_loop().create_task(self._flush_late())

    async def _flush_late(self) -> None:
        try:
            await self.flush()
        except errors.TurnwireError as failure:
            self._failure = failure
