"""Replay: the frames, their sizes, the windows, and single messages."""

from __future__ import annotations

import pytest

from tests.builders import (
    COMPLETED,
    append,
    assistant,
    delta,
    get_message,
    opened,
    put,
    read,
    refused,
    remove,
    replay,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.log.frames import FRAME_BYTES


class TestFrames:
    async def test_each_turn_comes_once_before_the_first_message_that_uses_it(self, engine: Engine) -> None:
        await opened(engine, "s", user("u1"), assistant("a1"))
        await append(engine, "s", turn("t2"), turn("unused"), user("u2", turn="t2"), assistant("late", turn="t"))
        history = await replay(engine, "s")
        assert history.kinds == ["turn", "user", "assistant", "turn", "user", "assistant", "head"]
        assert [each.id for each in history.turns] == ["t", "t2"]

    async def test_the_first_message_in_the_order_of_places(self, engine: Engine) -> None:
        await opened(engine, "s", user("u1"), turn("t2"), user("u0", turn="t2", before="u1"))
        history = await replay(engine, "s")
        assert [(frame.turn.id or frame.user.id) for frame in history.frames] == ["t2", "u0", "t", "u1", ""]

    async def test_it_ends_with_the_head_at_the_revision(self, engine: Engine) -> None:
        await opened(engine, "s", user("u1"), user("u2"))
        entries = await read(engine, "s")
        for entry in entries:
            head = (await replay(engine, "s", entry.revision)).head
            assert head == v1.Head(revision=entry.revision, digest=entry.digest, recorded=entry.recorded)
        assert (await replay(engine, "s")).head == (await replay(engine, "s", 4)).head

    async def test_a_session_without_messages_is_a_head(self, engine: Engine) -> None:
        await opened(engine, "s")
        assert (await replay(engine, "s")).kinds == ["head"]

    @pytest.mark.parametrize(("revision", "actual"), [(5, 4), (100, 4)])
    async def test_a_revision_beyond_the_head(self, engine: Engine, revision: int, actual: int) -> None:
        await opened(engine, "s", user("u1"), user("u2"))
        with refused(errors.RevisionOutOfRange, "revision") as caught:
            await replay(engine, "s", revision)
        assert caught.value.detail == v1.RevisionConflict(expected=revision, actual=actual)

    async def test_a_revision_below_one(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.RuleViolation, "revision"):
            await replay(engine, "s", 0)

    async def test_summaries_come_only_on_demand(self, engine: Engine) -> None:
        """C67: what is derived is kept apart."""
        diffs = [v1.FileDiff(path=f"f{at}", patch="+" * 100) for at in range(1000)]
        large = v1.EntryInput(summary=v1.MessageSummary(message_id="u1", title="T", diffs=diffs))
        await opened(engine, "s", user("u1"), user("u2"), large, summary("u2", "first"), summary("u2", "second"))
        history = await replay(engine, "s")
        assert history.summaries == {}
        assert sum(history.sizes) < 500
        history = await replay(engine, "s", summaries=True)
        assert history.kinds == ["turn", "user", "summary", "user", "summary", "head"]
        assert history.summaries["u1"] == large.summary
        assert history.summaries["u2"].body == "second"
        assert (await replay(engine, "s", 6, summaries=True)).summaries["u2"].body == "first"

    async def test_sizes(self, engine: Engine) -> None:
        """A 10 MiB message of many legal parts, and a part that is as large as a frame."""
        parts = [text(f"p{at}", chr(97 + at % 26) * 100_000) for at in range(105)]
        large = text("large", "x" * 1_500_000)
        await opened(engine, "s", user("u", *parts, large), assistant("a", text("q", "end")))
        history = await replay(engine, "s")
        assert sum(part.ByteSize() for part in parts) > 10 * 1024 * 1024
        assert history.shape == {"u": [*(part.id for part in parts), "large"], "a": ["q"]}
        assert list(history.messages[0].parts) == [*parts, large]
        assert max(history.sizes) <= FRAME_BYTES + large.ByteSize()
        assert len([size for size in history.sizes if size > FRAME_BYTES + 100_100]) == 1
        assert set(history.kinds) == {"turn", "user", "parts", "assistant", "head"}

    async def test_C71_ten_thousand_and_one_messages_are_all_there(self, engine: Engine) -> None:
        """What each frame costs beside its bytes counts for the size of a response, too."""
        await opened(engine, "s")
        for start in range(0, 10_001, 1000):
            numbers = range(start, min(start + 1000, 10_001))
            await append(engine, "s", *(user(f"u{at}", text(f"p{at}", "x" * 66)) for at in numbers))
        history = await replay(engine, "s")
        assert history.ids == [f"u{at}" for at in range(10_001)]
        assert len(history.sizes) == 3
        assert max(history.sizes) <= 1024 * 1024
        assert (await replay(engine, "s", range=v1.MessageRange(from_id="u9999"))).ids == ["u9999", "u10000"]

    async def test_C69_a_hundred_messages_of_60_kB(self, engine: Engine) -> None:
        await opened(engine, "s", *(user(f"u{at}", text(f"p{at}", "x" * 60_000)) for at in range(100)))
        history = await replay(engine, "s")
        assert len(history.messages) == 100
        assert max(history.sizes) <= FRAME_BYTES + 60_100

    async def test_an_open_part_goes_over_a_frame_whole(self, engine: Engine) -> None:
        chunk = "é" * 100_000
        size = len(chunk.encode())
        await opened(engine, "s", assistant("a", text("p0", "first"), text("p", "")))
        await append(engine, "s", *(delta("p", at * size, chunk) for at in range(7)))
        history = await replay(engine, "s")
        assert history.part("p").text.text == chunk * 7


class TestWindows:
    async def three_turns(self, engine: Engine) -> None:
        """t: u1 a1; t2: u2 a2; t3: u3."""
        await opened(engine, "s", user("u1"), assistant("a1"))
        await append(engine, "s", turn("t2"), user("u2", turn="t2"), assistant("a2", turn="t2"))
        await append(engine, "s", turn("t3"), user("u3", turn="t3"))

    @pytest.mark.parametrize(
        ("count", "ids"),
        [
            (1, ["u3"]),
            (2, ["u2", "a2", "u3"]),
            (3, ["u1", "a1", "u2", "a2", "u3"]),
            (2_000_000_000, ["u1", "a1", "u2", "a2", "u3"]),
        ],
    )
    async def test_the_last_turns(self, engine: Engine, count: int, ids: list[str]) -> None:
        await self.three_turns(engine)
        history = await replay(engine, "s", last_turns=count)
        assert history.ids == ids
        assert [each.id for each in history.turns] == ["t", "t2", "t3"][-min(count, 3) :]

    async def test_no_turns_are_no_window(self, engine: Engine) -> None:
        await self.three_turns(engine)
        with refused(errors.RuleViolation, "last_turns"):
            await replay(engine, "s", last_turns=0)

    async def test_at_a_revision(self, engine: Engine) -> None:
        await self.three_turns(engine)
        assert (await replay(engine, "s", 7, last_turns=1)).ids == ["u2", "a2"]
        assert (await replay(engine, "s", 6, last_turns=1)).ids == ["u2"]
        assert (await replay(engine, "s", 5, last_turns=1)).ids == ["u1", "a1"]

    @pytest.mark.parametrize("count", range(1, 6))
    async def test_C16_no_window_cuts_a_pair(self, engine: Engine, count: int) -> None:
        """Call and result are one part, and turns are whole, so that every window has both."""
        await opened(engine, "s", user("U1"), assistant("A1", tool("p1", "c1", state=COMPLETED, output="r1")))
        await append(engine, "s", turn("t2"), user("U2", turn="t2"))
        calls = [tool(f"p2{at}", f"c{at}", state=COMPLETED, output="r") for at in (1, 2)]
        await append(engine, "s", assistant("A2", *calls, turn="t2"), turn("t3"), user("U3", turn="t3"))
        history = await replay(engine, "s", last_turns=count)
        whole = await replay(engine, "s")
        expected = {1: ["U3"], 2: ["U2", "A2", "U3"]}.get(count, ["U1", "A1", "U2", "A2", "U3"])
        assert history.ids == expected
        assert history.messages == whole.messages[-len(expected) :]

    async def test_turns_that_interleave_are_contiguous(self, engine: Engine) -> None:
        """A turn begins at its first message; the window goes from there to the end."""
        await self.three_turns(engine)
        await append(engine, "s", assistant("a1b", turn="t"), assistant("a3", turn="t3"))
        assert (await replay(engine, "s", last_turns=1)).ids == ["u3", "a1b", "a3"]
        assert (await replay(engine, "s", last_turns=3)).ids[0] == "u1"

    async def test_a_turn_whose_first_message_went(self, engine: Engine) -> None:
        await self.three_turns(engine)
        await append(engine, "s", remove("u2"))
        assert (await replay(engine, "s", last_turns=2)).ids == ["a2", "u3"]
        await append(engine, "s", remove("u3"))
        assert (await replay(engine, "s", last_turns=1)).ids == ["a2"]
        assert (await replay(engine, "s", last_turns=2)).ids == ["u1", "a1", "a2"]

    async def test_interleaved_turns_whose_first_messages_went(self, engine: Engine) -> None:
        """Left is a1 (t), x (t3), y (t2), z (t3): by first messages the order is t, t3, t2."""
        await self.three_turns(engine)
        await append(
            engine,
            "s",
            remove("u1"),
            remove("u2"),
            remove("a2"),
            remove("u3"),
            assistant("x", turn="t3"),
            assistant("y", turn="t2"),
            assistant("z", turn="t3"),
        )
        windows = [(await replay(engine, "s", last_turns=count)).ids for count in (1, 2, 3)]
        assert windows == [["y", "z"], ["x", "y", "z"], ["a1", "x", "y", "z"]]

    async def test_a_message_that_changed_its_turn(self, engine: Engine) -> None:
        await self.three_turns(engine)
        await append(engine, "s", assistant("a1", turn="t3"))
        assert (await replay(engine, "s", last_turns=1)).ids == ["u2", "a2", "u3"]
        assert (await replay(engine, "s", 9, last_turns=1)).ids == ["u3"]

    async def test_a_message_in_the_middle_of_another_turn(self, engine: Engine) -> None:
        await self.three_turns(engine)
        await append(engine, "s", turn("t4"), user("u4", turn="t4", before="a1"))
        assert (await replay(engine, "s", last_turns=1)).ids == ["u3"]
        assert (await replay(engine, "s", last_turns=3)).ids == ["u4", "a1", "u2", "a2", "u3"]

    async def test_a_turn_that_came_after_its_message(self, engine: Engine) -> None:
        await append(engine, "s", user("u1", turn="t1"), turn("t1"), assistant("a1", turn="t1"), create=True)
        await append(engine, "s", user("u2", turn="t2"), assistant("a2", turn="t1"), turn("t2"))
        assert (await replay(engine, "s", last_turns=1)).ids == ["u2", "a2"]
        assert (await replay(engine, "s", last_turns=2)).ids == ["u1", "a1", "u2", "a2"]
        history = await replay(engine, "s")
        assert [each.id for each in history.turns] == ["t1", "t2"]

    async def test_a_range(self, engine: Engine) -> None:
        await self.three_turns(engine)

        async def ids(from_id: str | None = None, to_id: str | None = None) -> list[str]:
            return (await replay(engine, "s", range=v1.MessageRange(from_id=from_id, to_id=to_id))).ids

        assert await ids() == ["u1", "a1", "u2", "a2", "u3"]
        assert await ids("a1", "a2") == ["a1", "u2", "a2"]
        assert await ids("u2") == ["u2", "a2", "u3"]
        assert await ids(to_id="a1") == ["u1", "a1"]
        assert await ids("u2", "u2") == ["u2"]
        assert await ids("u3", "u1") == []

    async def test_a_range_has_the_turns_and_summaries_of_its_messages(self, engine: Engine) -> None:
        await self.three_turns(engine)
        await append(engine, "s", summary("a2"), summary("u3"))
        history = await replay(engine, "s", range=v1.MessageRange(from_id="a2", to_id="a2"), summaries=True)
        assert history.kinds == ["turn", "assistant", "summary", "head"]
        assert history.turns[0].id == "t2"

    async def test_an_end_that_is_not_in_the_history(self, engine: Engine) -> None:
        await self.three_turns(engine)
        for path, window in (
            ("range.from_id", v1.MessageRange(from_id="ghost")),
            ("range.to_id", v1.MessageRange(to_id="ghost")),
        ):
            with refused(errors.MessageNotFound, path, message_id="ghost"):
                await replay(engine, "s", range=window)
        with refused(errors.MessageNotFound, "range.from_id", message_id="u2"):
            await replay(engine, "s", 5, range=v1.MessageRange(from_id="u2"))


class TestMessage:
    async def test_it_is_a_replay_of_it_alone(self, engine: Engine) -> None:
        await opened(engine, "s", user("u1"), assistant("a1", text("p"), text("q")), summary("a1"))
        history = await get_message(engine, "s", "a1")
        assert history.kinds == ["turn", "assistant", "head"]
        assert history.shape == {"a1": ["p", "q"]}
        assert history.head is not None
        assert history.head.revision == 5
        history = await get_message(engine, "s", "a1", 4, summary=True)
        assert history.kinds == ["turn", "assistant", "head"]
        assert (await get_message(engine, "s", "a1", summary=True)).kinds == ["turn", "assistant", "summary", "head"]

    async def test_at_each_revision(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "1")), put("u", text("p", "2")), remove("u"))
        assert (await get_message(engine, "s", "u", 3)).part("p").text.text == "1"
        assert (await get_message(engine, "s", "u", 4)).part("p").text.text == "2"
        for revision in (2, 5, None):
            with refused(errors.MessageNotFound, "message_id", message_id="u"):
                await get_message(engine, "s", "u", revision)
        with refused(errors.RevisionOutOfRange, "revision"):
            await get_message(engine, "s", "u", 6)

    async def test_a_message_that_is_partly_hidden(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p"), text("q")), revert("u", "q"))
        assert (await get_message(engine, "s", "u")).shape == {"u": ["p"]}


async def test_replay_at_an_old_revision_is_stable(engine: Engine) -> None:
    await opened(engine, "s", user("u1", text("p")), assistant("a1", text("q", "")))
    await append(engine, "s", delta("q", 0, "one"), put("u1", text("r")), user("u0", before="u1"))
    before = [await replay(engine, "s", revision) for revision in range(1, 8)]
    await append(engine, "s", delta("q", 3, "two"), remove("u1"), revert("a1"), user("u1", text("p")))
    await append(engine, "s", turn("t2"), user("first", turn="t2", before="u0"))
    after = [await replay(engine, "s", revision) for revision in range(1, 8)]
    assert [each.frames for each in after] == [each.frames for each in before]
