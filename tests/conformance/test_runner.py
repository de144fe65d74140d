"""The runner against subjects that do what a subject may not do: real processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.runner import __main__ as program
from tests.conformance.runner import running
from tests.conformance.runner.equality import difference
from tests.conformance.runner.running import Outcome, Result
from tests.conformance.runner.subject import Claim, Subject, SubjectError
from turnwire import v1
from turnwire.conformance import v1 as conformance

Request, Response = conformance.Request, conformance.Response

FRAME = """
import sys, time
from turnwire.conformance.v1 import *

def answers():
    while size := sys.stdin.buffer.read(4):
        yield Request.FromString(sys.stdin.buffer.read(int.from_bytes(size, "big")))

def say(response):
    data = response.SerializeToString()
    sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()

for number, request in enumerate(answers()):
    if request.HasField("hello"):
        say(Response(hello=HelloResponse(protocol=1, library="x", runtime="y")))
        continue
    name = request.rules.message_type
"""
GOOD = "    say(Response(rules=RulesResponse()))\n"


def claim(folder: Path, body: str, **more: Any) -> Claim:
    """A subject that reads requests as it should and does with them what the body says."""
    (folder / "subject.py").write_text(FRAME + body)
    tree = {"language": "X", "features": ["rules"], "command": [sys.executable, "subject.py"], **more}
    (folder / "subject.json").write_text(json.dumps(tree))
    return Claim.read(folder)


def vectors(*names: str) -> list[conformance.Vector]:
    """Vectors that want no violations."""
    return [
        conformance.Vector(
            name=f"rules/{name}",
            request=Request(rules=conformance.RulesRequest(message_type=name)),
            expected=Response(rules=conformance.RulesResponse()),
        )
        for name in names
    ]


def outcomes(results: list[Result]) -> list[Outcome]:
    return [result.outcome for result in results]


def test_pass_fail_error_skipped(tmp_path: Path) -> None:
    body = """
    if name == "b":
        say(Response(rules=RulesResponse(violations=[Violation(rule="required", path="x")])))
    elif name == "c":
        say(Response(error="no idea"))
    else:
        say(Response(rules=RulesResponse()))
