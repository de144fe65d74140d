"""Turnwire's own rules of single messages."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given

from tests.breaking import Broken, broken
from tests.strategies import messages
from turnwire import rules, v1
from turnwire.rules import own

USER, ASSISTANT = v1.Role.ROLE_USER, v1.Role.ROLE_ASSISTANT


def found(message: Any, **how: Any) -> list[tuple[str, str]]:
    return [(each.path, each.rule) for each in rules.check(message, **how)]


def tool(**fields: Any) -> v1.PromptPart:
    return v1.PromptPart(tool=v1.ToolPart(**{"call_id": "c1", "name": "bash", "state": 2, **fields}))


def text(**fields: Any) -> v1.PromptPart:
    return v1.PromptPart(text=v1.TextPart(text="hi"), **fields)


def assistant(*parts: v1.PromptPart) -> v1.Assistant:
    return v1.Assistant(
        id="a1",
        turn_id="t1",
        time=v1.AssistantTime(created=Timestamp(seconds=1)),
        run=v1.Run(agent="build", model=v1.ModelRef(provider_id="p", model_id="m")),
        parts=parts,
    )


class TestJson:
    def test_c49_nan_is_refused_with_its_path(self) -> None:
        message = assistant(text(), tool(metadata_json='{"x": NaN}', input_json="[Infinity]"))
        assert sorted(found(message)) == [
            ("parts[1].tool.input_json", "turnwire.json.syntax"),
            ("parts[1].tool.metadata_json", "turnwire.json.syntax"),
        ]

    def test_c47_escaped_lone_surrogates_are_legal(self) -> None:
        assert found(tool(input_json='{"\\ud83d": "abc\\ud83d"}', metadata_json='{"title":"\\ude00"}')) == []

    def test_c51_c52_numbers_are_not_looked_into(self) -> None:
        part = tool(input_json='{"limit": 1, "ratio": 1.0, "id": 653247040368672768, "big": 1e999}')
        assert found(part) == []
        assert v1.PromptPart.FromString(part.SerializeToString()).tool.input_json == part.tool.input_json

    @pytest.mark.parametrize("levels", [34, 51, 120, 128, 129, 200, 100_000])
    def test_c58_depth(self, levels: int) -> None:
        part = tool(input_json="[" * levels + "]" * levels)
        assert found(part) == ([] if levels <= 128 else [("tool.input_json", "turnwire.json.depth")])

    def test_an_object_is_asked_for_where_the_option_says_so(self) -> None:
        assert found(text(extra_json="[]")) == [("extra_json", "turnwire.json.shape")]
        assert found(tool(input_json="[]")) == []

    def test_empty_means_none(self) -> None:
        assert found(tool(input_json="", metadata_json="")) == []


class TestNumbers:
    @pytest.mark.parametrize(
        ("cost", "broken_rules"),
        [
            (float("nan"), ["double.finite", "double.gte"]),
            (float("inf"), ["double.finite"]),
            (float("-inf"), ["double.finite", "double.gte"]),
            (-0.01, ["double.gte"]),
            (0.0, []),
            (-0.0, []),
        ],
    )
    def test_c49_c50_cost(self, cost: float, broken_rules: list[str]) -> None:
        message = v1.PromptPart(step_finish=v1.StepFinishPart(usage=v1.Usage(cost=cost)))
        assert sorted(found(message)) == [("step_finish.usage.cost", rule) for rule in broken_rules]

    def test_c50_negative_tokens(self) -> None:
        tokens = v1.Tokens(input=-423, cache=v1.CacheTokens(read=84160, write=-1))
        message = v1.PromptPart(step_finish=v1.StepFinishPart(usage=v1.Usage(tokens=tokens)))
        assert sorted(found(message)) == [
            ("step_finish.usage.tokens.cache.write", "int64.gte"),
            ("step_finish.usage.tokens.input", "int64.gte"),
        ]


class TestTimestamps:
    @pytest.mark.parametrize(
        ("seconds", "nanos", "legal"),
        [
            (-62_135_596_800, 0, True),
            (-62_135_596_801, 0, False),
            (253_402_300_799, 999_999_999, True),
            (253_402_300_800, 0, False),
            (0, 1_000_000_000, False),
            (0, -1, False),
        ],
    )
    def test_limits(self, seconds: int, nanos: int, legal: bool) -> None:
        message = v1.UserTime(created=Timestamp(seconds=seconds, nanos=nanos))
        assert found(message) == ([] if legal else [("created", "turnwire.timestamp")])


class TestStoredOnly:
    def test_a_stored_part_has_an_id(self) -> None:
        assert found(assistant(text(id="p1"), text()), stored=True) == [("parts[1].id", "required")]

    def test_a_transient_part_has_none(self) -> None:
        message = v1.PromptMessage(role=USER, parts=[text(), text(id="p1")])
        assert found(message, stored=False) == [("parts[1].id", "turnwire.stored_only")]

    def test_either_if_it_is_not_known(self) -> None:
        assert found(assistant(text(id="p1"), text())) == []

    @pytest.mark.parametrize("stored", [None, True, False])
    def test_what_is_inside_a_mutation_is_transient_whatever_holds_it(self, stored: bool | None) -> None:
        message = v1.PromptMessage(role=USER, parts=[text(id="p1")])
        edits = [
            v1.Mutation(append=v1.Append(message=message)),
            v1.Mutation(prepend=v1.Prepend(message=message)),
            v1.Mutation(insert_after=v1.InsertAfter(message_id="m", message=message)),
            v1.Mutation(insert_before=v1.InsertBefore(message_id="m", message=message)),
            v1.Mutation(append_to=v1.AppendTo(role=USER, parts=[text(id="p1")])),
            v1.Mutation(replace_part=v1.ReplacePart(part_id="p0", part=text(id="p1"))),
        ]
        for edit in edits:
            ((path, rule),) = found(edit, stored=stored)
            assert path.endswith(".id")
            assert rule == "turnwire.stored_only"
            assert found(getattr(edit, edit.WhichOneof("kind") or ""), stored=stored) == [
                (path.partition(".")[2], rule)
            ]

    def test_the_pattern_holds_in_any_case(self) -> None:
        assert found(text(id="a b"), stored=True) == [("id", "string.pattern")]


class TestHeldBy:
    subtask = v1.PromptPart(subtask=v1.SubtaskPart(agent="plan"))

    def test_the_message_tells_the_role(self) -> None:
        assert found(assistant(text(), self.subtask)) == [("parts[1].subtask", "turnwire.held_by")]
        assert found(v1.PromptMessage(role=ASSISTANT, parts=[self.subtask])) == [
            ("parts[0].subtask", "turnwire.held_by")
        ]
        assert found(v1.PromptMessage(role=USER, parts=[self.subtask])) == []
        assert found(v1.PromptMessage(role=USER, parts=[tool()])) == [("parts[0].tool", "turnwire.held_by")]
        assert found(v1.AppendTo(role=USER, parts=[tool()])) == [("parts[0].tool", "turnwire.held_by")]

    def test_the_caller_tells_the_role_of_a_single_part(self) -> None:
        put = v1.PartPut(message_id="m1", part=self.subtask)
        assert found(put) == []
        assert found(put, role=USER) == []
        assert found(put, role=ASSISTANT) == [("part.subtask", "turnwire.held_by")]

    def test_an_unknown_role_is_told_once(self) -> None:
        later = v1.PromptMessage.FromString(b"\x08\x07" + v1.PromptMessage(parts=[tool()]).SerializeToString())
        assert found(later) == [("role", "turnwire.unknown")]
        assert found(v1.PromptMessage(parts=[tool()])) == [("role", "enum.not_in")]


class TestUnknown:
    def test_an_unset_oneof(self) -> None:
        assert found(assistant(v1.PromptPart())) == [("parts[0].kind", "turnwire.unknown")]
        assert found(v1.EntryInput()) == [("payload", "turnwire.unknown")]

    def test_a_member_of_a_later_schema(self) -> None:
        later = v1.PromptPart.FromString(v1.PromptPart(id="p1").SerializeToString() + b"\xa2\x06\x00")
        assert found(later) == [("kind", "turnwire.unknown")]

    def test_an_unknown_number(self) -> None:
        assert found(tool(state=9)) == [("tool.state", "turnwire.unknown")]
        assert found(tool(state=0)) == [("tool.state", "enum.not_in")]

    def test_a_reader_keeps_what_a_later_schema_wrote_but_not_what_is_missing(self) -> None:
        later = v1.PromptPart.FromString(b"\xa2\x06\x00")
        assert found(assistant(later, tool(state=9)), keep_unknown=True) == []
        assert found(v1.PromptPart(), keep_unknown=True) == [("kind", "turnwire.unknown")]
        assert found(tool(state=0), keep_unknown=True) == [("tool.state", "enum.not_in")]


class TestCallIds:
    def test_c14_the_same_call_id_twice_in_a_message(self) -> None:
        message = assistant(tool(call_id="c1"), text(), tool(call_id="c2"), tool(call_id="c1"), tool(call_id="c1"))
        assert found(message) == [("parts[3].tool.call_id", own.CALL_ID), ("parts[4].tool.call_id", own.CALL_ID)]

    def test_c14_the_same_call_id_in_two_messages(self) -> None:
        edits = [v1.Mutation(append=v1.Append(message=v1.PromptMessage(role=ASSISTANT, parts=[tool()])))] * 2
        assert found(v1.MutatePromptRequest(session_id="s", turn_id="t", mutations=edits)) == []

    def test_empty_call_ids_break_their_own_rule(self) -> None:
        message = v1.PromptMessage(role=ASSISTANT, parts=[tool(call_id=""), tool(call_id="")])
        assert {rule for _, rule in found(message)} == {"string.min_len"}


class TestContent:
    def test_c48_nul_and_emoji_are_text(self) -> None:
        assert found(tool(output="PK\x03\x04\x00", title="\\u0000", error="😀\x00")) == []

    def test_paths_of_maps_name_the_key(self) -> None:
        properties = v1.SessionProperties(created=Timestamp(), labels={"k": "x" * 1025, "a b": "", "x" * 200: ""})
        assert sorted(found(properties)) == [
            ('labels["a b"]', "string.pattern"),
            ('labels["k"]', "string.max_bytes"),
            (f'labels["{"x" * 64}…"]', "string.max_bytes"),
        ]

    def test_no_text_of_a_violation_holds_content(self) -> None:
        message = assistant(tool(call_id="", input_json="secret"))
        message.id = message.turn_id = "a secret"
        assert len(rules.check(message)) == 4
        assert not any("secret" in each.text for each in rules.check(message))

    def test_ids_that_end_in_a_newline_are_refused(self) -> None:
        assert found(v1.Remove(message_id="m1\n")) == [("message_id", "string.pattern")]


@given(broken(v1.PromptMessage, stored=False))
def test_one_broken_rule_in_what_a_hook_writes(case: Broken) -> None:
    assert found(case.message, stored=False) == [(case.path, case.rule)]


@given(broken(v1.Assistant, stored=True))
def test_one_broken_rule_in_what_is_stored(case: Broken) -> None:
    assert found(case.message, stored=True) == [(case.path, case.rule)]


@given(broken(v1.PartPut, stored=True, role=ASSISTANT))
def test_one_broken_rule_in_a_part_of_a_known_holder(case: Broken) -> None:
    assert found(case.message, stored=True, role=ASSISTANT) == [(case.path, case.rule)]


@given(messages(v1.User, stored=True))
def test_c55_what_is_valid_stays_valid_when_loaded(message: v1.User) -> None:
    assert found(v1.User.FromString(message.SerializeToString()), stored=True) == []
