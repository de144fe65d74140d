"""Forks: copies up to a revision, with a chain of their own."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    CALLER,
    COMPLETED,
    append,
    assistant,
    clear,
    compaction,
    delta,
    fork,
    get_message,
    get_session,
    opened,
    properties,
    put,
    read,
    refused,
    remove,
    remove_part,
    replay,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from turnwire import errors, rules, v1
from turnwire.engine import Engine

LAST = 21


async def busy(engine: Engine) -> None:
    """A session with everything in it: revisions 1 to 21."""
    await opened(
        engine,
        "s",
        user("u1", text("p1")),
        assistant("a1", reasoning_and_call(), text("q2", ""), parent="u1"),
        delta("q2", 0, "one"),
        delta("q2", 3, "two"),
        put("a1", text("q3"), before="q2"),
        user("u2", text("p2")),
        assistant("a2", text("r1"), parent="u2"),
        summary("u2"),
        user("c", compaction("cp", "u2")),
        assistant("sum", text("s1", "so far"), parent="c"),
        remove_part("q3"),
        revert("u2"),
        clear(),
        revert("a1", "q2"),
        put("a1", text("q4")),
        turn("t2"),
        user("u3", turn="t2"),
        remove("u1"),
        user("u1", text("p1", "again"), turn="t2"),
    )


def reasoning_and_call() -> v1.PromptPart:
    return tool("q1", "c1", state=COMPLETED, output="r")


async def test_C31_C37_at_each_revision_it_equals_its_parent_there(engine: Engine) -> None:
    await busy(engine)
    for revision in range(1, LAST + 1):
        child = await fork(engine, "s", f"f{revision}", revision)
        assert child.head.revision == revision
        for at in range(1, revision + 1):
            one = await replay(engine, "s", at, summaries=True)
            other = await replay(engine, child.id, at, summaries=True)
            assert other.frames[:-1] == one.frames[:-1]
            assert other.head is not None
            assert one.head is not None
            assert (other.head.revision, other.head.recorded) == (at, one.head.recorded)


async def test_entries_are_copied_one_by_one(engine: Engine) -> None:
    await busy(engine)
    child = await fork(engine, "s", "f", 9)
    source = await read(engine, "s", 0, 9)
    copied = await read(engine, "f")
    assert [entry.revision for entry in copied] == list(range(1, 10))
    for one, other in zip(source, copied, strict=True):
        assert other.digest != one.digest
        other.digest = one.digest
        if one.revision == 1:
            assert other.session.forked_from == v1.ForkOrigin(session_id="s", revision=9, digest=source[8].digest)
            other.session.ClearField("forked_from")
        assert other == one
    assert child.forked_from == v1.ForkOrigin(session_id="s", revision=9, digest=source[8].digest)
    assert child == await get_session(engine, "f")


async def test_C32_every_reference_points_inside_the_fork(engine: Engine) -> None:
    """Ids are kept, so that what the fork's entries name is in the fork: found by reflection over the schema."""
    await busy(engine)
    await fork(engine, "s", "f")
    await engine.delete_session(CALLER, v1.DeleteSessionRequest(session_id="s"))
    history = await replay(engine, "f", 12)
    assert history.part("cp").compaction.tail_start_id == "u2"
    messages = {put.user.user.id or put.assistant.assistant.id for put in await read(engine, "f")}
    references = [each for entry in await read(engine, "f") for each in rules.references(entry)]
    inside = [each for each in references if not each.foreign]
    assert {each.value for each in inside if each.kind == v1_kind("MESSAGE")} <= messages
    assert {each.value for each in references if each.foreign} == {"s"}
    assert (await get_message(engine, "f", "u2", 12)).ids == ["u2"]


def v1_kind(name: str) -> int:
    from turnwire.v1 import options_pb2

    return options_pb2.RefKind.Value(f"REF_KIND_{name}")


async def test_references_to_other_sessions_stay_as_they_are(engine: Engine) -> None:
    made = properties()
    made.parent.CopyFrom(v1.ParentLink(session_id="starter", part_id="prt"))
    await append(engine, "s", turn(), create=made)
    child = await fork(engine, "s")
    assert child.properties.parent == made.parent


async def test_the_last_turn_is_allowed_and_inclusive(engine: Engine) -> None:
    """C39."""
    await opened(engine, "s", user("u1"), assistant("a1"))
    assert (await fork(engine, "s", "f3", 3)).head.revision == 3
    assert (await replay(engine, "f3")).ids == ["u1"]
    await fork(engine, "s", "head")
    assert (await replay(engine, "head")).ids == ["u1", "a1"]
    with refused(errors.RevisionOutOfRange, "revision") as caught:
        await fork(engine, "s", "f5", 5)
    assert caught.value.detail == v1.RevisionConflict(expected=5, actual=4)
    with refused(errors.RuleViolation, "revision"):
        await fork(engine, "s", "f0", 0)


@pytest.mark.parametrize("title", ["", " ", "\t\n"])
async def test_C39_a_blank_title_is_refused(engine: Engine, title: str) -> None:
    await opened(engine, "s")
    with refused(errors.RuleViolation, "title"):
        await fork(engine, "s", "f", title=title)


async def test_C39_a_title_and_two_forks_at_once(engine: Engine) -> None:
    await append(engine, "s", turn(), create=properties(title="parent"))
    children = await asyncio.gather(fork(engine, "s", "", title="main"), fork(engine, "s", "", title="main"))
    assert children[0].id != children[1].id
    assert [child.properties.title for child in children] == ["main", "main"]
    assert (await get_session(engine, "s")).properties.title == "parent"
    assert (await fork(engine, "s", "f")).properties.title == "parent"


