"""All rules of all layers, and which of them a caller wants."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import MappingProxyType

from turnwire import errors
from turnwire.validation.rule import Rule
from turnwire.validation.schema_rules import schema_rules
from turnwire.validation.session_rules import SESSION_RULES
from turnwire.validation.storage_rules import STORAGE_RULES


@cache
def rules() -> MappingProxyType[str, Rule]:
    """Every rule by its id, layer by layer. Raises `turnwire.rules.schema.StrippedSchema`; see `schema_rules`."""
    return MappingProxyType({rule.id: rule for rule in (*schema_rules(), *SESSION_RULES, *STORAGE_RULES)})


class Selection:
    """Which rules to report. Entries are ids, or what ids begin with up to a dot: ``session``, ``session.ref``."""

    def __init__(self, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> None:
        """``select``: these (none: all); ``ignore``: but not these. Raises `errors.UnknownFilter`, with the path."""
        chosen, ignored = _matching(select, "select"), _matching(ignore, "ignore")
        self._taken = (chosen if chosen is not None else frozenset(rules())) - (ignored or frozenset())

    def takes(self, rule: str) -> bool:
        """Whether a rule is to be reported."""
        return rule in self._taken


def _matching(given: Iterable[str], name: str) -> frozenset[str] | None:
    """The ids that the given ones stand for; None if none are given."""
    found: set[str] = set()
    none_given = True
    for index, each in enumerate(given):
        none_given = False
        matching = [id for id in rules() if id == each or id.startswith(f"{each}.")]
        if not matching:
            text = "no rule has this id, nor one that begins with it and a dot; docs/validation.md lists them"
            raise errors.UnknownFilter(text, path=f"{name}[{index}]")
        found.update(matching)
    return None if none_given else frozenset(found)
