"""Importing again: only what is new, changed or gone in the source changes the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import turnwire
from tests.formats.samples import Spelled, assistant, document, exact, take, text, tool, user
from turnwire import v1
from turnwire.embedded import Embedded
from turnwire.formats import Outcome, Report, ledger, stored
from turnwire.formats.load import load
from turnwire.formats.opencode import OPENCODE

SESSION = "ses_1"


@pytest.fixture
async def client() -> AsyncIterator[Embedded]:
    async with turnwire.open(":memory:") as opened:
        yield opened


def conversation(**more: Any) -> list[dict[str, Any]]:
    return [
        user("msg_1", text("prt_1", "hello"), at=1000),
        assistant("msg_2", text("prt_2"), tool("prt_3"), at=1001, parent="msg_1"),
        user("msg_3", text("prt_4", "go on"), at=1002),
        assistant("msg_4", text("prt_5", "done"), at=1003, parent="msg_3"),
    ]


async def bring(
    client: Embedded, *messages: dict[str, Any], source: str = "a.db", whole: bool = True, **info: Any
) -> tuple[Outcome, Report]:
    """Import a session; returns what became of it."""
    session = take(document(*messages, **info))
    session.source, session.whole = source, whole
    report = Report()
    return await load(client, session, report), report


async def export(client: Embedded) -> Any:
    return exact(OPENCODE.export(await stored.history(client, SESSION)))


async def head(client: Embedded) -> int:
    return (await client.get_session(SESSION)).head.revision


async def entries(client: Embedded, after: int) -> list[v1.Entry]:
    """The entries after a revision, but for the marks."""
    found = [entry async for entry in client.read_entries(SESSION)]
    return [entry for entry in found if entry.revision > after and not entry.HasField("session")]


async def test_nothing_changes_the_second_time(client: Embedded) -> None:
    assert (await bring(client, *conversation()))[0] is Outcome.IMPORTED
    before = await head(client)
    outcome, report = await bring(client, *conversation())
    assert (outcome, await head(client)) == (Outcome.UNCHANGED, before)
    assert report.total(Outcome.UNCHANGED, "message") == 4
    assert report.total(Outcome.UNCHANGED, "part") == 5


async def test_new_messages_go_to_the_end(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages[:2])
    before = await head(client)
    outcome, report = await bring(client, *messages)
    assert outcome is Outcome.UPDATED
    assert [entry.WhichOneof("payload") for entry in await entries(client, before)] == [
        *("turn", "user", "part", "assistant", "part")
    ]
    assert report.total(Outcome.IMPORTED, "message") == 2
    assert await export(client) == exact(document(*messages))


async def test_a_message_that_sorts_into_the_middle_takes_its_place(client: Embedded) -> None:
    messages = conversation()
    late = [
        user(
            "msg_25",
            text("prt_25"),
            at=1001,
        ),
        assistant("msg_26", text("prt_26"), at=1001, parent="msg_25"),
    ]
    await bring(client, *messages)
    await bring(client, *messages[:2], *late, *messages[2:])
    assert [message.id for message in (await client.history(SESSION)).messages] == [
        *("msg_1", "msg_2", "msg_25", "msg_26", "msg_3", "msg_4")
    ]
    assert await export(client) == exact(document(*messages[:2], *late, *messages[2:]))


async def test_a_part_that_sorts_into_the_middle_takes_its_place(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    messages[1]["parts"].insert(1, text("prt_25", "between", sessionID=SESSION, messageID="msg_2"))
    outcome, report = await bring(client, *messages)
    assert outcome is Outcome.UPDATED
    assert (report.total(Outcome.IMPORTED, "part"), report.total(Outcome.UNCHANGED, "message")) == (1, 4)
    assert await export(client) == exact(document(*messages))


async def test_what_changed_supersedes_and_the_rest_stays(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    before = await head(client)
    messages[1]["parts"][0]["text"] = "other words"
    messages[3]["info"]["finish"] = "length"
    outcome, report = await bring(client, *messages)
    assert outcome is Outcome.UPDATED
    assert [entry.WhichOneof("payload") for entry in await entries(client, before)] == ["part", "assistant"]
    assert (report.total(Outcome.UPDATED, "part"), report.total(Outcome.UPDATED, "message")) == (1, 1)
    assert await export(client) == exact(document(*messages))


async def test_other_settings_are_another_turn(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    messages[0]["info"]["agent"] = "plan"
    await bring(client, *messages)
    history = await client.history(SESSION)
    assert [history.turns[message.turn_id].request.agent for message in history.messages] == [
        *("plan", "plan", "build", "build")
    ]
    assert await export(client) == exact(document(*messages))


async def test_what_is_gone_from_its_source_is_removed(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    del messages[1]["parts"][1]
    outcome, report = await bring(client, *messages[:3])
    assert outcome is Outcome.UPDATED
    assert (report.total(Outcome.REMOVED, "message"), report.total(Outcome.REMOVED, "part")) == (1, 2)
    assert await export(client) == exact(document(*messages[:3]))
    assert (await bring(client, *messages[:3]))[0] is Outcome.UNCHANGED


async def test_what_another_source_brought_stays(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    outcome, report = await bring(client, *messages[:2], source="b.json")
    assert outcome is Outcome.UNCHANGED
    assert len((await client.history(SESSION)).messages) == 4
    assert [note.reason for note in report.notes] == [
        "2 messages are not in this source; another brought them, and they stay"
    ]


async def test_nothing_is_removed_when_the_source_was_not_read_whole(client: Embedded) -> None:
    await bring(client, *conversation())
    outcome, _ = await bring(client, *conversation()[:2], whole=False)
    assert outcome is Outcome.UNCHANGED
    assert len((await client.history(SESSION)).messages) == 4


async def test_a_message_that_comes_back(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    await bring(client, *messages[:2])
    assert (await bring(client, *messages))[0] is Outcome.UPDATED
    assert await export(client) == exact(document(*messages))


async def test_a_part_that_comes_back_again_and_again(client: Embedded) -> None:
    """Its id is used up each time: it stands under the next one, the export has its own, and again changes nothing."""
    messages = conversation()
    without = conversation()
    del without[1]["parts"][0]
    await bring(client, *messages)
    for number in (2, 3):
        await bring(client, *without)
        assert await export(client) == exact(document(*without))
        outcome, report = await bring(client, *messages, revert={"messageID": "msg_2", "partID": "prt_2"})
        assert (outcome, report.complete, report.total(Outcome.IMPORTED, "part")) == (Outcome.UPDATED, True, 1)
        assert await export(client) == exact(document(*messages, revert={"messageID": "msg_2", "partID": "prt_2"}))
        assert (await client.get_session(SESSION)).revert.revert.part_id == f"prt_2.{number}"
        before = await head(client)
        outcome, _ = await bring(client, *messages, revert={"messageID": "msg_2", "partID": "prt_2"}, whole=False)
        assert (outcome, await head(client)) == (Outcome.UNCHANGED, before)
        await bring(client, *messages)
        found = (await client.history(SESSION)).messages[1]
        assert [part.id for part in found.parts] == [f"prt_2.{number}", "prt_3"]
    messages[1]["parts"][0]["text"] = "changed since"
    outcome, report = await bring(client, *messages)
    assert (outcome, report.total(Outcome.UPDATED, "part")) == (Outcome.UPDATED, 1)
    assert await export(client) == exact(document(*messages))


async def test_a_part_that_was_removed_here_comes_back_when_it_changes_there(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    await client.append(SESSION, [v1.Removal(part_id="prt_2")])
    assert (await bring(client, *messages))[0] is Outcome.UNCHANGED
    original = messages[1]["parts"][0]["text"]
    messages[1]["parts"][0]["text"] = "changed there"
    outcome, report = await bring(client, *messages)
    assert (outcome, report.complete) == (Outcome.UPDATED, True)
    assert await export(client) == exact(document(*messages))
    await client.append(SESSION, [v1.Removal(part_id="prt_2.2")])
    assert (await bring(client, *messages))[0] is Outcome.UNCHANGED
    messages[1]["parts"][0]["text"] = original
    await bring(client, *messages)
    assert await export(client) == exact(document(*messages))


async def test_ids_of_returned_parts_keep_clear_of_others(client: Embedded) -> None:
    """An id that a part of the source has by itself, or that a part made here has, is none for a part that returns."""
    messages = conversation()
    messages[1]["parts"][0] = text("prt_2.2", sessionID=SESSION, messageID="msg_2")
    messages[1]["parts"].insert(0, text("prt_2", sessionID=SESSION, messageID="msg_2"))
    await bring(client, *messages)
    own = v1.PromptPart(id="prt_2.3", text=v1.TextPart(text="own"))
    await client.append(SESSION, [v1.PartPut(message_id="msg_2", part=own)])
    first = messages[1]["parts"].pop(0)
    await bring(client, *messages)
    messages[1]["parts"].insert(0, first)
    await bring(client, *messages)
    found = (await client.history(SESSION)).messages[1]
    assert [part.id for part in found.parts] == ["prt_2.4", "prt_2.2", "prt_3", "prt_2.3"]
    assert (await bring(client, *messages, whole=False))[0] is Outcome.UNCHANGED


async def test_a_message_that_takes_the_other_role(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    messages[3] = user("msg_4", text("prt_5", "done"), at=1003)
    outcome, report = await bring(client, *messages)
    assert (outcome, report.complete) == (Outcome.UPDATED, True)
    assert await export(client) == exact(document(*messages))
    assert (await bring(client, *messages, whole=False))[0] is Outcome.UNCHANGED


async def test_what_could_not_be_read_of_a_session_stays_as_it_is(client: Embedded) -> None:
    """Its head, or one of the things beside it: an update takes nothing away that the source may have."""
    first = take(document(*conversation(), title="one"))
    first.properties.extra_json = '{"opencode/beside":{"todo":[1],"share":{"id":"s"}}}'
    await load(client, first, Report())
    later = take(document(*conversation()[:3], title="two"))
    later.whole = False
    later.properties.extra_json = '{"opencode/beside":{"todo":[2]}}'
    later.unread = (("opencode/beside", "share"), ("opencode/beside", "project"))
    await load(client, later, Report())
    shown = (await client.get_session(SESSION)).properties
    kept = ledger.unmarked(shown).extra_json
    assert (shown.title, kept) == ("two", '{"opencode/beside":{"todo":[2],"share":{"id":"s"}}}')
    headless = take(document(*conversation()[:3], title="three"))
    headless.whole, headless.headless = False, True
    assert await load(client, headless, Report()) is Outcome.UNCHANGED
    shown = (await client.get_session(SESSION)).properties
    assert (shown.title, ledger.unmarked(shown).extra_json) == ("two", kept)


async def test_a_message_whose_time_changes_keeps_its_place(client: Embedded) -> None:
    """The log's order is that of the first import; the report says that the source has another now."""
    messages = conversation()
    await bring(client, *messages)
    messages[2]["info"]["time"]["created"] = 999
    outcome, report = await bring(client, *messages)
    assert (outcome, report.total(Outcome.UPDATED, "message")) == (Outcome.UPDATED, 2)
    assert [message.id for message in (await client.history(SESSION)).messages] == ["msg_1", "msg_2", "msg_3", "msg_4"]
    assert (await client.history(SESSION)).messages[2].time.created.ToMilliseconds() == 999
    assert [(note.outcome, note.reason) for note in report.notes] == [
        (Outcome.LEFT, "messages have another order in the source now; those that are here keep their places")
    ]
    assert (await bring(client, *messages))[0] is Outcome.UNCHANGED


