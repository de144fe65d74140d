"""PromptEditor: one documented way to edit, errors at the call, and the same result as the service's functions."""

from __future__ import annotations

import pytest

from tests.prompt.build import assistant, compaction, dialogue, frozen, history, ids, summary, text, texts, tool, user
from turnwire import errors, v1
from turnwire.prompt import (
    Item,
    PromptEditor,
    assemble,
    assistant_message,
    digest,
    file_part,
    message,
    mutate,
    text_part,
    tool_part,
    user_message,
)

USER, ASSISTANT = v1.Role.ROLE_USER, v1.Role.ROLE_ASSISTANT


def editor() -> PromptEditor:
    return PromptEditor.of(dialogue(), "T1")


def test_a_fresh_editor_shows_the_assembled_prompt() -> None:
    fresh = editor()
    assert list(fresh.items) == [item.to_proto() for item in assemble(dialogue(), "T1").items]
    assert fresh.messages[0] == message("user", text("u1.0", "one"))
    assert fresh.mutations == ()
    assert len(fresh) == 4
    assert fresh.digest() == digest(fresh.items)


def test_every_method_and_the_mutations_it_records() -> None:
    edited = editor()
    edited.append("user", "a")
    edited.prepend("user", "b")
    edited.append_to("assistant", "c", text_part("d", synthetic=True))
    edited.insert_after("A1", "user", "e")
    edited.insert_before("A1", "user", "f")
    edited.remove("U1")
    edited.replace_part("u2.0", "g")
    edited.remove_part("a1.0")
    assert ids(edited.items) == ["+1", "+4", "+3", "U2", "A2", "+0"]
    assert texts(edited.items) == [["b"], ["f"], ["e"], ["g"], ["four", "c", "d"], ["a"]]
    kinds = [mutation.WhichOneof("kind") for mutation in edited.mutations]
    assert " ".join(map(str, kinds)) == (
        "append prepend append_to insert_after insert_before remove replace_part remove_part"
    )
    assembly = assemble(dialogue(), "T1")
    served = mutate(assembly.items, edited.mutations, assembly)
    assert [item.to_proto() for item in served] == list(edited.items)
    assert digest(served) == edited.digest()


def test_messages_can_be_given_in_three_ways() -> None:
    edited = editor()
    edited.append(user_message("a", "b"))
    edited.append("user", "a", text_part("b"))
    edited.append(USER, "a", "b")
    assert edited.messages[4] == edited.messages[5] == edited.messages[6]
    assert edited.messages[4] == v1.PromptMessage(role=USER, parts=[text_part("a"), text_part("b")])
    edited.insert_after("A1", assistant_message("c"))
    edited.insert_before("A1", ASSISTANT, "d")
    edited.prepend("assistant", "e")
    assert [each.role for each in edited.messages[:5]] == [ASSISTANT, USER, ASSISTANT, ASSISTANT, ASSISTANT]


def test_a_message_with_parts_beside_it_is_a_mistake() -> None:
    with pytest.raises(TypeError):
        editor().append(user_message("a"), "b")


def test_a_word_that_is_no_role_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="'user' or 'assistant'"):
        editor().append_to("system", "a")  # type: ignore[arg-type]  # the mistake under test


def test_an_error_comes_out_of_the_call_and_nothing_has_changed() -> None:
    edited = editor()
    edited.append("user", "a")
    before = (edited.items, edited.mutations, edited.digest())
    with pytest.raises(errors.AnchorUnknown) as refused:
        edited.insert_after("U9", "user", "x")
    assert refused.value.metadata == {"path": "mutations[1].insert_after.message_id", "message_id": "U9"}
    with pytest.raises(errors.RuleViolation):
        edited.append("user")
    with pytest.raises(errors.TransientPartHasId):
        edited.append_to("user", text("x", "a"))
    with pytest.raises(errors.AnchorUnknown):
        edited.apply(v1.Mutation(remove=v1.Remove(message_id="U1")), v1.Mutation(remove=v1.Remove(message_id="U9")))
    assert (edited.items, edited.mutations, edited.digest()) == before


def test_anchors_have_their_reasons() -> None:
    past = history(
        user("U1", "a"), user("C", compaction("c")), summary("S", "C"), assistant("A1"), removed_messages=["X"]
    )
    edited = PromptEditor.of(past, "T1")
    for anchor, reason in (
        ("U1", errors.AnchorCompacted),
        ("X", errors.AnchorRemoved),
        ("A1", errors.AnchorNotInPrompt),
    ):
        with pytest.raises(reason):
            edited.remove(anchor)
    with pytest.raises(errors.NoMessageOfRole):
        PromptEditor().append_to("user", "x")


