"""Deltas through the engine: where they go, where they begin, when they are refused."""

from __future__ import annotations

import pytest

from tests.builders import (
    COMPLETED,
    ERROR,
    PENDING,
    RUNNING,
    append,
    assistant,
    compaction,
    delta,
    fork,
    get_message,
    opened,
    put,
    reasoning,
    refused,
    remove,
    remove_part,
    replay,
    revert,
    text,
    tool,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Engine, Limits
from turnwire.store.base import Store


async def texts(engine: Engine, part_id: str, revision: int | None = None) -> str:
    part = (await replay(engine, "s", revision)).part(part_id)
    return part.text.text if part.HasField("text") else part.reasoning.text


async def test_deltas_append_to_a_text(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "Hel")))
    response = await append(engine, "s", delta("p", 3, "lo"), delta("p", 5, ", world"))
    assert [(result.revision, result.existing) for result in response.results] == [(4, False), (5, False)]
    assert [await texts(engine, "p", revision) for revision in (3, 4, 5)] == ["Hel", "Hello", "Hello, world"]


async def test_deltas_append_to_a_reasoning(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", reasoning("p", "")), delta("p", 0, "so"), delta("p", 2, "."))
    assert await texts(engine, "p") == "so."


async def test_deltas_append_to_the_raw_input_and_the_output_of_a_tool(engine: Engine) -> None:
    await opened(
        engine,
        "s",
        assistant("a", tool("p", "c", state=PENDING, input_json="")),
        delta("p", 0, raw_input='{"a'),
        delta("p", 3, raw_input='":1}'),
    )
    await append(engine, "s", delta("p", 0, output="1\n"), delta("p", 7, raw_input=" "), delta("p", 2, output="2\n"))
    part = (await replay(engine, "s")).part("p")
    assert part.tool.raw_input == '{"a":1} '
    assert part.tool.output == "1\n2\n"
    assert not (await replay(engine, "s", 5)).part("p").tool.HasField("output")


async def test_offsets_count_bytes_of_utf8(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "é")))
    await append(engine, "s", delta("p", 2, "😀"), delta("p", 6, "\x00"), delta("p", 7, "ü"))
    assert await texts(engine, "p") == "é😀\x00ü"
    with refused(errors.DeltaOffsetMismatch, "entries[0].delta.offset", part_id="p") as caught:
        await append(engine, "s", delta("p", 4, "x"))
    assert caught.value.detail == v1.OffsetMismatch(given=4, actual=9)


async def test_a_retry_is_existing(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "")), delta("p", 0, "one"), delta("p", 3, "two"))
    response = await append(engine, "s", delta("p", 3, "two"), delta("p", 0, "one"), delta("p", 6, "!"))
    assert [(result.revision, result.existing) for result in response.results] == [
        (5, True),
        (4, True),
        (6, False),
    ]
    assert await texts(engine, "p") == "onetwo!"


async def test_a_retry_within_one_request(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "")))
    response = await append(engine, "s", delta("p", 0, "x"), delta("p", 0, "x"))
    assert [(result.revision, result.existing) for result in response.results] == [(4, False), (4, True)]


async def test_a_retry_stays_existing_once_the_part_has_ended(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "")), delta("p", 0, "x"), assistant("a", completed=True))
    response = await append(engine, "s", delta("p", 0, "x"))
    assert response.results[0] == v1.AppendResult(revision=4, existing=True)


@pytest.mark.parametrize(("offset", "other"), [(0, "zwei"), (0, "on"), (0, "one1"), (1, "ne"), (4, "qq"), (2, "qq")])
async def test_another_text_or_offset_is_a_mismatch(engine: Engine, offset: int, other: str) -> None:
    await opened(engine, "s", assistant("a", text("p", "")), delta("p", 0, "one"))
    with refused(errors.DeltaOffsetMismatch, "entries[0].delta.offset") as caught:
        await append(engine, "s", delta("p", offset, other))
    assert caught.value.detail == v1.OffsetMismatch(given=offset, actual=3)
    assert other not in caught.value.text.split()