async def test_what_was_changed_here_alone_stays(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    part = v1.PromptPart(id="prt_1", text=v1.TextPart(text="changed here"))
    await client.append(
        SESSION,
        [v1.PartPut(message_id="msg_1", part=part), v1.Removal(message_id="msg_4"), v1.Removal(part_id="prt_2")],
    )
    messages[2]["parts"][0]["text"] = "changed there"
    outcome, report = await bring(client, *messages)
    assert outcome is Outcome.UPDATED
    found = (await client.history(SESSION)).messages
    assert [[part.text.text for part in message.parts] for message in found] == [
        *(["changed here"], [""], ["changed there"])
    ]
    assert report.total(Outcome.UPDATED, "part") == 1


async def test_messages_added_here_stay(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    session = await client.open_session(SESSION)
    turn = await session.start_turn(agent="build", model="p/m")
    await turn.add_user("added here")
    messages[3]["parts"][0]["text"] = "changed there"
    await bring(client, *messages)
    found = (await client.history(SESSION)).messages
    assert [message.parts[0].text.text for message in found] == [
        "hello",
        "hello",
        "go on",
        "changed there",
        "added here",
    ]


async def test_properties_that_changed_are_an_update(client: Embedded) -> None:
    await bring(client, *conversation(), title="one", cost=1, slug="s")
    await client.update_session(SESSION, labels={"mine": "yes"}, title="named here")
    outcome, report = await bring(client, *conversation(), title="one", cost=2, slug="s")
    assert outcome is Outcome.UPDATED
    assert report.total(Outcome.UPDATED, "session") == 1
    properties = (await client.get_session(SESSION)).properties
    assert (properties.title, dict(properties.labels)) == ("named here", {"mine": "yes"})
    assert (await export(client))["info"]["cost"] == Spelled("2")
    await bring(client, *conversation(), title="two", cost=2, slug="s")
    assert (await client.get_session(SESSION)).properties.title == "two"


async def test_a_mark_that_is_copied_claims_nothing(client: Embedded) -> None:
    """Properties are put whole, so that whoever changes a label puts the mark again."""
    messages = conversation()
    await bring(client, *messages)
    properties = (await client.get_session(SESSION)).properties
    assert ledger.mark_of(properties) is not None
    settings = v1.TurnRequest(agent="a", model=v1.ModelRef(provider_id="p", model_id="m"))
    own = v1.User(id="msg_own", turn_id="trn_own", parts=[v1.PromptPart(id="prt_own", text=v1.TextPart(text="own"))])
    await client.append(SESSION, [properties, v1.Turn(id="trn_own", request=settings), own])
    await bring(client, *messages[:2])
    assert [message.id for message in (await client.history(SESSION)).messages] == ["msg_1", "msg_2", "msg_own"]


async def test_a_session_made_here_is_refused(client: Embedded) -> None:
    await client.create_session(SESSION, title="mine")
    outcome, report = await bring(client, *conversation())
    assert outcome is Outcome.REFUSED
    assert report.notes[0].reason == "a session of this id exists, and was not imported from this program"
    assert await head(client) == 1


async def test_a_summary_comes_changes_and_goes(client: Embedded) -> None:
    messages = conversation()
    for summary in (None, {"title": "a", "diffs": []}, {"title": "b", "diffs": []}, None, {"diffs": []}):
        messages[0]["info"].pop("summary", None)
        if summary is not None:
            messages[0]["info"]["summary"] = summary
        await bring(client, *messages)
        assert await export(client) == exact(document(*messages))


async def test_a_revert_opens_moves_and_is_cleared(client: Embedded) -> None:
    messages = conversation()
    for place in (None, "msg_3", "msg_2", None, "msg_3"):
        info = {} if place is None else {"revert": {"messageID": place}}
        await bring(client, *messages, **info)
        assert await export(client) == exact(document(*messages, **info))
        shown = {"msg_3": 2, "msg_2": 1}.get(place or "", 4)
        assert len((await client.history(SESSION)).messages) == shown


async def test_a_revert_is_made_final_by_the_next_prompt(client: Embedded) -> None:
    """opencode deletes the messages that are hidden, clears the revert and stores the new one."""
    messages = conversation()
    await bring(client, *messages, revert={"messageID": "msg_3"})
    after = [*messages[:2], user("msg_5", text("prt_9", "again"), at=2000)]
    await bring(client, *after)
    assert await export(client) == exact(document(*after))
    assert (await client.get_session(SESSION)).HasField("revert") is False


async def test_a_change_under_a_revert_leaves_it_open(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages, revert={"messageID": "msg_3"})
    messages[0]["info"]["agent"] = "plan"
    await bring(client, *messages, revert={"messageID": "msg_3"})
    assert await export(client) == exact(document(*messages, revert={"messageID": "msg_3"}))
    assert len((await client.history(SESSION)).messages) == 2


async def test_a_revert_made_here_stays(client: Embedded) -> None:
    messages = conversation()
    await bring(client, *messages)
    await client.append(SESSION, [v1.Revert(message_id="msg_3")])
    for words in ("one", "two"):
        messages[3]["parts"][0]["text"] = words
        await bring(client, *messages)
        assert (await client.get_session(SESSION)).revert.revert.message_id == "msg_3"
        assert len((await client.history(SESSION)).messages) == 2


async def test_a_dry_run_changes_nothing(client: Embedded) -> None:
    session = take(document(*conversation()))
    report = Report()
    assert await load(client, session, report, dry_run=True) is Outcome.IMPORTED
    assert report.total(Outcome.IMPORTED, "message") == 4
    with pytest.raises(turnwire.errors.SessionNotFound):
        await client.get_session(SESSION)
    await bring(client, *conversation(), source="")
    before = await head(client)
    report = Report()
    assert await load(client, take(document(*conversation()[:2])), report, dry_run=True) is Outcome.UPDATED
    assert (report.total(Outcome.REMOVED, "message"), await head(client)) == (2, before)


def counted(report: Report) -> dict[str, dict[str, int]]:
    """The counts of a report by kind."""
    fates = (Outcome.IMPORTED, Outcome.UNCHANGED, Outcome.UPDATED, Outcome.REMOVED)
    kinds = ("turn", "message", "part", "summary")
    found = {kind: {fate.value: report.total(fate, kind) for fate in fates} for kind in kinds}
    return {kind: {fate: number for fate, number in each.items() if number} for kind, each in found.items()}


async def test_every_object_of_the_source_is_counted_once(client: Embedded) -> None:
    messages = conversation()
    messages[0]["info"]["summary"] = {"title": "asked", "diffs": []}
    await bring(client, *messages)
    messages[3]["parts"][0]["text"] = "other"
    _, report = await bring(client, *messages)
    assert counted(report) == {
        "turn": {"unchanged": 2},
        "message": {"unchanged": 4},
        "part": {"unchanged": 4, "updated": 1},
        "summary": {"unchanged": 1},
    }
    # One that was taken out here is as it is there, with all that hangs on it.
    await client.append(SESSION, [v1.EntryInput(removal=v1.Removal(message_id="msg_1"))])
    messages[2]["info"]["agent"] = "plan"
    _, report = await bring(client, *messages)
    assert counted(report) == {
        "turn": {"imported": 1, "unchanged": 1},
        "message": {"unchanged": 2, "updated": 2},
        "part": {"unchanged": 5},
        "summary": {"unchanged": 1},
    }
    await bring(client, user("msg_5", text("prt_9"), at=1004, summary={"title": "x", "diffs": []}))
    for expected in ({"removed": 1}, {}):
        _, report = await bring(client, user("msg_5", text("prt_9"), at=1004))
        assert counted(report)["summary"] == expected
