"""RenderPrompt: what is rendered, what the log then says of it, and that every legal session gives a legal body."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import (
    CALLER,
    COMPLETED,
    append,
    assistant,
    clear,
    delta,
    opened,
    parsed,
    put,
    read,
    reasoning,
    refused,
    remove,
    remove_part,
    revert,
    text,
    tool,
    turn,
    user,
)
from tests.rendering import checker
from tests.rendering.prompts import likely
from tests.strategies import messages
from turnwire import errors, rendering, v1
from turnwire.engine import Engine
from turnwire.log.frames import FRAME_BYTES
from turnwire.rendering.wire import change_of, dialect_number
from turnwire.store.memory import MemoryStore

CHAT = v1.Dialect.DIALECT_OPENAI_CHAT
ANTHROPIC = v1.Dialect.DIALECT_ANTHROPIC_MESSAGES
MODEL = v1.ModelRef(provider_id="acme", model_id="m-1")
OTHER = v1.ModelRef(provider_id="other", model_id="m-2")
CONTEXT = v1.PromptContext(system=["Be brief."], parameters_json='{"temperature":0.5}')


@dataclass
class Rendered:
    """The responses of a call, put together."""

    body: str
    changes: list[v1.RenderChange]
    end: v1.RenderEnd
    responses: list[v1.RenderPromptResponse]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def rules(self) -> list[str]:
        return [change_of(change).rule.value for change in self.changes]


async def collected(responses: AsyncIterator[bytes]) -> Rendered:
    found = await parsed(v1.RenderPromptResponse, responses)
    assert [response.HasField("end") for response in found] == [False] * (len(found) - 1) + [True]
    changes = [change for response in found for change in response.changes]
    return Rendered("".join(response.body for response in found), changes, found[-1].end, found)


async def render(
    engine: Engine, dialect: v1.Dialect.ValueType = CHAT, wire: bytes | None = None, **more: Any
) -> Rendered:
    if "prompt_id" not in more:
        more.setdefault("turn_id", "t")
    request = v1.RenderPromptRequest(session_id="s", dialect=dialect, **more)
    return await collected(engine.render_prompt(CALLER, request, wire))


async def recorded(engine: Engine, *mutations: v1.Mutation, **more: Any) -> str:
    """Record the prompt of the turn and return the record's id."""
    request = v1.MutatePromptRequest(session_id="s", turn_id="t", mutations=mutations, **more)
    responses = await parsed(v1.MutatePromptResponse, engine.mutate_prompt(CALLER, request))
    return responses[-1].end.record.id


async def renderings(engine: Engine, prompt_id: str) -> list[v1.PromptRendering]:
    request = v1.GetPromptRequest(session_id="s", prompt_id=prompt_id)
    responses = await parsed(v1.GetPromptResponse, engine.get_prompt(CALLER, request))
    return list(responses[-1].end.renderings)


def saying(content: str) -> v1.Mutation:
    message = v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[v1.PromptPart(text=v1.TextPart(text=content))])
    return v1.Mutation(append=v1.Append(message=message))


