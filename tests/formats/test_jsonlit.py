"""JSON with its literals kept."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.samples import exact
from turnwire.formats import jsonlit
from turnwire.formats.jsonlit import Damage, Node, compact, dumps, integer, quote, real, skip

TEXT = '{ "a" : [1, 1.0 , -0, 1E5],\n "b":{"\\ud83d":"\\u0000"}, "c": null }'

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_numbers_are_their_own_text() -> None:
    assert Node.parse(TEXT).value == {
        "a": [b"1", b"1.0", b"-0", b"1E5"],
        "b": {"\ud83d": "\x00"},
        "c": None,
    }


def test_a_number_equals_neither_a_truth_value_nor_a_text() -> None:
    assert Node.parse('[1, true, "1", 1.0]').value != Node.parse('[1, 1, "1", 1.0]').value
    assert Node.parse('"1"').value != Node.parse("1").value
    assert Node.parse("0").value != Node.parse("false").value


def test_slices_are_the_original_text() -> None:
    node = Node.parse(TEXT)
    assert node.members()["a"].raw == "[1, 1.0 , -0, 1E5]"
    assert node.find(("a", "3")).raw == "1E5"
    assert node.find(("b", "\ud83d")).raw == '"\\u0000"'


def test_of_a_key_that_stands_twice_the_last_counts_and_is_told() -> None:
    told: list[str] = []
    members = Node.parse('{"a": 1, "b": 2, "\\u0061": 3}').members(told.append)
    assert (members["a"].raw, list(members), told) == ("3", ["a", "b"], ["a"])


def test_white_space_between_tokens_goes_and_tokens_stay() -> None:
    assert compact(TEXT) == '{"a":[1,1.0,-0,1E5],"b":{"\\ud83d":"\\u0000"},"c":null}'
    assert compact('{"a \\" : b":\t"x  \\\\" , "y":"  "}') == '{"a \\" : b":"x  \\\\","y":"  "}'


@given(values, st.sampled_from([None, 1, 4]))
def test_compact_changes_no_value(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert compact(text) == json.dumps(value, separators=(",", ":"))
    assert exact(dumps(Node.parse(text).value)) == exact(text)


@given(values)
def test_a_value_ends_where_its_brackets_end(value: Any) -> None:
    text = json.dumps(value)
    assert skip(text + ', {"more": "]}"}', 0) == len(text)


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "the text ends", 0),
        ("[1, 2", "the text ends", 5),
        ('{"a": 1 "b": 2}', "expecting ',' delimiter", 8),
        ('{"a": tru}', "no JSON value", 6),
        ('"abc', "unterminated string starting", 0),
        ('"a\nb"', "invalid control character", 2),
        ("[1] [2]", "more text follows the value", 3),
        ("{'a': 1}", "expecting property name enclosed in double quotes", 1),
    ],
)
def test_damage_names_its_place(text: str, reason: str, position: int) -> None:
    with pytest.raises(Damage) as caught:
        Node.parse(text)
    assert (caught.value.reason, caught.value.position) == (reason, position)


@pytest.mark.parametrize("text", ['{"a" 1}', '{"a": 1', '{"a": 1]', "{1: 2}", '{"a', "[1}", "[", "{", '{"a":1,}'])
def test_walking_damaged_text_ends_in_damage(text: str) -> None:
    walk = jsonlit.walk_array if text[0] == "[" else jsonlit.walk_object
    with pytest.raises(Damage):
        walk(text, 0, lambda _, start: Node.at(text, start).end)


def test_walking_gives_every_member_and_element() -> None:
    seen: list[object] = []

    def visit(key: object, start: int) -> int:
        seen.append(key)
        return Node.at(text, start).end

    text = ' {"a": 1, "b\\n": {}} '
    assert jsonlit.walk_object(text, 1, visit) == len(text) - 1
    text = "[1, [], 3] "
    assert jsonlit.walk_array(text, 0, visit) == len(text) - 1
    assert jsonlit.walk_array("[ ]", 0, visit) == 3
    assert jsonlit.walk_object("{ }", 0, visit) == 3
    assert seen == ["a", "b\n", 0, 1, 2]


def test_constants_of_no_json_are_read_as_their_text() -> None:
    assert Node.parse("[NaN, Infinity, -Infinity]").value == [b"NaN", b"Infinity", b"-Infinity"]


def test_what_is_too_deep_to_build_comes_as_its_text() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert Node.parse(text).value == text.encode()
    with pytest.raises(Damage):
        Node.parse(text[:-1])


@pytest.mark.parametrize(
    ("number", "spelled"),
    [
        (0.0, b"0"),
        (-0.0, b"0"),
        (1.0, b"1"),
        (0.007788, b"0.007788"),
        (0.00001, b"0.00001"),
        (0.000001, b"0.000001"),
        (1e-7, b"1e-7"),
        (1.5e-10, b"1.5e-10"),
        (1e15, b"1000000000000000"),
        (123456789012345680000.0, b"123456789012345680000"),
        (1e21, b"1e+21"),
        (1.7976931348623157e308, b"1.7976931348623157e+308"),
        (5e-324, b"5e-324"),
        (-2.5, b"-2.5"),
        (0.1 + 0.2, b"0.30000000000000004"),
    ],
)
def test_real_numbers_are_spelled_as_javascript_does(number: float, spelled: bytes) -> None:
    assert real(number) == spelled


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_number_reads_back(number: float) -> None:
    assert float(real(number)) == number
    assert math.isfinite(json.loads(real(number)))


def test_integers_are_spelled_in_full() -> None:
    assert integer(653247040368672768) == b"653247040368672768"


def test_strings_are_escaped_as_javascript_does() -> None:
    assert quote('"\\\n\x00\x7f\u2028é\U0001f600\ud83d') == '"\\"\\\\\\n\\u0000\x7f\u2028é\U0001f600\\ud83d"'


def test_writing_with_an_indent() -> None:
    tree = Node.parse('{"a":[1,[]],"b":{},"c":{"d":true,"e":null}}').value
    assert dumps(tree, 2) == json.dumps(json.loads('{"a":[1,[]],"b":{},"c":{"d":true,"e":null}}'), indent=2)