"""
    other = conformance.Vector(name="fold/x", request=Request(fold=conformance.FoldRequest()))
    results = running.run(claim(tmp_path, body), [*vectors("a", "b", "c"), other])
    assert outcomes(results) == [Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.SKIPPED]
    assert [result.text for result in results] == ["", "found: required at x", "no idea", ""]


def test_a_crash_is_an_error_of_its_vector_alone(tmp_path: Path) -> None:
    body = "    if name == 'b': sys.exit('help me')\n" + GOOD
    results = running.run(claim(tmp_path, body), vectors("a", "b", "c"))
    assert outcomes(results) == [Outcome.PASS, Outcome.ERROR, Outcome.PASS]
    assert results[1].text == "ended with 1 in place of an answer\nhelp me"


def test_a_hang_is_an_error_of_its_vector_alone(tmp_path: Path) -> None:
    body = "    if name == 'b': time.sleep(3600)\n" + GOOD
    results = running.run(claim(tmp_path, body), vectors("a", "b", "c"), seconds=3)
    assert outcomes(results) == [Outcome.PASS, Outcome.ERROR, Outcome.PASS]
    assert results[1].text == "gave no answer in 3 seconds"


def test_what_a_subject_started_cannot_hold_the_runner(tmp_path: Path) -> None:
    start = "import subprocess; subprocess.Popen(['sleep', '30'], start_new_session=name == 'c')"
    body = f"    if name in 'bc': {start}; time.sleep(3600)\n" + GOOD
    results = running.run(claim(tmp_path, body), vectors("a", "b", "c", "d"), seconds=3)
    assert outcomes(results) == [Outcome.PASS, Outcome.ERROR, Outcome.ERROR, Outcome.PASS]
    assert results[1].text == results[2].text == "gave no answer in 3 seconds"


def test_what_a_subject_started_ends_with_it(tmp_path: Path) -> None:
    start = "import subprocess; child = subprocess.Popen(['sleep', '3600'])"
    body = f"    if name == 'b': {start}; sys.exit(str(child.pid))\n" + GOOD
    results = running.run(claim(tmp_path, body), vectors("b", "c"), seconds=3)
    assert outcomes(results) == [Outcome.ERROR, Outcome.PASS]
    left = Path("/proc", results[0].text.splitlines()[-1], "stat")
    # It is gone, or waits as a zombie for whoever collects those without a parent.
    assert not left.exists() or left.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_closed_output_is_an_error_of_its_vector_alone(tmp_path: Path) -> None:
    body = "    if name == 'b': import os; os.close(1); time.sleep(3600)\n" + GOOD
    results = running.run(claim(tmp_path, body), vectors("a", "b", "c"), seconds=3)
    assert outcomes(results) == [Outcome.PASS, Outcome.ERROR, Outcome.PASS]
    assert results[1].text == "closed its output, or its input, in place of an answer"


def test_an_input_that_nobody_reads(tmp_path: Path) -> None:
    request = Request(rules=conformance.RulesRequest(message_type="b", message=bytes(1_000_000)))
    large = conformance.Vector(
        name="rules/large", request=request, expected=Response(rules=conformance.RulesResponse())
    )
    results = running.run(claim(tmp_path, GOOD + "    time.sleep(3600)\n"), [*vectors("a"), large], seconds=3)
    assert outcomes(results) == [Outcome.PASS, Outcome.ERROR]
    assert results[1].text == "gave no answer in 3 seconds"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r'b"\0\0\0\2\xff\xff"', "answered with what is no Response"),
        (r'b"\xff\xff\xff\xff"', "announced an answer of 4294967295 bytes"),
    ],
)
def test_what_is_no_answer(tmp_path: Path, written: str, text: str) -> None:
    body = f"    if name == 'b': sys.stdout.buffer.write({written}); sys.stdout.buffer.flush(); continue\n" + GOOD
    results = running.run(claim(tmp_path, body), vectors("b", "c"))
    assert outcomes(results) == [Outcome.ERROR, Outcome.PASS]
    assert results[0].text == text


def test_known_failures(tmp_path: Path) -> None:
    listed = [{"vector": "rules/a", "reason": "why a"}, {"vector": "rules/b", "reason": "why b"}]
    body = "    if name == 'a': say(Response(error='x')); continue\n" + GOOD
    found = claim(tmp_path, body, known_failures=[*listed, {"vector": "rules/z", "reason": "gone"}])
    results = running.run(found, vectors("a", "b", "c"))
    assert outcomes(results) == [Outcome.KNOWN, Outcome.UNEXPECTED, Outcome.PASS]
    assert Outcome.UNEXPECTED in running.BAD
    assert running.misnamed(found, vectors("a", "b", "c")) == ["rules/z"]


def test_a_subject_has_to_end_well(tmp_path: Path) -> None:
    results = running.run(claim(tmp_path, GOOD + "sys.exit(3)\n"), vectors("a"))
    assert outcomes(results) == [Outcome.PASS, Outcome.ERROR]
    assert results[1].text == "ended with 3, not 0, when its input did"


def test_hello(tmp_path: Path) -> None:
    subject = Subject(claim(tmp_path, GOOD))
    assert subject.hello() == conformance.HelloResponse(protocol=1, library="x", runtime="y")
    subject.close()
    (tmp_path / "subject.py").write_text((tmp_path / "subject.py").read_text().replace("protocol=1", "protocol=2"))
    with pytest.raises(SubjectError, match="speaks protocol 2, not 1"):
        Subject(Claim.read(tmp_path)).hello()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    found = claim(tmp_path, GOOD, command=["./nothing"])
    results = running.run(found, vectors("a"))
    assert outcomes(results) == [Outcome.ERROR]
    assert results[0].text.startswith("./nothing cannot be started: ")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"features": ["dancing"]}, "unknown features"),
        ({"command": "a b"}, "a command is a list of words"),
        ({"colour": "red"}, "unknown members"),
        ({"known_failures": [{"vector": "rules/a"}]}, "reason"),
    ],
)
def test_a_wrong_subject_file(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    with pytest.raises(SubjectError, match=text):
        claim(tmp_path, GOOD, **change)


def test_a_build_that_fails(tmp_path: Path) -> None:
    found = claim(tmp_path, GOOD, build=[[sys.executable, "-c", "raise SystemExit(4)"]])
    with pytest.raises(SubjectError, match="ended with 4"):
        found.make()


class TestProgram:
    """The command line: the table, and an exit status for scripts."""

    def test_a_table(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        claim(tmp_path, GOOD)
        assert program.main([str(tmp_path), "--vector", "rules/nothing-is-wrong"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "X: x on y"
        assert lines[1].split() == ["encoding", "rules", "fold", "assembly", "mutation", "digest", "render", "service"]
        assert lines[2].split() == ["X", "-", "1/1", *"------"]
        assert lines[3] == "1 pass"

    def test_a_failure(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        claim(tmp_path, GOOD)
        assert program.main([str(tmp_path), "--vector", "rules/an-empty-id", "--vector", "rules/json-*"]) == 1
        out = capsys.readouterr().out
        assert "X: rules/an-empty-id: fail\n    not found: string.pattern at message_id\n" in out

    def test_a_subject_that_does_not_start_keeps_no_other_from_running(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        silent, good = tmp_path / "silent", tmp_path / "good"
        silent.mkdir()
        good.mkdir()
        claim(
            silent, GOOD, language="S", command=[sys.executable, "-c", "import os, time; os.close(1); time.sleep(60)"]
        )
        claim(good, GOOD)
        assert program.main([str(silent), str(good), "--vector", "rules/*", "--seconds", "5"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("S: rules/")
        assert lines[0].endswith(": error")
        assert lines[1].strip() == "closed its output, or its input, in place of an answer"
        count = sum(running.feature(vector) == "rules" for vector in running.load())
        assert lines[-3].split()[:5] == ["S", "-", f"0/{count}", f"({count}", "error)"]
        assert lines[-2].startswith("X")

    def test_no_such_vector(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert program.main(["--vector", "nothing/*"]) == 2
        assert "no vector has such a name" in capsys.readouterr().err

    def test_no_such_subject(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert program.main([str(tmp_path / "x")]) == 2
        assert "FileNotFoundError" in capsys.readouterr().err


class TestEquality:
    """What counts as equal, and what does not."""

    def test_the_order_of_fields_and_maps_has_no_meaning(self) -> None:
        request = Request(encoding=conformance.EncodingRequest(message_type="turnwire.v1.SessionProperties"))
        first, second = b"\x1a\x05\x0a\x01a\x12\x00", b"\x1a\x05\x0a\x01b\x12\x00"
        right = encoded(binary=first + second)
        assert difference(request, right, encoded(binary=second + first)) is None
        assert difference(request, right, encoded(binary=second)) is not None

    @pytest.mark.parametrize(
        ("what", "written"),
        [
            ("a default", b"\x08\x01\x10\x00"),
            ("a longer varint", b"\x08\x81\x00"),
            ("a longer tag", b"\x88\x00\x01"),
            ("a value before the last", b"\x08\x02\x08\x01"),
        ],
    )
    def test_what_need_not_be_written_must_not_be(self, what: str, written: bytes) -> None:
        request = Request(encoding=conformance.EncodingRequest(message_type="turnwire.v1.SizeLimit"))
        text = difference(request, encoded(binary=b"\x08\x01"), encoded(binary=written))
        assert text == f"{len(written)} bytes where 2 say the same: {written.hex(' ')}", what

    def test_the_piece_of_a_map_and_of_a_message(self) -> None:
        request = Request(encoding=conformance.EncodingRequest(message_type="turnwire.v1.SessionProperties"))
        right = encoded(binary=b"\x1a\x05\x0a\x01b\x12\x00")
        assert "bytes where" in str(difference(request, right, encoded(binary=b"\x1a\x03\x0a\x01b")))
        request.encoding.message_type = "turnwire.v1.Run"
        right = encoded(binary=b"\x12\x06\x0a\x01a\x12\x01m")
        pieces = encoded(binary=b"\x12\x03\x0a\x01a\x12\x03\x12\x01m")
        assert difference(request, right, pieces) == "10 bytes where 8 say the same: 12 03 0a 01 61 12 03 12 01 6d"

    def test_unknown_fields_have_to_be_there(self) -> None:
        request = Request(encoding=conformance.EncodingRequest(message_type="turnwire.v1.TextPart"))
        right = encoded(binary=b"\x0a\x01x\xa2\x06\x00")
        assert difference(request, right, encoded(binary=b"\xa2\x06\x00\x0a\x01x")) is None
        assert difference(request, right, encoded(binary=b"\x0a\x01x")) == "unknown fields differ"
        assert (
            difference(request, right, encoded(binary=b"\x0a\x05x"))
            == "bytes that are no turnwire.v1.TextPart: 0a 05 78"
        )

    @pytest.mark.parametrize(
        ("one", "other", "equal"),
        [
            ('{"a": 1, "b": [1.0, "x"]}', '{ "b": [1, "x"], "a": 1.0 }', True),
            ('{"a": true}', '{"a": 1}', False),
            ('{"a": "1"}', '{"a": 1}', False),
            ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
            ('{"a": 1}', "{}", False),
            ("{}", '{"a": null}', False),
            ("{}", "{", False),
        ],
    )
    def test_json(self, one: str, other: str, equal: bool) -> None:
        request = Request(encoding=conformance.EncodingRequest(message_type="turnwire.v1.TextPart"))
        assert (difference(request, encoded(json=one), encoded(json=other)) is None) == equal

    def test_json_with_a_member_twice(self) -> None:
        request = Request(encoding=conformance.EncodingRequest(message_type="turnwire.v1.TextPart"))
        different = difference(request, encoded(json='{"text": "a"}'), encoded(json='{"text": "b", "text": "a"}'))
        assert different == 'no JSON: a member stands twice: {"text": "b", "text": "a"}'

    def test_violations(self) -> None:
        request = Request(rules=conformance.RulesRequest())
        right = violated(("required", "a"), ("required", "b"))
        assert difference(request, right, violated(("required", "b"), ("required", "a"))) is None
        assert difference(request, right, violated(("required", ""), ("required", ""))) is not None
        missing = "not found: required at b"
        assert difference(request, right, violated(("required", "a"))) == missing
        assert difference(request, right, violated(("required", "a"), ("required", ""))) is not None
        assert difference(request, violated(), violated(("required", ""))) is not None

    def test_refusals(self) -> None:
        request = Request(mutation=conformance.MutationRequest())
        right = refused(v1.Reason.REASON_SIGNED_PART, "a")
        assert difference(request, right, refused(v1.Reason.REASON_SIGNED_PART, "a")) is None
        assert difference(request, right, refused(v1.Reason.REASON_SIGNED_PART)) == (
            "expected SIGNED_PART at a, got SIGNED_PART"
        )
        assert difference(request, right, refused(v1.Reason.REASON_SIGNED_PART, "b")) == (
            "expected SIGNED_PART at a, got SIGNED_PART at b"
        )
        assert difference(request, right, refused(v1.Reason.REASON_ANCHOR_UNKNOWN)) is not None
        assert difference(request, right, Response(mutation=conformance.Prompt())) is not None

    def test_digests(self) -> None:
        request = Request(digest=conformance.DigestRequest())
        right = Response(digest=conformance.DigestResponse(digests=[b"a", b"b"]))
        assert difference(request, right, right) is None
        other = Response(digest=conformance.DigestResponse(digests=[b"a", b"c"]))
        assert difference(request, right, other) == "digest 1: expected 62, got 63"

    def test_replies_hold_at_least_what_is_expected(self) -> None:
        request = Request(service=conformance.ServiceRequest())
        assert difference(request, replied('{"a": {"b": [{}]}}'), replied('{"a": {"b": [{"c": 1}], "d": 2}}')) is None
        assert difference(request, replied('{"a": [{}]}'), replied('{"a": []}')) == "call 0: reply.a has 0 items, not 1"
        assert difference(request, replied('{"a": 1}'), replied("{}")) == "call 0: reply.a is not there"
        assert difference(request, replied('{"a": 1}'), replied('{"a": 2}')) == "call 0: reply.a is 2, not 1"
        assert difference(request, replied('{"a": null, "b": 1}'), replied('{"b": 1}')) is None
        assert difference(request, replied('{"a": null}'), replied('{"a": false}')) == "call 0: reply.a is there"


def encoded(**output: Any) -> Response:
    return Response(encoding=conformance.EncodingResponse(**output))


def violated(*broken: tuple[str, str]) -> Response:
    found = [conformance.Violation(rule=rule, path=path) for rule, path in broken]
    return Response(rules=conformance.RulesResponse(violations=found))


def refused(reason: v1.Reason.ValueType, path: str = "") -> Response:
    return Response(refused=conformance.Refusal(reason=reason, path=path))


def replied(json_text: str) -> Response:
    return Response(service=conformance.ServiceResponse(results=[conformance.CallResult(reply_json=json_text)]))
