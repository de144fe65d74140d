"""Foreign extras: what an exporter would not write is kept, and comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.samples import exact
from turnwire import jsontext
from turnwire.formats import extras
from turnwire.formats.extras import NONE, Difference, compare, encode, join, pointer, restore, space, storable
from turnwire.formats.jsonlit import Json, Node, dumps

keys = st.text(max_size=3) | st.sampled_from(["/", "~", "~1", "a/b", "drop", "text", "", "0", "\ud83d"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from([0.0, 1.0, 1e30]) | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def tree(text: str) -> Json:
    return Node.parse(text).value


def kept(original: str, derived: str) -> str:
    node = Node.parse(original)
    return join({"x": encode(compare(node.value, tree(derived)), node)})


def test_nothing_is_kept_of_what_is_equal() -> None:
    assert compare(tree('{"a":1,"b":[{}]}'), tree('{"b":[{}],"a":1}')) is NONE
    assert kept("{}", "{}") == ""


def test_what_differs_is_kept_by_its_pointer() -> None:
    original = '{"slug":"s","time":{"created":1.50,"a/b":"~"},"list":[1,2],"n":1.0}'
    derived = '{"time":{"created":2,"done":3},"list":[1,3],"n":1,"mode":"m"}'
    assert json.loads(kept(original, derived)) == {
        "x": {
            "/slug": "s",
            "/time/created": 1.5,
            "/time/a~1b": "~",
            "/list/1": 2,
            "/n": 1.0,
            "drop": ["/time/done", "/mode"],
        }
    }
    assert '"/time/created":1.50' in kept(original, derived)


def test_lists_of_other_length_are_kept_whole() -> None:
    assert kept('{"a":[1,2]}', '{"a":[1]}') == '{"x":{"/a":[1,2]}}'


def test_what_no_document_can_hold_is_kept_as_text() -> None:
    deep = "[" * 127 + "]" * 127
    assert kept(f'{{"a":NaN,"b":{deep},"c":[Infinity]}}', "{}") == (
        f'{{"x":{{"text":{{"/a":"NaN","/b":"{deep}","/c":"[Infinity]"}}}}}}'
    )
    assert jsontext.check(kept(f'{{"b":{deep}}}', "{}"), obj=True) is None


def test_a_document_as_deep_as_it_can_be_is_kept_as_it_is() -> None:
    deep = "[" * 126 + "]" * 126
    text = kept(f'{{"b":{deep}}}', "{}")
    assert text == f'{{"x":{{"/b":{deep}}}}}'
    assert jsontext.check(text, obj=True) is None


@pytest.mark.parametrize(
    ("text", "inside", "right"),
    [
        ("[" * 128 + "]" * 128, 0, True),
        ("[" * 129 + "]" * 129, 0, False),
        ("[" * 127 + "]" * 127, 2, False),
        ("[" + "[]," * 200 + "[]]", 2, True),
        ('"' + "[" * 200 + '"', 2, True),
        ("NaN", 0, False),
        ("[NaN," + "[]," * 200 + "1]", 2, False),
        ('"\\ud83d"', 0, True),
    ],
)
def test_what_can_stand_in_a_json_field(text: str, inside: int, right: bool) -> None:
    assert storable(text, inside) is right


@given(values, values)
def test_the_original_comes_back_from_anything_derived(original: Any, derived: Any) -> None:
    text = json.dumps(original)
    node = Node.parse(text)
    extra = join({"x": encode(compare(node.value, tree(json.dumps(derived))), node)})
    if extra:
        assert jsontext.check(extra, obj=True) is None
    assert exact(dumps(restore(tree(json.dumps(derived)), space(extra, "x")))) == exact(text)


@given(st.lists(keys, max_size=3).map(tuple))
def test_pointers_and_paths_are_each_others_inverse(path: tuple[str, ...]) -> None:
    assert extras.path_of(pointer(path)) == path


@pytest.mark.parametrize("broken", ['{"x": 1}', '{"y": {}}', '{"x": {"drop": 1, "text": [1], "a": 2}}'])
def test_extras_of_another_form_change_nothing(broken: str) -> None:
    assert restore(tree('{"a":1}'), space(broken, "x")) == {"a": b"1"}


def test_pointers_to_nowhere_change_nothing() -> None:
    broken = '{"x": {"/a/b": 1, "/l/7": 1, "/l/x": 1, "drop": ["", "/q/r", 7], "text": {"/a/c": "1", "/d": 5}}}'
    assert restore(tree('{"a":1,"l":[0]}'), space(broken, "x")) == {"a": b"1", "l": [b"0"]}


def test_one_name_space_is_added_to_another() -> None:
    assert extras.add("", "y", {"/a": "1"}) == '{"y":{"/a":1}}'
    assert extras.add('{"x":{}}', "y", {"/a": "1"}) == '{"x":{},"y":{"/a":1}}'
    assert extras.add('{"x":{}}', "y", {}) == '{"x":{}}'


def test_a_difference_is_parted_by_first_step() -> None:
    whole = Difference((("a", "b"), ("c",)), (("a",), ("d", "e")))
    assert whole.part(lambda key: key == "a") == Difference((("a", "b"),), (("a",),))
