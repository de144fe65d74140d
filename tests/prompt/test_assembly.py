"""Assemble: every sentence of design section 4 on it, and the cases of the field."""

from __future__ import annotations

import pytest

from tests.prompt.build import (
    MODEL,
    assistant,
    compaction,
    dialogue,
    frozen,
    history,
    ids,
    reasoning,
    summary,
    text,
    texts,
    tool,
    user,
)
from turnwire import errors, v1
from turnwire.prompt import PROFILES, Fate, History, Message, Part, assemble, digest, profile_named
from turnwire.prompt.assembly import WHITE_SPACE

ROLE_USER, ROLE_ASSISTANT = v1.Role.ROLE_USER, v1.Role.ROLE_ASSISTANT
BOTH = pytest.mark.parametrize("profile", list(PROFILES))


@BOTH
def test_every_live_message_in_place_order(profile: str) -> None:
    # Ids that sort backwards and equal times: the order is that of the history, nothing else.
    past = history(user("zz", "one"), assistant("mm", "two"), user("aa", "three"))
    assembly = assemble(past, "T1", profile)
    assert ids(assembly.items) == ["zz", "mm", "aa"]
    assert [item.role for item in assembly.items] == [ROLE_USER, ROLE_ASSISTANT, ROLE_USER]
    assert texts(assembly.items) == [["one"], ["two"], ["three"]]


def test_up_to_the_last_message_of_the_turn_other_turns_before_it_included() -> None:
    past = history(
        user("U1", "a", turn="T1"),
        user("U2", "b", turn="T2"),
        assistant("A1", "c", turn="T1"),
        assistant("A2", "d", turn="T2"),
        user("U3", "e", turn="T3"),
        turns=("T1", "T2", "T3"),
    )
    assert ids(assemble(past, "T1").items) == ["U1", "U2", "A1"]
    assert ids(assemble(past, "T2").items) == ["U1", "U2", "A1", "A2"]
    assert ids(assemble(past, "T3").items) == ["U1", "U2", "A1", "A2", "U3"]


def test_c96_the_prompt_of_an_earlier_turn_has_nothing_of_a_later_one() -> None:
    past = history(
        user("U1", "plan", turn="T1"),
        assistant("A1", "planned", turn="T1"),
        user("U2", "build", turn="T2"),
        turns=("T1", "T2"),
    )
    assert ids(assemble(past, "T1").items) == ["U1", "A1"]


def test_a_turn_without_messages_gets_all() -> None:
    past = history(user("U1", "a"), assistant("A1", "b"), turns=("T1", "T9"))
    assert ids(assemble(past, "T9").items) == ["U1", "A1"]


def test_a_history_without_messages_gives_an_empty_prompt() -> None:
    assert assemble(history(), "T1").items == ()


def test_a_turn_that_the_history_does_not_have_is_refused() -> None:
    with pytest.raises(errors.TurnNotFound) as refused:
        assemble(dialogue(), "T9")
    assert refused.value.metadata == {"turn_id": "T9"}


def test_a_turn_is_known_by_its_messages_too() -> None:
    assert ids(assemble(History([user("U1", "a", turn="T7")]), "T7").items) == ["U1"]


def test_messages_without_parts_are_left_out() -> None:
    past = history(user("U1", "a"), assistant("A1"), user("U2"), assistant("A2", "b"))
    assert ids(assemble(past, "T1").items) == ["U1", "A2"]


def test_a_message_without_parts_still_ends_the_turn() -> None:
    past = history(
        user("U1", "a", turn="T1"), user("U2", "b", turn="T2"), assistant("A1", turn="T1"), user("U3", "c", turn="T2")
    )
    assert ids(assemble(past, "T1").items) == ["U1", "U2"]


def test_c101_no_item_is_without_message_role_or_parts() -> None:
    past = history(user("U1"), assistant("A1", failed=True), assistant("A2", "half", failed=True), user("U2", "go"))
    items = [item.to_proto() for item in assemble(past, "T1").items]
    assert [item.message_id for item in items] == ["A2", "U2"]
    assert all(item.HasField("message") and item.message.role and len(item.message.parts) for item in items)
    assert items[0].facts.failure.aborted.message == "stopped"


