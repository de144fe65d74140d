"""Ids, order, parents, reverts and size: what the log gets, whatever the source has (C18, C26)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.opencode.test_corpora import assert_backward
from tests.formats.samples import assistant, document, exported, info, noted, take, taken, text, tool, user
from turnwire.formats import Outcome, Report, history

# Ids.


def test_an_illegal_id_is_changed_and_comes_back() -> None:
    asked = user("m/1", text("p 1"))
    answer = assistant("m2", text("p2"), parent="m/1")
    report = Report()
    session = take(document(asked, answer, id="ses é", parentID="böse"), report)
    kept = history(session)
    assert session.session_id.startswith("ses--.")
    assert session.properties.parent.session_id.startswith("b-se.")
    assert kept.messages[0].id.startswith("m-1.")
    assert kept.messages[1].parent_id == kept.messages[0].id
    assert kept.messages[0].parts[0].id.startswith("p-1.")
    assert_backward(session)
    assert take(document(asked, answer, id="ses é", parentID="böse")).entries == session.entries
    source = json.loads(document(asked, answer, id="ses é", parentID="böse"))
    exported(json.dumps(source))
    assert report.total(Outcome.REPAIRED) == 3


def test_an_id_longer_than_ids_may_be() -> None:
    name = "m" * 200
    session = take(document(user(name, text("p1")), assistant("m2", parent=name)))
    assert_backward(session)
    exported(document(user(name, text("p1")), assistant("m2", parent=name)))


def test_the_same_id_twice_keeps_both() -> None:
    report = Report()
    whole = [
        user("m1", text("p1"), at=1000),
        user("m1", text("p1"), text("p1"), at=1001),
        assistant("m2", text("p1.2"), parent="m1", at=1002),
    ]
    session = take(document(*whole), report)
    kept = history(session)
    assert [message.id for message in kept.messages] == ["m1", "m1.2", "m2"]
    assert [[part.id for part in message.parts] for message in kept.messages] == [["p1"], ["p1.3", "p1.4"], ["p1.2"]]
    assert kept.messages[2].parent_id == "m1"
    assert_backward(session)
    assert {reason for _, _, reason in noted(report)} == {"the id stands in the session already, changed"}
    exported(document(*whole))


def test_what_has_no_id_gets_one() -> None:
    whole = [user("m1", text("p1")), assistant("m2", text("p2"), parent="m1")]
    del whole[0]["info"]["id"], whole[1]["parts"][0]["id"]
    session = take(document(*whole))
    kept = history(session)
    assert kept.messages[0].id.startswith("msg_")
    assert kept.messages[1].parts[0].id.startswith("prt_")
    assert take(document(*whole)).entries == session.entries
    exported(document(*whole))


def test_a_session_without_an_id_has_that_of_its_messages() -> None:
    source = json.loads(document(user("m1", text("p1"))))
    del source["info"]["id"]
    assert take(json.dumps(source)).session_id == "ses_1"
    exported(json.dumps(source))


def test_the_same_call_twice_in_a_message() -> None:
    report = Report()
    answer = assistant("m2", tool("p1"), tool("p2", output="again"), tool("p3", call="c3"), parent="m1")
    later = assistant("m3", tool("p4"), parent="m1", at=1002)
    session = take(document(user("m1", text("p0")), answer, later), report)
    messages = history(session).messages
    assert [part.WhichOneof("kind") for part in messages[1].parts] == ["tool", "extension", "tool"]
    assert messages[2].parts[0].tool.call_id == "call_1"
    assert noted(report) == [
        ("repaired", "/messages/1/parts/1/callID", "the call id stands in the message already, kept as an extension")
    ]
    assert_backward(session)
    exported(document(user("m1", text("p0")), answer, later))


def test_a_call_without_an_id_has_that_of_its_part() -> None:
    answer = assistant("m2", tool("p1", call=""), parent="m1")
    assert taken(user("m1", text("p0")), answer).messages[1].parts[0].tool.call_id == "p1"
    exported(document(user("m1", text("p0")), answer))


# Order and parents (C18, C26).


def test_the_order_is_that_of_opencode_whatever_the_file_has() -> None:
    whole = [
        user("m9", text("p3"), text("p1"), text("p2"), at=1000),
        user("m2", text("p4"), at=1002),
        assistant("m1", text("p5"), parent="m2", at=1002),
        assistant("m3", text("p6"), parent="m9", at=1001),
    ]
    kept = taken(*whole)
    assert [message.id for message in kept.messages] == ["m9", "m3", "m1", "m2"]
    assert [part.id for part in kept.messages[0].parts] == ["p1", "p2", "p3"]
    assert_backward(take(document(*whole)))
    exported(document(*whole))


def test_an_answer_before_its_question_keeps_its_place() -> None:
    whole = [
        user("m1", text("p1"), at=1000),
        assistant("m4", text("p2"), parent="m5", at=1001),
        assistant("m2", text("p3"), parent="m1", at=1002),
        user("m5", text("p4"), at=1003),
    ]
    session = take(document(*whole))
    puts = [
        (entry.assistant.assistant.id, entry.assistant.before_id)
        for entry in session.entries
        if entry.HasField("assistant")
    ]
    assert puts == [("m2", ""), ("m4", "m2")]
    kept = history(session)
    assert [message.id for message in kept.messages] == ["m1", "m4", "m2", "m5"]
    assert kept.messages[1].parent_id == "m5"
    assert kept.messages[1].turn_id == kept.messages[3].turn_id
    assert_backward(session)
    exported(document(*whole))


@pytest.mark.parametrize("parent", ["ghost", "m2", None, 7])
def test_a_parent_that_is_no_user_message_is_kept_aside(parent: Any) -> None:
    whole = [
        user("m1", text("p1"), at=1000),
        assistant("m2", text("p2"), parent="m1", at=1001),
        assistant("m3", text("p3"), parent=parent, at=1002),
    ]
    report = Report()
    kept = taken(*whole, report=report)
    assert not kept.messages[2].HasField("parent_id")
    assert kept.messages[2].turn_id == kept.messages[0].turn_id
    assert [path for _, path, _ in noted(report)] == ["/messages/2/parentID"]
    exported(document(*whole))


def test_answers_without_any_question_share_a_turn_of_their_own() -> None:
    whole = [
        assistant("m1", text("p1"), parent="ghost", at=1000, variant="high"),
        assistant("m2", text("p2"), parent="ghost", at=1001),
        user("m3", text("p3"), at=1002),
        assistant("m4", text("p4"), parent="ghost", at=1003),
    ]
    session = take(document(*whole))
    kept = history(session)
    turns = [message.turn_id for message in kept.messages]
    assert turns[0] == turns[1]
    assert turns[2] == turns[3] != turns[0]
    request = kept.turns[turns[0]].request
    assert (request.agent, request.model.model_id, request.variant) == ("build", "m", "high")
    assert_backward(session)
    exported(document(*whole))


@pytest.mark.parametrize(("tail", "kept_as"), [("m1", "m1"), ("m2", "m2"), ("m4", ""), ("ghost", ""), (7, "")])
def test_the_tail_of_a_compaction_is_a_message_before_it(tail: Any, kept_as: str) -> None:
    part = {"id": "p3", "type": "compaction", "auto": True, "tail_start_id": tail}
    whole = [
        user("m1", text("p1"), at=1000),
        assistant("m2", text("p2"), parent="m1", at=1001),
        user("m3", part, at=1002),
        assistant("m4", text("p4"), parent="m3", at=1003, summary=True),
    ]
    session = take(document(*whole))
    assert history(session).messages[2].parts[0].compaction.tail_start_id == kept_as
    assert_backward(session)
    exported(document(*whole))


def test_messages_that_refer_to_each_other_in_a_ring_are_put_all_the_same() -> None:
    part = {"id": "p3", "type": "compaction", "auto": True, "tail_start_id": "m1"}
    whole = [assistant("m1", text("p1"), parent="m2", at=1000), user("m2", part, at=1001)]
    kept = taken(*whole)
    assert [message.id for message in kept.messages] == ["m1", "m2"]
    exported(document(*whole))


# Reverts.


def test_a_revert_in_the_middle_of_a_message() -> None:
    revert = {"messageID": "m/1", "partID": "p2 b", "snapshot": "", "more": 1}
    whole = document(user("m/1", text("p1"), text("p2 b")), revert=revert)
    session = take(whole)
    (opened,) = [entry.revert for entry in session.entries if entry.HasField("revert")]
    kept = history(session)
    assert (opened.message_id, opened.part_id) == (kept.messages[0].id, kept.messages[0].parts[1].id)
    assert opened.HasField("snapshot")
    assert json.loads(opened.extra_json) == {"opencode": {"/more": 1}}
    exported(whole)


def test_a_revert_to_a_part_of_a_kind_that_is_not_known() -> None:
    """The part is an extension, which keeps its id in its data."""
    whole = document(user("m1", {"id": "p 1", "type": "new"}), revert={"messageID": "m1", "partID": "p 1"})
    kept = history(take(whole))
    assert kept.revert is not None
    assert kept.revert.part_id == kept.messages[0].parts[0].id != "p 1"
    exported(whole)


@pytest.mark.parametrize("revert", [{"messageID": "ghost"}, {}, "m1", [], {"messageID": 1}])
def test_a_revert_to_nowhere_is_kept_aside(revert: Any) -> None:
    report = Report()
    whole = document(user("m1", text("p1")), revert=revert)
    session = take(whole, report)
    assert not any(entry.HasField("revert") for entry in session.entries)
    assert json.loads(session.properties.extra_json)["opencode"]["/revert"] == revert
    assert len(report.notes) == 1
    exported(whole)


def test_a_revert_to_a_part_of_another_message_hides_the_whole_message() -> None:
    whole = document(
        user("m1", text("p1")), user("m2", text("p2"), at=1001), revert={"messageID": "m1", "partID": "p2"}
    )
    session = take(whole)
    assert not session.entries[-1].revert.HasField("part_id")
    exported(whole)


# Size.


def test_a_large_message_is_put_in_pieces() -> None:
    parts = [text(f"p{number:02}", "x" * 200_000) for number in range(20)]
    session = take(document(user("m1", *parts), assistant("m2", text("p99"), parent="m1")))
    kinds = [entry.WhichOneof("payload") for entry in session.entries]
    assert kinds == ["turn", "user", *["part"] * 15, "assistant"]
    assert max(entry.ByteSize() for entry in session.entries) < 1_200_000
    kept = history(session)
    assert [part.id for part in kept.messages[0].parts] == [f"p{number:02}" for number in range(20)]
    assert_backward(session)


def test_a_message_of_many_parts_is_put_in_pieces() -> None:
    session = take(document(user("m1", *(text(f"p{number:04}") for number in range(2500)))))
    assert len(session.entries[1].user.user.parts) == 1000
    assert len(history(session).messages[0].parts) == 2500


def test_a_session_of_many_messages() -> None:
    whole = [user(f"m{number:05}", text(f"p{number:05}"), at=1000) for number in range(2000)]
    session = take(document(*whole))
    assert len(session.entries) == 4000
    assert [message.id for message in history(session).messages] == [one["info"]["id"] for one in whole]


def test_the_info_of_the_samples_is_what_opencode_has() -> None:
    assert take(json.dumps({"info": info(), "messages": []})).entries == []
