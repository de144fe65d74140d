"""Each pass by itself, on hand-made messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from turnwire import v1
from turnwire.rendering import Dialect, ForeignReasoning, MediaPolicy, Rule
from turnwire.rendering.form import Call, Log, Media, Message, Origin, Reasoning, Result, Role, Text
from turnwire.rendering.options import Settings
from turnwire.rendering.passes import Pass, calls, files, order, outputs, reasoning, texts
from turnwire.rendering.profiles import settings

MODEL = v1.ModelRef(provider_id="acme", model_id="m-1")
PNG = "iVBORw0KGgo="


def defaults(dialect: Dialect = Dialect.OPENAI_CHAT, **changes: Any) -> Settings:
    return replace(settings(dialect, MODEL), **changes)


def run(step: Pass, messages: list[Message], chosen: Settings | None = None) -> tuple[list[Message], list[Rule]]:
    """What a pass makes and the rules it names; that doing it again does nothing is checked on the way."""
    chosen = chosen or defaults()
    log, again = Log(), Log()
    result = step(messages, chosen, log)
    assert step(result, chosen, again) == result
    assert again.changes == []
    return result, [change.rule for change in log.changes]


def user(*blocks: Text | Media, item: int = 0) -> Message:
    return Message(Role.USER, list(blocks), "U1", item)


def assistant(*blocks: Text | Media | Call | Reasoning, item: int = 1) -> Message:
    return Message(Role.ASSISTANT, list(blocks), "A1", item)


def tool(*blocks: Result, item: int = 1) -> Message:
    return Message(Role.TOOL, list(blocks), "A1", item)


def call(name: str) -> Call:
    return Call(name, "sh", "{}", Origin("A1", f"p-{name}"))


def result(name: str, text: str = "ok", **more: Any) -> Result:
    return Result(name, "sh", text, Origin("A1", f"p-{name}"), **more)


# --- calls -----------------------------------------------------------------------------------------------------------


def test_a_call_without_a_result_gets_an_error_directly_after_it() -> None:
    made, rules = run(calls.answer_calls, [assistant(call("c1")), user(Text("go on"))])
    assert [message.role for message in made] == [Role.ASSISTANT, Role.TOOL, Role.USER]
    (answer,) = made[1].blocks
    assert isinstance(answer, Result)
    assert (answer.call_id, answer.error, answer.text) == ("c1", True, "[Tool execution was interrupted]")
    assert rules == [Rule.INTERRUPTED]


def test_results_come_in_the_order_of_the_calls() -> None:
    made, rules = run(calls.answer_calls, [assistant(call("c1"), call("c2")), tool(result("c2"), result("c1"))])
    assert [block.call_id for block in made[1].blocks if isinstance(block, Result)] == ["c1", "c2"]
    assert rules == [Rule.RESULT_ORDER, Rule.RESULT_ORDER]


def test_results_without_a_call_go() -> None:
    made, rules = run(
        calls.answer_calls,
        [tool(result("c0")), assistant(call("c1")), tool(result("c1"), result("c9")), user(Text("x"))],
    )
    assert made == [assistant(call("c1")), tool(result("c1")), user(Text("x"))]
    assert rules == [Rule.RESULT_WITHOUT_CALL, Rule.RESULT_WITHOUT_CALL]


def test_of_two_results_of_a_call_the_last_counts() -> None:
    made, rules = run(calls.answer_calls, [assistant(call("c1")), tool(result("c1", "old"), result("c1", "new"))])
    assert made[1].blocks == [result("c1", "new")]
    assert rules == [Rule.RESULT_WITHOUT_CALL]


def test_what_follows_a_call_comes_after_its_result() -> None:
    before = [
        assistant(Text("a"), call("c1"), Text("b"), call("c2"), call("c3")),
        tool(*map(result, ("c1", "c2", "c3"))),
    ]
    made, rules = run(calls.answer_in_place, before)
    assert made == [
        assistant(Text("a"), call("c1")),
        tool(result("c1")),
        assistant(Text("b"), call("c2"), call("c3")),
        tool(result("c2"), result("c3")),
    ]
    assert rules == [Rule.ANSWERED_IN_PLACE]


def test_parallel_calls_stay_together() -> None:
    before = [assistant(Text("a"), call("c1"), call("c2")), tool(result("c1"), result("c2"))]
    made, rules = run(calls.answer_in_place, before)
    assert made == before
    assert rules == []


def test_inputs_become_objects_without_lone_surrogates() -> None:
    inputs = [r'{"a":"\ud83d\ude00","b":"\ud83d"}', "[1.0]", r'{"a":"\\ud83d"}', r'{"a":"\uDC00x"}']
    made, rules = run(calls.clean_inputs, [assistant(*(Call("c", "sh", text) for text in inputs))])
    assert [block.input_json for block in made[0].blocks if isinstance(block, Call)] == [
        r'{"a":"\ud83d\ude00","b":"\ufffd"}',
        '{"input":[1.0]}',
        r'{"a":"\\ud83d"}',
        r'{"a":"\ufffdx"}',
    ]
    assert rules == [Rule.SURROGATE, Rule.INPUT_WRAPPED, Rule.SURROGATE]


def test_the_first_to_have_a_call_id_keeps_it() -> None:
    def turn(name: str) -> list[Message]:
        return [assistant(call(name)), tool(result(name))]

    made, rules = run(calls.rename_calls, [*turn("c"), *turn("c"), *turn("c_2"), *turn("c")])
    ids = [
        (message.blocks[0].id, after.blocks[0].call_id) for message, after in zip(made[::2], made[1::2], strict=True)
    ]
    assert ids == [("c", "c"), ("c_2", "c_2"), ("c_2_2", "c_2_2"), ("c_3", "c_3")]
    assert rules == [Rule.CALL_ID] * 3


def test_call_ids_become_legal() -> None:
    chosen = defaults(Dialect.ANTHROPIC_MESSAGES)
    made, _ = run(calls.rename_calls, [assistant(call("a/b:ü"), call("x" * 100))], chosen)
    first, second = (block.id for block in made[0].blocks if isinstance(block, Call))
    assert first == "a_b__"
    assert len(second) == 64
    assert second.startswith("x" * 55 + "_")


def test_short_call_ids_are_letters_and_digits() -> None:
    made, _ = run(
        calls.rename_calls, [assistant(call("call_1-a")), tool(result("call_1-a"))], defaults(short_call_ids=9)
    )
    assert made[0].blocks[0].id == "call1a000"
    assert made[1].blocks[0].call_id == "call1a000"


# --- reasoning -------------------------------------------------------------------------------------------------------


def test_reasoning_of_another_model_goes_and_takes_an_emptied_message_along() -> None:
    before = [assistant(Reasoning("r")), assistant(Reasoning("r"), Text("t")), assistant(Reasoning("own", own=True))]
    made, rules = run(reasoning.foreign_reasoning, before)
    assert made == [assistant(Text("t")), assistant(Reasoning("own", own=True))]
    assert rules == [Rule.FOREIGN_REASONING, Rule.FOREIGN_REASONING, Rule.EMPTY_MESSAGE]


def test_reasoning_of_another_model_as_text() -> None:
    chosen = defaults(foreign_reasoning=ForeignReasoning.TEXT)
    made, rules = run(reasoning.foreign_reasoning, [assistant(Reasoning("r"), Reasoning(" \n"), Text("t"))], chosen)
    assert made == [assistant(Text("r"), Text("t"))]
    assert rules == [Rule.REASONING_AS_TEXT, Rule.FOREIGN_REASONING]


def test_reasoning_without_a_signature_goes_where_one_is_needed() -> None:
    before = [assistant(Reasoning("r", own=True), Reasoning("s", own=True, signature="x"), Text("t"))]
    made, rules = run(reasoning.unsigned_reasoning, before, defaults(Dialect.ANTHROPIC_MESSAGES))
    assert made == [assistant(Reasoning("s", own=True, signature="x"), Text("t"))]
    assert rules == [Rule.UNSIGNED_REASONING]
    assert run(reasoning.unsigned_reasoning, before, defaults(Dialect.OPENAI_CHAT)) == (before, [])


def test_reasoning_at_the_end_of_a_model_call_goes() -> None:
    before = [assistant(Reasoning("r"), Text("t"), Reasoning("x"), Reasoning("y")), assistant(Reasoning("z"))]
    made, rules = run(reasoning.reasoning_alone, before)
    assert made == [assistant(Reasoning("r"), Text("t")), assistant()]
    assert rules == [Rule.REASONING_ALONE] * 3


# --- texts and outputs -----------------------------------------------------------------------------------------------


def test_exactly_empty_texts_go_and_white_space_stays() -> None:
    made, rules = run(texts.empty_texts, [user(Text(""), Text(" "), Text("\n"))])
    assert made == [user(Text(" "), Text("\n"))]
    assert rules == [Rule.EMPTY_TEXT]


def test_a_message_with_nothing_left_goes() -> None:
    made, rules = run(texts.empty_messages, [user(), assistant(Text("x")), assistant()])
    assert made == [assistant(Text("x"))]
    assert rules == [Rule.EMPTY_MESSAGE, Rule.EMPTY_MESSAGE]


def test_a_compacted_output_is_a_placeholder_without_media() -> None:
    before = [tool(result("c1", "long", compacted=True, media=(Media("image/png", PNG),)))]
    made, rules = run(outputs.compacted_outputs, before)
    assert made == [tool(result("c1", "[Old tool result content cleared]", fixed=True))]
    assert rules == [Rule.COMPACTED_OUTPUT]


def test_an_output_over_the_limit_is_cut_at_a_code_point_and_tells_its_length() -> None:
    made, rules = run(outputs.cut_outputs, [tool(result("c1", "äöü"), result("c2", "ab"))], defaults(output_bytes=3))
    assert made[0].blocks == [result("c1", "ä\n[Output cut: 2 of 6 bytes are shown]", fixed=True), result("c2", "ab")]
    assert rules == [Rule.OUTPUT_CUT]


def test_an_empty_output_gets_a_placeholder() -> None:
    with_media = result("c2", "", media=(Media("image/png", PNG),))
    made, rules = run(outputs.empty_outputs, [tool(result("c1", ""), with_media, result("c3", " "))])
    assert made == [tool(result("c1", "[No output]", fixed=True), with_media, result("c3", " "))]
    assert rules == [Rule.EMPTY_OUTPUT]


# --- media -----------------------------------------------------------------------------------------------------------


def test_media_that_the_model_does_not_take_is_named_in_a_text() -> None:
    before = [user(Media("image/png", PNG, name="a.png"), Media("video/mp4", "AAAA"), Media("image/png", PNG))]
    made, rules = run(files.place_media, before, defaults(images=False))
    assert [block.text for block in made[0].blocks if isinstance(block, Text)] == [
        'Image "a.png": left out, the model does not take it'.join("[]"),
        "[Video: left out, the model does not take it]",
        "[Image: left out, the model does not take it]",
    ]
    assert rules == [Rule.MEDIA_UNSUPPORTED] * 3


def test_media_can_all_be_placeholders() -> None:
    made, _ = run(files.place_media, [user(Media("image/png", PNG))], defaults(media=MediaPolicy.PLACEHOLDER))
    assert made == [user(Text("[Image: left out, the model does not take it]"))]


def test_text_files_become_text_and_mentions_go() -> None:
    before = [
        user(
            Media("text/plain", "aGk=", name="a.txt"), Media("text/plain", name="b.txt"), Media("image/png", name="c")
        ),
    ]
    made, rules = run(files.place_media, before)
    assert made == [user(Text('[File "a.txt"]\nhi'), Text('[Image "c": its content is not available]'))]
    assert rules == [Rule.FILE_AS_TEXT, Rule.MEDIA_UNREACHABLE, Rule.MEDIA_UNREACHABLE]


def test_in_results_placeholders_follow_the_output() -> None:
    before = [tool(result("c1", "out", media=(Media("image/bmp", "Qk0="), Media("image/png", PNG))))]
    made, rules = run(files.place_result_media, before, defaults(Dialect.ANTHROPIC_MESSAGES))
    text = "out\n[Image: left out, the model does not take it]"
    assert made == [tool(result("c1", text, media=(Media("image/png", PNG),)))]
    assert rules == [Rule.MEDIA_UNSUPPORTED]


def test_media_of_results_moves_behind_the_whole_message() -> None:
    picture = Media("image/png", PNG, origin=Origin("A1", "p-c1"))
    before = [
        assistant(call("c1")),
        tool(result("c1", media=(picture,))),
        assistant(Text("seen"), item=1),
        user(Text("next"), item=2),
    ]
    made, rules = run(files.move_media, before)
    moved = Message(Role.USER, [Text("Attached media from tool result:"), picture], "A1", 1)
    assert made == [
        assistant(call("c1")),
        tool(result("c1")),
        assistant(Text("seen")),
        moved,
        user(Text("next"), item=2),
    ]
    assert rules == [Rule.MEDIA_MOVED]


def test_media_of_the_assistant_moves_but_to_gemini() -> None:
    before = [assistant(Text("here"), Media("image/png", PNG))]
    made, rules = run(files.assistant_media, before)
    assert [message.role for message in made] == [Role.ASSISTANT, Role.USER]
    assert rules == [Rule.MEDIA_MOVED]
    assert run(files.assistant_media, before, defaults(Dialect.GOOGLE_GEMINI)) == (before, [])


def test_the_oldest_media_gives_way_to_the_limit() -> None:
    before = [user(Media("image/png", "a" * 6)), user(Media("image/png", "b" * 4)), user(Media("image/png", "c" * 4))]
    made, rules = run(files.limit_media, before, defaults(media_bytes=9))
    assert made == [user(Text("[Image: left out, newer media fills the limit]")), *before[1:]]
    assert rules == [Rule.MEDIA_LIMIT]


# --- order -----------------------------------------------------------------------------------------------------------


def test_neighbours_are_joined_where_the_target_wants_it() -> None:
    before = [user(Text("a")), user(Text("b")), assistant(Text("c")), assistant(Text("d"))]
    made, rules = run(order.merge, before, defaults(merge=True))
    assert made == [user(Text("a"), Text("b")), assistant(Text("c"), Text("d"))]
    assert rules == [Rule.MERGED, Rule.MERGED]
    assert run(order.merge, before) == (before, [])


def test_the_user_speaks_first() -> None:
    made, rules = run(order.begin, [assistant(Text("hi"))])
    assert [message.role for message in made] == [Role.USER, Role.ASSISTANT]
    assert rules == [Rule.LEADING_USER]
    assert run(order.begin, [assistant(Text("hi"))], defaults(assistant_first=True))[1] == []


def test_the_user_speaks_last_unless_the_target_goes_on() -> None:
    made, rules = run(order.close, [user(Text("a")), assistant(Text("b "))], defaults(Dialect.ANTHROPIC_MESSAGES))
    assert made[-1].blocks == [Text("Continue.")]
    assert rules == [Rule.CLOSING_USER]
    prefill = defaults(Dialect.ANTHROPIC_MESSAGES, assistant_last=True)
    made, rules = run(order.close, [user(Text("a")), assistant(Text("b "), Text(" \n"))], prefill)
    assert made[-1] == assistant(Text("b"))
    assert rules == [Rule.TRIMMED, Rule.TRIMMED]


def test_cache_marks_are_on_the_last_blocks() -> None:
    made, rules = run(
        order.mark, [user(Text("a")), user(Text("b"), Text("c")), assistant(call("c1"))], defaults(cache_marks=2)
    )
    assert [block.marked for message in made for block in message.blocks] == [False, False, True, True]
    assert rules == []


def test_a_cache_mark_on_what_is_trimmed_away_moves_to_the_block_before() -> None:
    closing = [user(Text("a")), assistant(Text("b"), Text(" \n", marked=True))]
    made, rules = run(order.close, closing, defaults(assistant_last=True, trim_last=True))
    assert [(block.text, block.marked) for message in made for block in message.blocks] == [("a", False), ("b", True)]
    assert rules == [Rule.TRIMMED]


def test_a_filler_stands_between_a_result_and_a_user() -> None:
    made, rules = run(order.fill_in, [tool(result("c1")), user(Text("x"))], defaults(filler_text="Done."))
    assert [message.role for message in made] == [Role.TOOL, Role.ASSISTANT, Role.USER]
    assert rules == [Rule.FILLER]
