"""What the log refuses so that nothing is stored that could not be put, read or computed again."""

from __future__ import annotations

import pytest

from tests.builders import (
    COMPLETED,
    RUNNING,
    append,
    assistant,
    delta,
    fork,
    get_message,
    opened,
    put,
    refused,
    replay,
    text,
    tool,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Engine, Limits
from turnwire.store.base import Store


async def test_one_put_has_a_limit_and_a_message_has_none(engine: Engine) -> None:
    await opened(engine, "s", user("u", *(text(f"p{at}") for at in range(10_000))))
    await append(engine, "s", put("u", text("one")), user("u", text("two")))
    (message,) = (await get_message(engine, "s", "u")).messages
    assert len(message.parts) == 10_002
    with refused(errors.RequestTooLarge, "entries[0].user.user.parts") as caught:
        await append(engine, "s", user("v", *(text(f"q{at}") for at in range(10_001))))
    assert caught.value.detail == v1.SizeLimit(size=10_001, limit=10_000, unit="parts")


async def test_nothing_names_itself(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", tool("p", "c")))
    for entry, path in (
        (assistant("b", parent="b"), "assistant.assistant.parent_id"),
        (user("b", before="b"), "user.before_id"),
        (assistant("b", before="b"), "assistant.before_id"),
        (put("a", text("q"), before="q"), "part.before_id"),
    ):
        with refused(errors.RuleViolation, f"entries[0].{path}") as caught:
            await append(engine, "s", entry)
        assert [each.rule for each in caught.value.violations] == ["turnwire.self"]


@pytest.mark.parametrize("base", ["self", "later", "nothing"])
async def test_a_prompt_record_is_based_on_an_earlier_one(engine: Engine, base: str) -> None:
    await opened(engine, "s")

    def record(id: str, **fields: object) -> v1.EntryInput:
        made = v1.PromptRecord(id=id, turn_id="t", assembly_version=1, profile="default", digest=bytes(32))
        made.MergeFrom(v1.PromptRecord(**fields))  # type: ignore[arg-type]
        return v1.EntryInput(prompt=made)

    with refused(errors.UnknownPrompt, "entries[1].prompt.base_prompt_id", prompt_id=base):
        await append(engine, "s", turn("t2"), record("self", base_prompt_id=base), record("later", base_revision=1))
    await append(engine, "s", record("later", base_revision=1), record("self", base_prompt_id="later"))


async def test_a_part_that_streams_is_held_to_the_limit_of_a_part(store: Store) -> None:
    """Also when its text grows in several fields, from a large beginning, and in a fork."""
    engine = Engine(store, limits=Limits(part_bytes=2000))
    big = tool("p", "c", state=RUNNING)
    big.tool.input_json = f'"{"i" * 900}"'
    await opened(engine, "s", assistant("a", big, text("q", "x" * 900)))
    await append(engine, "s", delta("p", 0, output="o" * 500), delta("p", 0, raw_input="r" * 300))
    await fork(engine, "s", "f", 4)
    await append(engine, "f", delta("p", 500, output="o" * 400))
    with refused(errors.PartTooLarge, "entries[0].delta.raw_input", part_id="p"):
        await append(engine, "f", delta("p", 0, raw_input="r" * 300))
    with refused(errors.PartTooLarge, "entries[0].delta.output", part_id="p") as caught:
        await append(engine, "s", delta("p", 500, output="o" * 300))
    assert isinstance(caught.value.detail, v1.SizeLimit)
    assert caught.value.detail.limit == 2000
    with refused(errors.PartTooLarge, "entries[0].delta.text", part_id="q"):
        await append(engine, "s", delta("q", 900, "y" * 1100))
    whole = v1.PromptPart()
    whole.CopyFrom((await replay(engine, "s")).part("p"))
    assert len(whole.SerializeToString()) <= 2000
    whole.tool.state = COMPLETED
    await append(engine, "s", put("a", whole))
    await append(engine, "s", delta("q", 900, "y" * 1000))


async def test_an_assistant_answers_a_user_message(engine: Engine) -> None:
    await opened(engine, "s", user("u"), assistant("a", parent="u"))
    with refused(errors.RuleViolation, "entries[0].assistant.assistant.parent_id"):
        await append(engine, "s", assistant("b", parent="a"))
    with refused(errors.RuleViolation, "entries[1].assistant.assistant.parent_id"):
        await append(engine, "s", assistant("b", parent="u"), assistant("c", parent="b"))
    await append(engine, "s", assistant("b", parent="u"))
    assert (await replay(engine, "s")).ids == ["u", "a", "b"]