def test_facts_of_a_stored_assistant() -> None:
    past = history(
        assistant("A1", "a", finish="stop"),
        assistant("A2", "b", finish=None, completed=False),
        assistant("A3", "c", finish=None, failed=True),
        summary("A4", "nobody"),
        user("U1", "d"),
    )
    facts = [item.facts for item in assemble(past, "T1").items]
    reply, kind = v1.ResultKind.RESULT_KIND_REPLY, v1.ResultKind.RESULT_KIND_SUMMARY
    assert facts[0] == v1.AssistantFacts(model=MODEL, finish="stop", completed=True, kind=reply)
    assert facts[1] == v1.AssistantFacts(model=MODEL, completed=False, kind=reply)
    aborted = v1.Failure(aborted=v1.AbortedFailure(message="stopped"))
    assert facts[2] == v1.AssistantFacts(model=MODEL, completed=True, failure=aborted, kind=reply)
    assert facts[3] == v1.AssistantFacts(model=MODEL, finish="stop", completed=True, kind=kind)
    assert facts[4] is None


def test_an_item_is_a_prompt_item_with_the_stored_ids() -> None:
    past = history(user("U1", text("p1", "a"), text("p2", "b")))
    (item,) = assemble(past, "T1").items
    assert item.to_proto() == v1.PromptItem(
        message=v1.PromptMessage(role=ROLE_USER, parts=[text("p1", "a"), text("p2", "b")]), message_id="U1"
    )


def test_parts_kept_apart_from_the_header_as_stored_bytes() -> None:
    whole = assistant("A1", text("p1", "a"), tool("p2", "c1"))
    header = assistant("A1")
    stored = [Part.stored(part.id, part.SerializeToString(deterministic=True)) for part in whole.parts]
    apart = assemble(History([Message(header, stored)]), "T1")
    together = assemble(History([whole]), "T1")
    assert [item.to_proto() for item in apart.items] == [item.to_proto() for item in together.items]
    assert digest(apart.items) == digest(together.items)


# --- compaction


def compacted(tail: str | None = None, *between: v1.User | v1.Assistant) -> History:
    return history(
        user("U1", "one"),
        assistant("A1", "two"),
        user("U2", "three"),
        assistant("A2", "four"),
        user("C", compaction("c.0", tail)),
        *between,
        summary("S", "C"),
        user("U3", "five"),
        assistant("A3", "six"),
    )


@BOTH
def test_from_the_newest_completed_compaction_on(profile: str) -> None:
    assert ids(assemble(compacted(), "T1", profile).items) == ["C", "S", "U3", "A3"]


@BOTH
def test_the_kept_tail_comes_after_the_summary(profile: str) -> None:
    assert ids(assemble(compacted("U2"), "T1", profile).items) == ["C", "S", "U2", "A2", "U3", "A3"]


@BOTH
def test_the_tail_may_start_with_an_assistant(profile: str) -> None:
    assert ids(assemble(compacted("A2"), "T1", profile).items) == ["C", "S", "A2", "U3", "A3"]


@BOTH
def test_of_several_compactions_only_the_newest_counts(profile: str) -> None:
    past = history(
        user("U1", "one"),
        user("C1", compaction("c1", "U1")),
        summary("S1", "C1"),
        user("U2", "two"),
        assistant("A2", "three"),
        user("C2", compaction("c2", "A2")),
        summary("S2", "C2"),
        user("U3", "four"),
    )
    assert ids(assemble(past, "T1", profile).items) == ["C2", "S2", "A2", "U3"]


@BOTH
def test_a_tail_may_reach_back_over_an_earlier_compaction(profile: str) -> None:
    past = history(
        user("U1", "one"),
        user("C1", compaction("c1")),
        summary("S1", "C1"),
        user("C2", compaction("c2", "U1")),
        summary("S2", "C2"),
    )
    assert ids(assemble(past, "T1", profile).items) == ["C2", "S2", "U1", "C1", "S1"]


