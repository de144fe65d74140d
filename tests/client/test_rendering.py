"""``render_prompt`` over each transport, and the same without a service."""

from __future__ import annotations

import hashlib

import pytest

import turnwire
from tests.client.flow import assistant, turn, user
from turnwire import errors, v1
from turnwire.calls import Service
from turnwire.rendering import Capabilities, Change, Dialect, Options, Rule
from turnwire.rendering.wire import options_to

CONTEXT = v1.PromptContext(system=["Be brief."])


async def opened(tw: Service) -> str:
    """A session with a call that has no result, and a record of its prompt with a context."""
    call = v1.PromptPart(id="prt_c", tool=v1.ToolPart(call_id="c1", name="shell", input_json="{}"))
    call.tool.state = v1.ToolState.TOOL_STATE_RUNNING
    answer = assistant("msg_a1", "reading")
    answer.parts.append(call)
    await tw.append("ses_1", [turn(), user("msg_u1", "hello"), answer], create=True)
    return (await tw.mutate_prompt("ses_1", "trn_1", context=CONTEXT)).id


async def test_a_turn(tw: Service) -> None:
    await opened(tw)
    settings = (await tw.history("ses_1")).turns["trn_1"].request
    found = await tw.render_prompt("ses_1", "openai-chat", turn_id="trn_1")
    assert [message["role"] for message in found.json["messages"]] == ["user", "assistant", "tool"]
    assert found.json["model"] == settings.model.model_id
    assert found.changes == (Change(Rule.INTERRUPTED, "msg_a1", "prt_c"),)
    assert found.sha256 == hashlib.sha256(found.body.encode()).digest()
    assert (found.dialect, found.profile, found.version) == (Dialect.OPENAI_CHAT, "default", 1)
    assert found.model == settings.model
    assert found.revision is None
    early = await tw.render_prompt("ses_1", "openai-chat", turn_id="trn_1", revision=3)
    assert [message["role"] for message in early.json["messages"]] == ["user"]


async def test_it_is_what_render_makes_of_the_items(tw: Service) -> None:
    prompt_id = await opened(tw)
    prompt = await tw.get_prompt("ses_1", prompt_id)
    options = Options(interrupted_text="stopped", capabilities=Capabilities(reasoning_field="", pdf=False))
    for dialect in Dialect:
        found = await tw.render_prompt("ses_1", dialect, prompt_id=prompt_id, model="acme/m-1", options=options)
        local = turnwire.render(prompt.items, dialect, "acme/m-1", context=prompt.context, options=options)
        assert found == local
        assert "stopped" in found.body
        assert "Be brief." in found.body
        in_schema = turnwire.render(
            prompt.items, dialect.value, found.model, context=prompt.context, options=options_to(options)
        )
        assert in_schema == local


async def test_recording(tw: Service) -> None:
    prompt_id = await opened(tw)
    head = (await tw.get_session("ses_1")).head.revision
    found = await tw.render_prompt("ses_1", "anthropic-messages", prompt_id=prompt_id, record=True, profile="opencode")
    assert found.revision == head + 1
    again = await tw.render_prompt("ses_1", "anthropic-messages", prompt_id=prompt_id, record=True, profile="opencode")
    assert again == found
    (rendering,) = (await tw.get_prompt("ses_1", prompt_id)).renderings
    assert rendering.body_sha256 == found.sha256
    assert rendering.profile == "opencode"
    assert not rendering.HasField("options")
    assert [entry.rendering async for entry in tw.read_entries("ses_1", head + 1)] == [rendering]
    fork = await tw.fork_session("ses_1", new_session_id="ses_2")
    assert (await tw.get_prompt(fork.id, prompt_id)).renderings == (rendering,)


async def test_what_cannot_be_rendered(tw: Service) -> None:
    prompt_id = await opened(tw)
    with pytest.raises(ValueError, match="give one of them"):
        await tw.render_prompt("ses_1", "openai-chat")
    with pytest.raises(ValueError, match="give one of them"):
        await tw.render_prompt("ses_1", "openai-chat", turn_id="trn_1", prompt_id=prompt_id)
    with pytest.raises(ValueError, match="not a valid Dialect"):
        await tw.render_prompt("ses_1", "morse", turn_id="trn_1")
    with pytest.raises(ValueError, match="provider/model"):
        await tw.render_prompt("ses_1", "openai-chat", turn_id="trn_1", model="m")
    with pytest.raises(errors.UnknownProfile):
        await tw.render_prompt("ses_1", "openai-chat", turn_id="trn_1", profile="odd")
    with pytest.raises(errors.PromptNotFound):
        await tw.render_prompt("ses_1", "openai-chat", prompt_id="prm_none")
    with pytest.raises(errors.RuleViolation) as broken:
        await tw.render_prompt("ses_1", "openai-chat", turn_id="trn_1", record=True)
    assert broken.value.path == "record"
    await tw.append("ses_2", [turn()], create=True)
    with pytest.raises(errors.EmptyPrompt) as empty:
        await tw.render_prompt("ses_2", "openai-chat", turn_id="trn_1")
    assert empty.value.metadata == {"turn_id": "trn_1"}
    assert empty.value.status == "FAILED_PRECONDITION"
