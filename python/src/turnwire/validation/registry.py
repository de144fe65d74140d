"""All rules of all layers, and which of them a caller wants."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import MappingProxyType
from typing import Final

from turnwire import errors
from turnwire.rules import UNKNOWN
from turnwire.validation.rule import SCHEMA, SESSION, STORAGE, Rule
from turnwire.validation.schema_rules import schema_rules
from turnwire.validation.session_rules import SESSION_RULES
from turnwire.validation.storage_rules import STORAGE_RULES


@cache
def rules() -> MappingProxyType[str, Rule]:
    """Every rule by its id, layer by layer. Raises `turnwire.rules.schema.StrippedSchema`; see `schema_rules`."""
    return MappingProxyType({rule.id: rule for rule in (*schema_rules(), *SESSION_RULES, *STORAGE_RULES)})


#: What a rule of the standards is called here, for who looks for it by its name there.
_ELSEWHERE: Final = {"enum.defined_only": (UNKNOWN, "storage.unknown_enum")}
_LAYERS: Final = {"schema": SCHEMA, "session": SESSION, "storage": STORAGE}
_SHOWN: Final = 128


class Selection:
    """Which rules to report.

    Entries are layers (``schema``, ``session``, ``storage``), ids, or what ids begin with up to a dot: ``session.ref``.
    ``enum.defined_only``, protovalidate's name, is what stands for it here.
    """

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
        matching = _named(each)
        if not matching:
            text = (
                f"no rule or layer is called {each[:_SHOWN]!r}, and no rule's id begins with it and a dot; "
                "docs/validation.md lists them"
            )
            raise errors.UnknownFilter(text, path=f"{name}[{index}]")
        found.update(matching)
    return None if none_given else frozenset(found)


def _named(name: str) -> list[str]:
    found = [id for id, rule in rules().items() if _begins(id, name) or rule.layer == _LAYERS.get(name)]
    return found + [id for other, ids in _ELSEWHERE.items() if _begins(other, name) for id in ids]


def _begins(id: str, name: str) -> bool:
    return id == name or id.startswith(f"{name}.")
