"""What a rule is."""

from __future__ import annotations

from dataclasses import dataclass

from turnwire import v1

ERROR = v1.Severity.SEVERITY_ERROR
WARNING = v1.Severity.SEVERITY_WARNING
NOTE = v1.Severity.SEVERITY_NOTE

SCHEMA = v1.RuleLayer.RULE_LAYER_SCHEMA
SESSION = v1.RuleLayer.RULE_LAYER_SESSION
STORAGE = v1.RuleLayer.RULE_LAYER_STORAGE


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``title`` says what is wrong where it is broken, ``explanation`` why it matters and what is right.

    ``fields``, of rules of the schema: where it stands in the protos, each with what is right there.
    """

    id: str
    layer: v1.RuleLayer.ValueType
    severity: v1.Severity.ValueType
    title: str
    explanation: str
    fields: tuple[tuple[str, str], ...] = ()
