"""The spec and its vectors cover each other, and what is generated of them is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.making import bounds, making
from tests.conformance.runner import running
from tests.server import test_server
from turnwire import v1
from turnwire.conformance import v1 as conformance
from turnwire.rules import own, schema, standard

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "docs" / "spec.md").read_text("utf-8")
SENTENCE = re.compile(r"^- \*\*(TW-[A-Z]{3}-[0-9]{3})\*\* (.+?)(?=^- |^$)", re.MULTILINE | re.DOTALL)
KEY_WORDS = re.compile(r"\b(MUST NOT|MUST|SHOULD|MAY)\b")
VECTORS = running.load()
MOST_BYTES = 4 * 1024 * 1024
#: What of a sentence no vector can show, and the class of tests that does.
ALSO_SHOWN_BY = {
    "TW-SVC-067": test_server.TestFaults,  # that neither the caller nor the log gets content of messages
}


def sentences() -> dict[str, str]:
    found = SENTENCE.findall(SPEC)
    assert len(found) == len(dict(found)), "a number stands twice"
    assert len(found) == len(re.findall(r"\*\*TW-", SPEC)), "a sentence is not written as the others are"
    return dict(found)


def test_every_sentence_has_a_key_word() -> None:
    assert [number for number, text in sentences().items() if not KEY_WORDS.search(text)] == []


def test_no_sentence_without_a_vector_and_no_vector_without_a_sentence() -> None:
    proven = {sentence for vector in VECTORS for sentence in vector.sentences}
    assert proven == sentences().keys()
    assert [vector.name for vector in VECTORS if not vector.sentences] == []


def test_what_no_vector_can_show_is_shown_by_tests_of_python() -> None:
    assert ALSO_SHOWN_BY.keys() <= sentences().keys()
    assert all(any(name.startswith("test_") for name in vars(tests)) for tests in ALSO_SHOWN_BY.values())


def test_every_reason_is_reached() -> None:
    reached = {vector.expected.refused.reason for vector in VECTORS if vector.expected.HasField("refused")}
    for vector in VECTORS:
        reached |= {result.refused.reason for result in vector.expected.service.results if result.HasField("refused")}
    assert set(v1.Reason.values()) - {v1.Reason.REASON_UNSPECIFIED} <= reached


def test_every_rule_of_turnwire_is_reached() -> None:
    reached = {each.rule for vector in VECTORS for each in vector.expected.rules.violations}
    assert {rule for rule in reached if rule.startswith("turnwire.")} == {
        "turnwire.json.syntax", "turnwire.json.depth", "turnwire.json.shape", "turnwire.stored_only",
        "turnwire.held_by", "turnwire.timestamp", "turnwire.call_id", "turnwire.unknown",
    }  # fmt: skip


def test_every_rule_of_the_schema_is_broken() -> None:
    """By its place in annex A: each rule of a field, of its items, keys and values, and of a oneof."""
    wanted: set[tuple[str, str, str]] = set()
    for file in schema.descriptor_set().file:
        for declared in file.message_type if file.package == schema.PACKAGE else ():
            descriptor = schema.message(f"{schema.PACKAGE}.{declared.name}")
            for field in descriptor.fields:
                wanted |= {(descriptor.name, field.name, rule) for _, rule in bounds.declared(field)}
                if standard.field_rules(field).required:
                    wanted.add((descriptor.name, field.name, "required"))
            oneofs = [each for each in descriptor.oneofs if own.is_real(each) and standard.oneof_required(each)]
            wanted |= {(descriptor.name, each.name, own.UNKNOWN) for each in oneofs}
    broken: set[tuple[str, str, str]] = set()
    for vector in VECTORS:
        name = vector.request.rules.message_type.rpartition(".")[2]
        for each in vector.expected.rules.violations:
            broken.add((name, each.path.partition("[")[0], each.rule))
    assert sorted(wanted - broken) == []


def test_every_payload_is_folded_and_digested() -> None:
    payloads = {field.name for field in v1.Entry.DESCRIPTOR.oneofs_by_name["payload"].fields}
    for asked in ("fold", "digest"):
        found: set[str] = set()
        for vector in VECTORS:
            if vector.request.WhichOneof("request") == asked:
                log = vector.request.fold.entries if asked == "fold" else vector.request.digest.log.entries
                found |= {v1.Entry.FromString(data).WhichOneof("payload") or "" for data in log}
        assert found - {""} == payloads


def test_names_are_unique() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names))


def test_vectors_are_made_anew_to_the_byte() -> None:
    made = making.make()
    assert sum(map(len, made.values())) < MOST_BYTES
    assert made == {path.name: path.read_bytes() for path in running.VECTORS.glob("*.binpb")}


def test_tables_are_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "spec.md").write_text(SPEC, "utf-8")
    subprocess.run([sys.executable, ROOT / "tools" / "spec_tables.py"], cwd=tmp_path, check=True)
    assert (tmp_path / "docs" / "spec.md").read_text("utf-8") == SPEC


@pytest.mark.parametrize("vector", VECTORS[::50], ids=lambda vector: vector.name)
def test_a_vector_is_of_its_feature(vector: conformance.Vector) -> None:
    assert vector.name.partition("/")[0] == running.feature(vector)


def test_an_echo_does_not_pass_for_a_reader() -> None:
    """What reads any form of a message is shown by another encoding: the bytes that came in mean the same."""
    for vector in VECTORS:
        if "TW-ENC-008" in vector.sentences:
            response = vector.expected.WhichOneof("response")
            came, goes = vector.request.encoding.WhichOneof("input"), vector.expected.encoding.WhichOneof("output")
            assert response == "refused" or came != goes, vector.name