def test_c97_a_hook_cannot_reach_the_history() -> None:
    past = dialogue()
    before = frozen(past)
    edited = PromptEditor.of(past, "T1")
    edited.replace_part("u1.0", "edited")
    edited.append("user", "new")
    edited.remove("A1")
    for item in edited.items:
        item.message.parts[0].text.text = "by hand"
    assert frozen(past) == before
    assert texts(edited.items) == [["edited"], ["three"], ["four"], ["new"]]


def test_c98_assigning_is_an_error() -> None:
    edited = editor()
    for name in ("items", "messages", "mutations", "anything", "_items"):
        with pytest.raises(AttributeError, match="edited by the editor's methods"):
            setattr(edited, name, [])
    with pytest.raises(AttributeError, match="edited by the editor's methods"):
        del edited.items
    assert len(edited) == 4


def test_c98_what_is_handed_out_is_fixed_or_a_copy() -> None:
    edited = editor()
    assert isinstance(edited.items, tuple)
    assert isinstance(edited.messages, tuple)
    assert isinstance(edited.mutations, tuple)
    before = edited.digest()
    edited.items[0].message.parts[0].text.text = "x"
    edited.messages[0].parts.add().text.text = "x"
    assert edited.digest() == before
    assert texts(edited.items)[0] == ["one"]


def test_c98_changing_a_message_after_giving_it_has_no_effect() -> None:
    edited = editor()
    given = user_message("a")
    edited.append(given)
    mutation = v1.Mutation(append=v1.Append(message=user_message("b")))
    edited.apply(mutation)
    given.parts[0].text.text = mutation.append.message.parts[0].text.text = "changed"
    edited.mutations[0].append.message.parts[0].text.text = "changed"
    assert texts(edited.items)[4:] == [["a"], ["b"]]


def test_c104_the_two_examples_of_the_source_note() -> None:
    past = history(user("U1", "go"), assistant("A1", tool("t1", "c1")))
    edited = PromptEditor.of(past, "T1")
    edited.append("user", "Summarize the tool output above and continue.")
    edited.append_to("user", "Keep it short.")
    assert texts(edited.items) == [
        ["go"],
        ["tool"],
        ["Summarize the tool output above and continue.", "Keep it short."],
    ]


def test_an_editor_over_the_items_of_a_reply() -> None:
    first = editor()
    first.append("user", "a")
    reply = list(first.items)
    chained = PromptEditor(reply, base_prompt_id="prm_1")
    chained.append("user", "b")
    reply[0].message.parts[0].text.text = "changed"
    assert [item.mutation for item in chained.items[4:]] == [
        v1.MutationOrigin(index=0, prompt_id="prm_1"),
        v1.MutationOrigin(index=0),
    ]
    assert texts(chained.items)[0] == ["one"]
    assert len(chained.mutations) == 1
    first.append("user", "b")
    assert chained.digest() == first.digest()


def test_an_item_survives_the_way_out_and_in() -> None:
    edited = editor()
    edited.append("user", "a")
    for item in edited.items:
        assert Item.of(item).to_proto() == item


def test_the_opencode_profile_is_taken() -> None:
    past = history(user("U1", "a"), user("C", compaction("c")), summary("S", "C", text("s", " ")))
    assert ids(PromptEditor.of(past, "T1").items) == ["U1", "C", "S"]
    assert ids(PromptEditor.of(past, "T1", "opencode").items) == ["C", "S"]


def test_an_editor_is_true_and_its_repr_has_no_content() -> None:
    empty = PromptEditor()
    assert empty
    assert repr(empty) == "<PromptEditor: 0 items, 0 mutations>"
    assert "one" not in repr(editor())


def test_builders() -> None:
    assert text_part("a").text == v1.TextPart(text="a")
    assert not text_part("a").text.HasField("synthetic")
    assert text_part("a", synthetic=False).text.HasField("synthetic")
    assert file_part("data:,x", "text/plain", filename="x").file.filename == "x"
    done = tool_part("c1", "sh", output="").tool
    assert (done.state, done.output, done.HasField("error")) == (v1.ToolState.TOOL_STATE_COMPLETED, "", False)
    failed = tool_part("c1", "sh", error="no").tool
    assert (failed.state, failed.error, failed.HasField("output")) == (v1.ToolState.TOOL_STATE_ERROR, "no", False)
    with pytest.raises(ValueError, match="either an output or an error"):
        tool_part("c1", "sh")
