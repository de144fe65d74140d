"""Append: atomic, expected revisions, creation, request ids, limits, callers at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from tests.builders import (
    CALLER,
    append,
    assistant,
    delete,
    delta,
    fork,
    get_session,
    opened,
    properties,
    put,
    read,
    refused,
    replay,
    text,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import EMBEDDED, Caller, Engine, Limits, appends
from turnwire.store.base import Store


def request(*entries: v1.EntryInput, **fields: int | str) -> tuple[v1.AppendRequest, None]:
    return v1.AppendRequest(session_id="s", entries=entries, **fields), None


class TestEach:
    """Appends that share a commit are appends by themselves."""

    async def test_each_comes_to_what_it_would_alone(self, engine: Engine) -> None:
        await opened(engine, "s")
        once = request(user("u1"), request_id="r")
        outcomes = await engine.append_each(
            CALLER,
            [
                once,
                request(user("x", turn="unknown")),
                request(user("u2"), user("u3"), expected_revision=3),
                request(user("x"), expected_revision=3),
                (once[0], None),
                request(),
                request(user("u4")),
            ],
        )
        kinds = [v1.AppendResponse if isinstance(each, v1.AppendResponse) else type(each) for each in outcomes]
        reply = v1.AppendResponse
        refusals = (errors.UnknownTurn, errors.RevisionConflict, errors.RuleViolation)
        assert kinds == [reply, refusals[0], reply, refusals[1], reply, refusals[2], reply]
        assert outcomes[4] == outcomes[0]
        heads = [each.head.revision for each in outcomes if isinstance(each, v1.AppendResponse)]
        assert heads == [3, 5, 3, 6]
        assert [message.id for message in (await replay(engine, "s")).messages] == ["u1", "u2", "u3", "u4"]

    async def test_a_session_that_is_not_there_refuses_each(self, engine: Engine) -> None:
        outcomes = await engine.append_each(CALLER, [request(user("u")), request(user("v"))])
        assert [type(each) for each in outcomes] == [errors.SessionNotFound] * 2

    async def test_a_fault_of_the_program_fails_one(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        await opened(engine, "s")
        prepare = appends.prepare.prepare

        def faulty(entries: Any, *rest: Any) -> Any:
            if entries[0].user.user.id == "bad":
                raise ZeroDivisionError
            return prepare(entries, *rest)

        monkeypatch.setattr(appends.prepare, "prepare", faulty)
        outcomes = await engine.append_each(CALLER, [request(user(id)) for id in ("u", "bad", "v")])
        assert [type(each) for each in outcomes] == [v1.AppendResponse, ZeroDivisionError, v1.AppendResponse]


class TestExpectedRevision:
    async def test_none_is_any(self, engine: Engine) -> None:
        await opened(engine, "s")
        await append(engine, "s", user("u1"))
        assert (await append(engine, "s", user("u2"))).head.revision == 4

    async def test_the_head_is_taken(self, engine: Engine) -> None:
        head = (await opened(engine, "s")).head.revision
        assert (await append(engine, "s", user("u"), expected=head)).head.revision == 3

    @pytest.mark.parametrize("expected", [1, 3, 1 << 62])
    async def test_C81_another_head_is_a_conflict(self, engine: Engine, expected: int) -> None:
        await opened(engine, "s")
        with refused(errors.RevisionConflict, "expected_revision", expected=expected, actual=2) as caught:
            await append(engine, "s", user("u"), expected=expected)
        assert caught.value.detail == v1.RevisionConflict(expected=expected, actual=2)
        assert (await get_session(engine, "s")).head.revision == 2

    async def test_C23_of_two_writers_at_one_head_one_wins(self, engine: Engine) -> None:
        await opened(engine, "s")

        async def write(id: str) -> str:
            try:
                await append(engine, "s", user(id), expected=2)
            except errors.RevisionConflict as conflict:
                return conflict.metadata["actual"]
            return "won"

        outcomes = await asyncio.gather(*(write(f"u{at}") for at in range(8)))
        assert sorted(outcomes) == ["3"] * 7 + ["won"]
        assert (await get_session(engine, "s")).head.revision == 3

    async def test_zero_needs_create(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.RuleViolation, "expected_revision"):
            await append(engine, "s", user("u"), expected=0)

    async def test_zero_with_create_makes_the_session(self, engine: Engine) -> None:
        response = await append(engine, "s", turn(), expected=0, create=True)
        assert response.created
        with refused(errors.RevisionConflict, "expected_revision", expected=0, actual=2):
            await append(engine, "s", turn("t2"), expected=0, create=True)

    async def test_another_one_with_create_and_no_session(self, engine: Engine) -> None:
        with refused(errors.RevisionConflict, "expected_revision", expected=4, actual=0):
            await append(engine, "s", turn(), expected=4, create=True)
        with refused(errors.SessionNotFound):
            await get_session(engine, "s")

    async def test_a_negative_one(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.RuleViolation, "expected_revision"):
            await append(engine, "s", user("u"), expected=-1)


class TestCreate:
    async def test_an_unknown_session(self, engine: Engine) -> None:
        with refused(errors.SessionNotFound, session_id="s"):
            await append(engine, "s", turn())

    async def test_it_creates_in_the_same_transaction(self, engine: Engine) -> None:
        with refused(errors.UnknownTurn):
            await append(engine, "s", user("u"), create=True)
        with refused(errors.SessionNotFound):
            await get_session(engine, "s")
        response = await append(engine, "s", turn(), user("u"), create=properties(title="T"))
        assert [result.revision for result in response.results] == [2, 3]
        session = await get_session(engine, "s")
        assert session.properties.title == "T"
        assert (await read(engine, "s"))[0].session == session.properties

    async def test_the_time_of_creation_is_filled_in(self, engine: Engine) -> None:
        await append(engine, "s", turn(), create=True)
        session = await get_session(engine, "s")
        assert session.properties.created == session.recorded

    async def test_a_session_that_is_there_is_left_as_it_is(self, engine: Engine) -> None:
        await append(engine, "s", turn(), create=properties(title="first"))
        response = await append(engine, "s", user("u"), create=properties(title="second"))
        assert not response.created
        assert response.results[0].revision == 3
        assert (await get_session(engine, "s")).properties.title == "first"

    async def test_forked_from_is_the_servers(self, engine: Engine) -> None:
        made = properties()
        made.forked_from.CopyFrom(v1.ForkOrigin(session_id="x", revision=1, digest=bytes(32)))
        with refused(errors.RuleViolation, "create.forked_from"):
            await append(engine, "s", turn(), create=made)
        await opened(engine, "s")
        with refused(errors.RuleViolation, "entries[0].session.forked_from"):
            await append(engine, "s", v1.EntryInput(session=made))

    async def test_a_put_of_properties_is_whole(self, engine: Engine) -> None:
        await append(engine, "s", turn(), create=properties(title="T", directory="/d"))
        await append(engine, "s", v1.EntryInput(session=v1.SessionProperties(directory="/e")))
        shown = await get_session(engine, "s")
        assert not shown.properties.HasField("title")
        assert shown.properties.directory == "/e"
        assert shown.properties.created == shown.head.recorded

    async def test_C76_twenty_callers_create_it_once(self, engine: Engine) -> None:
        responses = await asyncio.gather(
            *(append(engine, "s", turn(), user(f"u{at}"), create=True) for at in range(20))
        )
        assert sorted(response.created for response in responses) == [False] * 19 + [True]
        assert len((await replay(engine, "s")).messages) == 20
        assert (await get_session(engine, "s")).head.revision == 22


class TestRequestIds:
    async def test_C83_a_retry_gets_the_first_reply(self, engine: Engine) -> None:
        await opened(engine, "s")
        first = await append(engine, "s", user(""), request_id="r")
        again = await append(engine, "s", user(""), request_id="r")
        assert again == first
        assert len((await replay(engine, "s")).messages) == 1

    async def test_C83_other_content_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s")
        await append(engine, "s", user("u"), request_id="r")
        with refused(errors.RequestIdReused, "request_id", request_id="r"):
            await append(engine, "s", user("u2"), request_id="r")

    async def test_C83_at_the_same_time_it_is_there_once(self, engine: Engine) -> None:
        await opened(engine, "s")
        replies = await asyncio.gather(*(append(engine, "s", user(""), request_id="r") for _ in range(10)))
        assert all(reply == replies[0] for reply in replies)
        assert len((await replay(engine, "s")).messages) == 1

    async def test_C106_the_first_prompt_again_on_resume(self, engine: Engine) -> None:
        for _ in range(2):
            response = await append(engine, "s", turn(), user("u"), create=True, request_id="start", expected=0)
            assert response.created
        assert (await get_session(engine, "s")).head.revision == 3

    async def test_a_hit_comes_before_any_other_check(self, engine: Engine) -> None:
        await opened(engine, "s")
        first = await append(engine, "s", turn("t2"), expected=2, request_id="r")
        await append(engine, "s", user("u"))
        assert await append(engine, "s", turn("t2"), expected=2, request_id="r") == first

    @pytest.mark.parametrize(
        "entries",
        [
            [],
            [v1.EntryInput()],
            [user("u", turn="ghost")],
            [turn("")] * 1001,
            [v1.EntryInput(user=v1.UserPut())],
        ],
        ids=["no entries", "no payload", "unknown turn", "too many", "rules"],
    )
    async def test_reuse_comes_before_any_other_refusal(self, engine: Engine, entries: list[v1.EntryInput]) -> None:
        await opened(engine, "s")
        await append(engine, "s", user("u"), request_id="r")
        with refused(errors.RequestIdReused):
            await append(engine, "s", *entries, request_id="r")

    async def test_a_refused_request_keeps_no_id(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.UnknownTurn):
            await append(engine, "s", user("u", turn="t2"), request_id="r")
        await append(engine, "s", turn("t2"))
        assert (await append(engine, "s", user("u", turn="t2"), request_id="r")).results[0].revision == 4

    async def test_it_is_scoped_to_session_method_and_tenant(self, engine: Engine) -> None:
        await opened(engine, "s")
        await opened(engine, "other")
        await append(engine, "s", user("u"), request_id="r")
        await append(engine, "other", user("u2"), request_id="r")
        request = v1.UpdateSessionRequest(session_id="s", request_id="r", properties=properties(title="T"))
        request.update_mask.paths.append("title")
        await engine.update_session(CALLER, request)
        await append(engine, "s", turn(), create=True, request_id="r", caller=Caller("b"))
        await engine.fork_session(CALLER, v1.ForkSessionRequest(session_id="s", request_id="r"))

    async def test_it_does_not_outlive_the_session(self, engine: Engine) -> None:
        await opened(engine, "s")
        await append(engine, "s", user("u"), request_id="r")
        await delete(engine, "s")
        with refused(errors.SessionDeleted, session_id="s"):
            await append(engine, "s", user("u"), request_id="r")

    async def test_a_fork_does_not_have_the_ids_of_its_parent(self, engine: Engine) -> None:
        await opened(engine, "s")
        await append(engine, "s", user("u"), request_id="r")
        await fork(engine, "s", "f", 2)
        assert (await append(engine, "f", user("other"), request_id="r")).results[0].revision == 3

    async def test_it_is_compared_as_received(self, engine: Engine) -> None:
        """The same content in other bytes is another request."""
        await opened(engine, "s")
        request = v1.AppendRequest(session_id="s", entries=[user("u")], request_id="r")
        raw = request.SerializeToString()
        await engine.append(CALLER, v1.AppendRequest.FromString(raw), raw)
        await engine.append(CALLER, v1.AppendRequest.FromString(raw), raw)
        longer = raw + b"\x0a\x01s"  # the session id once more
        with refused(errors.RequestIdReused):
            await engine.append(CALLER, v1.AppendRequest.FromString(longer), longer)

    @pytest.mark.parametrize("request_id", ["", "x" * 257])
    async def test_one_that_is_none(self, engine: Engine, request_id: str) -> None:
        await opened(engine, "s")
        with refused(errors.RuleViolation, "request_id"):
            await append(engine, "s", user("u"), request_id=request_id)


class TestLimits:
    async def test_no_entries(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.RuleViolation, "entries", rule="repeated.min_items"):
            await append(engine, "s")

    async def test_a_thousand_entries_and_one_more(self, engine: Engine) -> None:
        await opened(engine, "s")
        assert (await append(engine, "s", *(turn(f"n{at}") for at in range(1000)))).head.revision == 1002
        with refused(errors.RequestTooLarge, "entries") as caught:
            await append(engine, "s", *(turn(f"m{at}") for at in range(1001)))
        assert caught.value.detail == v1.SizeLimit(size=1001, limit=1000, unit="entries")

    async def test_C65_a_part_over_the_limit_is_named(self, store: Store) -> None:
        engine = Engine(store, limits=Limits(part_bytes=1000))
        await opened(engine, "s", user("u"))
        fits = text("p", "x" * 991)
        assert fits.ByteSize() == 1000
        await append(engine, "s", put("u", fits))
        large = text("q", "x" * 992)
        for entry, path in (
            (put("u", large), "entries[0].part.part"),
            (user("u", text("r"), large), "entries[0].user.user.parts[1]"),
            (assistant("a", large), "entries[0].assistant.assistant.parts[0]"),
        ):
            with refused(errors.PartTooLarge, path) as caught:
                await append(engine, "s", entry)
            assert caught.value.detail == v1.SizeLimit(size=1001, limit=1000, unit="bytes")
        assert await delete(engine, "s") == ["s"]

    async def test_C69_the_default_limit(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        with refused(errors.PartTooLarge, "entries[0].part.part"):
            await append(engine, "s", put("u", text("p", "x" * 4_194_305)))
        await append(engine, "s", put("u", text("p", "x" * 3_000_000)))

    @pytest.mark.parametrize(
        ("entry", "path"),
        [
            (turn("t2", system="x" * 1000), "entries[0].turn"),
            (assistant("a", finish="ok"), "entries[0].assistant.assistant"),
            (v1.EntryInput(summary=v1.MessageSummary(message_id="u", body="x" * 1000)), "entries[0].summary"),
            (v1.EntryInput(context=v1.PromptContext(system=["x" * 1000])), "entries[0].context"),
        ],
        ids=["turn", "header", "summary", "context"],
    )
    async def test_what_a_response_cannot_split_has_the_same_limit(
        self, store: Store, entry: v1.EntryInput, path: str
    ) -> None:
        engine = Engine(store, limits=Limits(part_bytes=1000))
        await opened(engine, "s", user("u"))
        if entry.HasField("assistant"):
            entry.assistant.assistant.run.path.cwd = "x" * 1000
        with refused(errors.PartTooLarge, path):
            await append(engine, "s", entry)

    def test_a_store_can_lower_the_limit(self, store: Store) -> None:
        assert Engine(store, limits=EMBEDDED).limits.part_bytes == min(EMBEDDED.part_bytes, store.part_bytes)

    @pytest.mark.parametrize("session_id", ["", "a b", "x" * 129, "ses/1", "é"])
    async def test_a_session_id_outside_the_pattern(self, engine: Engine, session_id: str) -> None:
        with refused(errors.RuleViolation, "session_id"):
            await append(engine, session_id, turn(), create=True)

    async def test_every_violation_is_listed(self, engine: Engine) -> None:
        await opened(engine, "s")
        bad = user("a b", text("c d"))
        bad.user.user.turn_id = "?"
        with refused(errors.RuleViolation, violations=3) as caught:
            await append(engine, "s", bad)
        assert {each.path for each in caught.value.violations} == {
            "entries[0].user.user.id",
            "entries[0].user.user.turn_id",
            "entries[0].user.user.parts[0].id",
        }


class TestTogether:
    async def test_revisions_stay_dense_under_many_writers(self, engine: Engine) -> None:
        await opened(engine, "s")
        await asyncio.gather(*(append(engine, "s", user(f"u{at}"), turn(f"n{at}")) for at in range(50)))
        entries = await read(engine, "s")
        assert [entry.revision for entry in entries] == list(range(1, 103))
        ids = [entry.user.user.id for entry in entries if entry.HasField("user")]
        assert ids == (await replay(engine, "s")).ids
        for one, other in _pairs(entries[2:]):
            assert one.user.user.id[1:] == other.turn.id[1:]

    async def test_recorded_times_never_go_back(self, engine: Engine) -> None:
        await opened(engine, "s")
        for at in range(20):
            await append(engine, "s", turn(f"n{at}"))
        times = [entry.recorded.ToMicroseconds() for entry in await read(engine, "s")]
        assert times == sorted(times)

    async def test_a_clock_that_goes_back(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        head = (await opened(engine, "s")).head
        monkeypatch.setattr(engine, "now_us", lambda: 5)
        assert (await append(engine, "s", user("u"))).head.recorded == head.recorded

    async def test_C28_a_late_write_after_a_delete(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", text("p", "")))
        await append(engine, "s", delta("p", 0, "secret"))
        await delete(engine, "s")
        for create in (False, True):
            with refused(errors.SessionDeleted, session_id="s") as caught:
                await append(engine, "s", delta("p", 6, "secret"), create=create)
            assert "secret" not in str(caught.value)

    async def test_C80_the_users_turn_survives_a_failed_model_call(self, engine: Engine) -> None:
        await opened(engine, "s", user("U1"))
        with refused(errors.UnknownMessage):
            await append(engine, "s", assistant("A1", parent="U9"))
        await append(engine, "s", assistant("A1", parent="U1"))
        assert (await replay(engine, "s")).ids == ["U1", "A1"]

    async def test_C111_another_tenant_sees_nothing(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        with refused(errors.SessionNotFound, session_id="s"):
            await append(engine, "s", put("u", text("p")), caller=Caller("b"))
        with refused(errors.SessionNotFound, session_id="s"):
            await replay(engine, "s", caller=Caller("b"))
        with refused(errors.SessionNotFound, session_id="s"):
            await engine.fork_session(Caller("b"), v1.ForkSessionRequest(session_id="s"))


def _pairs(entries: list[v1.Entry]) -> Iterable[tuple[v1.Entry, v1.Entry]]:
    return zip(entries[::2], entries[1::2], strict=True)
