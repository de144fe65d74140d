"""What profiles and options choose."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rendering.sessions import X, Y, assistant, changes, entries, file, reasoning, sent, text, tool, user
from turnwire import errors, v1
from turnwire.rendering import Capabilities, Dialect, MediaPolicy, Options, Stopped

ANTHROPIC = Dialect.ANTHROPIC_MESSAGES
PNG = "data:image/png;base64,iVBORw0KGgo="


def failure(kind: str) -> v1.Failure:
    made = v1.Failure()
    getattr(made, kind).SetInParent()
    return made


@pytest.mark.parametrize(
    ("kind", "profile", "is_sent"),
    [
        ("api", "default", True),
        ("output_length", "default", True),
        ("content_filter", "default", False),
        ("aborted", "default", True),
        ("api", "opencode", False),
        ("output_length", "opencode", False),
        ("content_filter", "opencode", False),
        ("aborted", "opencode", True),
    ],
)
def test_assistants_that_did_not_end_well(kind: str, profile: str, is_sent: bool) -> None:
    rendering = sent(user("a"), assistant("half", failure=failure(kind)), user("b"), profile=profile)
    assert ("half" in rendering.body) is is_sent


def test_a_stopped_assistant_of_reasoning_alone_is_left_out() -> None:
    parts = (v1.PromptPart(step_start=v1.StepStartPart()), reasoning("r"))
    for profile in ("default", "opencode"):
        rendering = sent(user("a"), assistant(*parts, failure=failure("aborted")), user("b"), profile=profile)
        assert ("aborted", "M1", "") in changes(rendering)


def test_stopped_and_failed_assistants_can_be_dropped() -> None:
    session = (user("a"), assistant("x", failure=failure("aborted")), assistant("y", failure=failure("api")), user("b"))
    rendering = sent(*session, options=Options(aborted=Stopped.DROP, failed=Stopped.DROP))
    assert [rule for rule, _, _ in changes(rendering)] == ["aborted", "failed"]
    assert len(entries(rendering)) == 2


def test_opencode_says_what_it_could_not_read() -> None:
    blind = Options(capabilities=Capabilities(images=False))
    rendering = sent(user(file(PNG, name="a.png"), file(PNG)), options=blind, profile="opencode")
    assert [part["text"] for part in entries(rendering)[0]["content"]] == [
        'ERROR: Cannot read "a.png" (this model does not support image input). Inform the user.',
        "ERROR: Cannot read image (this model does not support image input). Inform the user.",
    ]


def test_opencode_judges_media_of_results_after_it_moved() -> None:
    part = tool("c1", "seen")
    part.tool.attachments.add(file=v1.FilePart(mime="image/png", url=PNG, filename="a.png"))
    blind = Options(capabilities=Capabilities(images=False))
    data = entries(sent(user("a"), assistant(part), user("b"), options=blind, profile="opencode"))
    assert data[2]["content"] == "seen"
    assert [one["text"] for one in data[3]["content"]] == [
        "Attached media from tool result:",
        "ERROR: Cannot read image (this model does not support image input). Inform the user.",
    ]


def test_opencode_puts_a_blank_between_signed_reasoning() -> None:
    signed = reasoning("r", '{"anthropic":{"signature":"S"}}')
    rendering = sent(user("a"), assistant(signed, "", tool("c1", "1")), user("b"), to=ANTHROPIC, profile="opencode")
    assert [block.get("text") for block in entries(rendering)[1]["content"]] == [None, " ", None]


def test_opencode_sends_the_partial_output_of_an_interrupted_call() -> None:
    part = tool(
        "c1", state=v1.ToolState.TOOL_STATE_ERROR, error="x", metadata_json='{"interrupted":true,"output":"half"}'
    )
    assert entries(sent(user("a"), assistant(part), profile="opencode"))[2]["content"] == "half"
    assert entries(sent(user("a"), assistant(part)))[2]["content"] == "x"


def test_opencode_sends_reasoning_of_others_as_text() -> None:
    data = entries(sent(user("a"), assistant(reasoning("r"), reasoning(" "), "t", model=Y), profile="opencode"))
    assert data[1] == {"role": "assistant", "content": "rt"}


def test_cache_marks_are_an_option() -> None:
    data = entries(sent(user("a"), assistant("b"), user("c"), to=ANTHROPIC, options=Options(cache_marks=2)))
    assert ["cache_control" in message["content"][-1] for message in data] == [False, True, True]


def test_media_can_stay_out() -> None:
    rendering = sent(user(file(PNG)), options=Options(media=MediaPolicy.PLACEHOLDER))
    assert "iVBOR" not in rendering.body


def test_texts_of_the_renderer_can_be_chosen() -> None:
    chosen = Options(interrupted_text="[gone]", empty_output_text="[nil]", closing_text="Go on.")
    session = (user("a"), assistant(tool("c1"), tool("c2", "")), assistant("x"))
    body = sent(*session, to=ANTHROPIC, options=chosen).body
    for expected in ("[gone]", "[nil]", "Go on."):
        assert expected in body


def test_capabilities_decide_about_beginning_and_end() -> None:
    free = Options(capabilities=Capabilities(assistant_first=True, assistant_last=True))
    data = entries(sent(assistant("hi"), to=ANTHROPIC, options=free))
    assert data == [{"role": "assistant", "content": [{"type": "text", "text": "hi"}]}]


def test_an_output_limit_tells_the_full_length() -> None:
    data = entries(sent(user("a"), assistant(tool("c1", "x" * 100)), options=Options(output_bytes=10)))
    assert data[2]["content"] == "x" * 10 + "\n[Output cut: 10 of 100 bytes are shown]"


def test_texts_for_people_only_are_not_sent() -> None:
    rendering = sent(user(text("hidden", ignored=True), "seen"))
    assert changes(rendering) == [("ignored", "M0", "M0.0")]


def test_the_settings_of_two_dialects_do_not_mix() -> None:
    media = Options(capabilities=Capabilities(media_in_results=True))
    part = tool("c1", "seen")
    part.tool.attachments.add(file=v1.FilePart(mime="image/png", url=PNG))
    data = entries(sent(user("a"), assistant(part), options=media))
    assert data[3]["role"] == "user"  # a result of openai-chat is a string, whatever is asked for


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(errors.UnknownProfile):
        sent(user("a"), profile="nobody")


def test_an_unknown_dialect_is_refused() -> None:
    refuse: Callable[..., object] = sent
    with pytest.raises(ValueError, match="xml"):
        refuse(user("a"), to="xml")


def test_the_model_is_named_in_the_body() -> None:
    assert sent(user("a")).body == f'{{"model":"{X.model_id}","messages":[{{"role":"user","content":"a"}}]}}'
