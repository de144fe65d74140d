"""What a restore refuses although its digests hold: entries that no server writes."""

from __future__ import annotations

import pytest

from tests.builders import (
    CALLER,
    assistant,
    compaction,
    delta,
    properties,
    put,
    refused,
    replay,
    text,
    tool,
    turn,
    user,
)
from tests.fuzz.mutate import chained
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.log import wire


def log(*given: v1.EntryInput | bytes) -> list[bytes]:
    """Serialized entries with digests that hold; bytes are those of a payload field as a later schema writes it."""
    entries = []
    for revision, each in enumerate(given, start=1):
        payload = each if isinstance(each, bytes) else each.SerializeToString(deterministic=True)
        envelope = v1.Entry(revision=revision)
        envelope.recorded.FromSeconds(1_700_000_000 + revision)
        entries.append(envelope.SerializeToString() + payload)
    return chained("s", entries)


def hooked(part: v1.PromptPart) -> v1.EntryInput:
    """A prompt record of a hook that appended a user message of one part."""
    message = v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[part])
    mutation = v1.Mutation(append=v1.Append(message=message))
    record = v1.PromptRecord(id="r", turn_id="t", base_revision=1, mutations=[mutation], digest=bytes(32))
    return v1.EntryInput(prompt=record)


async def test_what_a_server_writes_is_restored(engine: Engine) -> None:
    restored = await engine.restore(CALLER, "s", log(turn(), user("u", text("p", "hello"))))
    assert (restored.added, restored.head.revision) == (2, 2)
    assert (await replay(engine, "s")).part("p").text.text == "hello"


async def test_a_part_of_a_later_kind_is_kept(engine: Engine) -> None:
    later = b"\x0a\x01q\x82\x01\x00"  # id "q", and field 16
    part_put = wire.field(14, b"\x0a\x01u" + wire.field(2, later))
    await engine.restore(CALLER, "s", log(turn(), user("u", text("p", "hello")), part_put))
    history = await replay(engine, "s")
    assert history.shape == {"u": ["p", "q"]}
    assert history.part("q").SerializeToString() == later


async def test_a_message_without_an_id_is_refused(engine: Engine) -> None:
    with refused(errors.CorruptData, revision=2):
        await engine.restore(CALLER, "s", log(turn(), user("", text("p"))))


async def test_a_message_without_a_turn_is_refused(engine: Engine) -> None:
    with refused(errors.CorruptData, revision=2):
        await engine.restore(CALLER, "s", log(turn(), user("u", turn=""), delta("p", 0, "x")))


async def test_a_part_without_an_id_is_refused(engine: Engine) -> None:
    with refused(errors.CorruptData, revision=3):
        await engine.restore(CALLER, "s", log(turn(), user("u"), put("u", text(""))))


async def test_a_part_twice_in_one_put_is_refused(engine: Engine) -> None:
    with refused(errors.CorruptData, revision=2):
        await engine.restore(CALLER, "s", log(turn(), user("u", text("p", "a"), text("p", "b"))))


async def test_a_call_twice_in_one_put_is_refused(engine: Engine) -> None:
    with refused(errors.CorruptData, revision=2):
        await engine.restore(CALLER, "s", log(turn(), user("u", tool("p", "c"), tool("q", "c"))))


async def test_a_time_that_no_digest_can_hold_is_refused(engine: Engine) -> None:
    envelope = v1.Entry(revision=1, digest=bytes(32))
    envelope.recorded.FromSeconds(2**63 // 10**9 + 1)
    with refused(errors.CorruptData):
        await engine.restore(CALLER, "s", [envelope.SerializeToString() + turn().SerializeToString()])
    with refused(errors.SessionNotFound):
        await engine.get_session(CALLER, v1.GetSessionRequest(session_id="s"))


def again(**forked: str) -> v1.EntryInput:
    made = properties()
    if forked:
        made.forked_from.CopyFrom(v1.ForkOrigin(revision=1, digest=bytes(32), **forked))
    return v1.EntryInput(session=made)


NEVER: dict[str, list[v1.EntryInput]] = {
    "a user message before itself": [user("u", before="u")],
    "an assistant message before itself": [assistant("u", before="u")],
    "an assistant message that answers itself": [assistant("u", parent="u")],
    "a part before itself": [user("u"), put("u", text("p"), before="p")],
    "a tool call in a user message": [user("u", tool("p", "c"))],
    "a compaction in an assistant message": [assistant("u", compaction("p"))],
    "a later origin of a fork": [again(session_id="other")],
    "a part of a hook with an id": [user("u"), hooked(text("p", "x"))],
    "a tool call that a hook gives to a user": [user("u"), hooked(tool("", "c"))],
}


@pytest.mark.parametrize("entries", NEVER.values(), ids=NEVER)
async def test_what_never_was_legal_is_refused(engine: Engine, entries: list[v1.EntryInput]) -> None:
    with refused(errors.CorruptData, revision=1 + len(entries)):
        await engine.restore(CALLER, "s", log(turn(), *entries))
    with refused(errors.SessionNotFound):
        await engine.get_session(CALLER, v1.GetSessionRequest(session_id="s"))


async def test_what_may_have_been_legal_stays(engine: Engine) -> None:
    """Limits and forms of single fields, and what a fork begins with."""
    long = user("u", text("p"))
    long.user.user.parts[0].extra_json = "{"
    restored = await engine.restore(CALLER, "s", log(again(session_id="other"), turn(), long, again()))
    assert restored.head.revision == 4
