"""Sessions as wholes: create, get, list, update, delete."""

from __future__ import annotations

import asyncio

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tests.builders import (
    CALLER,
    append,
    delete,
    fork,
    get_message,
    get_session,
    opened,
    properties,
    read,
    refused,
    replay,
    revert,
    text,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Caller, Engine
from turnwire.store.base import Store


async def create(
    engine: Engine,
    session_id: str = "",
    made: v1.SessionProperties | None = None,
    *,
    request_id: str | None = None,
    caller: Caller = CALLER,
) -> v1.Session:
    request = v1.CreateSessionRequest(session_id=session_id, properties=made, request_id=request_id)
    return (await engine.create_session(caller, request)).session


async def update(
    engine: Engine,
    made: v1.SessionProperties,
    *paths: str,
    expected: int | None = None,
    request_id: str | None = None,
) -> v1.Session:
    request = v1.UpdateSessionRequest(
        session_id="s", properties=made, expected_revision=expected, request_id=request_id
    )
    request.update_mask.paths.extend(paths)
    request.update_mask.SetInParent()
    return (await engine.update_session(CALLER, request)).session


async def listed(
    engine: Engine, *, size: int = 0, caller: Caller = CALLER, wanted: v1.SessionFilter | None = None
) -> list[str]:
    """The ids of all pages."""
    ids: list[str] = []
    token = ""
    while True:
        request = v1.ListSessionsRequest(page_size=size, page_token=token, filter=wanted)
        response = await engine.list_sessions(caller, request)
        ids += [session.id for session in response.sessions]
        token = response.next_page_token
        if not token:
            return ids
        assert len(response.sessions) == size


class TestCreate:
    async def test_properties_are_revision_1(self, engine: Engine) -> None:
        made = properties(title="T", directory="/d")
        made.labels["team"] = "a"
        session = await create(engine, "s", made)
        assert session.id == "s"
        assert session.properties == made
        assert session.head.revision == 1
        assert session.recorded == session.head.recorded
        (entry,) = await read(engine, "s")
        assert entry.session == made
        assert entry.digest == session.head.digest
        assert await get_session(engine, "s") == session

    async def test_an_id_and_a_time_are_assigned(self, engine: Engine) -> None:
        session = await create(engine)
        assert session.id.startswith("ses_")
        assert len(session.id) == 24
        assert session.properties.created == session.recorded

    async def test_a_taken_id(self, engine: Engine) -> None:
        await create(engine, "s")
        with refused(errors.SessionAlreadyExists, "session_id", session_id="s"):
            await create(engine, "s")
        await create(engine, "s", caller=Caller("b"))

    async def test_a_retry(self, engine: Engine) -> None:
        first = await create(engine, "s", request_id="r")
        await append(engine, "s", turn())
        assert await create(engine, "s", request_id="r") == first
        with refused(errors.RequestIdReused, "request_id"):
            await create(engine, "s", properties(title="x" * 5000), request_id="r")

    async def test_a_request_id_needs_a_session_id(self, engine: Engine) -> None:
        with refused(errors.RuleViolation, "request_id"):
            await create(engine, request_id="r")

    async def test_rules(self, engine: Engine) -> None:
        with refused(errors.RuleViolation, "session_id"):
            await create(engine, "a b")
        with refused(errors.RuleViolation, "properties.title"):
            await create(engine, "s", properties(title="x" * 5000))
        made = properties()
        made.forked_from.session_id = "x"
        with refused(errors.RuleViolation, "properties.forked_from"):
            await create(engine, "s", made)
        with refused(errors.SessionNotFound, session_id="s"):
            await get_session(engine, "s")


class TestUpdate:
    async def test_the_mask_says_what_changes(self, engine: Engine) -> None:
        before = properties(title="T", directory="/d")
        before.labels["a"] = "1"
        await create(engine, "s", before)
        new = v1.SessionProperties(directory="/e", share_url="ignored", labels={"b": "2"})
        session = await update(engine, new, "title", "directory", "labels")
        after = properties(directory="/e")
        after.labels["b"] = "2"
        assert session.properties == after
        assert session.head.revision == 2
        assert await get_session(engine, "s") == session
        assert (await read(engine, "s"))[1].session == after

    async def test_a_message_in_the_properties_is_replaced_whole(self, engine: Engine) -> None:
        await create(engine, "s", v1.SessionProperties(origin=v1.Origin(program="x", version="1")))
        session = await update(engine, v1.SessionProperties(origin=v1.Origin(program="y")), "origin")
        assert session.properties.origin == v1.Origin(program="y")

    async def test_a_time_of_creation_that_is_cleared_is_filled_in(self, engine: Engine) -> None:
        await create(engine, "s", properties())
        session = await update(engine, v1.SessionProperties(title="x"), "created")
        assert session.properties.created.seconds > 1_700_000_000
        assert not session.properties.HasField("title")

    @pytest.mark.parametrize("path", ["forked_from", "colour", "labels.a", ""])
    async def test_a_mask_that_names_what_cannot_be_updated(self, engine: Engine, path: str) -> None:
        await create(engine, "s")
        with refused(errors.InvalidFieldMask) as caught:
            await update(engine, v1.SessionProperties(title="x"), "title", path)
        assert caught.value.path == f"update_mask.{path or '?'}"

    async def test_an_empty_mask(self, engine: Engine) -> None:
        await create(engine, "s")
        with refused(errors.InvalidFieldMask, "update_mask"):
            await update(engine, v1.SessionProperties(title="x"))

    async def test_what_is_required(self, engine: Engine) -> None:
        await create(engine, "s")
        request = v1.UpdateSessionRequest(session_id="s")
        request.update_mask.paths.append("title")
        with refused(errors.RuleViolation, "properties", rule="required"):
            await engine.update_session(CALLER, request)
        request = v1.UpdateSessionRequest(session_id="s", properties=properties())
        with refused(errors.RuleViolation, "update_mask", rule="required"):
            await engine.update_session(CALLER, request)

    async def test_the_rules_of_properties(self, engine: Engine) -> None:
        await create(engine, "s")
        with refused(errors.RuleViolation, "properties.labels"):
            many = v1.SessionProperties(labels={f"k{at}": "" for at in range(65)})
            await update(engine, many, "labels")

    async def test_an_expected_revision(self, engine: Engine) -> None:
        await create(engine, "s")
        with refused(errors.RevisionConflict, "expected_revision", expected=2, actual=1):
            await update(engine, v1.SessionProperties(title="x"), "title", expected=2)
        assert (await update(engine, v1.SessionProperties(title="x"), "title", expected=1)).head.revision == 2

    async def test_a_retry(self, engine: Engine) -> None:
        await create(engine, "s")
        first = await update(engine, v1.SessionProperties(title="x"), "title", expected=1, request_id="r")
        again = await update(engine, v1.SessionProperties(title="x"), "title", expected=1, request_id="r")
        assert again == first
        with refused(errors.RequestIdReused):
            await update(engine, v1.SessionProperties(title="y"), request_id="r")

    async def test_C56_twice_within_a_microsecond(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "now_us", lambda: 1_700_000_000_000_000)
        await create(engine, "s")
        for at in range(3):
            session = await update(engine, v1.SessionProperties(title=str(at)), "title", expected=at + 1)
        assert session.properties.title == "2"

    async def test_unknown_fields_of_the_properties_stay(self, engine: Engine) -> None:
        unknown = b"\xc0\x3e\x2a"
        await create(engine, "s", v1.SessionProperties.FromString(unknown))
        await update(engine, v1.SessionProperties.FromString(b"\x0a\x01x\xc8\x3e\x2a"), "title")
        entry = (await read(engine, "s"))[1]
        assert entry.session.title == "x"
        assert entry.session.SerializeToString().endswith(unknown)

    async def test_unknown_and_deleted_sessions(self, engine: Engine) -> None:
        with refused(errors.SessionNotFound, session_id="s"):
            await update(engine, v1.SessionProperties(title="x"), "title")


class TestDelete:
    async def test_every_later_call_says_deleted(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p")))
        assert await delete(engine, "s") == ["s"]
        calls = [
            get_session(engine, "s"),
            replay(engine, "s"),
            get_message(engine, "s", "u"),
            read(engine, "s"),
            append(engine, "s", turn("x")),
            append(engine, "s", turn("x"), create=True),
            create(engine, "s"),
            update(engine, v1.SessionProperties(title="x"), "title"),
            fork(engine, "s"),
            delete(engine, "s"),
            engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s")),
        ]
        for call in calls:
            with refused(errors.SessionDeleted, session_id="s"):
                await call
        assert await listed(engine) == []

    async def test_the_id_cannot_be_the_new_one_of_a_fork(self, engine: Engine) -> None:
        await opened(engine, "s")
        await opened(engine, "f")
        await delete(engine, "f")
        with refused(errors.SessionDeleted, session_id="f"):
            await fork(engine, "s", "f")

    async def test_an_unknown_session(self, engine: Engine) -> None:
        with refused(errors.SessionNotFound, session_id="s"):
            await delete(engine, "s")

    async def test_children_stay_unless_asked_for(self, engine: Engine) -> None:
        def child_of(parent: str) -> v1.SessionProperties:
            return v1.SessionProperties(parent=v1.ParentLink(session_id=parent))

        await create(engine, "root")
        await create(engine, "child", child_of("root"))
        await create(engine, "grandchild", child_of("child"))
        await create(engine, "other")
        await create(engine, "root", caller=Caller("b"))
        await create(engine, "child", child_of("root"), caller=Caller("b"))
        await fork(engine, "other", "fork")
        assert await delete(engine, "other", children=True) == ["other"]
        assert sorted(await delete(engine, "root", children=True)) == ["child", "grandchild", "root"]
        assert await listed(engine) == ["fork"]
        assert sorted(await listed(engine, caller=Caller("b"))) == ["child", "root"]
        for id in ("root", "child", "grandchild"):
            with refused(errors.SessionDeleted, session_id=id):
                await create(engine, id)

    async def test_without_children_they_stay(self, engine: Engine) -> None:
        await create(engine, "root")
        await create(engine, "child", v1.SessionProperties(parent=v1.ParentLink(session_id="root")))
        assert await delete(engine, "root") == ["root"]
        assert await listed(engine) == ["child"]

    async def test_a_fork_outlives_its_parent(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        before = await fork(engine, "s", "f")
        await delete(engine, "s")
        assert (await replay(engine, "f")).ids == ["u"]
        assert (await get_session(engine, "f")).forked_from == before.forked_from


@pytest.fixture
def clock(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The engine's clock: the last element, in microseconds."""
    now = [1_700_000_000_000_000]
    monkeypatch.setattr(engine, "now_us", lambda: now[-1])
    return now


class TestList:
    async def test_newest_first_then_by_id(self, engine: Engine, clock: list[int]) -> None:
        for id in ("b", "a", "c"):
            await create(engine, id)
        clock.append(clock[-1] + 1)
        await create(engine, "d")
        assert await listed(engine) == ["d", "a", "b", "c"]
        clock.append(clock[-1] + 1)
        await append(engine, "b", turn())
        assert await listed(engine) == ["b", "d", "a", "c"]

    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    async def test_pages(self, engine: Engine, clock: list[int], size: int) -> None:
        for at in range(7):
            clock.append(clock[-1] + at % 2)
            await create(engine, f"s{at}")
        whole = await listed(engine)
        assert len(whole) == 7
        assert await listed(engine, size=size) == whole

    async def test_a_thousand_sessions(self, engine: Engine, store: Store) -> None:
        await asyncio.gather(*(create(engine, f"s{at:04}") for at in range(1001)))
        response = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
        assert len(response.sessions) == 100
        assert len(set(await listed(engine, size=1000))) == 1001

    async def test_it_shows_each_as_it_is(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"), revert("u"))
        await fork(engine, "s", "f")
        response = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
        for session in response.sessions:
            assert session == await get_session(engine, session.id)
            assert session.revert.revision == 4

    async def test_filters(self, engine: Engine, clock: list[int]) -> None:
        started = clock[-1]
        for at, (id, directory, labels) in enumerate(
            [
                ("s0", "/a", {"team": "x", "env": "p"}),
                ("s1", "/a", {"team": "y"}),
                ("s2", "/b", {"team": "x"}),
                ("s3", "", {}),
            ]
        ):
            clock.append(started + 10 * at)
            made = v1.SessionProperties(labels=labels)
            if directory:
                made.directory = directory
            if id == "s1":
                made.archived.FromSeconds(1)
            if id == "s2":
                made.parent.session_id = "s0"
            await create(engine, id, made)

        def time(us: int) -> Timestamp:
            made = Timestamp()
            made.FromMicroseconds(us)
            return made

        cases: list[tuple[v1.SessionFilter, list[str]]] = [
            (v1.SessionFilter(), ["s3", "s2", "s1", "s0"]),
            (v1.SessionFilter(directory="/a"), ["s1", "s0"]),
            (v1.SessionFilter(directory=""), []),
            (v1.SessionFilter(labels={"team": "x"}), ["s2", "s0"]),
            (v1.SessionFilter(labels={"team": "x", "env": "p"}), ["s0"]),
            (v1.SessionFilter(labels={"team": ""}), []),
            (v1.SessionFilter(labels={"ghost": "x"}), []),
            (v1.SessionFilter(directory="' OR ''='"), []),
            (v1.SessionFilter(recorded_from=time(started + 10)), ["s3", "s2", "s1"]),
            (v1.SessionFilter(recorded_before=time(started + 10)), ["s0"]),
            (v1.SessionFilter(recorded_from=Timestamp(seconds=started // 1_000_000, nanos=1)), ["s3", "s2", "s1"]),
            (v1.SessionFilter(parent_session_id="s0"), ["s2"]),
            (v1.SessionFilter(archived=True), ["s1"]),
            (v1.SessionFilter(archived=False), ["s3", "s2", "s0"]),
            (v1.SessionFilter(archived=False, labels={"team": "x"}, directory="/b"), ["s2"]),
        ]
        for wanted, ids in cases:
            assert await listed(engine, wanted=wanted) == ids, wanted
            assert await listed(engine, wanted=wanted, size=1) == ids, wanted

    async def test_C109_a_key_that_no_label_can_have_is_refused(self, engine: Engine) -> None:
        with refused(errors.RuleViolation, 'filter.labels["a\') OR 1=1 --"]'):
            await listed(engine, wanted=v1.SessionFilter(labels={"a') OR 1=1 --": "x"}))

    async def test_filters_follow_the_properties(self, engine: Engine) -> None:
        await create(engine, "s", v1.SessionProperties(directory="/a", labels={"k": "1"}))
        await update(engine, v1.SessionProperties(directory="/b"), "directory", "labels")
        assert await listed(engine, wanted=v1.SessionFilter(directory="/a")) == []
        assert await listed(engine, wanted=v1.SessionFilter(labels={"k": "1"})) == []
        assert await listed(engine, wanted=v1.SessionFilter(directory="/b")) == ["s"]
        await fork(engine, "s", "f", 1)
        assert await listed(engine, wanted=v1.SessionFilter(labels={"k": "1"})) == ["f"]

    async def test_C110_an_unknown_filter_is_an_error(self, engine: Engine) -> None:
        await create(engine, "s")
        for raw, path in ((b"\x1a\x02\x48\x01", "filter.9"), (b"\x48\x01", "9")):
            with refused(errors.UnknownFilter, path):
                await engine.list_sessions(CALLER, v1.ListSessionsRequest.FromString(raw))

    async def test_tokens(self, engine: Engine) -> None:
        for at in range(3):
            await create(engine, f"s{at}")
        first = await engine.list_sessions(CALLER, v1.ListSessionsRequest(page_size=1))
        token = first.next_page_token
        for bad in ("x", "!!!!", token[:-4], token + "AAAA=", "AAAA", "é"):
            with refused(errors.InvalidPageToken, "page_token"):
                await engine.list_sessions(CALLER, v1.ListSessionsRequest(page_token=bad))
        other = v1.ListSessionsRequest(page_token=token, filter=v1.SessionFilter(directory="/"))
        with refused(errors.InvalidPageToken, "page_token"):
            await engine.list_sessions(CALLER, other)

    async def test_C111_a_token_of_another_tenant_shows_nothing_of_it(self, engine: Engine) -> None:
        for at in range(3):
            await create(engine, f"s{at}")
        token = (await engine.list_sessions(CALLER, v1.ListSessionsRequest(page_size=1))).next_page_token
        with refused(errors.InvalidPageToken, "page_token"):
            await engine.list_sessions(Caller("b"), v1.ListSessionsRequest(page_token=token))

    @pytest.mark.parametrize("size", [-1, 1001])
    async def test_a_page_size_out_of_range(self, engine: Engine, size: int) -> None:
        with refused(errors.RuleViolation, "page_size"):
            await engine.list_sessions(CALLER, v1.ListSessionsRequest(page_size=size))

    async def test_C65_listing_loads_no_parts(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p", "x" * 2_000_000)))
        response = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
        assert response.ByteSize() < 1000
