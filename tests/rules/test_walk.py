"""The references of a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings

from tests.strategies import messages
from turnwire import rules, v1
from turnwire.rules import schema

SESSION = v1.RefKind.REF_KIND_SESSION
TURN = v1.RefKind.REF_KIND_TURN
MESSAGE = v1.RefKind.REF_KIND_MESSAGE
PART = v1.RefKind.REF_KIND_PART
PROMPT = v1.RefKind.REF_KIND_PROMPT


def test_c32_every_reference_of_a_user_message() -> None:
    compaction = v1.PromptPart(id="p1", compaction=v1.CompactionPart(tail_start_id="m3"))
    put = v1.UserPut(user=v1.User(id="m5", turn_id="t1", parts=[v1.PromptPart(), compaction]), before_id="m4")
    assert list(rules.references(put)) == [
        ("user.turn_id", TURN, False, "t1"),
        ("user.parts[1].compaction.tail_start_id", MESSAGE, False, "m3"),
        ("before_id", MESSAGE, False, "m4"),
    ]


def test_other_sessions_are_foreign() -> None:
    link = v1.SessionProperties(parent=v1.ParentLink(session_id="s2", part_id="p2"))
    assert list(rules.references(link)) == [
        ("parent.session_id", SESSION, True, "s2"),
        ("parent.part_id", PART, True, "p2"),
    ]


def test_inside_oneofs_and_lists() -> None:
    record = v1.PromptRecord(
        id="r1",
        turn_id="t1",
        base_prompt_id="r0",
        mutations=[
            v1.Mutation(append=v1.Append()),
            v1.Mutation(insert_after=v1.InsertAfter(message_id="m1")),
            v1.Mutation(remove_part=v1.RemovePart(part_id="p1")),
        ],
    )
    assert sorted(rules.references(v1.Entry(prompt=record))) == [
        ("prompt.base_prompt_id", PROMPT, False, "r0"),
        ("prompt.mutations[1].insert_after.message_id", MESSAGE, False, "m1"),
        ("prompt.mutations[2].remove_part.part_id", PART, False, "p1"),
        ("prompt.turn_id", TURN, False, "t1"),
    ]


def test_unset_references_are_none() -> None:
    assert list(rules.references(v1.Assistant())) == []
    assert list(rules.references(v1.TextFormat())) == []


def test_lists_of_ids() -> None:
    assert list(rules.references(v1.DeleteSessionResponse(session_ids=["s1", "s2"]))) == [
        ("session_ids[0]", SESSION, True, "s1"),
        ("session_ids[1]", SESSION, True, "s2"),
    ]


def by_reflection(message: Message) -> Iterator[str]:
    """The same values by a plain walk over what is set."""
    for field, value in message.ListFields():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        items: list[Any] = [] if is_map else list(value) if field.is_repeated else [value]
        for item in items:
            if field.message_type is not None:
                yield from by_reflection(item)
            elif schema.option(schema.pool().FindFieldByName(field.full_name), "turnwire.v1.ref"):
                yield item


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(v1.Entry))
def test_no_reference_is_missed(message: v1.Entry) -> None:
    assert sorted(value for _, _, _, value in rules.references(message)) == sorted(by_reflection(message))
