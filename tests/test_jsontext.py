"""JSON texts: RFC 8259 to the letter, 128 levels, and nothing that crashes."""

from __future__ import annotations

import json
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import json_texts
from turnwire import jsontext
from turnwire.jsontext import DEPTH, SHAPE, SYNTAX

GOOD = [
    "0", "-0", "1.0", "1e5", "1E+05", "0.10e-7", "653247040368672768", '""', '"\x7f"', '"\u2028"', '"😀"',
    '"\\u0000"', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', "true", "false", "null", "[]", "{}",
    '{"a":1,"a":2}', '{"":{}}', " \t\r\n{} \t\r\n", "[1 , 2]", '{"\\ud83d":"\\ud83d"}', '"[[["',
]  # fmt: skip
BAD = [
    " ", "NaN", "-NaN", "Infinity", "-Infinity", '{"x": NaN}', "[-Infinity]", "01", "-01", "-", "+1", "1.", ".5", "1e",
    "1e+", "0x1", "1_0", "١", "1١", "True", "nul", "truefalse", "'a'", '"', '"\\"', '"\\x"', '"\\u12g4"', '"\\u12"',
    '"\n"', '"\t"', '"\x00"', "[", "]", "[1,]", "[,1]", "[1 2]", "{", "}", '{"a"}', '{"a":}', '{"a":1,}', "{a:1}",
    "{1:2}", "[1]x", "1 2", "[\u00a01]", "[\x0c]", "\ufeff{}", "\x00", "[1]\x00", "// no\n1", "{}{}", "[}", "{]",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_legal(text: str) -> None:
    assert jsontext.check(text) is None
    assert jsontext.check(text.encode()) is None


@pytest.mark.parametrize("text", BAD)
def test_illegal(text: str) -> None:
    fault = jsontext.check(text)
    assert fault is not None
    assert fault.rule == SYNTAX
    assert fault.text.startswith("must be one JSON document (RFC 8259): ")


def test_empty_means_none() -> None:
    assert jsontext.check("") is None
    assert jsontext.check(b"", obj=True) is None


def test_only_utf8() -> None:
    for text in (b"\xff", b'"\xed\xa0\xbd"', '"\ud83d"', '{"\udc00":1}', b'"\xc0\x80"'):
        fault = jsontext.check(text)
        assert fault is not None
        assert fault.rule == SYNTAX
        assert "UTF-8" in fault.text


@pytest.mark.parametrize("text", ["[]", "1", '"{}"', "null", ' [{"a":1}]'])
def test_shape(text: str) -> None:
    assert jsontext.check(text) is None
    assert jsontext.check(text, obj=True) == (SHAPE, "must be a JSON object")
    assert jsontext.check(' {"a":[]}\n', obj=True) is None


@pytest.mark.parametrize("levels", [34, 51, 120, 128])
def test_c58_kept_up_to_the_limit(levels: int) -> None:
    assert jsontext.check("[" * levels + "]" * levels) is None
    assert jsontext.check('{"a":' * levels + "1" + "}" * levels, obj=True) is None
    assert jsontext.depth("[" * levels + "]" * levels) == levels


@pytest.mark.parametrize("levels", [129, 200, 1_000, 100_000])
def test_c58_refused_beyond_it(levels: int) -> None:
    assert jsontext.check("[" * levels + "]" * levels) == (DEPTH, "must nest at most 128 levels deep")
    assert jsontext.check('{"a":' * levels + "1" + "}" * levels) == (DEPTH, "must nest at most 128 levels deep")


@pytest.mark.parametrize("levels", [200, 100_000])
def test_deep_and_unclosed_text_is_refused(levels: int) -> None:
    for text in ("[" * levels, '{"a":' * levels, "[{" * levels):
        fault = jsontext.check(text)
        assert fault is not None
        assert fault.rule in (SYNTAX, DEPTH)


def test_the_depth_is_that_of_structure_and_not_of_text() -> None:
    assert jsontext.check(json.dumps(["[" * 500, {"{" * 500: '\\"' + "[" * 500}])) is None
    assert jsontext.check("[" + ",".join(["[]"] * 5_000) + "]") is None
    assert jsontext.depth('["\\"[[[[", {}]') == 2
    assert jsontext.depth('"unclosed [[[') == 0


def test_numbers_of_any_length() -> None:
    assert jsontext.check("9" * 100_000) is None
    assert jsontext.check(f"[{'9' * 5_000}, 1e{'9' * 5_000}, NaN]") is not None
    assert jsontext.check(f"[{'9' * 5_000}, -0.{'9' * 5_000}]") is None


def test_the_text_of_a_fault_holds_nothing_of_the_document() -> None:
    for text in ('{"secret": secret}', '{"secret": "\\secret"}', '["secret" secret]', "secret"):
        fault = jsontext.check(text)
        assert fault is not None
        assert "secret" not in fault.text


@pytest.mark.parametrize("text", ['{"x":"' + '\\"' * 500_000, "[[]]" * 300_000, '"' + "\\" * 999_999, '"a"' * 300_000])
def test_the_time_grows_with_the_text_only(text: str) -> None:
    start = time.process_time()
    assert jsontext.check("[]" * 129 + text) is not None
    assert time.process_time() - start < 2


def test_a_caller_deep_in_its_own_stack_is_answered() -> None:
    def nested(levels: int) -> jsontext.JsonFault | None:
        return nested(levels - 1) if levels else jsontext.check("[" * 128 + "]" * 128)

    assert nested(sys.getrecursionlimit() // 2) is None


@given(json_texts())
def test_whatever_json_writes_is_legal(text: str) -> None:
    assert jsontext.check(text) is None


@given(st.text('[]{}",:\\ \n0123456789.eE+-truefalsnINuy\ud83d', max_size=12))
def test_never_anything_but_an_answer(text: str) -> None:
    fault = jsontext.check(text)
    try:
        text.encode()
        json.loads(text, parse_constant=_refuse)
        legal = True
    except ValueError:
        legal = text == ""
    assert (fault is None) == legal


@given(st.binary(max_size=12))
def test_bytes_are_their_text(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        assert data == b"" or jsontext.check(data) is not None
    else:
        assert jsontext.check(data) == jsontext.check(text)


def _refuse(name: str) -> float:
    raise ValueError(name)