async def test_a_put_replaces_the_deltas_so_far(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "a")), delta("p", 1, "bc"))
    await append(engine, "s", put("a", text("p", "whole")), delta("p", 5, "!"), delta("p", 6, "?"))
    assert [await texts(engine, "p", revision) for revision in (4, 5, 6, 7)] == ["abc", "whole", "whole!", "whole!?"]
    with refused(errors.DeltaOffsetMismatch):
        await append(engine, "s", delta("p", 1, "bc"))


async def test_a_header_put_leaves_the_deltas(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "a")), delta("p", 1, "b"), assistant("a", finish="stop"))
    assert await texts(engine, "p") == "ab"


async def test_a_thousand_deltas(engine: Engine) -> None:
    """C66 in small: each delta stores its own text and no snapshot."""
    await opened(engine, "s", assistant("a", text("p", "")))
    for start in range(0, 1000, 250):
        await append(engine, "s", *(delta("p", 10 * at, f"{at:010}") for at in range(start, start + 250)))
    whole = "".join(f"{at:010}" for at in range(1000))
    assert await texts(engine, "p") == whole
    assert await texts(engine, "p", 503) == whole[:5000]
    session = await engine.store.session("", "s")
    stored = await engine.store.entries(session, 4, 1003, 1 << 30)
    assert len(stored) == 1000
    assert sum(len(row.payload) for row in stored) < 20 * len(whole) // 10


class TestSealed:
    @pytest.mark.parametrize(
        ("part", "change"),
        [
            (text("p", "x", ended=True), delta("p", 1, "y")),
            (reasoning("p", "x", ended=True), delta("p", 1, "y")),
            (tool("p", state=COMPLETED, output="x"), delta("p", 1, output="y")),
            (tool("p", state=ERROR, raw_input="x"), delta("p", 1, raw_input="y")),
        ],
        ids=["text", "reasoning", "completed tool", "failed tool"],
    )
    async def test_an_ended_part_takes_no_delta(
        self, engine: Engine, part: v1.PromptPart, change: v1.EntryInput
    ) -> None:
        await opened(engine, "s", assistant("a", part))
        with refused(errors.PartSealed, "entries[0].delta.part_id", part_id="p"):
            await append(engine, "s", change)

    async def test_nor_does_one_of_a_completed_message(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "x"), completed=True))
        with refused(errors.PartSealed, "entries[0].delta.part_id", part_id="p"):
            await append(engine, "s", delta("p", 1, "y"))

    async def test_a_put_seals_and_opens(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "x")), put("a", text("p", "x", ended=True)))
        with refused(errors.PartSealed):
            await append(engine, "s", delta("p", 1, "y"))
        await append(engine, "s", put("a", text("p", "z")), delta("p", 1, "y"))
        assert await texts(engine, "p") == "zy"

    async def test_puts_stay_allowed(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", tool("p", state=COMPLETED, output="x"), completed=True))
        await append(engine, "s", put("a", tool("p", state=COMPLETED, output="better")), put("a", text("q", "more")))
        history = await replay(engine, "s")
        assert history.part("p").tool.output == "better"
        assert history.shape == {"a": ["p", "q"]}

    async def test_a_user_message_has_no_end(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "x")), delta("p", 1, "y"))
        assert await texts(engine, "p") == "xy"


