"""The schema layer: every rule that stands in the protos is listed, and is broken by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

import turnwire
from tests.validation.schema_cases import IDS, cases
from turnwire import v1
from turnwire.log.raw import fields
from turnwire.rules import schema
from turnwire.validation import messages, rules
from turnwire.validation.findings import Findings

#: Fields at which no value breaks this rule alone: an empty key breaks its pattern too.
NOT_TRIED = {"string.min_len": ("SessionProperties.labels", "SessionFilter.labels")}


@pytest.mark.parametrize("rule", IDS)
def test_a_message_that_breaks_one_rule(rule: str) -> None:
    tried: set[str] = set()
    for case in cases(rule):
        found = Findings()
        assert not messages.check(case.message, found, stored=case.stored, role=case.role)
        findings = found.take()
        assert {finding.rule for finding in findings} == {rule}, case
        for finding in findings:
            assert finding.severity == v1.Severity.SEVERITY_ERROR
            assert finding.layer == v1.RuleLayer.RULE_LAYER_SCHEMA
            assert finding.path
            assert finding.expected
        tried.add(case.where)
    if rule == "repeated.max_items":
        assert len(tried) == 3
    else:
        listed = {where.removesuffix(", keys") for where, _ in rules()[rule].fields if not where.endswith("[]")}
        assert listed - tried - set(NOT_TRIED.get(rule, ())) == set()


def test_each_rule_says_where_it_stands() -> None:
    where = {rule.id: dict(rule.fields) for rule in rules().values()}
    assert where["turnwire.call_id"] == {"ToolPart.call_id": "must be unique in the message"}
    assert where["bytes.len"]["Entry.digest"] == "must have 32 bytes"
    assert where["map.max_pairs"]["SessionProperties.labels"] == "must have at most 64 pairs"
    assert where["string.min_len"]["SessionProperties.labels, keys"] == "must have at least 1 character"
    assert "User.turn_id" in where["string.pattern"]
    assert "PromptPart.kind" in where["turnwire.unknown"]
    assert "UserTime.created" in where["turnwire.timestamp"]


# A build whose descriptors lost their rules, as code generators are told to leave them out.

SCRIPT = """
import sys
import turnwire
from pathlib import Path
from turnwire.rules import schema
data = Path(sys.argv[1]).read_bytes()
schema.descriptor_set = lambda: schema.FileDescriptorSet.FromString(data)
what = sys.argv[2]
try:
    if what == "validate":
        turnwire.validate(turnwire.v1.User(id="no id"))
    elif what == "rules":
        from turnwire.validation import rules
        rules()
    else:
        import asyncio
        async def main():
            async with turnwire.open(":memory:") as tw:
                await tw.create_session("s")
                async for finding in tw.validate_session("s"):
                    pass
        asyncio.run(main())
except schema.StrippedSchema as error:
    print(error)
else:
    print("nothing")
"""


def stripped(keep: str = "") -> bytes:
    """The descriptors without protovalidate's rules, but for those of one message."""
    files = FileDescriptorSet()
    files.CopyFrom(schema.descriptor_set())
    for file in files.file:
        if file.package != schema.PACKAGE:
            continue
        for message in file.message_type:
            if message.name == keep:
                continue
            for field in message.field:
                field.options.ParseFromString(_without_rules(field.options.SerializeToString()))
            for oneof in message.oneof_decl:
                oneof.ClearField("options")
    return files.SerializeToString()


def _without_rules(options: bytes) -> bytes:
    return b"".join(options[each.start : each.end] for each in fields(options) if each.number != 1159)


@pytest.mark.parametrize("what", ["validate", "rules", "session"])
def test_a_build_with_stripped_descriptors_fails(what: str, tmp_path: Path) -> None:
    assert ran(stripped(), what, tmp_path) == "the shipped descriptors have no rules"


@pytest.mark.parametrize("what", ["rules", "session"])
def test_so_does_one_that_lost_most_of_them(what: str, tmp_path: Path) -> None:
    assert ran(stripped(keep="User"), what, tmp_path).startswith(
        "the shipped descriptors lack rules of the schema: bytes.len"
    )


def ran(descriptors: bytes, what: str, tmp_path: Path) -> str:
    path = tmp_path / "schema.binpb"
    path.write_bytes(descriptors)
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path), what], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_shipped_descriptors_are_whole() -> None:
    assert turnwire.validate(v1.User(id="no id"))
