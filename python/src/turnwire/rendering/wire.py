"""Between the messages of the schema and what rendering works with: dialects, options, changes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from turnwire import v1
from turnwire.rendering.form import Change, Rule
from turnwire.rendering.options import Capabilities, Dialect, ForeignReasoning, MediaPolicy, Options, Stopped

#: What stands before the choice in the names of the schema.
_CHOICES: dict[str, tuple[Any, str, type[StrEnum]]] = {
    "foreign_reasoning": (v1.ForeignReasoning, "FOREIGN_REASONING_", ForeignReasoning),
    "media": (v1.MediaPolicy, "MEDIA_POLICY_", MediaPolicy),
    "aborted": (v1.StoppedPolicy, "STOPPED_POLICY_", Stopped),
    "failed": (v1.StoppedPolicy, "STOPPED_POLICY_", Stopped),
}
_DIALECTS = {dialect: v1.Dialect.Value(f"DIALECT_{dialect.name}") for dialect in Dialect}
_DIALECTS_OF = {number: dialect for dialect, number in _DIALECTS.items()}
_UNKNOWN = v1.RenderRule.RENDER_RULE_UNSPECIFIED
_RULES: dict[Rule, v1.RenderRule.ValueType] = {
    rule: v1.RenderRule.Value(f"RENDER_RULE_{rule.name}") for rule in Rule if rule is not Rule.UNKNOWN
}
_RULES_OF = {number: rule for rule, number in _RULES.items()}


def dialect_number(dialect: Dialect | str) -> v1.Dialect.ValueType:
    """A dialect as the schema numbers it. Raises ValueError for a name that is none."""
    return _DIALECTS[Dialect(dialect)]


def dialect_of(number: v1.Dialect.ValueType) -> Dialect:
    """The dialect of a number of the schema. Raises KeyError for one that is none."""
    return _DIALECTS_OF[number]


def options_of(given: v1.RenderOptions) -> Options:
    """Options as the schema has them, for `turnwire.render`; what is unset or unspecified stays the profile's choice.

    Raises ValueError for a number that the schema does not define.
    """
    chosen: dict[str, Any] = {field.name: value for field, value in given.ListFields()}
    for name, (numbers, prefix, choices) in _CHOICES.items():
        if name in chosen:
            chosen[name] = choices[numbers.Name(chosen[name]).removeprefix(prefix)]
    if "capabilities" in chosen:
        chosen["capabilities"] = Capabilities(**{field.name: value for field, value in given.capabilities.ListFields()})
    return Options(**chosen)


def options_to(options: Options) -> v1.RenderOptions:
    """Options as the schema has them."""
    made = v1.RenderOptions()
    for name in Options.__dataclass_fields__:
        value = getattr(options, name)
        if isinstance(value, Capabilities):
            for each in Capabilities.__dataclass_fields__:
                if getattr(value, each) is not None:
                    setattr(made.capabilities, each, getattr(value, each))
        elif value is not None:
            numbers, prefix, _ = _CHOICES.get(name, (None, "", StrEnum))
            setattr(made, name, value if numbers is None else numbers.Value(f"{prefix}{value.name}"))
    return made


def rule_number(rule: Rule) -> v1.RenderRule.ValueType:
    """A rule as the schema numbers it; unspecified for `Rule.UNKNOWN`."""
    return _RULES.get(rule, _UNKNOWN)


def changes_to(changes: tuple[Change, ...]) -> list[v1.RenderChange]:
    """Changes as the schema has them."""
    return [
        v1.RenderChange(rule=rule_number(change.rule), message_id=change.message_id, part_id=change.part_id)
        for change in changes
    ]


def change_of(change: v1.RenderChange) -> Change:
    """A change of the schema; a rule of a later version is `Rule.UNKNOWN`."""
    return Change(_RULES_OF.get(change.rule, Rule.UNKNOWN), change.message_id, change.part_id)