class TestWhere:
    async def test_an_unknown_part(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.UnknownPart, "entries[0].delta.part_id", part_id="ghost"):
            await append(engine, "s", delta("ghost", 0, "x"))

    async def test_a_removed_part(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "")), remove_part("p"))
        with refused(errors.PartRemoved, "entries[0].delta.part_id", part_id="p"):
            await append(engine, "s", delta("p", 0, "x"))

    async def test_a_part_of_a_removed_message(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "")), remove("a"))
        with refused(errors.MessageRemoved, "entries[0].delta.part_id", part_id="p"):
            await append(engine, "s", delta("p", 0, "x"))
        await append(engine, "s", assistant("a"))
        with refused(errors.MessageRemoved, "entries[0].delta.part_id", part_id="p"):
            await append(engine, "s", delta("p", 0, "x"))

    async def test_a_part_in_its_new_place(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "old")), delta("p", 3, "er"), remove("a"))
        await append(engine, "s", assistant("a", text("p", "new")), delta("p", 3, "er"))
        assert await texts(engine, "p") == "newer"
        assert await texts(engine, "p", 4) == "older"

    async def test_a_hidden_part_goes_on(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "x")), revert("a"), delta("p", 1, "y"))
        assert (await replay(engine, "s")).ids == []
        await append(engine, "s", v1.EntryInput(revert_clear=v1.RevertClear()))
        assert await texts(engine, "p") == "xy"

    @pytest.mark.parametrize(
        ("part", "change"),
        [
            (text("p"), delta("p", 0, output="x")),
            (text("p"), delta("p", 0, raw_input="x")),
            (reasoning("p"), delta("p", 0, output="x")),
            (tool("p", state=RUNNING), delta("p", 0, "x")),
            (v1.PromptPart(id="p", step_start=v1.StepStartPart()), delta("p", 0, "x")),
        ],
    )
    async def test_a_wrong_target(self, engine: Engine, part: v1.PromptPart, change: v1.EntryInput) -> None:
        await opened(engine, "s", assistant("a", part))
        with refused(errors.InvalidDelta, "entries[0].delta", part_id="p"):
            await append(engine, "s", change)

    async def test_a_kind_that_takes_none(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", compaction("p")))
        with refused(errors.InvalidDelta, "entries[0].delta", part_id="p"):
            await append(engine, "s", delta("p", 0, "x"))

    async def test_no_target_and_no_text(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p")))
        with refused(errors.UnknownToThisServer, "entries[0].delta.target"):
            await append(engine, "s", delta("p", 0))
        empty = delta("p", 0)
        empty.delta.text = ""
        with refused(errors.RuleViolation, "entries[0].delta.text"):
            await append(engine, "s", empty)
        with refused(errors.RuleViolation, "entries[0].delta.offset"):
            await append(engine, "s", delta("p", -1, "x"))


async def test_a_text_cannot_stream_past_the_limit_of_a_part(store: Store) -> None:
    engine = Engine(store, limits=Limits(part_bytes=200))
    await opened(engine, "s", assistant("a", text("p")), delta("p", 0, "x" * 150))
    await append(engine, "s", delta("p", 150, "x"))
    with refused(errors.PartTooLarge, "entries[0].delta.text", part_id="p") as caught:
        await append(engine, "s", delta("p", 151, "y" * 50))
    assert isinstance(caught.value.detail, v1.SizeLimit)
    assert caught.value.detail.size > caught.value.detail.limit == 200


async def test_C7_an_append_that_failed_and_was_sent_again_is_there_once(engine: Engine) -> None:
    await opened(engine, "s", user("u"), assistant("a", tool("p", "c")))
    result = put("a", tool("p", "c", state=COMPLETED, output="r"))
    with refused(errors.UnknownMessage):
        await append(engine, "s", result, put("ghost", text("q")))
    await append(engine, "s", result)
    await append(engine, "s", put("a", text("q", "final")))
    message = (await get_message(engine, "s", "a")).messages[0]
    assert [part.id for part in message.parts] == ["p", "q"]
    assert message.parts[0].tool.output == "r"


async def test_C6_a_result_of_a_call_that_was_never_appended_is_refused(engine: Engine) -> None:
    await opened(engine, "s", assistant("a"))
    with refused(errors.UnknownPart, "entries[0].delta.part_id", part_id="cX"):
        await append(engine, "s", delta("cX", 0, output="result"))


async def test_a_fork_has_the_deltas_up_to_its_revision(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "")), *(delta("p", at, str(at)) for at in range(8)))
    await fork(engine, "s", "f", 7)
    assert (await replay(engine, "f")).part("p").text.text == "0123"
    await append(engine, "f", delta("p", 4, "!"))
    assert (await replay(engine, "f")).part("p").text.text == "0123!"
    assert await texts(engine, "p") == "01234567"
