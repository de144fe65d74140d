"""What holds for any history and any mutations."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.prompt.build import assistant, compaction, frozen, reasoning, summary, text, tool, turn, user
from turnwire import errors, v1
from turnwire.prompt import (
    Assembly,
    History,
    Item,
    PromptEditor,
    assemble,
    digest,
    message,
    mutate,
    text_part,
)

PROFILES = st.sampled_from(["default", "opencode"])
TURNS = ("T1", "T2")


@st.composite
def messages(draw: st.DrawFn) -> list[v1.User | v1.Assistant]:
    made: list[v1.User | v1.Assistant] = []
    for number in range(draw(st.integers(0, 8))):
        name, where = f"M{number}", draw(st.sampled_from(TURNS))
        before = [each.id for each in made] or ["M9"]
        match draw(st.integers(0, 5)):
            case 0:
                made.append(user(name, *["x"] * draw(st.integers(0, 3)), turn=where))
            case 1:
                tail = draw(st.none() | st.sampled_from([*before, name, "gone"]))
                made.append(user(name, compaction(f"{name}.c", tail), turn=where))
            case 2 | 3:
                signed = draw(st.booleans())
                parts = [
                    reasoning(f"{name}.r", "think", signed=signed),
                    tool(f"{name}.t", "c1"),
                    text(f"{name}.x", "y"),
                ]
                done = draw(st.booleans())
                chosen = parts[draw(st.integers(0, 3)) :]
                made.append(assistant(name, *chosen, turn=where, finish="stop" if done else None, completed=done))
            case _:
                content = draw(st.sampled_from(["", " ", "what happened"]))
                made.append(summary(name, draw(st.sampled_from(before)), text(f"{name}.s", content), turn=where))
    return made


@st.composite
def mutations(draw: st.DrawFn) -> v1.Mutation:
    role = draw(st.sampled_from([v1.Role.ROLE_USER, v1.Role.ROLE_ASSISTANT]))
    put = message(role, draw(st.sampled_from(["a", "b"])))
    anchor = f"M{draw(st.integers(0, 8))}"
    part = f"{anchor}{draw(st.sampled_from(['.c', '.r', '.t', '.x', '.s']))}"
    part = draw(st.sampled_from([part, f"{anchor.lower()}.0", f"{anchor.lower()}.1"]))
    return draw(
        st.sampled_from(
            [
                v1.Mutation(append=v1.Append(message=put)),
                v1.Mutation(prepend=v1.Prepend(message=put)),
                v1.Mutation(append_to=v1.AppendTo(role=put.role, parts=put.parts)),
                v1.Mutation(insert_after=v1.InsertAfter(message_id=anchor, message=put)),
                v1.Mutation(insert_before=v1.InsertBefore(message_id=anchor, message=put)),
                v1.Mutation(remove=v1.Remove(message_id=anchor)),
                v1.Mutation(remove_part=v1.RemovePart(part_id=part)),
                v1.Mutation(replace_part=v1.ReplacePart(part_id=part, part=text_part("new"))),
            ]
        )
    )


LISTS = st.lists(mutations(), max_size=6)


def outcome(items: list[Item], given: list[v1.Mutation], assembly: Assembly) -> list[Item] | tuple[str, str]:
    """The items, or the reason and the end of the path (the index of a mutation depends on how they are split)."""
    try:
        return mutate(items, given, assembly)
    except errors.TurnwireError as error:
        return error.reason_name, error.path.partition("].")[2]


def without_origin(items: list[Item]) -> list[Item]:
    return [replace(item, mutation=0, prompt_id="") for item in items]


def past(made: list[v1.User | v1.Assistant]) -> History:
    return History(made, turns=map(turn, TURNS))


@given(messages(), PROFILES)
def test_assembling_shows_each_live_message_at_most_once(made: list[v1.User | v1.Assistant], profile: str) -> None:
    held = past(made)
    for name in TURNS:
        items = assemble(held, name, profile).items
        shown = [item.message_id for item in items]
        assert len(set(shown)) == len(shown)
        by_id = {each.id: each for each in made}
        for item in items:
            assert [part.message for part in item.parts] == list(by_id[item.message_id].parts)
            assert item.parts


@given(messages(), PROFILES)
def test_what_is_live_and_has_parts_is_shown_compacted_or_after_the_turn(
    made: list[v1.User | v1.Assistant], profile: str
) -> None:
    held = past(made)
    for name in TURNS:
        assembly = assemble(held, name, profile)
        shown = {item.message_id for item in assembly.items}
        last = max((place for place, each in enumerate(made) if each.turn_id == name), default=len(made) - 1)
        for place, each in enumerate(made):
            compacted = assembly.message_fate(each.id).name == "COMPACTED"
            assert (each.id in shown) == (bool(each.parts) and place <= last and not compacted)


@given(messages(), LISTS, PROFILES)
def test_all_or_none_and_the_history_stays(
    made: list[v1.User | v1.Assistant], edits: list[v1.Mutation], profile: str
) -> None:
    held = past(made)
    before = frozen(held)
    assembly = assemble(held, "T2", profile)
    items = list(assembly.items)
    sent = [edit.SerializeToString(deterministic=True) for edit in edits]
    untouched = digest(items)
    outcome(items, edits, assembly)
    assert items == list(assembly.items)
    assert digest(items) == untouched
    assert [edit.SerializeToString(deterministic=True) for edit in edits] == sent
    assert frozen(held) == before


@given(messages(), LISTS, LISTS)
def test_mutating_by_both_lists_is_mutating_twice(
    made: list[v1.User | v1.Assistant], first: list[v1.Mutation], second: list[v1.Mutation]
) -> None:
    assembly = assemble(past(made), "T2")
    items = list(assembly.items)
    together = outcome(items, first + second, assembly)
    middle = outcome(items, first, assembly)
    apart = outcome(middle, second, assembly) if isinstance(middle, list) else middle
    if isinstance(together, list) and isinstance(apart, list):
        # A part that a mutation wrote is wrapped anew each time, so compare what it says.
        assert [i.to_proto() for i in without_origin(together)] == [i.to_proto() for i in without_origin(apart)]
        assert digest(together) == digest(apart)
    else:
        assert together == apart


@given(messages(), LISTS)
def test_every_item_has_parts_and_no_signed_part_is_lost_alone(
    made: list[v1.User | v1.Assistant], edits: list[v1.Mutation]
) -> None:
    assembly = assemble(past(made), "T2")
    result = outcome(list(assembly.items), edits, assembly)
    if not isinstance(result, list):
        return
    before = {item.message_id: [part.id for part in item.parts if part.fixed] for item in assembly.items}
    for item in result:
        assert item.parts
        if item.message_id:
            assert [part.id for part in item.parts if part.fixed] == before[item.message_id]


@given(messages(), LISTS)
def test_the_digest_does_not_depend_on_the_ids_of_a_fork(
    made: list[v1.User | v1.Assistant], edits: list[v1.Mutation]
) -> None:
    assembly = assemble(past(made), "T2")
    result = outcome(list(assembly.items), edits, assembly)
    if not isinstance(result, list):
        return
    renamed = [item.to_proto() for item in result]
    for item in renamed:
        if item.HasField("message_id"):
            item.message_id = "other"
        for part in item.message.parts:
            part.id = "other"
    assert digest(renamed) == digest(result)


@given(messages(), LISTS)
def test_the_editor_comes_to_what_the_service_comes_to(
    made: list[v1.User | v1.Assistant], edits: list[v1.Mutation]
) -> None:
    held = past(made)
    assembly = assemble(held, "T2")
    edited = PromptEditor.of(held, "T2")
    for edit in edits:
        with contextlib.suppress(errors.TurnwireError):
            edited.apply(edit)
    served = mutate(assembly.items, edited.mutations, assembly)
    assert [item.to_proto() for item in served] == list(edited.items)
    assert digest(served) == edited.digest()


@given(messages(), st.integers(1, 8))
def test_c108_without_a_compaction_an_earlier_prompt_is_the_prefix_of_a_later_one(
    made: list[v1.User | v1.Assistant], cut: int
) -> None:
    plain = [each for each in made if not any(part.HasField("compaction") for part in each.parts)]
    if not plain:
        return
    shorter = plain[:cut]
    earlier = [item.to_proto() for item in assemble(past(shorter), shorter[-1].turn_id).items]
    later = [item.to_proto() for item in assemble(past(plain), plain[-1].turn_id).items]
    assert later[: len(earlier)] == earlier
