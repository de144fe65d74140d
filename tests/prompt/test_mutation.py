"""Mutate: every sentence of design section 4 on it, every error by its own reason, and the cases of the field."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.prompt.build import (
    assistant,
    compaction,
    dialogue,
    frozen,
    history,
    ids,
    reasoning,
    text,
    texts,
    tool,
    user,
)
from tests.prompt.edits import (
    ASSISTANT,
    USER,
    append,
    append_to,
    base,
    insert_after,
    insert_before,
    prepend,
    remove,
    remove_part,
    replace_part,
    run,
)
from turnwire import errors, rules, v1
from turnwire.prompt import (
    PromptEditor,
    apply_records,
    as_base,
    assemble,
    assistant_message,
    digest,
    mutate,
    text_part,
    tool_part,
    user_message,
)

# --- what each mutation does


def test_an_empty_list_is_valid_and_changes_nothing() -> None:
    assembly = base()
    assert run(assembly) == list(assembly.items)


def test_append_puts_a_message_at_the_end() -> None:
    result = run(base(), append("five"), append("six", sender=assistant_message))
    assert ids(result) == ["U1", "A1", "U2", "A2", "+0", "+1"]
    assert [item.role for item in result[4:]] == [USER, ASSISTANT]
    assert texts(result)[4:] == [["five"], ["six"]]


def test_prepend_puts_a_message_at_the_beginning() -> None:
    assert ids(run(base(), prepend("zero"), prepend("minus one"))) == ["+1", "+0", "U1", "A1", "U2", "A2"]


def test_append_to_adds_parts_to_the_last_message_of_the_role() -> None:
    result = run(base(), append_to(USER, "more", "still more"))
    assert texts(result) == [["one"], ["two"], ["three", "more", "still more"], ["four"]]
    assert ids(result) == ["U1", "A1", "U2", "A2"]
    assert texts(run(base(), append_to(ASSISTANT, "more")))[3] == ["four", "more"]


def test_append_to_means_the_prompt_as_it_now_is_synthetic_messages_included() -> None:
    result = run(base(), append_to(USER, "a"), append("new"), append_to(USER, "b"), remove("U2"))
    assert ids(result) == ["U1", "A1", "A2", "+1"]
    assert texts(result)[3] == ["new", "b"]
    result = run(base(), remove("U2"), append_to(USER, "c"))
    assert texts(result) == [["one", "c"], ["two"], ["four"]]


def test_insert_after_and_before_sit_directly_beside_their_anchor() -> None:
    result = run(base(), insert_after("A1", "after"), insert_before("A1", "before"))
    assert ids(result) == ["U1", "+1", "A1", "+0", "U2", "A2"]
    result = run(base(), insert_before("U1", "first"), insert_after("A2", "last"))
    assert ids(result) == ["+0", "U1", "A1", "U2", "A2", "+1"]


def test_of_two_inserts_after_one_anchor_the_later_is_nearer() -> None:
    assert ids(run(base(), insert_after("A1", "x"), insert_after("A1", "y"))) == ["U1", "A1", "+1", "+0", "U2", "A2"]


def test_of_two_inserts_before_one_anchor_the_later_is_nearer() -> None:
    result = run(base(), insert_before("A1", "x"), insert_before("A1", "y"))
    assert ids(result) == ["U1", "+0", "+1", "A1", "U2", "A2"]


def test_remove_takes_a_stored_message_out_with_what_was_added_to_it() -> None:
    result = run(base(), append_to(USER, "added"), remove("U2"))
    assert ids(result) == ["U1", "A1", "A2"]
    assert texts(result) == [["one"], ["two"], ["four"]]


def test_remove_part_takes_one_part_out() -> None:
    assembly = base(user("U1", text("a", "1"), text("b", "2"), text("c", "3")))
    assert texts(run(assembly, remove_part("b"))) == [["1", "3"]]


def test_a_message_that_loses_its_last_part_leaves_the_prompt() -> None:
    assert ids(run(base(), remove_part("a1.0"))) == ["U1", "U2", "A2"]
    # A part that a mutation added keeps it in.
    result = run(base(), append_to(USER, "kept"), remove_part("u2.0"))
    assert ids(result) == ["U1", "A1", "U2", "A2"]
    assert texts(result)[2] == ["kept"]


def test_replace_part_puts_another_part_in_its_place_and_that_has_no_id() -> None:
    assembly = base(assistant("A1", text("a", "1"), text("b", "2"), text("c", "3")))
    (item,) = run(assembly, replace_part("b", reasoning("", "two")))
    assert [(part.id, part.kind) for part in item.parts] == [("a", "text"), ("", "reasoning"), ("c", "text")]
    assert item.to_proto().message_id == "A1"


def test_mutations_apply_in_the_order_given() -> None:
    assert texts(run(base(), append("x"), append_to(USER, "y")))[-1] == ["x", "y"]
    assert texts(run(base(), append_to(USER, "y"), append("x")))[-1] == ["x"]


# --- origins


def test_origins_are_the_message_id_or_the_index_of_the_mutation() -> None:
    result = [item.to_proto() for item in run(base(), append_to(USER, "x"), append("y"), prepend("z"))]
    assert [item.WhichOneof("origin") for item in result] == ["mutation", *["message_id"] * 4, "mutation"]
    assert result[0].mutation == v1.MutationOrigin(index=2)
    assert result[5].mutation == v1.MutationOrigin(index=1)
    assert result[3].message_id == "U2"


def test_a_mutation_s_message_has_no_facts_and_a_stored_one_keeps_them() -> None:
    result = run(base(), append_to(ASSISTANT, "x"), append("y", sender=assistant_message))
    assert result[3].facts is not None
    assert result[3].facts.finish == "stop"
    assert not result[4].to_proto().HasField("facts")


def test_chaining_gives_the_items_of_a_base_record_its_id() -> None:
    assembly = base()
    first = as_base(run(assembly, append("x")), "prm_1")
    second = as_base(mutate(first, [append("y")], assembly), "prm_2")
    third = mutate(second, [append("z"), insert_after("A1", "w")], assembly)
    origins = [item.to_proto().mutation for item in third if not item.message_id]
    assert origins == [
        v1.MutationOrigin(index=1),
        v1.MutationOrigin(index=0, prompt_id="prm_1"),
        v1.MutationOrigin(index=0, prompt_id="prm_2"),
        v1.MutationOrigin(index=0),
    ]


def test_records_compute_again_what_they_recorded() -> None:
    assembly = base()
    records = [
        v1.PromptRecord(id="prm_1", assembly_version=1, mutations=[append("x"), remove("U1")]),
        v1.PromptRecord(id="prm_2", assembly_version=1, mutations=[append_to(USER, "y")]),
    ]
    result = apply_records(assembly.items, records, assembly)
    assert texts(result) == [["two"], ["three"], ["four"], ["x", "y"]]
    assert result[3].to_proto().mutation == v1.MutationOrigin(index=0, prompt_id="prm_1")
    by_hand = mutate(run(assembly, append("x"), remove("U1")), [append_to(USER, "y")], assembly)
    assert digest(result) == digest(by_hand)


def test_a_record_of_another_version_of_the_rules_is_refused() -> None:
    with pytest.raises(errors.UnknownToThisServer) as refused:
        apply_records([], [v1.PromptRecord(id="prm_1", assembly_version=2)])
    assert refused.value.metadata == {"path": "assembly_version"}


def test_a_record_is_computed_again_even_if_rules_have_become_stricter_since() -> None:
    broken = v1.Mutation(append=v1.Append(message=v1.PromptMessage(role=USER, parts=[v1.PromptPart()])))
    with pytest.raises(errors.UnknownToThisServer):
        run(base(), broken)
    record = v1.PromptRecord(id="prm_1", assembly_version=1, mutations=[broken])
    assert ids(apply_records(base().items, [record])) == ["U1", "A1", "U2", "A2", "+0"]


def test_a_recorded_role_of_a_later_schema() -> None:
    later = v1.AppendTo.FromString(b"\x08\x07" + append_to(USER, "x").append_to.SerializeToString()[2:])
    record = v1.PromptRecord(id="prm_1", assembly_version=1, mutations=[v1.Mutation(append_to=later)])
    with pytest.raises(errors.NoMessageOfRole) as refused:
        apply_records(base().items, [record])
    assert refused.value.metadata == {"path": "mutations[0].append_to", "role": "7"}


def test_a_recorded_mutation_of_no_known_kind_is_refused_all_the_same() -> None:
    record = v1.PromptRecord(id="prm_1", assembly_version=1, mutations=[v1.Mutation()])
    with pytest.raises(errors.UnknownToThisServer):
        apply_records(base().items, [record])


# --- content that is refused

WRONG_CONTENT = [
    (v1.Mutation(), errors.UnknownToThisServer, "mutations[0].kind"),
    (v1.Mutation(append=v1.Append()), errors.RuleViolation, "mutations[0].append.message"),
    (append(), errors.RuleViolation, "mutations[0].append.message.parts"),
    (prepend(), errors.RuleViolation, "mutations[0].prepend.message.parts"),
    (insert_after("A1"), errors.RuleViolation, "mutations[0].insert_after.message.parts"),
    (insert_before("A1"), errors.RuleViolation, "mutations[0].insert_before.message.parts"),
    (append_to(USER), errors.RuleViolation, "mutations[0].append_to.parts"),
    (append_to(v1.Role.ROLE_UNSPECIFIED, "x"), errors.RuleViolation, "mutations[0].append_to.role"),
    (append_to(USER, v1.PromptPart()), errors.UnknownToThisServer, "mutations[0].append_to.parts[0].kind"),
    (v1.Mutation(replace_part=v1.ReplacePart(part_id="a1.0")), errors.RuleViolation, "mutations[0].replace_part.part"),
    (insert_after("", "x"), errors.RuleViolation, "mutations[0].insert_after.message_id"),
    (insert_after("a b", "x"), errors.RuleViolation, "mutations[0].insert_after.message_id"),
    (
        append_to(ASSISTANT, tool_part("c1", "sh", input_json="{", output="")),
        errors.RuleViolation,
        "mutations[0].append_to.parts[0].tool.input_json",
    ),
]


@pytest.mark.parametrize(("wrong", "reason", "path"), WRONG_CONTENT)
def test_a_mutation_that_breaks_a_rule(wrong: v1.Mutation, reason: type[errors.TurnwireError], path: str) -> None:
    with pytest.raises(reason) as refused:
        run(base(), wrong)
    assert type(refused.value) is reason
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (append_to(USER, reasoning("", "x")), "mutations[0].append_to.parts[0].reasoning"),
        (append_to(USER, "fine", tool("", "c1")), "mutations[0].append_to.parts[1].tool"),
        (append_to(ASSISTANT, compaction("")), "mutations[0].append_to.parts[0].compaction"),
        (replace_part("u1.0", tool("", "c1")), "mutations[0].replace_part.part.tool"),
        (replace_part("a1.0", compaction("")), "mutations[0].replace_part.part.compaction"),
        (
            v1.Mutation(prepend=v1.Prepend(message=user_message(reasoning("", "x")))),
            "mutations[0].prepend.message.parts[0].reasoning",
        ),
    ],
)
def test_parts_of_the_wrong_role_are_refused(wrong: v1.Mutation, path: str) -> None:
    with pytest.raises(errors.RuleViolation) as refused:
        run(base(), wrong)
    assert [(each.path, each.rule) for each in refused.value.violations] == [(path, rules.HELD_BY)]


BY_ID: list[tuple[Callable[[v1.PromptPart], v1.Mutation], str]] = [
    (lambda part: v1.Mutation(append=v1.Append(message=user_message("a", part))), "append.message.parts[1]"),
    (lambda part: v1.Mutation(prepend=v1.Prepend(message=user_message(part))), "prepend.message.parts[0]"),
    (lambda part: append_to(USER, "a", part), "append_to.parts[1]"),
    (
        lambda part: v1.Mutation(insert_after=v1.InsertAfter(message_id="A1", message=user_message(part))),
        "insert_after.message.parts[0]",
    ),
    (
        lambda part: v1.Mutation(insert_before=v1.InsertBefore(message_id="A1", message=user_message(part))),
        "insert_before.message.parts[0]",
    ),
    (lambda part: replace_part("u1.0", part), "replace_part.part"),
]


@pytest.mark.parametrize(("make", "path"), BY_ID)
@pytest.mark.parametrize("part_id", ["x", "u1.0", "prt_of_another_session"])
def test_c99_parts_with_an_id_are_refused(
    make: Callable[[v1.PromptPart], v1.Mutation], path: str, part_id: str
) -> None:
    assembly = base()
    before = frozen(assembly.history)
    with pytest.raises(errors.TransientPartHasId) as refused:
        run(assembly, append("first"), make(text(part_id, "x")))
    assert refused.value.metadata == {"path": f"mutations[1].{path}.id"}
    assert frozen(assembly.history) == before


def test_c99_the_same_id_twice_in_one_mutation_is_refused() -> None:
    with pytest.raises(errors.TransientPartHasId):
        run(base(), append_to(USER, text("x", "1"), text("x", "2")))


def test_c99_parts_without_ids_need_none_even_twice() -> None:
    part = text_part("same")
    assert texts(run(base(), append_to(USER, part, part)))[2] == ["three", "same", "same"]


def test_c99_a_message_id_of_another_session_is_unknown_here() -> None:
    with pytest.raises(errors.AnchorUnknown):
        run(base(), insert_after("msg_of_another_session", "x"))


CALLS = base(user("U1", "go"), assistant("A1", tool("t1", "c1"), tool("t2", "c2")))


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (append_to(ASSISTANT, "fine", tool("", "c1")), "mutations[0].append_to.parts[1].tool.call_id"),
        (append_to(ASSISTANT, tool("", "c3"), tool("", "c3")), "mutations[0].append_to.parts[1].tool.call_id"),
        (replace_part("t1", tool("", "c2")), "mutations[0].replace_part.part.tool.call_id"),
    ],
)
def test_the_same_call_id_twice_in_one_message_is_refused(wrong: v1.Mutation, path: str) -> None:
    with pytest.raises(errors.DuplicateCallId) as refused:
        run(CALLS, wrong)
    assert refused.value.path == path


def test_a_call_id_of_another_message_or_of_the_part_replaced_is_no_clash() -> None:
    assert len(run(CALLS, replace_part("t1", tool("", "c1", output="new")))[1].parts) == 2
    put = v1.Mutation(append=v1.Append(message=assistant_message(tool("", "c1"))))
    assert ids(run(CALLS, put)) == ["U1", "A1", "+0"]


def test_a_message_may_come_to_have_more_parts_than_one_edit_adds() -> None:
    full = v1.PromptMessage(role=USER, parts=[text_part("")] * 10_000)
    items = mutate([], [v1.Mutation(append=v1.Append(message=full))])
    (item,) = mutate(items, [append_to(USER, "one more")], first_index=1)
    assert len(item.parts) == 10_001
    assert rules.check(item.to_message()) == []


# --- all or none, on a copy


def test_all_or_none() -> None:
    assembly = base()
    before = list(assembly.items)
    with pytest.raises(errors.AnchorUnknown) as refused:
        run(assembly, append("x"), remove("U1"), append_to(USER, "y"), remove("U9"))
    assert refused.value.path == "mutations[3].remove.message_id"
    assert list(assembly.items) == before


def test_the_input_list_is_not_changed() -> None:
    items = list(base().items)
    given = list(items)
    mutate(given, [append("x"), prepend("y"), remove("A1"), remove_part("u1.0"), append_to(USER, "z")])
    assert given == items


def test_c97_nothing_of_it_touches_the_history() -> None:
    past = history(user("U1", text("p1", "stored")), assistant("A1", "two"), user("U2", "three"))
    before = frozen(past)
    result = run(assemble(past, "T1"), replace_part("p1", "edited"), append("new"), remove("A1"))
    assert texts(result) == [["edited"], ["three"], ["new"]]
    assert frozen(past) == before
    assert ids(assemble(past, "T1").items) == ["U1", "A1", "U2"]


def test_c97_changing_what_came_out_does_not_touch_the_history() -> None:
    past = dialogue()
    before = frozen(past)
    for item in assemble(past, "T1").items:
        made = item.to_proto()
        made.message.parts[0].text.text = "changed"
        made.facts.finish = "changed"
        item.to_message().parts[0].text.text = "changed"
    assert frozen(past) == before
    facts = assemble(past, "T1").items[1].facts
    assert facts is not None
    assert facts.finish == "stop"


def test_c102_what_is_new_is_known_by_its_origin_and_nothing_stored_is_lost() -> None:
    past = history(
        user("U1", "1"),
        assistant("A1", "2"),
        user("U2", "3"),
        assistant("A2", "4"),
        user("U3", "5", turn="T2"),
        turns=("T1", "T2"),
    )
    before = frozen(past)
    assembly = assemble(past, "T2")
    # Drop the three oldest, swap the last two (a stored message cannot move, so its copy is put before), prepend one.
    result = run(assembly, *map(remove, ("U1", "A1", "U2", "U3")), insert_before("A2", "5"), prepend("new"))
    assert texts(result) == [["new"], ["5"], ["4"]]
    stored = {item.message_id for item in result if item.message_id}
    assert stored == {"A2"}
    assert [item.mutation for item in result if not item.message_id] == [5, 4]
    # The messages of the turn are told by their turn, not by how many the prompt had.
    assert [message.id for message in past.messages if message.turn_id == "T2"] == ["U3"]
    assert frozen(past) == before


def test_c108_appending_at_the_end_keeps_the_prefix() -> None:
    one = history(user("U1", "q", turn="T1"), assistant("A1", "r", turn="T1"))
    two = history(
        user("U1", "q", turn="T1"), assistant("A1", "r", turn="T1"), user("U2", "q", turn="T2"), turns=("T1", "T2")
    )
    earlier = [item.to_proto() for item in run(assemble(one, "T1"), append("hook"))]
    later = [item.to_proto() for item in run(assemble(two, "T2"), append("hook"))]
    stable = [item.SerializeToString(deterministic=True) for item in later[:2]]
    assert stable == [item.SerializeToString(deterministic=True) for item in earlier[:2]]
    assert ids(later) == ["U1", "A1", "U2", "+0"]


def test_an_error_has_no_message_content() -> None:
    secret = "the secret"
    wrong = [append_to(USER, reasoning("", secret)), append_to(USER, text("x", secret)), insert_after("U9", secret)]
    for mutation in wrong:
        with pytest.raises(errors.TurnwireError) as refused:
            run(base(), mutation)
        assert secret not in str(refused.value)
        assert secret not in str(refused.value.metadata)


# --- what a later schema has written

LATER = bytes.fromhex("a206020801")


def test_what_a_later_schema_has_written_stays_with_its_item() -> None:
    stored = v1.PromptItem(message=user_message("a"), message_id="U1")
    made = v1.PromptItem(message=user_message("b"), mutation=v1.MutationOrigin(index=3))
    for each in (stored, stored.message, made, made.message, made.mutation):
        each.MergeFromString(LATER)
    editor = PromptEditor([stored, made], base_prompt_id="prm_1")
    written = user_message("c")
    written.MergeFromString(LATER)
    editor.append(written)
    editor.append_to("user", "d")
    first, second, third = editor.items
    assert first == stored
    made.mutation.prompt_id = "prm_1"
    assert second == made
    written.parts.append(text_part("d"))
    assert third == v1.PromptItem(message=written, mutation=v1.MutationOrigin(index=0))
    assert editor.messages == (stored.message, made.message, written)
