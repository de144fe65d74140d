"""The pool that rules are read from, and rules that the compiler does not know."""

from __future__ import annotations

from typing import Any

import protovalidate
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from turnwire import rules, v1
from turnwire.rules import compiler, schema, standard
from turnwire.rules.standard import UnsupportedRule

PRIVATE = schema.message_class("turnwire.v1.ModelRef")


def test_the_generated_classes_have_no_rules() -> None:
    """Why there is a private pool at all."""
    assert len(protovalidate.Validator().collect_violations(PRIVATE())) == 2
    assert protovalidate.Validator().collect_violations(v1.ModelRef()) == []


def test_a_validator_that_saw_a_stripped_class_enforces_nothing() -> None:
    """The trap: it remembers types by their file's name. A Validator of one's own must see the private pool only."""
    trapped = protovalidate.Validator()
    trapped.collect_violations(v1.ModelRef())
    assert trapped.collect_violations(PRIVATE()) == []


def test_rules_hold_whatever_class_is_seen_first() -> None:
    for message in (v1.ModelRef(), PRIVATE(), v1.ModelRef(provider_id="p", model_id="x" * 257)):
        assert rules.check(message) != []
    assert rules.check(PRIVATE(provider_id="p", model_id="m")) == []


def test_the_private_pool_shares_nothing_with_the_default_one() -> None:
    assert schema.pool().FindMessageTypeByName("turnwire.v1.User") is not v1.User.DESCRIPTOR
    assert "buf/validate/validate.proto" in {file.name for file in schema.descriptor_set().file}


def with_rules(type_name: str, options: str, monkeypatch: pytest.MonkeyPatch, *, message: str = "") -> Any:
    """A pool that also has message t.M with one field x of that type and those options; returns the field."""
    kind = FieldDescriptorProto.Type.Value(f"TYPE_{type_name.upper()}")
    field = FieldDescriptorProto(name="x", number=1, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    field.options.MergeFromString(parsed("google.protobuf.FieldOptions", options))
    proto = DescriptorProto(name="M", field=[field])
    proto.options.MergeFromString(parsed("google.protobuf.MessageOptions", message))
    file = FileDescriptorProto(name="t.proto", package="t", syntax="proto3", message_type=[proto])
    pool = DescriptorPool()
    for each in schema.descriptor_set().file:
        pool.AddSerializedFile(each.SerializeToString())
    pool.AddSerializedFile(file.SerializeToString())
    monkeypatch.setattr(schema, "pool", lambda: pool)
    monkeypatch.setattr(compiler, "_checkers", {})
    return pool.FindMessageTypeByName("t.M").fields_by_name["x"]


def parsed(full_name: str, text: str) -> bytes:
    options = schema.message_class(full_name)()
    return Parse(text, options, descriptor_pool=schema.pool()).SerializeToString()


@pytest.mark.parametrize(
    ("type_name", "options"),
    [
        ("string", "[buf.validate.field] { string { email: true } }"),
        ("string", '[buf.validate.field] { string { prefix: "a" } }'),
        ("string", '[buf.validate.field] { cel { id: "a" expression: "true" } }'),
        ("string", "[buf.validate.field] { cel_expression: \"this != ''\" }"),
        ("string", "[buf.validate.field] { ignore: IGNORE_ALWAYS }"),
        ("int64", "[buf.validate.field] { int64 { gt: 1 } }"),
        ("int64", "[buf.validate.field] { int64 { gte: 5 lte: 1 } }"),
        ("int32", "[buf.validate.field] { int32 { const: 1 } }"),
        ("bool", "[buf.validate.field] { bool { const: true } }"),
        ("string", '[buf.validate.field] { string { pattern: "\\\\d" } }'),
        ("string", '[buf.validate.field] { string { pattern: "(?i)a" } }'),
    ],
)
def test_a_rule_that_is_not_known_is_refused_and_never_skipped(
    type_name: str, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_rules(type_name, options, monkeypatch)
    with pytest.raises(UnsupportedRule, match=r"t\.M"):
        compiler.checker("t.M")
    with pytest.raises(UnsupportedRule):
        compiler.checker("t.M")  # a failed compilation leaves nothing behind


def test_rules_of_a_whole_message_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    options = '[buf.validate.message] { cel { id: "a" expression: "true" } }'
    with_rules("string", "", monkeypatch, message=options)
    with pytest.raises(UnsupportedRule, match=r"t\.M: rules of a whole message"):
        compiler.checker("t.M")


def test_a_required_scalar_must_not_be_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    field = with_rules("string", "[buf.validate.field] { required: true string { min_len: 3 } }", monkeypatch)
    check = compiler.checker("t.M")
    cls: Any = GetMessageClass(field.containing_type)
    assert check is not None
    assert check(cls(x="abc"), None, 0, None) is None
    assert [each.rule for each in check(cls(x="ab"), None, 0, None) or []] == ["string.min_len"]
    assert [each.rule for each in check(cls(), None, 0, None) or []] == ["required"]
    assert [each.proto.rule_id for each in protovalidate.Validator().collect_violations(cls())] == ["required"]


class TestPattern:
    def test_the_end_is_the_end(self) -> None:
        assert standard.pattern("^a+$")("aa")
        assert not standard.pattern("^a+$")("aa\n")

    def test_space_is_that_of_re2(self) -> None:
        not_blank = standard.pattern(r"[^\s]")
        assert not not_blank(" \t\n\f\r")
        assert not_blank("\v")
        assert not_blank("\u00a0")

    @pytest.mark.parametrize("text", [r"\d", r"\s", r"\w+", r"\bx", r"\pL", "(?:a)", "[[:alpha:]]"])
    def test_what_could_differ_is_refused(self, text: str) -> None:
        with pytest.raises(UnsupportedRule):
            standard.pattern(text)
