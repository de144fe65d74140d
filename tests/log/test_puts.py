"""Puts of messages and parts: what they replace, what they leave, where things go."""

from __future__ import annotations

import pytest

from tests.builders import (
    COMPLETED,
    append,
    assistant,
    clear,
    fork,
    get_message,
    opened,
    put,
    reasoning,
    refused,
    remove,
    replay,
    revert,
    text,
    tool,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Engine


async def test_a_put_replaces_the_whole_header(engine: Engine) -> None:
    first = assistant("a", text("p", "x"), finish="stop", parent="u")
    first.assistant.assistant.usage.cost = 0.5
    await opened(engine, "s", user("u"), first)
    await append(engine, "s", assistant("a"))
    message = (await get_message(engine, "s", "a")).messages[0]
    assert isinstance(message, v1.Assistant)
    assert not message.HasField("result")
    assert not message.HasField("usage")
    assert not message.HasField("parent_id")
    assert [part.id for part in message.parts] == ["p"]


async def test_a_put_without_parts_finishes_a_message_and_keeps_its_parts(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", "x"), tool("q", state=COMPLETED)))
    response = await append(engine, "s", assistant("a", completed=True, finish="stop"))
    assert list(response.results[0].part_ids) == []
    message = (await get_message(engine, "s", "a")).messages[0]
    assert isinstance(message, v1.Assistant)
    assert message.result.finish == "stop"
    assert message.time.HasField("completed")
    assert [part.id for part in message.parts] == ["p", "q"]


async def test_parts_of_a_put_are_set_by_id_and_new_ones_go_to_the_end(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p1", "1"), text("p2", "2"), text("p3", "3")))
    await append(engine, "s", user("u", text("p4", "4"), text("p2", "two")))
    message = (await get_message(engine, "s", "u")).messages[0]
    assert [(part.id, part.text.text) for part in message.parts] == [
        ("p1", "1"),
        ("p2", "two"),
        ("p3", "3"),
        ("p4", "4"),
    ]


async def test_a_part_put_sets_one_part(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p1", "1"), text("p2", "2")))
    response = await append(engine, "s", put("u", text("p1", "one")), put("u", text("", "3")))
    (new,) = response.results[1].part_ids
    message = (await get_message(engine, "s", "u")).messages[0]
    assert [(part.id, part.text.text) for part in message.parts] == [("p1", "one"), ("p2", "2"), (new, "3")]
    assert new.startswith("prt_")


async def test_a_part_can_change_its_kind(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p1", "1"), text("p2", "2")))
    await append(engine, "s", put("a", tool("p1", "c1", state=COMPLETED)))
    message = (await get_message(engine, "s", "a")).messages[0]
    assert [part.WhichOneof("kind") for part in message.parts] == ["tool", "text"]


async def test_the_reply_lists_revisions_and_ids_in_order(engine: Engine) -> None:
    entries = [turn(""), user("", text(), text("mine")), assistant("", tool())]
    for entry in entries[1:]:
        (entry.user.user if entry.HasField("user") else entry.assistant.assistant).turn_id = "t"
    response = await append(engine, "s", turn("t"), *entries, create=True)
    assert [result.revision for result in response.results] == [2, 3, 4, 5]
    assert response.head.revision == 5
    assert response.created
    assert [result.id[:4] for result in response.results] == ["t", "trn_", "msg_", "msg_"]
    parts = response.results[2].part_ids
    assert len(parts) == 2
    assert parts[0].startswith("prt_")
    assert parts[1] == "mine"
    assert (await replay(engine, "s")).shape == {
        response.results[2].id: list(parts),
        response.results[3].id: list(response.results[3].part_ids),
    }


async def test_times_that_are_not_given_are_filled_in(engine: Engine) -> None:
    bare = assistant("a")
    bare.assistant.assistant.ClearField("time")
    bare.assistant.assistant.time.completed.FromSeconds(5)
    response = await opened(engine, "s", user("u", created=None), bare)
    history = await replay(engine, "s")
    for message in history.messages:
        assert message.time.created == response.head.recorded
    assert isinstance(history.messages[1], v1.Assistant)
    assert history.messages[1].time.completed.seconds == 5


async def test_what_is_refused_leaves_nothing(engine: Engine) -> None:
    before = (await opened(engine, "s", user("u"))).head
    with refused(errors.UnknownMessage, "entries[2].part.message_id", message_id="ghost"):
        await append(engine, "s", user("u2"), turn("t2"), put("ghost", text("p")))
    history = await replay(engine, "s")
    assert history.head == before
    assert history.ids == ["u"]


class TestManyAtOnce:
    """Several messages in one request: whether they are new is asked for all of them together."""

    async def test_they_are_as_if_they_came_one_by_one(self, engine: Engine) -> None:
        many = [user(f"m{index}", text(f"p{index}", "x"), text(f"q{index}", "y")) for index in range(80)]
        await opened(engine, "together", *many)
        await opened(engine, "alone")
        for each in many:
            await append(engine, "alone", each)
        changed = [user("m70", text("q70", "changed"), text("r", "new")), put("m3", text("p3", "changed"))]
        for session in ("together", "alone"):
            await append(engine, session, *changed)
        together, alone = await replay(engine, "together"), await replay(engine, "alone")
        assert together.messages == alone.messages
        assert together.shape["m70"] == ["p70", "q70", "r"]

    async def test_one_that_is_there_already_is_replaced(self, engine: Engine) -> None:
        await opened(engine, "s", user("b", text("p", "old")))
        await append(engine, "s", user("a", text("q")), user("b", text("p", "new")), user("c"))
        history = await replay(engine, "s")
        assert history.shape == {"b": ["p"], "a": ["q"], "c": []}

    async def test_the_same_message_twice_is_one(self, engine: Engine) -> None:
        await opened(engine, "s", user("a", text("p", "1")), user("b"), user("a", text("p", "2"), text("q")))
        assert (await replay(engine, "s")).shape == {"a": ["p", "q"], "b": []}

    async def test_two_do_not_have_the_same_part(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.IdInUse, "entries[1].user.user.parts[1].id", part_id="p"):
            await append(engine, "s", user("a", text("p")), user("b", text("q"), text("p")))
        with refused(errors.IdInUse, "entries[2].user.user.parts[0].id", part_id="p"):
            await append(engine, "s", user("a"), put("a", text("p")), user("b", text("p")))
        assert (await replay(engine, "s")).ids == []


class TestBefore:
    async def test_a_first_put_can_take_a_place_in_the_middle(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1"), user("m4"))
        await append(engine, "s", user("m2", before="m4"), user("m3", before="m4"), user("m0", before="m1"))
        assert (await replay(engine, "s")).ids == ["m0", "m1", "m2", "m3", "m4"]

    async def test_the_place_is_that_of_the_live_message(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1"), user("m2"), user("m3"))
        await append(engine, "s", remove("m2"), user("m2"), assistant("new", before="m2"))
        assert (await replay(engine, "s")).ids == ["m1", "m3", "new", "m2"]

    async def test_a_later_put_cannot_move_a_message(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1"), user("m2"))
        with refused(errors.PlaceIsFixed, "entries[0].user.before_id", message_id="m2"):
            await append(engine, "s", user("m2", before="m1"))

    async def test_a_part_can_take_a_place_in_the_middle(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p1"), text("p4")))
        await append(
            engine,
            "s",
            put("u", text("p2"), before="p4"),
            put("u", text("p3"), before="p4"),
            put("u", text("p0"), before="p1"),
        )
        assert (await replay(engine, "s")).shape == {"u": ["p0", "p1", "p2", "p3", "p4"]}

    async def test_a_later_put_cannot_move_a_part(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("p1"), text("p2")))
        with refused(errors.PlaceIsFixed, "entries[0].part.before_id", part_id="p2"):
            await append(engine, "s", put("u", text("p2"), before="p1"))

    async def test_what_comes_later_in_the_request_is_gone_before_by_order(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1", text("p1")))
        await append(
            engine,
            "s",
            user("m3", before="m2"),
            user("m2"),
            put("m1", text("p3"), before="p2"),
            put("m1", text("p2")),
        )
        history = await replay(engine, "s")
        assert history.ids == ["m1", "m3", "m2"]
        assert history.shape["m1"] == ["p1", "p3", "p2"]

    @pytest.mark.parametrize("entry", [user("m2", before="ghost"), assistant("m2", before="ghost")])
    async def test_an_unknown_message_is_refused(self, engine: Engine, entry: v1.EntryInput) -> None:
        await opened(engine, "s", user("m1"))
        path = f"entries[0].{entry.WhichOneof('payload')}.before_id"
        with refused(errors.UnknownMessage, path, message_id="ghost"):
            await append(engine, "s", entry)

    async def test_an_unknown_part_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1", text("p1")))
        with refused(errors.UnknownPart, "entries[0].part.before_id", part_id="ghost"):
            await append(engine, "s", put("m1", text("p2"), before="ghost"))

    async def test_a_part_of_another_message_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1", text("p1")), user("m2", text("q1")))
        with refused(errors.UnknownPart, "entries[0].part.before_id", part_id="q1"):
            await append(engine, "s", put("m1", text("p2"), before="q1"))

    async def test_a_removed_message_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1"), user("m2"), remove("m1"))
        with refused(errors.MessageRemoved, "entries[0].user.before_id", message_id="m1"):
            await append(engine, "s", user("m3", before="m1"))

    async def test_a_message_that_a_final_revert_took_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1"), user("m2"), revert("m2"))
        with refused(errors.MessageRemoved, "entries[0].user.before_id", message_id="m2"):
            await append(engine, "s", user("m3", before="m2"))
        await append(engine, "s", clear(), user("m3", before="m2"))
        assert (await replay(engine, "s")).ids == ["m1", "m3", "m2"]

    @pytest.mark.parametrize("anchor", ["last", "first", None])
    async def test_many_places_at_one_point_stay_in_order(self, engine: Engine, anchor: str | None) -> None:
        """Before the last, before the first, or (None) each before the one put just now."""
        await opened(engine, "s", user("first"), user("last"))
        expected = ["first", "last"]
        entries = []
        newest = "last"
        for step in range(300):
            before = anchor or newest
            newest = f"m{step}"
            entries.append(user(newest, before=before))
            expected.insert(expected.index(before), newest)
        await append(engine, "s", *entries[:150])
        await append(engine, "s", *entries[150:])
        assert (await replay(engine, "s")).ids == expected


class TestOrder:
    async def test_C18_order_is_neither_by_id_nor_by_clock(self, engine: Engine) -> None:
        ahead, behind = 1_900_000_000, 1_500_000_000
        await opened(
            engine,
            "s",
            user("msg_zzz", created=ahead),
            assistant("msg_000", parent="msg_zzz"),
            user("msg_aaa", created=behind),
            assistant("msg_111", parent="msg_aaa"),
        )
        history = await replay(engine, "s")
        assert history.ids == ["msg_zzz", "msg_000", "msg_aaa", "msg_111"]
        assert history.messages[0].time.created.seconds == ahead

    async def test_C20_equal_times_keep_the_order_of_the_request(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", reasoning("r", "think"), text("p", "say")))
        for _ in range(100):
            assert (await replay(engine, "s")).shape == {"a": ["r", "p"]}

    async def test_C21_an_update_of_the_first_leaves_the_order(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1", text("p1")), user("m2"), user("m3"))
        await append(engine, "s", user("m1", text("p1", "changed")))
        assert (await replay(engine, "s")).ids == ["m1", "m2", "m3"]

    async def test_C22_part_order_is_not_the_order_of_ids(self, engine: Engine) -> None:
        await opened(engine, "s", user("u", text("prt_b", "x")))
        await append(engine, "s", put("u", text("prt_z"), before="prt_b"), put("u", text("prt_a")))
        assert (await replay(engine, "s")).shape == {"u": ["prt_z", "prt_b", "prt_a"]}

    async def test_C26_a_parent_that_was_never_written_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s", user("m1"), assistant("m2", parent="m1"))
        path = "entries[1].assistant.assistant.parent_id"
        with refused(errors.UnknownMessage, path, message_id="ghost"):
            await append(engine, "s", user("m4"), assistant("m3", parent="ghost"))

    async def test_C27_a_message_that_others_point_to_can_go(self, engine: Engine) -> None:
        """Reading never fails: what points to it stays, with its reference as it was."""
        await opened(
            engine,
            "s",
            user("u1"),
            assistant("a1", parent="u1"),
            user("u2"),
            assistant("a2", parent="u2"),
            remove("u2"),
        )
        history = await replay(engine, "s")
        assert history.ids == ["u1", "a1", "a2"]
        assert isinstance(history.messages[2], v1.Assistant)
        assert history.messages[2].parent_id == "u2"
        await append(engine, "s", revert("a1"), assistant("a3", parent="u2"))
        assert (await replay(engine, "s")).ids == ["u1", "a3"]
        assert (await fork(engine, "s")).head.revision == 9


class TestIds:
    async def test_a_message_id_is_unique_over_both_roles(self, engine: Engine) -> None:
        await opened(engine, "s", user("m"), assistant("n"))
        with refused(errors.IdInUse, "entries[0].assistant.assistant.id", message_id="m"):
            await append(engine, "s", assistant("m"))
        with refused(errors.IdInUse, "entries[0].user.user.id", message_id="n"):
            await append(engine, "s", user("n"))

    async def test_a_part_id_is_unique_in_the_session(self, engine: Engine) -> None:
        await opened(engine, "s", user("m", text("p")), user("n"))
        with refused(errors.IdInUse, "entries[0].part.part.id", part_id="p"):
            await append(engine, "s", put("n", text("p")))
        with refused(errors.IdInUse, "entries[0].user.user.parts[1].id", part_id="p"):
            await append(engine, "s", user("n", text("q"), text("p")))

    async def test_a_part_id_twice_in_one_put_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.IdInUse, "entries[0].user.user.parts[1].id", part_id="p"):
            await append(engine, "s", user("m", text("p"), text("p")))

    async def test_each_kind_has_a_space_of_its_own(self, engine: Engine) -> None:
        await append(engine, "x", turn("x"), user("x", text("x"), turn="x"), create=True)
        assert (await replay(engine, "x")).shape == {"x": ["x"]}


class TestCallIds:
    async def test_C14_a_call_id_can_come_again_in_another_message(self, engine: Engine) -> None:
        await opened(
            engine,
            "s",
            assistant("a1", tool("p1", "call_0", state=COMPLETED, output="r1")),
            user("u2"),
            assistant("a2", tool("p2", "call_0", state=COMPLETED, output="r2")),
        )
        history = await replay(engine, "s")
        assert history.part("p1").tool.output == "r1"
        assert history.part("p2").tool.output == "r2"

    async def test_C14_the_same_call_id_twice_in_one_message_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", tool("p1", "c")))
        with refused(errors.DuplicateCallId, "entries[0].part.part.tool.call_id", call_id="c"):
            await append(engine, "s", put("a", tool("p2", "c")))
        path = "entries[0].assistant.assistant.parts[0].tool.call_id"
        with refused(errors.DuplicateCallId, path, call_id="c"):
            await append(engine, "s", assistant("a", tool("p2", "c")))
        with refused(errors.DuplicateCallId, "entries[0].assistant.assistant.parts[1].tool.call_id"):
            await append(engine, "s", assistant("b", tool("q1", "c"), tool("q2", "c")))

    async def test_a_call_id_that_a_part_gave_up_is_free(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", tool("p1", "c1")))
        await append(engine, "s", put("a", tool("p1", "c2")), put("a", tool("p2", "c1")))
        await append(engine, "s", put("a", text("p1", "no call any more")), put("a", tool("p3", "c2")))
        with refused(errors.DuplicateCallId, call_id="c1"):
            await append(engine, "s", put("a", tool("p1", "c1")))
        with refused(errors.DuplicateCallId, call_id="c2"):
            await append(engine, "s", put("a", tool("p1", "c2")))

    async def test_two_parts_of_one_put_can_swap_their_call_ids(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", tool("p1", "c1"), tool("p2", "c2")))
        await append(engine, "s", assistant("a", tool("p1", "c2"), tool("p2", "c1")))
        history = await replay(engine, "s")
        assert history.part("p1").tool.call_id == "c2"
        for call_id in ("c1", "c2"):
            with refused(errors.DuplicateCallId, call_id=call_id):
                await append(engine, "s", put("a", tool("p3", call_id)))

    async def test_an_older_part_can_take_over_a_call_id(self, engine: Engine) -> None:
        """The holder is the one that claimed last, not the one that came into being last."""
        await opened(engine, "s", assistant("a", tool("old", "c1"), tool("new", "c2")))
        await append(engine, "s", put("a", tool("new", "c3")), put("a", tool("old", "c2")))
        with refused(errors.DuplicateCallId, call_id="c2"):
            await append(engine, "s", put("a", tool("third", "c2")))
        await fork(engine, "s", "f")
        with refused(errors.DuplicateCallId, call_id="c2"):
            await append(engine, "f", put("a", tool("third", "c2")))

    async def test_C15_the_newer_result_stands_once(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", tool("p", "c", state=COMPLETED, output="old")))
        await append(engine, "s", put("a", tool("p", "c", state=COMPLETED, output="new")))
        history = await replay(engine, "s")
        assert [part.tool.output for part in history.messages[0].parts] == ["new"]

    async def test_C13_parts_stay_in_call_order_whichever_ends_first(self, engine: Engine) -> None:
        for session, order in (("x", ["p2", "p1"]), ("y", ["p1", "p2"])):
            await opened(engine, session, assistant("a", tool("p1", "p1"), tool("p2", "p2")))
            for id in order:
                await append(engine, session, put("a", tool(id, id, state=COMPLETED, output="done")))
        one, other = await replay(engine, "x"), await replay(engine, "y")
        assert one.messages == other.messages
        assert one.shape == {"a": ["p1", "p2"]}


class TestTurns:
    async def test_an_equal_turn_writes_no_entry(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        response = await append(engine, "s", turn("t"))
        assert response.results[0] == v1.AppendResult(revision=2, existing=True, id="t")
        assert response.head.revision == 3

    async def test_an_equal_turn_without_a_time_is_the_same(self, engine: Engine) -> None:
        await append(engine, "s", turn("t", created=None), create=True)
        response = await append(engine, "s", turn("t", created=None), user("u"))
        assert response.results[0].existing
        assert response.results[1].revision == 3

    async def test_an_equal_turn_twice_in_one_request(self, engine: Engine) -> None:
        response = await append(engine, "s", turn("t"), turn("t"), user("u"), create=True)
        assert [(result.revision, result.existing) for result in response.results] == [
            (2, False),
            (2, True),
            (3, False),
        ]

    @pytest.mark.parametrize("other", [turn("t", agent="plan"), turn("t", created=5), turn("t", system="")])
    async def test_other_content_is_refused(self, engine: Engine, other: v1.EntryInput) -> None:
        await opened(engine, "s")
        with refused(errors.TurnConflict, "entries[0].turn", turn_id="t"):
            await append(engine, "s", other)

    async def test_an_unknown_turn_is_refused(self, engine: Engine) -> None:
        await opened(engine, "s")
        with refused(errors.UnknownTurn, "entries[1].user.user.turn_id", turn_id="ghost"):
            await append(engine, "s", user("a"), user("u", turn="ghost"))
        with refused(errors.UnknownTurn, "entries[0].assistant.assistant.turn_id", turn_id="ghost"):
            await append(engine, "s", assistant("a", turn="ghost"))

    async def test_a_context_is_stored_once_per_content(self, engine: Engine) -> None:
        def context(system: str) -> v1.EntryInput:
            return v1.EntryInput(context=v1.PromptContext(system=[system]))

        await opened(engine, "s")
        response = await append(engine, "s", context("a"), context("b"), context("a"))
        assert [(result.revision, result.existing) for result in response.results] == [
            (3, False),
            (4, False),
            (3, True),
        ]


async def test_references_are_checked_after_the_whole_request(engine: Engine) -> None:
    """A message before its turn, an answer before its question, a compaction before its tail."""
    compacted = user("c")
    compacted.user.user.parts.add(id="cp").compaction.tail_start_id = "u"
    response = await append(engine, "s", assistant("a", parent="u"), compacted, user("u"), turn("t"), create=True)
    assert [result.revision for result in response.results] == [2, 3, 4, 5]
    history = await replay(engine, "s")
    assert history.kinds == ["turn", "assistant", "user", "user", "head"]
    assert (await replay(engine, "s", 4)).kinds == ["assistant", "user", "user", "head"]


async def test_an_unknown_tail_is_refused(engine: Engine) -> None:
    await opened(engine, "s", user("u"))
    entry = user("c")
    entry.user.user.parts.add(id="cp").compaction.tail_start_id = "ghost"
    with refused(errors.UnknownMessage, "entries[0].user.user.parts[0].compaction.tail_start_id"):
        await append(engine, "s", entry)


async def test_a_kind_of_part_has_its_roles(engine: Engine) -> None:
    await opened(engine, "s", user("u"), assistant("a"))
    with refused(errors.RuleViolation, "entries[0].part.part.tool", rule="turnwire.held_by"):
        await append(engine, "s", put("u", tool("p")))
    with refused(errors.RuleViolation, "entries[0].user.user.parts[0].tool", rule="turnwire.held_by"):
        await append(engine, "s", user("u", tool("p")))