@BOTH
@pytest.mark.parametrize(
    "last",
    [
        assistant("S", "half", parent="C", summary=True, finish=None),
        assistant("S", "half", parent="C", summary=True, finish=""),
        assistant("S", "half", parent="C", summary=True, failed=True),
        assistant("S", "half", parent="C", summary=False),
        assistant("S", "half", parent="U1", summary=True),
        assistant("S", "half", summary=True),
    ],
    ids=["no finish", "empty finish", "failed", "a reply", "of a message without compaction", "of none"],
)
def test_a_compaction_that_is_not_completed_is_no_boundary(last: v1.Assistant, profile: str) -> None:
    past = history(user("U1", "one"), user("C", compaction("c")), last)
    assert ids(assemble(past, "T1", profile).items) == ["U1", "C", "S"]


@BOTH
def test_a_compaction_without_summary_leaves_the_one_before_in_force(profile: str) -> None:
    past = history(
        user("U1", "one"),
        user("C1", compaction("c1")),
        summary("S1", "C1"),
        user("C2", compaction("c2")),
        assistant("S2", "half", parent="C2", summary=True, failed=True),
    )
    assert ids(assemble(past, "T1", profile).items) == ["C1", "S1", "C2", "S2"]


EMPTY = [
    [text("s", "")],
    [text("s", " \t\n\u3000")],
    [text("s", WHITE_SPACE)],
    [reasoning("s", "thought")],
    [text("s", "for people", ignored=True)],
    [tool("s", "c1")],
]


@pytest.mark.parametrize("parts", EMPTY, ids=["empty", "blank", "white space", "reasoning", "ignored", "tool"])
def test_c42_a_summary_without_text_is_no_boundary(parts: list[v1.PromptPart]) -> None:
    past = history(user("U1", "one"), user("C", compaction("c")), summary("S", "C", *parts), user("U2", "two"))
    assert ids(assemble(past, "T1").items) == ["U1", "C", "S", "U2"]
    assert ids(assemble(past, "T1", "opencode").items) == ["C", "S", "U2"]


@BOTH
def test_c42_an_errored_summary_is_no_boundary(profile: str) -> None:
    failed = assistant("S", "text", parent="C", summary=True, failed=True)
    past = history(user("U1", "one"), user("C", compaction("c")), failed)
    assert ids(assemble(past, "T1", profile).items) == ["U1", "C", "S"]


def test_c42_text_in_any_part_makes_a_summary() -> None:
    past = history(user("U1", "a"), user("C", compaction("c")), summary("S", "C", reasoning("r", "x"), text("t", ".")))
    assert ids(assemble(past, "T1").items) == ["C", "S"]


def test_white_space_is_the_unicode_property() -> None:
    assert len(WHITE_SPACE) == len(set(WHITE_SPACE)) == 25
    assert not set(WHITE_SPACE) & set("\u200b\ufeff\0")
    # Python's own strip takes these four, the property does not have them.
    past = history(user("U1", "a"), user("C", compaction("c")), summary("S", "C", "\x1c\x1d\x1e\x1f"))
    assert ids(assemble(past, "T1").items) == ["C", "S"]


def test_a_compaction_after_the_last_message_of_the_turn_is_not_considered() -> None:
    past = history(
        user("U1", "one", turn="T1"),
        assistant("A1", "two", turn="T1"),
        user("C", compaction("c"), turn="T2"),
        summary("S", "C", turn="T2"),
        turns=("T1", "T2"),
    )
    assert ids(assemble(past, "T1").items) == ["U1", "A1"]
    assert ids(assemble(past, "T2").items) == ["C", "S"]


def test_a_summary_after_the_last_message_of_the_turn_completes_nothing() -> None:
    past = history(user("U1", "one", turn="T1"), user("C", compaction("c"), turn="T1"), summary("S", "C", turn="T2"))
    assert ids(assemble(past, "T1").items) == ["U1", "C"]


