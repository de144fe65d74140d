"""What the log refuses so that nothing is stored that could not be put, read or computed again."""

from __future__ import annotations

import pytest

from tests.builders import append, assistant, get_message, opened, put, refused, text, tool, turn, user
from turnwire import errors, v1
from turnwire.engine import Engine


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
