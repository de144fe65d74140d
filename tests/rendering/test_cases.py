"""The cases from the field that rendering must get right, by their numbers (tools, compaction, what providers refuse,
model switch)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rendering import checker
from tests.rendering.sessions import (
    ERROR,
    PENDING,
    RUNNING,
    X,
    Y,
    assistant,
    changes,
    entries,
    file,
    items,
    reasoning,
    sent,
    text,
    tool,
    user,
)
from turnwire import v1
from turnwire.errors import EmptyPrompt
from turnwire.prompt import mutate, user_message
from turnwire.rendering import Capabilities, Dialect, ForeignReasoning, Options, render

ALL = tuple(Dialect)
CHAT, RESPONSES, ANTHROPIC, GEMINI = (
    Dialect.OPENAI_CHAT,
    Dialect.OPENAI_RESPONSES,
    Dialect.ANTHROPIC_MESSAGES,
    Dialect.GOOGLE_GEMINI,
)
INTERRUPTED = "[Tool execution was interrupted]"
SIGNED = '{"anthropic":{"signature":"S1"}}'
PNG = "data:image/png;base64,iVBORw0KGgo="

every_dialect = pytest.mark.parametrize("dialect", ALL)


def results(data: list[Any]) -> list[tuple[str, str]]:
    """The results of a chat body: call id and text."""
    return [(one["tool_call_id"], one["content"]) for one in data if one["role"] == "tool"]


# --- tools -----------------------------------------------------------------------------------------------------------


@every_dialect
def test_c1_a_dangling_call_is_closed_as_interrupted(dialect: Dialect) -> None:
    session = [user("one"), assistant(tool("c1")), user("two")]
    frozen = [message.SerializeToString(deterministic=True) for message in session]
    first, second = sent(*session, to=dialect), sent(*session, to=dialect)
    assert first.body == second.body
    assert first.sha256 == second.sha256
    assert checker.faults(first.body, dialect) == []
    assert ("interrupted", "M1", "M1.0") in changes(first)
    assert [message.SerializeToString(deterministic=True) for message in session] == frozen


def test_c1_the_result_directly_follows() -> None:
    data = entries(sent(user("one"), assistant(tool("c1")), user("two"), to=ANTHROPIC))
    assert data[1:] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "sh", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": INTERRUPTED, "is_error": True},
                {"type": "text", "text": "two"},
            ],
        },
    ]


@every_dialect
def test_c2_the_prompt_never_ends_with_a_call_that_lacks_its_result(dialect: Dialect) -> None:
    part = tool("c1", state=ERROR, error="stopped", metadata_json='{"interrupted":true}')
    rendering = sent(user("one"), assistant(part), to=dialect)
    assert checker.faults(rendering.body, dialect) == []
    assert "stopped" in json.dumps(entries(rendering)[-1])


def test_c5_three_parallel_calls_two_results() -> None:
    data = entries(sent(user("go"), assistant(tool("c1", "1"), tool("c2", "2"), tool("c3")), user("next")))
    assert results(data) == [("c1", "1"), ("c2", "2"), ("c3", INTERRUPTED)]


@pytest.mark.parametrize("state", [PENDING, RUNNING, 0, 99])
def test_c9_every_state_that_is_not_terminal_is_incomplete(state: int) -> None:
    part = tool("c1", "half")
    part.tool.state = state  # type: ignore[assignment]  # a number of a later schema
    assert results(entries(sent(user("go"), assistant(part)))) == [("c1", INTERRUPTED)]


@pytest.mark.parametrize("finished", [0, 1])
def test_c10_finished_siblings_are_kept_when_one_is_cancelled(finished: int) -> None:
    parts = [*[tool("c1", "ok")][:finished], tool("c2")]
    aborted = v1.Failure(aborted=v1.AbortedFailure(message="stopped"))
    data = entries(sent(user("go"), assistant(*parts, failure=aborted), user("again")))
    assert results(data) == [*[("c1", "ok")][:finished], ("c2", INTERRUPTED)]
    assert data[-1] == {"role": "user", "content": "again"}


@every_dialect
def test_c13_completion_order_does_not_show(dialect: Dialect) -> None:
    part, other = tool("c1", "1"), tool("c2", "2")
    other.tool.time.end.FromSeconds(1)
    part.tool.time.end.FromSeconds(2)
    late = sent(user("go"), assistant(part, other), to=dialect).body
    assert late == sent(user("go"), assistant(tool("c1", "1"), tool("c2", "2")), to=dialect).body


@every_dialect
def test_c14_a_call_id_may_come_again_in_a_later_turn(dialect: Dialect) -> None:
    session = (user("a"), assistant(tool("call_0", "r1")), user("b"), assistant(tool("call_0", "r2")))
    rendering = sent(*session, to=dialect)
    assert checker.faults(rendering.body, dialect) == []
    assert ("call_id", "M3", "M3.0") in changes(rendering)
    if dialect is CHAT:
        assert results(entries(rendering)) == [("call_0", "r1"), ("call_0_2", "r2")]


@every_dialect
def test_c16_no_window_gives_an_orphan(dialect: Dialect) -> None:
    parts = items(user("1"), assistant(tool("c1", "x")), user("2"), assistant(tool("c1", "y"), tool("c2")), user("3"))
    for count in range(1, len(parts) + 1):
        assert checker.faults(render(parts[-count:], dialect, X).body, dialect) == []


# --- compaction ------------------------------------------------------------------------------------------------------


def compacted(summary: str = "What was done.") -> list[v1.User | v1.Assistant]:
    made = assistant(summary, kind=v1.ResultKind.RESULT_KIND_SUMMARY, finish="stop")
    made.parent_id = "M2"
    asked = user(v1.PromptPart(compaction=v1.CompactionPart()))
    return [user("old"), assistant(tool("c1", "old output")), asked, made, user("new")]


def test_c40_call_and_result_go_together() -> None:
    assert entries(sent(*compacted())) == [
        {"role": "user", "content": "What did we do so far?"},
        {"role": "assistant", "content": "What was done."},
        {"role": "user", "content": "new"},
    ]


@pytest.mark.parametrize("summary", ["", " \n"])
def test_c42_an_empty_summary_is_no_boundary(summary: str) -> None:
    data = entries(sent(*compacted(summary)))
    assert data[0] == {"role": "user", "content": "old"}
    assert results(data) == [("c1", "old output")]


@every_dialect
def test_c44_a_compacted_output_is_a_placeholder(dialect: Dialect) -> None:
    part = tool("c1", "long output")
    part.tool.compacted.FromSeconds(1)
    part.tool.attachments.add(file=v1.FilePart(mime="image/png", url=PNG))
    rendering = sent(user("go"), assistant(part), to=dialect)
    assert "[Old tool result content cleared]" in rendering.body
    assert "long output" not in rendering.body
    assert "iVBOR" not in rendering.body
    assert ("compacted_output", "M1", "M1.0") in changes(rendering)


# --- numbers and texts -----------------------------------------------------------------------------------------------


@every_dialect
def test_c51_c52_numbers_keep_their_spelling_and_keys_their_order(dialect: Dialect) -> None:
    document = '{"z":1,"a":1.0,"id":653247040368672768,"e":1E400}'
    body = sent(user("go"), assistant(tool("c1", "ok", input_json=document)), to=dialect).body
    assert (document if dialect in (ANTHROPIC, GEMINI) else document.replace('"', '\\"')) in body


@every_dialect
def test_c47_c48_nul_stays_and_a_lone_surrogate_does_not_reach_the_provider(dialect: Dialect) -> None:
    part = tool("c1", "PK\x03\x04\x00", input_json=r'{"\ud83d":"\ud83d\ude00"}')
    rendering = sent(user("go"), assistant(part), to=dialect)
    assert checker.faults(rendering.body, dialect) == []
    assert r"PK\u0003\u0004\u0000" in rendering.body
    assert ("surrogate", "M1", "M1.0") in changes(rendering)


@every_dialect
def test_c58_deep_inputs_are_sent_as_they_are(dialect: Dialect) -> None:
    document = '{"a":' * 128 + "1" + "}" * 128
    body = sent(user("go"), assistant(tool("c1", "ok", input_json=document)), to=dialect).body
    assert (document if dialect in (ANTHROPIC, GEMINI) else document.replace('"', '\\"')) in body


# --- what a provider refuses -----------------------------------------------------------------------------------------


@every_dialect
def test_c59_empty_texts_outputs_and_messages(dialect: Dialect) -> None:
    session = [
        user("go"),
        assistant("", tool("c1", "")),
        user(""),
        assistant(reasoning("only", SIGNED)),
        user(file(PNG), ""),
        assistant(" "),
        user("end"),
    ]
    rendering = sent(*session, to=dialect)
    assert checker.faults(rendering.body, dialect) == []
    named = changes(rendering)
    assert ("empty_text", "M1", "M1.0") in named
    assert ("empty_output", "M1", "M1.1") in named
    assert ("empty_message", "M2", "") in named
    assert {rule for rule, message, _ in named if message == "M3"} <= {
        "reasoning_alone",
        "unsigned_reasoning",
        "empty_message",
    }
    assert '" "' in rendering.body
    assert "[No output]" in rendering.body


def test_c61_reasoning_of_another_model() -> None:
    answer = assistant(reasoning("because", SIGNED), "so")
    for_x = entries(sent(user("a"), answer, user("b"), to=ANTHROPIC, model=X))
    assert for_x[1]["content"][0] == {"type": "thinking", "thinking": "because", "signature": "S1"}
    dropped = sent(user("a"), answer, user("b"), to=ANTHROPIC, model=Y)
    assert entries(dropped)[1]["content"] == [{"type": "text", "text": "so"}]
    assert ("foreign_reasoning", "M1", "M1.0") in changes(dropped)
    as_text = Options(foreign_reasoning=ForeignReasoning.TEXT)
    shown = sent(user("a"), answer, user("b"), to=ANTHROPIC, model=Y, options=as_text)
    assert entries(shown)[1]["content"][0] == {"type": "text", "text": "because"}
    assert "S1" not in shown.body


@every_dialect
def test_c61_back_at_its_model_it_is_what_was_sent(dialect: Dialect) -> None:
    metadata = {
        ANTHROPIC: SIGNED,
        RESPONSES: '{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"E"}}',
        GEMINI: '{"google":{"thoughtSignature":"RQ=="}}',
        CHAT: "{}",
    }[dialect]
    session = [user("a"), assistant(reasoning("because", metadata), "so"), user("b")]
    first = entries(sent(*session, to=dialect))
    later = entries(sent(*session, assistant(reasoning("hm", metadata), "y", model=Y), user("c"), to=dialect))
    assert later[: len(first)] == first
    assert "because" in json.dumps(first)
    assert "hm" not in json.dumps(later)


def test_c61_a_part_can_have_a_model_of_its_own() -> None:
    part = reasoning("because", SIGNED, model=Y)
    assert "because" not in sent(user("a"), assistant(part, "so"), to=ANTHROPIC, model=X).body
    assert "because" in sent(user("a"), assistant(part, "so"), to=ANTHROPIC, model=Y).body


def test_c61_redacted_reasoning_goes_back() -> None:
    part = reasoning("", '{"anthropic":{"redactedData":"R"}}')
    data = entries(sent(user("a"), assistant(part, "so"), to=ANTHROPIC))
    assert data[1]["content"][0] == {"type": "redacted_thinking", "data": "R"}


def test_c62_signed_blocks_keep_their_order_and_their_borders() -> None:
    parts = [reasoning("r1", SIGNED), tool("c1", "1"), reasoning("r2", SIGNED), tool("c2", "2"), text("end")]
    data = entries(sent(user("go"), assistant(*parts), user("next"), to=ANTHROPIC))
    kinds = [[block["type"] for block in message["content"]] for message in data]
    assert kinds == [
        ["text"],
        ["thinking", "tool_use"],
        ["tool_result"],
        ["thinking", "tool_use"],
        ["tool_result"],
        ["text"],
        ["text"],
    ]


def test_c64_media_over_the_limit_gives_way_from_the_oldest_on() -> None:
    session = [part for turn in "abc" for part in (user(file(f"data:image/png;base64,{turn * 2000}")), assistant("ok"))]
    rendering = sent(*session, options=Options(media_bytes=4000))
    assert "aaaa" not in rendering.body
    assert "bbbb" in rendering.body
    assert "cccc" in rendering.body
    assert ("media_limit", "M0", "M0.0") in changes(rendering)
    assert "[Image: left out, newer media fills the limit]" in rendering.body


@pytest.mark.parametrize("mime", ["image/jpg", "image/bmp", ""])
@every_dialect
def test_c64_odd_media_types(dialect: Dialect, mime: str) -> None:
    rendering = sent(user(file(f"data:{mime};base64,iVBORw0KGgo=", mime), "look"), to=dialect)
    assert checker.faults(rendering.body, dialect) == []
    if dialect is CHAT and mime:
        taken = mime == "image/jpg"
        assert ("data:image/jpeg;base64," in rendering.body) == taken
        assert ("left out, the model does not take it" in rendering.body) != taken
        assert [rule for rule, *_ in changes(rendering)] == ["media_type" if taken else "media_unsupported"]


# --- model switch, mutations, the end --------------------------------------------------------------------------------


@every_dialect
def test_c108_what_is_appended_leaves_the_entries_before_it_equal(dialect: Dialect) -> None:
    session = [user("a"), assistant("b", tool("c1", "1")), user("c")]
    prompt = items(*session)
    hook = v1.Mutation(append=v1.Append(message=user_message("synthetic")))
    plain = entries(render(prompt, dialect, X))
    later = entries(render(mutate(items(*session, assistant("d"), user("e")), [hook]), dialect, X))
    whole = len(plain) - 1 if dialect in (ANTHROPIC, GEMINI) else len(plain)
    assert later[:whole] == plain[:whole]


@every_dialect
def test_nothing_to_send_is_an_error(dialect: Dialect) -> None:
    with pytest.raises(EmptyPrompt):
        sent(user("", text("for people", ignored=True)), assistant(reasoning("r")), to=dialect)


@every_dialect
def test_a_message_of_an_assistant_that_a_mutation_wrote_is_sent(dialect: Dialect) -> None:
    written = v1.PromptMessage(role=v1.Role.ROLE_ASSISTANT, parts=[text("made"), tool("c1", "ok")])
    made = mutate(items(user("a")), [v1.Mutation(append=v1.Append(message=written))])
    body = render(made, dialect, X).body
    assert checker.faults(body, dialect) == []
    assert "made" in body


def test_c59_a_closing_blank_leaves_no_reasoning_alone_behind() -> None:
    prefill = Options(capabilities=Capabilities(assistant_last=True))
    for parts, kept in (
        ([reasoning("r", SIGNED), text(" \n")], []),
        ([text(" ")], []),
        ([text("so"), reasoning("r", SIGNED), text(" ")], ["text"]),
    ):
        rendering = sent(user("go"), assistant(*parts), to=ANTHROPIC, options=prefill)
        data = entries(rendering)
        assert [block["type"] for message in data[1:] for block in message["content"]] == kept
        # Only an end that the target was said to take stands out.
        assert checker.faults(rendering.body, ANTHROPIC) == (["an assistant at the end"] if kept else [])
        rules = [rule for rule, *_ in changes(rendering)]
        assert "trimmed" in rules
        assert ("empty_message" in rules) is (not kept)


def test_c61_openai_gets_reasoning_back_only_with_its_own_name_of_it() -> None:
    nameless = reasoning("r", '{"openai":{"reasoningEncryptedContent":"e"}}')
    rendering = sent(user("go"), assistant(nameless, "so"), to=RESPONSES)
    assert "encrypted_content" not in rendering.body
    assert ("unsigned_reasoning", "M1", "M1.0") in changes(rendering)


def test_c61_google_gets_no_signature_that_is_not_base64() -> None:
    for signature, stays in (("QUFB", True), ("QQ==", True), ("g", False), ("é", False)):
        metadata = json.dumps({"google": {"thoughtSignature": signature}})
        body = sent(user("go"), assistant(reasoning("r", metadata), "so"), to=GEMINI).body
        assert ("thoughtSignature" in body) is stays, signature