@BOTH
def test_a_summary_before_its_compaction_message_completes_nothing(profile: str) -> None:
    past = history(user("U1", "one"), summary("S", "C"), user("C", compaction("c")))
    assert ids(assemble(past, "T1", profile).items) == ["U1", "S", "C"]


def test_c27_a_summary_whose_compaction_message_was_removed_completes_nothing() -> None:
    past = history(user("U1", "one"), summary("S", "C"), user("U2", "two"), removed_messages=["C"])
    assert ids(assemble(past, "T1").items) == ["U1", "S", "U2"]


@pytest.mark.parametrize("tail", ["gone", "U3", "S"], ids=["removed or unknown", "after it", "the summary"])
def test_a_tail_start_that_is_not_before_the_compaction_is_no_tail(tail: str) -> None:
    past = compacted(tail)
    assert ids(assemble(past, "T1").items) == ["C", "S", "U3", "A3"]
    # opencode looks for the tail start backwards, does not find it, and so leaves nothing out.
    everything = ["U1", "A1", "U2", "A2", "C", "S", "U3", "A3"]
    assert ids(assemble(past, "T1", "opencode").items) == everything


@BOTH
def test_a_tail_that_starts_with_the_compaction_itself_is_empty(profile: str) -> None:
    assert ids(assemble(compacted("C"), "T1", profile).items) == ["C", "S", "U3", "A3"]


@BOTH
def test_messages_without_parts_are_left_out_of_the_tail_too(profile: str) -> None:
    past = history(
        user("U1", "one"), assistant("A1"), user("U2", "two"), user("C", compaction("c", "A1")), summary("S", "C")
    )
    assert ids(assemble(past, "T1", profile).items) == ["C", "S", "U2"]


def test_what_came_between_compaction_and_summary_is_of_the_rest() -> None:
    past = compacted("A2", user("B", "meanwhile"))
    assert ids(assemble(past, "T1").items) == ["C", "S", "A2", "B", "U3", "A3"]
    assert ids(assemble(past, "T1", "opencode").items) == ["C", "B", "S", "A2", "U3", "A3"]


def test_without_a_tail_too_the_summary_follows_the_compaction_message() -> None:
    past = compacted(None, user("B", "meanwhile"))
    assert ids(assemble(past, "T1").items) == ["C", "S", "B", "U3", "A3"]
    assert ids(assemble(past, "T1", "opencode").items) == ["C", "B", "S", "U3", "A3"]


def test_a_summary_that_failed_before_the_one_that_completed() -> None:
    past = compacted("A2", assistant("S0", "half", parent="C", summary=True, failed=True))
    assert ids(assemble(past, "T1").items) == ["C", "S", "A2", "S0", "U3", "A3"]
    # opencode puts the tail after the first summary, be it complete or not.
    assert ids(assemble(past, "T1", "opencode").items) == ["C", "S0", "A2", "S", "U3", "A3"]


def test_the_summary_of_another_compaction_is_not_its_summary() -> None:
    past = compacted("A2", summary("S0", "elsewhere"))
    assert ids(assemble(past, "T1").items) == ["C", "S", "A2", "S0", "U3", "A3"]
    assert ids(assemble(past, "T1", "opencode").items) == ["C", "S0", "S", "A2", "U3", "A3"]


def test_a_second_summary_of_the_same_compaction_does_not_move_the_first() -> None:
    one = history(user("U1", "a"), user("C", compaction("c")), summary("S1", "C"))
    two = history(user("U1", "a"), user("C", compaction("c")), summary("S1", "C"), summary("S2", "C"))
    assert ids(assemble(one, "T1").items) == ["C", "S1"]
    assert ids(assemble(two, "T1").items) == ["C", "S1", "S2"]


