"""Whatever is valid can be stored and comes back as it was: C55, C61, C64, C88 and C91 for every kind of message."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.builders import CALLER, THEN, append, assistant, fork, opened, read, replay, summary, text, turn, user
from turnwire import v1
from turnwire.engine import Engine
from turnwire.store.memory import MemoryStore

_SETTINGS = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def _fit(message: v1.User | v1.Assistant) -> None:
    """Make a message that is valid by itself fit into a session that has turn ``t`` and nothing else."""
    message.id, message.turn_id = "m", "t"
    if isinstance(message, v1.Assistant):
        message.ClearField("parent_id")
    for at, part in enumerate(message.parts):
        part.id = f"p{at}"
        if part.HasField("compaction"):
            part.compaction.ClearField("tail_start_id")


async def _through(message: v1.User | v1.Assistant) -> None:
    engine = Engine(MemoryStore())
    if isinstance(message, v1.User):
        entry = v1.EntryInput(user=v1.UserPut(user=message))
    else:
        entry = v1.EntryInput(assistant=v1.AssistantPut(assistant=message))
    await opened(engine, "s", entry)
    await fork(engine, "s", "f")
    for session_id in ("s", "f"):
        assert (await replay(engine, session_id)).messages == [message]
        entry = v1.EntryInput.FromString((await read(engine, session_id))[2].SerializeToString())
        assert (entry.user.user if entry.HasField("user") else entry.assistant.assistant) == message


@given(strategies.messages(v1.User, stored=True))
@_SETTINGS
def test_user_messages(message: v1.User) -> None:
    _fit(message)
    asyncio.run(_through(message))


@given(strategies.messages(v1.Assistant, stored=True))
@_SETTINGS
def test_assistant_messages(message: v1.Assistant) -> None:
    _fit(message)
    asyncio.run(_through(message))


@given(strategies.messages(v1.Turn), strategies.messages(v1.MessageSummary), strategies.messages(v1.SessionProperties))
@_SETTINGS
def test_other_payloads(made: v1.Turn, derived: v1.MessageSummary, properties: v1.SessionProperties) -> None:
    properties.ClearField("forked_from")
    made.id, derived.message_id = "t", "u"

    async def through() -> None:
        engine = Engine(MemoryStore())
        entries = [v1.EntryInput(turn=made), user("u"), v1.EntryInput(summary=derived)]
        await append(engine, "s", *entries, create=properties)
        history = await replay(engine, "s", summaries=True)
        assert history.turns == [made]
        assert history.summaries == {"u": derived}
        assert (await read(engine, "s"))[0].session == properties

    asyncio.run(through())


@given(st.text(max_size=50))
@_SETTINGS
def test_any_text(content: str) -> None:
    async def through() -> None:
        engine = Engine(MemoryStore())
        await opened(engine, "s", user("u", text("p", content)))
        assert (await replay(engine, "s")).part("p").text.text == content

    asyncio.run(through())


async def test_C91_a_format_without_a_retry_count(engine: Engine) -> None:
    entry = turn("t")
    entry.turn.request.format.json_schema.schema_json = '{"type": "object"}'
    await append(engine, "s", entry, user("u"), create=True)
    await fork(engine, "s", "f")
    for session_id in ("s", "f"):
        made = (await replay(engine, session_id)).turns[0]
        assert made == entry.turn
        assert not made.request.format.json_schema.HasField("retry_count")
    response = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
    assert len(response.sessions) == 2


async def test_C96_a_later_turn_rewrites_none_before_it(engine: Engine) -> None:
    first = turn("t1", agent="plan")
    first.turn.request.variant = "high"
    second = turn("t2", agent="build")
    second.turn.request.model.model_id = "m-2"
    await append(engine, "s", first, user("u1", turn="t1"), second, user("u2", turn="t2"), create=True)
    history = await replay(engine, "s")
    assert history.turns == [first.turn, second.turn]
    assert history.turns[0].request.variant == "high"


async def test_C101_a_message_without_parts_is_there(engine: Engine) -> None:
    failed = assistant("a")
    failed.assistant.assistant.result.failure.aborted.SetInParent()
    failed.assistant.assistant.time.completed.FromSeconds(THEN)
    await opened(engine, "s", user("u"), failed)
    history = await replay(engine, "s")
    assert history.shape == {"u": [], "a": []}
    assert isinstance(history.messages[1], v1.Assistant)
    assert history.messages[1].result.failure.HasField("aborted")


@pytest.mark.parametrize("mime", ["image/jpg", "image/bmp", ""])
async def test_C64_the_media_type_is_kept_as_it_was_given(engine: Engine, mime: str) -> None:
    part = v1.PromptPart(id="p", file=v1.FilePart(mime=mime, url="data:,x"))
    await opened(engine, "s", user("u", part))
    assert (await replay(engine, "s")).part("p") == part


async def test_absent_is_neither_false_nor_empty(engine: Engine) -> None:
    parts = [
        v1.PromptPart(id="p1", text=v1.TextPart(text="")),
        v1.PromptPart(id="p2", text=v1.TextPart(text="", synthetic=False, ignored=False)),
        v1.PromptPart(id="p3", text=v1.TextPart(text="", synthetic=True)),
    ]
    await append(engine, "s", turn("t", system=""), user("u", *parts), summary("u", ""), create=True)
    history = await replay(engine, "s", summaries=True)
    assert list(history.messages[0].parts) == parts
    assert not history.part("p1").text.HasField("synthetic")
    assert history.part("p2").text.HasField("synthetic")
    assert history.turns[0].request.HasField("system")
    assert history.summaries["u"].HasField("body")
