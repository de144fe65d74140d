"""Removals and reverts: what goes, what comes back, and what is refused afterwards."""

from __future__ import annotations

from tests.builders import (
    append,
    assistant,
    clear,
    fork,
    get_message,
    get_session,
    opened,
    put,
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
from turnwire import errors, v1
from turnwire.engine import Engine


async def conversation(engine: Engine) -> None:
    """u1 [p1], a1 [q1 q2 q3], u2 [p2], a2 [r1]: revisions 3 to 6."""
    await opened(
        engine,
        "s",
        user("u1", text("p1")),
        assistant("a1", text("q1"), text("q2"), text("q3")),
        user("u2", text("p2")),
        assistant("a2", text("r1")),
    )


class TestRemoval:
    async def test_a_message_goes_with_its_parts_and_its_summary(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", summary("u1"), remove("u1"))
        history = await replay(engine, "s", summaries=True)
        assert history.ids == ["a1", "u2", "a2"]
        assert history.summaries == {}
        assert list((await replay(engine, "s", 7, summaries=True)).summaries) == ["u1"]

    async def test_a_part_goes_alone(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove_part("q2"))
        assert (await replay(engine, "s")).shape["a1"] == ["q1", "q3"]

    async def test_nothing_goes_by_absence(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", assistant("a1", text("q2", "new")), user("u1"))
        shape = (await replay(engine, "s")).shape
        assert shape["a1"] == ["q1", "q2", "q3"]
        assert shape["u1"] == ["p1"]

    async def test_a_part_for_a_removed_message_is_refused(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove("u1"))
        with refused(errors.MessageRemoved, "entries[0].part.message_id", message_id="u1"):
            await append(engine, "s", put("u1", text("new")))
        with refused(errors.MessageRemoved, "entries[0].summary.message_id", message_id="u1"):
            await append(engine, "s", summary("u1"))
        with refused(errors.MessageRemoved, "entries[0].removal.message_id", message_id="u1"):
            await append(engine, "s", remove("u1"))

    async def test_a_put_of_a_removed_part_is_refused(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove_part("q2"))
        with refused(errors.PartRemoved, "entries[0].part.part.id", part_id="q2"):
            await append(engine, "s", put("a1", text("q2")))
        with refused(errors.PartRemoved, "entries[0].assistant.assistant.parts[0].id", part_id="q2"):
            await append(engine, "s", assistant("a1", text("q2")))
        with refused(errors.PartRemoved, "entries[0].part.part.id", part_id="q2"):
            await append(engine, "s", put("u1", text("q2")))
        with refused(errors.PartRemoved, "entries[0].removal.part_id", part_id="q2"):
            await append(engine, "s", remove_part("q2"))
        with refused(errors.PartRemoved, "entries[0].part.before_id", part_id="q2"):
            await append(engine, "s", put("a1", text("q4"), before="q2"))

    async def test_also_when_its_message_was_removed_later(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove_part("q2"), remove("a1"))
        with refused(errors.PartRemoved, "entries[0].assistant.assistant.parts[1].id", part_id="q2"):
            await append(engine, "s", assistant("a1", text("q1"), text("q2")))

    async def test_also_in_one_request(self, engine: Engine) -> None:
        await conversation(engine)
        with refused(errors.PartRemoved, "entries[1].part.part.id", part_id="q2"):
            await append(engine, "s", remove_part("q2"), put("a1", text("q2")))

    async def test_a_put_of_a_removed_message_makes_a_new_place_at_the_end(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove("a1"), assistant("a1", text("q3", "again"), text("q9")))
        history = await replay(engine, "s")
        assert history.ids == ["u1", "u2", "a2", "a1"]
        assert history.shape["a1"] == ["q3", "q9"]
        assert (await replay(engine, "s", 6)).ids == ["u1", "a1", "u2", "a2"]
        assert (await get_message(engine, "s", "a1", 6)).shape == {"a1": ["q1", "q2", "q3"]}

    async def test_the_new_place_can_be_in_the_middle_and_of_the_other_role(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove("a2"), user("a2", before="u1"))
        history = await replay(engine, "s")
        assert history.ids == ["a2", "u1", "a1", "u2"]
        assert isinstance(history.messages[0], v1.User)

    async def test_parts_that_were_not_given_again_stay_away(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove("u1"), user("u1"))
        assert (await replay(engine, "s")).shape["u1"] == []
        await append(engine, "s", put("u1", text("p1", "later")))
        assert (await replay(engine, "s")).shape["u1"] == ["p1"]

    async def test_the_last_place_can_go_and_come_again_and_again(self, engine: Engine) -> None:
        await conversation(engine)
        for _ in range(3):
            await append(engine, "s", remove("a2"), assistant("a2", text("r1")))
        await append(engine, "s", remove("a2"))
        await append(engine, "s", user("u3", text("x")))
        await append(engine, "s", remove("u3"))
        await append(engine, "s", assistant("a2", text("r1")))
        assert (await replay(engine, "s")).shape["a2"] == ["r1"]
        shapes = [(await replay(engine, "s", revision)).ids[3:] for revision in range(6, 17)]
        assert shapes == [["a2"], [], ["a2"], [], ["a2"], [], ["a2"], [], ["u3"], [], ["a2"]]

    async def test_a_message_put_twice_with_a_removal_between_in_one_request(self, engine: Engine) -> None:
        await opened(engine, "s")
        await append(engine, "s", user("m", text("p")), remove("m"), user("m", text("q")))
        assert (await get_message(engine, "s", "m", 3)).shape == {"m": ["p"]}
        with refused(errors.MessageNotFound, "message_id", message_id="m"):
            await get_message(engine, "s", "m", 4)
        assert (await get_message(engine, "s", "m", 5)).shape == {"m": ["q"]}

    async def test_unknown_targets(self, engine: Engine) -> None:
        await conversation(engine)
        with refused(errors.UnknownMessage, "entries[0].removal.message_id", message_id="ghost"):
            await append(engine, "s", remove("ghost"))
        with refused(errors.UnknownPart, "entries[0].removal.part_id", part_id="ghost"):
            await append(engine, "s", remove_part("ghost"))
        with refused(errors.UnknownToThisServer, "entries[0].removal.target"):
            await append(engine, "s", v1.EntryInput(removal=v1.Removal()))
        with refused(errors.UnknownMessage, "entries[0].summary.message_id", message_id="ghost"):
            await append(engine, "s", summary("ghost"))
        with refused(errors.UnknownMessage, "entries[0].part.message_id", message_id="ghost"):
            await append(engine, "s", put("ghost", text("x")))

    async def test_a_call_id_of_a_removed_part_is_free(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a", tool("p", "c")), remove_part("p"))
        await append(engine, "s", put("a", tool("q", "c")))
        assert (await replay(engine, "s")).shape == {"a": ["q"]}


class TestRevert:
    async def test_a_message_and_all_behind_it_are_hidden(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("a1"))
        assert (await replay(engine, "s")).ids == ["u1"]
        assert (await replay(engine, "s", 6)).ids == ["u1", "a1", "u2", "a2"]
        with refused(errors.MessageNotFound, "message_id", message_id="a1"):
            await get_message(engine, "s", "a1")

    async def test_places_count_and_not_revisions(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", user("early", before="u1"), revert("a1"))
        assert (await replay(engine, "s")).ids == ["early", "u1"]

    async def test_a_part_of_a_message_and_all_behind_it(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", summary("a1"), summary("a2"), revert("a1", "q2"))
        history = await replay(engine, "s", summaries=True)
        assert history.shape == {"u1": ["p1"], "a1": ["q1"]}
        assert list(history.summaries) == ["a1"]

    async def test_the_session_shows_it(self, engine: Engine) -> None:
        await conversation(engine)
        assert not (await get_session(engine, "s")).HasField("revert")
        entry = revert("a1", "q2")
        entry.revert.snapshot = "abc"
        await append(engine, "s", entry)
        shown = (await get_session(engine, "s")).revert
        assert shown == v1.OpenRevert(revision=7, revert=v1.Revert(message_id="a1", part_id="q2", snapshot="abc"))
        await append(engine, "s", clear())
        assert not (await get_session(engine, "s")).HasField("revert")

    async def test_clear_shows_them_again(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("a1"), clear())
        assert (await replay(engine, "s")).ids == ["u1", "a1", "u2", "a2"]
        assert (await replay(engine, "s", 7)).ids == ["u1"]

    async def test_the_first_message_put_makes_it_final(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("u2"), user("u3"))
        assert (await replay(engine, "s")).ids == ["u1", "a1", "u3"]
        assert (await replay(engine, "s", 7)).ids == ["u1", "a1"]
        with refused(errors.NoOpenRevert, "entries[0].revert_clear"):
            await append(engine, "s", clear())
        with refused(errors.MessageRemoved, "entries[0].part.message_id", message_id="a2"):
            await append(engine, "s", put("a2", text("r2")))
        assert not (await get_session(engine, "s")).HasField("revert")

    async def test_a_put_of_a_message_that_was_there_makes_it_final_too(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("u2"), assistant("a1", finish="stop"))
        assert (await replay(engine, "s")).ids == ["u1", "a1"]
        with refused(errors.MessageRemoved, message_id="u2"):
            await append(engine, "s", put("u2", text("x")))

    async def test_a_put_of_the_hidden_message_itself_gives_it_a_new_place(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("u1"), user("u1", text("p1", "edited")))
        history = await replay(engine, "s")
        assert history.shape == {"u1": ["p1"]}
        assert history.part("p1").text.text == "edited"

    async def test_what_is_no_message_put_leaves_it_open(self, engine: Engine) -> None:
        await conversation(engine)
        await append(
            engine,
            "s",
            revert("u2"),
            turn("t2"),
            put("a1", text("q4")),
            put("a2", text("r2")),
            summary("u1"),
            remove_part("p1"),
        )
        assert (await replay(engine, "s")).shape == {"u1": [], "a1": ["q1", "q2", "q3", "q4"]}
        await append(engine, "s", clear())
        assert (await replay(engine, "s")).shape["a2"] == ["r1", "r2"]

    async def test_a_part_put_into_the_message_after_the_revert_is_shown(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("a1", "q2"), put("a1", text("q4")), put("a1", text("q0"), before="q3"))
        assert (await replay(engine, "s")).shape == {"u1": ["p1"], "a1": ["q1", "q0", "q4"]}
        await append(engine, "s", put("a1", text("q3", "still hidden")))
        assert (await replay(engine, "s")).shape["a1"] == ["q1", "q0", "q4"]
        await append(engine, "s", user("u3"))
        assert (await replay(engine, "s")).shape == {"u1": ["p1"], "a1": ["q1", "q0", "q4"], "u3": []}
        with refused(errors.PartRemoved, part_id="q3"):
            await append(engine, "s", put("a1", text("q3")))

    async def test_parts_that_a_final_revert_took_are_removed_for_good(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("a1", "q2"), user("u3"), remove("a1"))
        with refused(errors.PartRemoved, "entries[0].assistant.assistant.parts[0].id", part_id="q2"):
            await append(engine, "s", assistant("a1", text("q2")))
        await append(engine, "s", assistant("a1", text("q1")))

    async def test_at_most_one_is_open(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("u2"))
        with refused(errors.RevertAlreadyOpen, "entries[0].revert"):
            await append(engine, "s", revert("u1"))
        await append(engine, "s", clear(), revert("u1"))
        assert (await replay(engine, "s")).ids == []
        with refused(errors.NoOpenRevert, "entries[1].revert_clear"):
            await append(engine, "s", clear(), clear())

    async def test_the_place_itself_can_be_removed_meanwhile(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("a1"), remove("a1"))
        assert (await replay(engine, "s")).ids == ["u1"]
        await append(engine, "s", clear())
        assert (await replay(engine, "s")).ids == ["u1", "u2", "a2"]

    async def test_the_part_itself_can_be_removed_meanwhile(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("a1", "q3"), remove_part("q3"), put("a1", text("q4")))
        assert (await replay(engine, "s")).shape["a1"] == ["q1", "q2", "q4"]

    async def test_unknown_and_removed_targets(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", remove("u1"), remove_part("q1"))
        with refused(errors.UnknownMessage, "entries[0].revert.message_id", message_id="ghost"):
            await append(engine, "s", revert("ghost"))
        with refused(errors.MessageRemoved, "entries[0].revert.message_id", message_id="u1"):
            await append(engine, "s", revert("u1"))
        with refused(errors.UnknownPart, "entries[0].revert.part_id", part_id="ghost"):
            await append(engine, "s", revert("a1", "ghost"))
        with refused(errors.PartRemoved, "entries[0].revert.part_id", part_id="q1"):
            await append(engine, "s", revert("a1", "q1"))
        with refused(errors.UnknownPart, "entries[0].revert.part_id", part_id="p2"):
            await append(engine, "s", revert("a1", "p2"))

    async def test_a_fork_keeps_it_open_as_it_was(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", revert("u2"), user("u3"))
        child = await fork(engine, "s", "f", 7)
        assert child.revert.revision == 7
        assert (await replay(engine, "f")).ids == ["u1", "a1"]
        await append(engine, "f", clear())
        assert (await replay(engine, "f")).ids == ["u1", "a1", "u2", "a2"]
        assert not (await fork(engine, "s", "g")).HasField("revert")

    async def test_a_window_does_not_show_what_is_hidden(self, engine: Engine) -> None:
        await conversation(engine)
        await append(engine, "s", turn("t2"), user("u3", turn="t2"), revert("u2"))
        assert (await replay(engine, "s", last_turns=1)).ids == ["u1", "a1"]
        with refused(errors.MessageNotFound, "range.to_id", message_id="u2"):
            await replay(engine, "s", range=v1.MessageRange(to_id="u2"))