@BOTH
@pytest.mark.parametrize("tail", [None, "A1", "U2"])
def test_c40_call_and_result_stay_together(tail: str | None, profile: str) -> None:
    # Three calls around the boundary, the third with a result that came after the compaction.
    past = history(
        user("U1", "one"),
        assistant("A1", tool("t1", "c1", output="r1"), tool("t2", "c2", output="r2")),
        user("U2", "two"),
        assistant("A2", tool("t3", "c3", output="late")),
        user("C", compaction("c", tail)),
        summary("S", "C"),
    )
    kept = {"U2": ["c3"], "A1": ["c1", "c2", "c3"], None: []}[tail]
    parts = [part.message for item in assemble(past, "T1", profile).items for part in item.parts]
    tools = [part.tool for part in parts if part.HasField("tool")]
    assert [part.call_id for part in tools] == kept
    assert all(part.HasField("output") for part in tools)


@BOTH
def test_c62_order_and_borders_of_signed_parts_are_kept(profile: str) -> None:
    parts = [
        reasoning("r1", "a", signed=True),
        tool("t1", "c1"),
        reasoning("r2", "b", signed=True),
        tool("t2", "c2"),
        text("x", "c"),
    ]
    past = history(user("U1", "one"), assistant("A1", *parts))
    item = assemble(past, "T1", profile).items[1]
    assert [part.message for part in item.parts] == parts


# --- fates


def test_fates_of_what_the_prompt_does_not_show() -> None:
    past = history(
        user("U1", "one", turn="T1"),
        assistant("A1", turn="T1"),
        user("U2", "two", turn="T1"),
        user("C", compaction("c", "U2"), turn="T1"),
        summary("S", "C", turn="T1"),
        assistant("A2", turn="T1"),
        user("U3", "after", turn="T2"),
        removed_messages=["X"],
        removed_parts=["x.0"],
        turns=("T1", "T2"),
    )
    assembly = assemble(past, "T1")
    assert ids(assembly.items) == ["C", "S", "U2"]
    messages = {name: assembly.message_fate(name) for name in ["U1", "A1", "U2", "A2", "U3", "X", "Y"]}
    assert messages == {
        "U1": Fate.COMPACTED,
        "A1": Fate.COMPACTED,
        "U2": Fate.LIVE,
        "A2": Fate.LIVE,
        "U3": Fate.LIVE,
        "X": Fate.REMOVED,
        "Y": Fate.UNKNOWN,
    }
    parts = {name: assembly.part_fate(name) for name in ["u1.0", "u2.0", "u3.0", "x.0", "y.0"]}
    assert parts == {
        "u1.0": Fate.COMPACTED,
        "u2.0": Fate.LIVE,
        "u3.0": Fate.LIVE,
        "x.0": Fate.REMOVED,
        "y.0": Fate.UNKNOWN,
    }


def test_a_removed_id_that_lives_again_is_live() -> None:
    past = history(user("U1", "again"), removed_messages=["U1"], removed_parts=["u1.0"])
    assert past.message_fate("U1") is Fate.LIVE
    assert past.part_fate("u1.0") is Fate.LIVE


# --- purity


@BOTH
def test_equal_input_gives_equal_bytes_and_the_history_stays(profile: str) -> None:
    past = compacted("U2")
    before = frozen(past)
    first = [item.to_proto().SerializeToString(deterministic=True) for item in assemble(past, "T1", profile).items]
    second = [item.to_proto().SerializeToString(deterministic=True) for item in assemble(past, "T1", profile).items]
    assert first == second
    assert frozen(past) == before


def test_c108_a_later_turn_has_the_earlier_prompt_as_its_prefix() -> None:
    messages: list[v1.User | v1.Assistant] = []
    for number in range(1, 5):
        messages += [user(f"U{number}", "q", turn=f"T{number}"), assistant(f"A{number}", "r", turn=f"T{number}")]
    past = history(*messages)
    earlier = [item.to_proto() for item in assemble(past, "T2").items]
    later = [item.to_proto() for item in assemble(past, "T3").items]
    assert later[: len(earlier)] == earlier
    assert len(later) == len(earlier) + 2


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(errors.UnknownProfile) as refused:
        assemble(dialogue(), "T1", "claude")
    assert refused.value.metadata == {"profile": "claude"}
    assert profile_named("") is profile_named("default")
