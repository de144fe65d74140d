"""What the schema and the code say of rendering is the same."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.strategies import messages
from turnwire import v1
from turnwire.rendering import Capabilities, Change, Dialect, Options, Rule
from turnwire.rendering.form import Origin
from turnwire.rendering.wire import change_of, changes_to, dialect_number, dialect_of, options_of, options_to


def test_every_dialect_and_every_rule_is_in_the_schema_and_back() -> None:
    assert {dialect_of(dialect_number(dialect)) for dialect in Dialect} == set(Dialect)
    assert len(v1.Dialect.values()) == len(Dialect) + 1
    assert len(v1.RenderRule.values()) == len(Rule)  # unknown is unspecified
    for rule in Rule:
        change = Change(rule, *Origin("m", "p"))
        (made,) = changes_to((change,))
        assert change_of(made) == change
        assert v1.RenderRule.Name(made.rule) == (
            "RENDER_RULE_UNSPECIFIED" if rule is Rule.UNKNOWN else f"RENDER_RULE_{rule.name}"
        )


def test_a_rule_of_a_later_version_is_unknown() -> None:
    later = v1.RenderChange.FromString(b"\x08\x63")  # rule 99
    assert change_of(later) == Change(Rule.UNKNOWN)


def test_the_options_have_the_same_names() -> None:
    assert [field.name for field in v1.RenderOptions.DESCRIPTOR.fields] == list(Options.__dataclass_fields__)
    assert [field.name for field in v1.TargetCapabilities.DESCRIPTOR.fields] == list(Capabilities.__dataclass_fields__)


def test_no_options_are_none() -> None:
    assert options_of(v1.RenderOptions()) == Options()
    assert options_to(Options()) == v1.RenderOptions()


@given(messages(v1.RenderOptions))
def test_options_come_back(given_options: v1.RenderOptions) -> None:
    made = options_to(options_of(given_options))
    if not given_options.capabilities.ListFields():
        given_options.ClearField("capabilities")
    assert made == given_options


def test_a_choice_of_a_later_version_is_refused() -> None:
    with pytest.raises(ValueError, match="99"):
        options_of(v1.RenderOptions.FromString(b"\x08\x63"))
