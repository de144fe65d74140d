"""Broken rules are told in one order, whatever the language: by number, index and key."""

from __future__ import annotations

import pytest

from turnwire import errors, rules, v1
from turnwire.rules.order import in_order


def paths(*given: str) -> list[str]:
    found = in_order("turnwire.v1.EntryInput", [errors.Violation(path, "r", "") for path in given])
    return [each.path for each in found]


def test_by_the_numbers_of_fields_and_the_index_of_items() -> None:
    right = [
        "user.user.id",
        "user.user.turn_id",
        "user.user.parts",
        "user.user.parts[2].text",
        "user.user.parts[2].text.text",
        "user.user.parts[10].extra_json",
        "user.user.parts[10].kind",
        "user.before_id",
    ]
    assert paths(*reversed(right)) == right


def test_keys_by_their_bytes() -> None:
    right = [
        "session.labels",
        'session.labels[""]',
        'session.labels["\\n"]',
        'session.labels["a\\"b"]',
        'session.labels["a.b[0].c"]',
        'session.labels["ab"]',
        'session.labels["\uffee"]',
        'session.labels["😀"]',
    ]
    assert paths(*reversed(right)) == right


def test_a_oneof_by_its_first_member() -> None:
    part = v1.PromptPart(extra_json="[")
    assert [each.path for each in rules.check(part, stored=True)] == ["id", "extra_json", "kind"]
    assert paths("user", "payload") == ["payload", "user"]


def test_rules_of_one_path_by_their_ids() -> None:
    found = in_order("turnwire.v1.PromptPart", [errors.Violation("id", rule, "") for rule in ("b", "a")])
    assert [each.rule for each in found] == ["a", "b"]


def test_the_error_names_the_first() -> None:
    properties = v1.SessionProperties(labels={"😀": "x", "\uffee": "x", "fine": "x"})
    with pytest.raises(errors.RuleViolation) as caught:
        rules.require(properties, "create")
    assert caught.value.path == 'create.labels["\uffee"]'
    assert [each.path for each in rules.check(properties)] == ['labels["\uffee"]', 'labels["😀"]', "created"]