class TestTurn:
    async def test_the_history_at_the_head_for_the_model_of_the_turn(self, engine: Engine) -> None:
        head = (await opened(engine, "s", user("u", text("p", "hello")))).head
        found = await render(engine)
        assert found.body == '{"model":"m-1","messages":[{"role":"user","content":"hello"}]}'
        assert found.changes == []
        assert found.end == v1.RenderEnd(
            body_sha256=hashlib.sha256(found.body.encode()).digest(),
            renderer_version=rendering.RENDERER_VERSION,
            profile="default",
            model=MODEL,
            head=head,
        )

    async def test_another_revision_model_profile_and_context(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")), user("v", text("q", "again")))
        found = await render(engine, revision=3, model=OTHER, profile="opencode", context=CONTEXT)
        assert found.json == {
            "model": "m-2",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
            "temperature": 0.5,
        }
        assert found.end.profile == "opencode"
        assert found.end.model == OTHER

    async def test_a_change_names_its_rule_and_what_it_is_about(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")), assistant("a", tool("c"), completed=True))
        found = await render(engine)
        assert v1.RenderChange(rule=v1.RenderRule.RENDER_RULE_INTERRUPTED, message_id="a", part_id="c") in found.changes
        assert found.rules == ["interrupted"]

    async def test_options_count(self, engine: Engine) -> None:
        answer = assistant("a", tool("c", state=COMPLETED, output="x" * 50), completed=True)
        await opened(engine, "s", user("u", text("p", "hello")), answer)
        whole = await render(engine, options=v1.RenderOptions(output_bytes=0))
        cut = await render(engine, options=v1.RenderOptions(output_bytes=10))
        assert whole.json["messages"][-1]["content"] == "x" * 50
        assert cut.json["messages"][-1]["content"].startswith("x" * 10)
        assert "50" in cut.json["messages"][-1]["content"]
        assert cut.rules == ["output_cut"]

    async def test_a_turn_that_is_not_there(self, engine: Engine) -> None:
        await opened(engine)
        with refused(errors.TurnNotFound, "turn_id", turn_id="x"):
            await render(engine, turn_id="x")
        with refused(errors.RevisionOutOfRange, "revision"):
            await render(engine, revision=9)

    async def test_nothing_to_send(self, engine: Engine) -> None:
        await opened(engine)
        with refused(errors.EmptyPrompt, "", turn_id="t"):
            await render(engine)
        prompt_id = await recorded(engine)
        with refused(errors.EmptyPrompt, "", prompt_id=prompt_id):
            await render(engine, prompt_id=prompt_id)

    @pytest.mark.parametrize(
        ("more", "error", "path"),
        [
            ({"turn_id": None}, errors.UnknownToThisServer, "source"),
            ({"dialect": 0}, errors.RuleViolation, "dialect"),
            ({"dialect": 99}, errors.UnknownToThisServer, "dialect"),
            ({"profile": "odd"}, errors.UnknownProfile, ""),
            ({"record": True}, errors.RuleViolation, "record"),
            ({"options": v1.RenderOptions(cache_marks=9)}, errors.RuleViolation, "options.cache_marks"),
        ],
    )
    async def test_requests_that_are_refused(self, engine: Engine, more: Any, error: Any, path: str) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        with refused(error, path):
            await render(engine, **more)


class TestRecord:
    async def test_a_record_with_its_mutations_and_context(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        prompt_id = await recorded(engine, saying("go on"), context=CONTEXT)
        await append(engine, "s", user("v", text("q", "later")))
        found = await render(engine, prompt_id=prompt_id)
        assert found.json == {
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hello"},
                {"role": "user", "content": "go on"},
            ],
            "temperature": 0.5,
        }
        other = await render(engine, prompt_id=prompt_id, context=v1.PromptContext(system=["Be long."]))
        assert other.json["messages"][0]["content"] == "Be long."
        assert not found.end.HasField("revision")

    async def test_recording_says_in_the_log_how_it_was_rendered(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        prompt_id = await recorded(engine, context=CONTEXT)
        options = v1.RenderOptions(cache_marks=1, capabilities=v1.TargetCapabilities(pdf=False))
        found = await render(engine, ANTHROPIC, prompt_id=prompt_id, model=OTHER, options=options, record=True)
        assert found.end.revision == found.end.head.revision == 6
        entry = (await read(engine, "s"))[-1]
        assert entry.ignorable
        assert entry.revision == 6
        assert entry.digest == found.end.head.digest
        assert entry.rendering == v1.PromptRendering(
            prompt_id=prompt_id,
            dialect=ANTHROPIC,
            model=OTHER,
            profile="default",
            options=options,
            renderer_version=1,
            body_sha256=hashlib.sha256(found.body.encode()).digest(),
        )
        assert await renderings(engine, prompt_id) == [entry.rendering]

    async def test_an_equal_rendering_writes_nothing(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        first, second = await recorded(engine), await recorded(engine)
        one = await render(engine, prompt_id=first, record=True)
        again = await render(engine, prompt_id=first, record=True)
        assert (again.body, again.end.revision, again.end.head) == (one.body, one.end.revision, one.end.head)
        for more in ({"dialect": ANTHROPIC}, {"model": OTHER}, {"options": v1.RenderOptions(cache_marks=0)}):
            await render(engine, prompt_id=first, record=True, **more)
        await render(engine, prompt_id=second, record=True)
        assert [each.dialect for each in await renderings(engine, first)] == [CHAT, ANTHROPIC, CHAT, CHAT]
        assert [each.prompt_id for each in await renderings(engine, second)] == [second]

    async def test_appended_by_another(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        prompt_id = await recorded(engine)
        made = v1.PromptRendering(
            prompt_id=prompt_id, dialect=CHAT, model=MODEL, profile="x", renderer_version=9, body_sha256=b"\0" * 32
        )
        other = v1.PromptRendering()
        other.CopyFrom(made)
        other.renderer_version = 10
        entries = [v1.EntryInput(rendering=each) for each in (made, other, made)]
        results = (await append(engine, "s", *entries)).results
        assert [(result.revision, result.existing) for result in results] == [(5, False), (6, False), (5, True)]
        assert [each.renderer_version for each in await renderings(engine, prompt_id)] == [9, 10]
        made.prompt_id = "prm_none"
        with refused(errors.UnknownPrompt, "entries[0].rendering.prompt_id", prompt_id="prm_none"):
            await append(engine, "s", v1.EntryInput(rendering=made))

    async def test_the_last_hundred_are_shown(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        prompt_id = await recorded(engine)
        made = [
            v1.PromptRendering(
                prompt_id=prompt_id, dialect=CHAT, model=MODEL, profile="x", renderer_version=at, body_sha256=b"\0" * 32
            )
            for at in range(1, 104)
        ]
        await append(engine, "s", *(v1.EntryInput(rendering=each) for each in made))
        assert await renderings(engine, prompt_id) == made[3:]

    async def test_a_retry_gets_the_first_reply(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        prompt_id = await recorded(engine)
        first = await render(engine, prompt_id=prompt_id, record=True, request_id="r", wire=b"1")
        await append(engine, "s", user("v"))
        again = await render(engine, prompt_id=prompt_id, record=True, request_id="r", wire=b"1")
        assert (again.body, again.changes, again.end) == (first.body, first.changes, first.end)
        with refused(errors.RequestIdReused):
            await render(engine, prompt_id=prompt_id, record=True, request_id="r", wire=b"2")

    async def test_what_does_not_go_together(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        prompt_id = await recorded(engine)
        with refused(errors.RuleViolation) as caught:
            await render(engine, prompt_id=prompt_id, record=True, context=CONTEXT, revision=2)
        assert [each.path for each in caught.value.violations] == ["revision", "context"]
        with refused(errors.PromptNotFound, "prompt_id", prompt_id="prm_none"):
            await render(engine, prompt_id="prm_none")

    async def test_a_record_whose_digest_does_not_hold(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        record = v1.PromptRecord(
            id="prm_x", turn_id="t", base_revision=3, assembly_version=1, profile="default", digest=b"\0" * 32
        )
        await append(engine, "s", v1.EntryInput(prompt=record))
        with refused(errors.CorruptData, session_id="s", prompt_id="prm_x"):
            await render(engine, prompt_id="prm_x")

    async def test_of_another_version_of_the_rules(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "hello")))
        record = v1.PromptRecord(
            id="prm_x", turn_id="t", base_revision=3, assembly_version=9, profile="default", digest=b"\0" * 32
        )
        await append(engine, "s", v1.EntryInput(prompt=record))
        with refused(errors.UnknownToThisServer, "assembly_version"):
            await render(engine, prompt_id="prm_x")


async def test_a_log_with_renderings_can_be_restored(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p", "hello")))
    prompt_id = await recorded(engine)
    for number in (CHAT, ANTHROPIC):
        await render(engine, number, prompt_id=prompt_id, record=True)
    entries = await read(engine, "s")
    other = Engine(MemoryStore())
    await other.restore(CALLER, "s", [entry.SerializeToString(deterministic=True) for entry in entries])
    assert await read(other, "s") == entries
    assert await renderings(other, prompt_id) == await renderings(engine, prompt_id)
    assert (await render(other, CHAT, prompt_id=prompt_id, record=True)).end.revision == 5


async def test_a_large_body_comes_in_pieces_that_end_at_code_points(engine: Engine) -> None:
    content = "a" + "😀" * 300_000
    await opened(engine, "s", user("u", text("p", content)))
    found = await render(engine)
    assert found.json["messages"][0]["content"] == content
    bodies = [len(response.body.encode()) for response in found.responses[:-1]]
    assert len(bodies) == 2
    assert max(bodies) <= FRAME_BYTES
    assert found.end.body_sha256 == hashlib.sha256(found.body.encode()).digest()


async def test_many_changes_come_in_pieces(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p", "hello"), *(text(f"e{at}", "") for at in range(6_000))))
    found = await render(engine)
    assert [change.part_id for change in found.changes] == [f"e{at}" for at in range(6_000)]
    assert [len(response.changes) for response in found.responses] == [0, 2500, 2500, 1000, 0]
    assert max(response.ByteSize() for response in found.responses) < FRAME_BYTES


# From any sequence of appends that the log accepts, every dialect renders to something that its checker accepts.

_IDS = [f"m{at}" for at in range(4)]  # even ones are the user's
_PARTS = [f"m{at}.{of}" for at in range(4) for of in range(4)]


def _put(message: v1.User | v1.Assistant, at: int, model: v1.ModelRef) -> v1.EntryInput:
    id = _IDS[2 * at + isinstance(message, v1.Assistant)]
    message.id, message.turn_id = id, "t"
    for at, part in enumerate(message.parts):
        part.id = f"{id}.{at}"
    if isinstance(message, v1.User):
        return v1.EntryInput(user=v1.UserPut(user=message))
    message.ClearField("parent_id")
    message.run.model.CopyFrom(model)
    return v1.EntryInput(assistant=v1.AssistantPut(assistant=message))


@st.composite
def _realistic(draw: st.DrawFn, kind: type[v1.User] | type[v1.Assistant]) -> v1.User | v1.Assistant:
    message = draw(messages(kind, stored=True))
    for part in message.parts:
        part.id = f"p{len(part.id)}"
        likely(draw, part)
    return message


_MODELS = st.sampled_from([MODEL, OTHER])
_PUTS = st.builds(_put, _realistic(v1.User) | _realistic(v1.Assistant), st.integers(0, 1), _MODELS)
_STEPS = st.one_of(
    _PUTS,
    _PUTS,
    st.builds(put, st.sampled_from(_IDS), st.sampled_from([text, reasoning, tool]).flatmap(
        lambda make: st.sampled_from(_PARTS).map(make))),
    st.builds(delta, st.sampled_from(_PARTS), st.just(0), st.text(min_size=1, max_size=3)),
    st.builds(remove, st.sampled_from(_IDS)),
    st.builds(remove_part, st.sampled_from(_PARTS)),
    st.builds(revert, st.sampled_from(_IDS)),
    st.builds(clear),
    st.builds(turn, st.sampled_from(["t", "t2"])),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(puts=st.lists(_PUTS, min_size=1, max_size=4), steps=st.lists(_STEPS, max_size=6))
async def test_whatever_the_log_accepts_is_rendered_to_what_the_vendor_takes(
    puts: list[v1.EntryInput], steps: list[v1.EntryInput]
) -> None:
    engine = Engine(MemoryStore())
    await opened(engine, "s", user("first", text("first.0", "hello")))
    for step in [*puts, *steps]:
        try:
            await append(engine, "s", step)
        except errors.TurnwireError:
            continue  # what the log does not accept is not part of the sequence
    prompt_id = await recorded(engine)
    for dialect in rendering.Dialect:
        number = dialect_number(dialect)
        for more in ({"turn_id": "t"}, {"prompt_id": prompt_id, "record": True}):
            try:
                found = await render(engine, number, **more)
            except errors.EmptyPrompt:
                continue
            assert checker.faults(found.body, dialect) == []
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))).sound
