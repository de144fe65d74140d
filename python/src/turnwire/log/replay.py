"""Replay: the folded history of a session, spliced from stored bytes into frames.

Nothing is parsed on the way but the parts that have open deltas, so that a reader gets what was written, byte for
byte, unknown fields included.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from turnwire import errors, v1
from turnwire.log import frames, reverts, windows
from turnwire.log.frames import Frames, Position, Window, built, parse_header
from turnwire.store.base import HEADER_SLOT, SUMMARY_SLOT, SessionRow, Snapshot, Store

_PAGE_BYTES = 4 * 1024 * 1024


async def history(store: Store, session: SessionRow, request: v1.ReplayRequest, revision: int) -> AsyncIterator[bytes]:
    """The history of a session at a revision, as serialized ``ReplayResponse`` messages, without the head's frame.

    Raises ``MessageNotFound`` for an end of the range that the history does not have.
    """
    source = Frames(
        revision, lambda snapshot: _window(_known(snapshot, revision), request, revision), request.include_summaries
    )
    async for response in _responses(store, session, source):
        yield response


async def message(store: Store, session: SessionRow, id: str, revision: int, *, summary: bool) -> AsyncIterator[bytes]:
    """One message as a replay of it alone. Raises ``MessageNotFound``."""

    def window(snapshot: Snapshot) -> Window:
        place = windows.place(_known(snapshot, revision), id, revision, "message_id")
        return (place, HEADER_SLOT), _behind(place)

    async for response in _responses(store, session, Frames(revision, window, summary)):
        yield response


async def messages(
    store: Store, session: SessionRow, revision: int
) -> AsyncIterator[tuple[v1.User | v1.Assistant, list[bytes]]]:
    """The history's messages in order: the parsed header, and the parts as they are stored."""
    header: v1.User | v1.Assistant | None = None
    parts: list[bytes] = []
    first: Position | None = (b"", HEADER_SLOT)
    while first is not None:
        page, first = await store.read(session, partial(_page, revision=revision, first=first))
        for slot, kind, stored in page:
            if slot == HEADER_SLOT:
                if header is not None:
                    yield header, parts
                header, parts = parse_header(kind, stored), []
            elif header is None:
                raise errors.CorruptData("a row of the index is damaged or missing")
            elif slot != SUMMARY_SLOT:
                parts.append(stored)
    if header is not None:
        yield header, parts


def end(head: v1.Head) -> bytes:
    """The last response: the head's frame."""
    return frames.head(head)


def _window(snapshot: Snapshot, request: v1.ReplayRequest, revision: int) -> Window:
    """The window of the history that the request wants."""
    first: Position = (b"", HEADER_SLOT)
    last: Position | None = None
    match request.WhichOneof("window"):
        case "last_turns":
            first = (windows.last_turns(snapshot, revision, request.last_turns), HEADER_SLOT)
        case "range":
            if request.range.HasField("from_id"):
                first = (windows.place(snapshot, request.range.from_id, revision, "range.from_id"), HEADER_SLOT)
            if request.range.HasField("to_id"):
                last = _behind(windows.place(snapshot, request.range.to_id, revision, "range.to_id"))
        case _:
            pass
    return first, last


def _known(snapshot: Snapshot, revision: int) -> Snapshot:
    """The snapshot, if this build knows all of the log up to a revision. Raises ``UnknownPayload``."""
    foreign = snapshot.foreign(revision)
    if foreign is not None:
        raise errors.UnknownPayload(f"entry {foreign} has a payload of a later schema", revision=foreign)
    return snapshot


def _behind(place: bytes) -> Position:
    return place, SUMMARY_SLOT + b"\xff"


async def _responses(store: Store, session: SessionRow, source: Frames) -> AsyncIterator[bytes]:
    """The responses one after another; the next one is read while the last one is on its way."""
    reading = asyncio.ensure_future(store.read(session, source.response))
    try:
        while True:
            response = await reading
            done = source.done
            if not done:
                reading = asyncio.ensure_future(store.read(session, source.response))
            if response:
                yield response
            if done:
                return
    finally:
        reading.cancel()


def _page(snapshot: Snapshot, revision: int, first: Position) -> tuple[list[tuple[bytes, int, bytes]], Position | None]:
    """What the history shows from a position on, a few MiB at most, and where it goes on (None: nowhere)."""
    span = _known(snapshot, revision).span(revision)
    page: list[tuple[bytes, int, bytes]] = []
    size = 0
    for place, slot, kind, born, _, delta, stored in snapshot.versions(revision, first, None):
        if span is not None and reverts.hides(span, place, slot, born):
            continue
        if size >= _PAGE_BYTES:
            return page, (place, slot)
        data = built(snapshot, delta, stored, revision) if delta else stored
        page.append((slot, kind, data))
        size += len(data)
    return page, None
