"""Gathering what an answer streams, so that many small pieces of text become few appends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from turnwire import errors, ids, v1
from turnwire.calls.entries import EntryLike, entry
from turnwire.calls.given import utf8

if TYPE_CHECKING:
    from turnwire.handle.session import Session

Target: TypeAlias = Literal["text", "raw_input", "output"]

#: After these an append can still go through as it is, if it has not: when the server is back, there is room again, or
#: a guarded session has taken the new head.
LATER = (errors.Unavailable, errors.DeadlineExceeded, errors.ResourceExhausted, errors.Aborted)


@dataclass(slots=True, eq=False)
class _Batch:
    """Entries that are appended together, under one request id however often it takes."""

    request_id: str = field(default_factory=lambda: ids.new("req_"))
    entries: list[v1.EntryInput] = field(default_factory=list[v1.EntryInput])
    size: int = 0


class Batcher:
    """The appends of one answer, in order.

    Text waits until there is enough of it, or it is old enough. A batch that could not be appended now stays and is
    tried again, first, by the next call; see `LATER`. One that was refused for good is dropped; the call that sent it
    raises why, or the next one if it was sent by the timer. Its parts are ``broken`` until they are put whole.
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
        self._late: set[asyncio.Task[None]] = set()  # flushes that the timer began
        self._failure: Exception | None = None  # of such a flush
        #: The ids of the parts of which something was refused: text cannot be added to them.
        self.broken: set[str] = set()
        #: Why nothing more may be written; empty: it may.
        self.ended = ""

    @property
    def waiting(self) -> bool:
        """Whether anything is not appended yet."""
        return bool(self._open.entries or self._unsent)

    def require_open(self) -> None:
        """Raise RuntimeError if nothing more may be written: it could not reach the message any more."""
        if self.ended:
            raise RuntimeError(self.ended)

    async def put(self, *entries: EntryLike) -> None:
        """Append entries now, with all that waits before them.

        When that raises because of what came before them, they are not appended; see `flush`.
        """
        made = [*map(entry, entries)]
        async with self._sending:
            self._raise_failure()
            self._open.entries += made
            for each in made:
                if each.HasField("part"):
                    self._put_whole(each.part.part)
            batch = self._close_batch()
            try:
                await self._send()
            except LATER:
                raise
            except errors.TurnwireError:
                # Something before them was refused. The caller learns that now, and must not find them done later.
                if batch in self._unsent:
                    del batch.entries[-len(made) :]
                    self.broken |= {each.part.part.id for each in made if each.HasField("part")}
                    self._unsent = [each for each in self._unsent if each.entries]
                raise

    def begin(self, put: v1.PartPut) -> None:
        """Take in the put of a part that text is added to now; `due` appends both."""
        self._open.entries.append(entry(put))
        self._open.size = self._flush_bytes

    def text(self, part_id: str, target: Target, text: str) -> None:
        """Take in text for the end of a part; `due` appends it.

        Raises RuntimeError and `RuleViolation` (for a lone surrogate); then nothing is taken in.
        """
        self.require_open()
        size = len(utf8(target, text))
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

    async def due(self) -> None:
        """Append what was taken in if it is enough, or see to it later. Raises what `flush` raises."""
        if self._open.size >= self._flush_bytes or self._failure is not None:
            await self.flush()
        elif self._open.entries and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._begin_late)

    async def flush(self) -> None:
        """Append all that waits. Raises what the append raises, or what a flush by the timer raised before."""
        self._close_batch()
        async with self._sending:
            self._raise_failure()
            await self._send()

    async def close(self) -> None:
        """End the timer and what it began. Raises what that raised. What still waits needs another `flush`."""
        self._stop_timer()
        await asyncio.gather(*self._late, return_exceptions=True)
        self._raise_failure()

    def _put_whole(self, part: v1.PromptPart) -> None:
        """From now on text is added behind what the part has."""
        self.broken.discard(part.id)
        texts: dict[Target, str] = {
            "text": part.reasoning.text if part.HasField("reasoning") else part.text.text,
            "raw_input": part.tool.raw_input,
            "output": part.tool.output,
        }
        for target, text in texts.items():
            self._lengths[part.id, target] = len(text.encode())

    def _close_batch(self) -> _Batch:
        """What waits is to be sent as one; what comes now comes after it."""
        self._stop_timer()
        batch = self._open
        if batch.entries:
            self._unsent.append(batch)
            self._open = _Batch()
        return batch

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None and not isinstance(failure, LATER):  # else it is tried again
            raise failure

    async def _send(self) -> None:
        while self._unsent:
            batch = self._unsent[0]
            try:
                await self._session.append(*batch.entries, request_id=self._request_id(batch))
            except LATER:
                raise
            except errors.TurnwireError:
                # It will never go through; what comes later must not wait behind it for ever.
                del self._unsent[0]
                self._break(batch)
                raise
            del self._unsent[0]

    def _break(self, refused: _Batch) -> None:
        """Text that comes after refused text of its part cannot be added either."""
        for each in refused.entries:
            if each.HasField("delta"):
                self.broken.add(each.delta.part_id)
            elif each.HasField("part"):
                self.broken.add(each.part.part.id)
        for batch in (*self._unsent, self._open):
            put: set[str] = set()  # whole, before the text
            kept: list[v1.EntryInput] = []
            for each in batch.entries:
                put |= {each.part.part.id} if each.HasField("part") else set()
                if not each.HasField("delta") or each.delta.part_id in put or each.delta.part_id not in self.broken:
                    kept.append(each)
            batch.entries[:] = kept
            self.broken -= put
        self._unsent = [each for each in self._unsent if each.entries]

    def _request_id(self, batch: _Batch) -> str | None:
        """Where a batch could get lost and then be written twice, its id. Deltas tell a retry by their offsets."""
        lossy = self._session.service.loses_replies
        deltas = not self._session.guarded and all(each.HasField("delta") for each in batch.entries)
        return batch.request_id if lossy and not deltas else None

    def _begin_late(self) -> None:
        self._timer = None
        task = asyncio.get_running_loop().create_task(self._flush_late())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _flush_late(self) -> None:
        try:
            await self.flush()
        except Exception as failure:  # whatever it is, the next call raises it
            if self._failure is None or isinstance(self._failure, LATER):
                self._failure = failure
