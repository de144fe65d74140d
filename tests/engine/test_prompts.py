"""Prompts through the engine: what a dry run refuses, how records are listed, and what chains."""

from __future__ import annotations

from collections.abc import AsyncIterator

from google.protobuf.message import Message

from tests.builders import assistant, opened, refused, text, user
from turnwire import errors, v1
from turnwire.engine import Caller, Engine, Limits
from turnwire.store.base import Store

CALLER = Caller()


def appended(*texts: str) -> v1.Mutation:
    parts = [v1.PromptPart(text=v1.TextPart(text=each, synthetic=True)) for each in texts]
    return v1.Mutation(append=v1.Append(message=v1.PromptMessage(role=v1.Role.ROLE_USER, parts=parts)))


async def mutated(engine: Engine, *mutations: v1.Mutation, session: str = "s", **fields: object) -> v1.PromptEnd:
    request = v1.MutatePromptRequest(session_id=session, turn_id="t", mutations=mutations)
    request.MergeFrom(v1.MutatePromptRequest(**fields))  # type: ignore[arg-type]
    return await last(v1.MutatePromptResponse(), engine.mutate_prompt(CALLER, request))


async def last(into: v1.MutatePromptResponse | v1.GetPromptResponse, responses: AsyncIterator[bytes]) -> v1.PromptEnd:
    async for response in responses:
        into.ParseFromString(response)
    assert isinstance(into, Message)
    return into.end


async def test_a_dry_run_refuses_what_recording_would(store: Store) -> None:
    engine = Engine(store, limits=Limits(part_bytes=2000))
    await opened(engine, "s", user("u"))
    for mutations, context, refusal, path in (
        ([appended("x" * 3000)], None, errors.PartTooLarge, None),
        ([appended("x" * 1500), appended("x" * 1500)], None, errors.PartTooLarge, None),
        ([], v1.PromptContext(system=["x" * 3000]), errors.PartTooLarge, "context"),
        ([appended("x")] * 1001, None, errors.RuleViolation, "mutations"),
    ):
        for dry_run in (True, False):
            with refused(refusal, path) as caught:
                await mutated(engine, *mutations, dry_run=dry_run, context=context)
            assert caught.value.path
    assert (await store.session("", "s")).head == 3


async def test_a_dry_run_moves_nothing(engine: Engine) -> None:
    await opened(engine, "s", user("u"), assistant("a", text("p"), parent="u"))
    before = await engine.store.session("", "s")
    dry = await mutated(engine, appended("more"), dry_run=True, context=v1.PromptContext(system=["be brief"]))
    assert await engine.store.session("", "s") == before
    assert dry.record.id == ""
    assert dry.head.revision == before.head
    made = await mutated(engine, appended("more"), context=v1.PromptContext(system=["be brief"]))
    assert made.record.id.startswith("prm_")
    assert made.record.digest == dry.record.digest
    assert made.record.context_digest == dry.record.context_digest
    assert made.head.revision == before.head + 2


async def test_equal_contexts_are_stored_once(engine: Engine) -> None:
    await opened(engine, "s", user("u"))
    context = v1.PromptContext(system=["be brief"], parameters_json='{"temperature":1.0}')
    first = await mutated(engine, context=context)
    second = await mutated(engine, context=context)
    assert second.head.revision == first.head.revision + 1
    assert second.record.context_digest == first.record.context_digest
    got = await last(
        v1.GetPromptResponse(),
        engine.get_prompt(CALLER, v1.GetPromptRequest(session_id="s", prompt_id=second.record.id)),
    )
    assert got.context == context
    assert got.digest_holds


async def test_pages_of_records(engine: Engine) -> None:
    await opened(engine, "s", user("u"))
    await opened(engine, "other", user("u"))
    made = [(await mutated(engine, appended(str(at)))).record.id for at in range(5)]
    found: list[str] = []
    token = ""
    while True:
        request = v1.ListPromptsRequest(session_id="s", page_size=2, page_token=token)
        page = await engine.list_prompts(CALLER, request)
        found += [record.id for record in page.prompts]
        token = page.next_page_token
        if not token:
            break
        for wrong in (
            v1.ListPromptsRequest(session_id="other", page_token=token),
            v1.ListPromptsRequest(session_id="s", page_token=token, turn_id="t"),
            v1.ListPromptsRequest(session_id="s", page_token="4"),
        ):
            with refused(errors.InvalidPageToken, "page_token"):
                await engine.list_prompts(CALLER, wrong)
    assert found == made


async def test_what_a_later_schema_has_written_into_a_mutation_is_served_and_kept(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p")))
    later = bytes.fromhex("a206020801")
    mutation = appended("x")
    mutation.append.message.MergeFromString(later)
    mutation.append.message.parts[0].MergeFromString(later)
    request = v1.MutatePromptRequest(session_id="s", turn_id="t", mutations=[mutation])
    made = v1.MutatePromptResponse.FromString(b"".join([each async for each in engine.mutate_prompt(CALLER, request)]))
    assert made.chunk.items[1].message == mutation.append.message
    request_again = v1.GetPromptRequest(session_id="s", prompt_id=made.end.record.id)
    again = v1.GetPromptResponse.FromString(b"".join([each async for each in engine.get_prompt(CALLER, request_again)]))
    assert again.end.digest_holds
    assert again.chunk == made.chunk
