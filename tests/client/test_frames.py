"""Putting a replay together: what cannot be read is told and never dropped."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.client.flow import text, user
from turnwire import errors, v1
from turnwire.calls.history import ReplayItem, whole

#: A frame with a member that this schema does not know: field 99, 2 bytes.
LATER = v1.HistoryFrame.FromString(b"\x9a\x06\x02hi")


async def items(*frames: v1.HistoryFrame) -> list[ReplayItem]:
    async def responses() -> AsyncGenerator[v1.ReplayResponse, None]:
        for frame in frames:
            yield v1.ReplayResponse(frames=[frame])

    return [item async for item in whole(responses())]


async def test_parts_join_their_message() -> None:
    more = v1.HistoryFrame(parts=v1.MoreParts(message_id="msg_1", parts=[text("b")]))
    head = v1.Head(revision=2)
    got = await items(
        v1.HistoryFrame(user=user("msg_1", "a")),
        more,
        v1.HistoryFrame(user=user("msg_2", "c")),
        v1.HistoryFrame(head=head),
    )
    assert got == [user("msg_1", "a", "b"), user("msg_2", "c"), head]


async def test_a_frame_of_a_later_schema_is_not_dropped() -> None:
    with pytest.raises(errors.UnknownPayload, match="frame 2 of the replay is of a later schema") as caught:
        await items(v1.HistoryFrame(user=user("msg_1", "a")), LATER, v1.HistoryFrame(head=v1.Head(revision=2)))
    assert caught.value.metadata == {"frame": "2"}


async def test_parts_of_no_message_are_not_dropped() -> None:
    with pytest.raises(errors.Internal, match="frame 1 of the replay has parts of no message"):
        await items(v1.HistoryFrame(parts=v1.MoreParts(message_id="msg_1", parts=[text("b")])))


async def test_an_empty_frame_has_nothing_to_drop() -> None:
    assert await items(v1.HistoryFrame()) == []