async def test_a_title_over_a_later_one_of_the_parent(engine: Engine) -> None:
    await append(engine, "s", turn(), create=properties(title="first"))
    await append(engine, "s", v1.EntryInput(session=properties(title="second")), user("u"))
    child = await fork(engine, "s", "f", title="main")
    assert child.properties.title == "main"
    assert (await get_session(engine, "f")).properties.title == "main"
    assert (await fork(engine, "s", "g")).properties.title == "second"
    assert (await fork(engine, "s", "h", 2)).properties.title == "first"


async def test_a_fork_of_a_fork(engine: Engine) -> None:
    await busy(engine)
    first = await fork(engine, "s", "f", 12)
    await append(engine, "f", user("own"))
    second = await fork(engine, "f", "g")
    assert second.forked_from == v1.ForkOrigin(
        session_id="f", revision=13, digest=(await get_session(engine, "f")).head.digest
    )
    assert first.forked_from.session_id == "s"
    assert (await replay(engine, "g")).messages == (await replay(engine, "f")).messages
    assert (await replay(engine, "g", 12)).messages == (await replay(engine, "s", 12)).messages


async def test_they_go_their_own_ways(engine: Engine) -> None:
    await opened(engine, "s", user("u1"), assistant("a1", text("p", "x")))
    await fork(engine, "s", "f")
    await append(engine, "s", user("u2"), delta("p", 1, "s"))
    await append(engine, "f", remove("u1"), delta("p", 1, "f"), turn("t2"), user("u2", turn="t2"))
    assert (await replay(engine, "s")).ids == ["u1", "a1", "u2"]
    assert (await replay(engine, "s")).part("p").text.text == "xs"
    assert (await replay(engine, "f")).ids == ["a1", "u2"]
    assert (await replay(engine, "f")).part("p").text.text == "xf"
    assert (await replay(engine, "f", last_turns=1)).ids == ["u2"]


async def test_what_was_refused_is_refused_in_the_fork_too(engine: Engine) -> None:
    await busy(engine)
    await fork(engine, "s", "f", 19)
    with refused(errors.PartRemoved, part_id="q3"):
        await append(engine, "f", put("a1", text("q3")))
    with refused(errors.PartRemoved, part_id="q2"):
        await append(engine, "f", put("a1", text("q2")))
    with refused(errors.MessageRemoved, message_id="u2"):
        await append(engine, "f", put("u2", text("x")))
    with refused(errors.DuplicateCallId, call_id="c1"):
        await append(engine, "f", put("a1", tool("x", "c1")))
    with refused(errors.NoOpenRevert):
        await append(engine, "f", clear())
    assert (await append(engine, "f", turn("t2"))).results[0].existing
    await fork(engine, "s", "g", 12)
    await append(engine, "g", put("a1", text("q3", "still there")))


async def test_a_turn_that_came_after_its_message_in_the_request(engine: Engine) -> None:
    """A fork that ends between them lacks the turn, and takes it when it comes."""
    await append(engine, "s", user("u1", turn="late"), turn("late"), create=True)
    await fork(engine, "s", "f", 2)
    assert (await replay(engine, "f")).kinds == ["user", "head"]
    await append(engine, "f", turn("other"))
    assert (await replay(engine, "f")).kinds == ["user", "head"]
    assert (await replay(engine, "f", last_turns=1)).ids == ["u1"]
    await append(engine, "f", turn("late", agent="plan"))
    history = await replay(engine, "f")
    assert history.kinds == ["turn", "user", "head"]
    assert history.turns[0].request.agent == "plan"
    assert (await replay(engine, "f", last_turns=1)).ids == ["u1"]


async def test_a_taken_id(engine: Engine) -> None:
    await opened(engine, "s")
    await opened(engine, "f")
    with refused(errors.SessionAlreadyExists, session_id="f"):
        await fork(engine, "s", "f")
    with refused(errors.SessionAlreadyExists, session_id="s"):
        await fork(engine, "s", "s")
    with refused(errors.SessionNotFound, session_id="ghost"):
        await fork(engine, "ghost", "g")


class TestRetry:
    async def retry(self, engine: Engine, new_id: str = "", title: str | None = None) -> v1.Session:
        request = v1.ForkSessionRequest(session_id="s", new_session_id=new_id, title=title, request_id="r")
        return (await engine.fork_session(CALLER, request)).session

    @pytest.mark.parametrize("new_id", ["", "f"])
    async def test_C35_three_tries_make_one_session(self, engine: Engine, new_id: str) -> None:
        await opened(engine, "s", user("u"))
        tries = [await self.retry(engine, new_id) for _ in range(3)]
        assert tries[0] == tries[1] == tries[2]
        response = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
        assert len(response.sessions) == 2

    @pytest.mark.parametrize("new_id", ["", "f"])
    async def test_C35_at_once(self, engine: Engine, new_id: str) -> None:
        await opened(engine, "s", user("u"))
        tries = await asyncio.gather(*(self.retry(engine, new_id) for _ in range(5)))
        assert all(each == tries[0] for each in tries)

    async def test_a_hit_comes_before_any_other_check(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        first = await self.retry(engine)
        await append(engine, "s", user("u2"))
        assert await self.retry(engine) == first
        with refused(errors.RequestIdReused, "request_id"):
            await self.retry(engine, title=" ")

    async def test_C35_one_that_failed_leaves_nothing(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        for _ in range(3):
            with refused(errors.RuleViolation):
                await self.retry(engine, title="")
        response = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
        assert [session.id for session in response.sessions] == ["s"]
