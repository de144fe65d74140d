"""Anchors of mutations: what they name, what became of it, and signed parts that cannot be changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.prompt.build import (
    assistant,
    compaction,
    history,
    ids,
    reasoning,
    summary,
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
from turnwire import errors, v1
from turnwire.prompt import (
    Assembly,
    anchors,
    assemble,
    mutate,
)

# --- anchors


def test_c104_append_to_a_role_that_the_prompt_has_no_message_of() -> None:
    assembly = base(assistant("A1", "a"))
    with pytest.raises(errors.NoMessageOfRole) as refused:
        run(assembly, append_to(USER, "x"))
    assert refused.value.metadata == {"path": "mutations[0].append_to", "role": "ROLE_USER"}
    with pytest.raises(errors.NoMessageOfRole) as refused:
        run(base(), append("x"), remove("A1"), remove("A2"), append_to(ASSISTANT, "x"))
    assert refused.value.metadata == {"path": "mutations[3].append_to", "role": "ROLE_ASSISTANT"}


def test_c104_the_last_user_is_synthetic_or_ignored() -> None:
    synthetic = text("s", "made up")
    synthetic.text.synthetic = True
    assembly = base(user("U1", "a"), user("U2", synthetic), user("U3", text("i", "for people", ignored=True)))
    assert texts(run(assembly, append_to(USER, "x"))) == [["a"], ["made up"], ["for people", "x"]]
    assert texts(run(assembly, remove("U3"), append_to(USER, "x"))) == [["a"], ["made up", "x"]]


def test_c104_the_last_assistant_is_the_open_one() -> None:
    still = assistant("A2", tool("t", "c1", output=None), finish=None, completed=False)
    result = run(base(user("U1", "a"), still), append_to(ASSISTANT, "x"))
    assert texts(result) == [["a"], ["tool", "x"]]
    assert result[1].facts is not None
    assert not result[1].facts.completed


ON_MESSAGE = [
    (lambda name: insert_after(name, "x"), "insert_after.message_id"),
    (lambda name: insert_before(name, "x"), "insert_before.message_id"),
    (remove, "remove.message_id"),
]
ON_PART = [
    (remove_part, "remove_part.part_id"),
    (lambda name: replace_part(name, "x"), "replace_part.part_id"),
]
Make = Callable[[str], v1.Mutation]


def refused_anchor(
    assembly: Assembly, anchor: str, make: Make, path: str, *before: v1.Mutation
) -> errors.TurnwireError:
    with pytest.raises(errors.FailedPrecondition) as refused:
        run(assembly, *before, make(anchor))
    key = "part_id" if path.endswith("part_id") else "message_id"
    assert refused.value.metadata == {"path": f"mutations[{len(before)}].{path}", key: anchor}
    return refused.value


@pytest.mark.parametrize(("make", "path"), ON_MESSAGE)
def test_c104_an_unknown_message(make: Make, path: str) -> None:
    assert type(refused_anchor(base(), "U9", make, path)) is errors.AnchorUnknown


@pytest.mark.parametrize(("make", "path"), ON_PART)
def test_c104_an_unknown_part(make: Make, path: str) -> None:
    assert type(refused_anchor(base(), "u9.0", make, path)) is errors.AnchorUnknown


def compacted() -> Assembly:
    return base(
        user("U1", "one"), assistant("A1"), user("U2", "two"), user("C", compaction("c", "U2")), summary("S", "C")
    )


@pytest.mark.parametrize(("make", "path"), ON_MESSAGE)
@pytest.mark.parametrize("anchor", ["U1", "A1"])
def test_c45_c104_a_compacted_message_exists_but_was_compacted(make: Make, path: str, anchor: str) -> None:
    error = refused_anchor(compacted(), anchor, make, path)
    assert type(error) is errors.AnchorCompacted
    assert str(error).endswith("the message exists, but was compacted away")
    # Another error than that for an id which nobody ever saw.
    assert type(refused_anchor(compacted(), "U9", make, path)) is errors.AnchorUnknown


@pytest.mark.parametrize(("make", "path"), ON_PART)
def test_c45_c104_a_compacted_part(make: Make, path: str) -> None:
    assert type(refused_anchor(compacted(), "u1.0", make, path)) is errors.AnchorCompacted


def test_c45_the_kept_tail_is_not_compacted() -> None:
    assert ids(run(compacted(), insert_after("U2", "x"), insert_after("S", "y"))) == ["C", "S", "+1", "U2", "+0"]


@pytest.mark.parametrize(("make", "path"), ON_MESSAGE)
def test_c104_a_removed_or_reverted_message(make: Make, path: str) -> None:
    assembly = base(user("U1", "one"), removed_messages=["U0"])
    assert type(refused_anchor(assembly, "U0", make, path)) is errors.AnchorRemoved


@pytest.mark.parametrize(("make", "path"), ON_PART)
def test_c104_a_removed_or_reverted_part(make: Make, path: str) -> None:
    assembly = base(user("U1", "one"), removed_parts=["u1.9"])
    assert type(refused_anchor(assembly, "u1.9", make, path)) is errors.AnchorRemoved


@pytest.mark.parametrize(("make", "path"), ON_MESSAGE)
def test_c104_a_live_message_that_is_not_in_this_prompt(make: Make, path: str) -> None:
    past = history(
        user("U1", "a", turn="T1"), assistant("A1", turn="T1"), user("U2", "b", turn="T2"), turns=("T1", "T2")
    )
    assembly = assemble(past, "T1")
    for anchor in ("A1", "U2"):
        assert type(refused_anchor(assembly, anchor, make, path)) is errors.AnchorNotInPrompt
    assert type(refused_anchor(assembly, "U1", make, path, append("x"), remove("U1"))) is errors.AnchorNotInPrompt
    assert type(refused_anchor(assembly, "U1", make, path, remove_part("u1.0"))) is errors.AnchorNotInPrompt


@pytest.mark.parametrize(("make", "path"), ON_PART)
def test_c104_a_live_part_that_is_not_in_this_prompt(make: Make, path: str) -> None:
    past = history(user("U1", "a", turn="T1"), user("U2", "b", turn="T2"), turns=("T1", "T2"))
    assembly = assemble(past, "T1")
    assert type(refused_anchor(assembly, "u2.0", make, path)) is errors.AnchorNotInPrompt
    for gone in (remove("U1"), remove_part("u1.0"), replace_part("u1.0", "other")):
        assert type(refused_anchor(assembly, "u1.0", make, path, gone)) is errors.AnchorNotInPrompt


@pytest.mark.parametrize(("make", "path"), ON_MESSAGE)
def test_ids_of_parts_and_messages_are_spaces_of_their_own(make: Make, path: str) -> None:
    assert type(refused_anchor(base(), "u1.0", make, path)) is errors.AnchorUnknown
    assert type(refused_anchor(base(), "U1", remove_part, "remove_part.part_id")) is errors.AnchorUnknown


def test_without_fates_an_anchor_that_is_not_shown_is_unknown() -> None:
    with pytest.raises(errors.AnchorUnknown):
        mutate(compacted().items, [remove("U1")])


def test_a_message_that_a_mutation_made_is_no_anchor() -> None:
    for anchor in ("0", "1"):
        with pytest.raises(errors.AnchorUnknown):
            run(base(), append("x"), insert_after(anchor, "y"))


def test_c104_two_mutators_on_one_anchor() -> None:
    result = run(base(), insert_after("U2", "first"), insert_after("U2", "second"))
    assert texts(result)[2:5] == [["three"], ["second"], ["first"]]


def test_c104_nothing_can_come_between_call_and_result() -> None:
    assembly = base(user("U1", "go"), assistant("A1", tool("t1", "c1")), user("U2", "on"))
    result = run(assembly, insert_after("A1", "x"), insert_before("A1", "y"), append_to(ASSISTANT, "z"))
    call = result[2].parts[0].message.tool
    assert (call.call_id, call.output) == ("c1", "ok")
    assert ids(result) == ["U1", "+1", "A1", "+0", "U2"]


def test_c104_the_system_text_is_no_message_so_prepend_is_after_it() -> None:
    with pytest.raises(errors.AnchorUnknown):
        run(base(), insert_before("system", "x"))
    assert ids(run(base(), prepend("x")))[0] == "+0"


def test_c104_the_same_mutator_twice_applies_twice() -> None:
    assert texts(run(base(), append("x"), append("x")))[4:] == [["x"], ["x"]]
    assert texts(run(base(), append_to(USER, "x"), append_to(USER, "x")))[2] == ["three", "x", "x"]
    with pytest.raises(errors.AnchorNotInPrompt):
        run(base(), remove("U1"), remove("U1"))


def test_the_anchors_of_a_list_of_mutations() -> None:
    given = [append("x"), prepend("x"), append_to(USER, "x"), v1.Mutation()]
    given += [insert_after("m1", "x"), insert_before("m2", "x"), remove("m3")]
    given += [remove_part("p1"), replace_part("p2", "x")]
    assert anchors(given) == ({"m1", "m2", "m3"}, {"p1", "p2"})


# --- signed parts

SIGNED = base(
    user("U1", "go"),
    assistant(
        "A1",
        reasoning("r1", "a", signed=True),
        tool("t1", "c1"),
        reasoning("r2", "b", signed=True),
        tool("t2", "c2", signed=True),
        text("x1", "c", signed=True),
        text("x2", "d"),
    ),
)


@pytest.mark.parametrize(("make", "path"), ON_PART)
@pytest.mark.parametrize("part_id", ["r1", "r2", "t2", "x1"])
def test_c62_a_signed_part_cannot_be_replaced_or_removed(make: Make, path: str, part_id: str) -> None:
    error = refused_anchor(SIGNED, part_id, make, path)
    assert type(error) is errors.SignedPart


def test_c62_the_whole_message_can_be_removed() -> None:
    assert ids(run(SIGNED, remove("A1"))) == ["U1"]


def test_c62_append_to_the_end_of_a_signed_message_is_allowed() -> None:
    result = run(SIGNED, append_to(ASSISTANT, "x"))
    assert [part.id for part in result[1].parts] == ["r1", "t1", "r2", "t2", "x1", "x2", ""]


def test_c62_unsigned_parts_of_a_signed_message_can_go_or_change_in_place() -> None:
    result = run(SIGNED, replace_part("t1", tool("", "c1", output="new")), remove_part("x2"))
    assert [part.id for part in result[1].parts] == ["r1", "", "r2", "t2", "x1"]
    assert result[1].parts[0].message == reasoning("r1", "a", signed=True)


def test_a_part_of_a_kind_that_this_build_does_not_know_counts_as_signed() -> None:
    unknown = v1.PromptPart.FromString(text("p", "").SerializeToString()[:3] + b"\xfa\x06\x02\x08\x01")
    assembly = base(assistant("A1", unknown, "fine"))
    assert type(refused_anchor(assembly, "p", remove_part, "remove_part.part_id")) is errors.SignedPart
    assert ids(run(assembly, append_to(ASSISTANT, "x"), remove("A1"))) == []
