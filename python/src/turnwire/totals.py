"""Totals of tokens and cost, from what messages say of their model calls (``turnwire.v1.Usage``)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from turnwire import v1
from turnwire.calls.history import ReplayItem

#: The buckets of tokens, which do not overlap: their sum is everything that was processed.
BUCKETS: Final = ("input", "output", "reasoning", "cache_read", "cache_write")


@dataclass(slots=True)
class Total:
    """Sums over assistant messages: tokens by bucket, and the cost in US dollars, added up as decimals.

    ``unpriced`` counts the messages whose cost is not known, which is not the same as free.
    """

    messages: int = 0
    unpriced: int = 0
    cost: Decimal = Decimal()
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def tokens(self) -> int:
        """All buckets together."""
        return sum(self.buckets())

    def buckets(self) -> Iterator[int]:
        """The tokens by bucket, in the order of `BUCKETS`."""
        return (getattr(self, name) for name in BUCKETS)

    @property
    def dollars(self) -> float:
        """The cost as a finite number."""
        return min(float(self.cost), sys.float_info.max)

    def add(self, other: Total) -> None:
        """Take in another total."""
        self.messages += other.messages
        self.unpriced += other.unpriced
        self.cost += other.cost
        for name in BUCKETS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class SessionTotals:
    """What one session came to: together, by turn and by model, each in the order of their first messages."""

    session: v1.Session
    total: Total = field(default_factory=Total)
    turns: dict[str, Total] = field(default_factory=dict[str, Total])
    models: dict[tuple[str, str], Total] = field(default_factory=dict[tuple[str, str], Total])
    #: The settings of the turns by id.
    settings: dict[str, v1.TurnRequest] = field(default_factory=dict[str, v1.TurnRequest])

    def add(self, item: ReplayItem) -> None:
        """Take in the next item of a replay of the session."""
        if isinstance(item, v1.Turn):
            self.settings[item.id] = item.request
            self.turns.setdefault(item.id, Total())
        elif isinstance(item, v1.Assistant):
            total = of_message(item)
            model = item.run.model
            self.total.add(total)
            self.turns.setdefault(item.turn_id, Total()).add(total)
            self.models.setdefault((model.provider_id, model.model_id), Total()).add(total)


def of_message(message: v1.Assistant) -> Total:
    """What one message came to: as it says itself, or, while it does not, as its steps say."""
    steps = [part.step_finish.usage for part in message.parts if part.HasField("step_finish")]
    said = [message.usage] if message.usage.HasField("tokens") else steps
    priced = [message.usage] if message.usage.HasField("cost") else [each for each in steps if each.HasField("cost")]
    total = Total(messages=1, unpriced=0 if priced else 1)
    for tokens in (each.tokens for each in said):
        total.input += tokens.input
        total.output += tokens.output
        total.reasoning += tokens.reasoning
        total.cache_read += tokens.cache.read
        total.cache_write += tokens.cache.write
    for each in priced:
        total.cost += Decimal(repr(each.cost))
    return total


def by_model(sessions: Iterable[SessionTotals]) -> dict[tuple[str, str], Total]:
    """The totals of several sessions by (provider id, model id)."""
    found: dict[tuple[str, str], Total] = {}
    for session in sessions:
        for model, total in session.models.items():
            found.setdefault(model, Total()).add(total)
    return found


def together(totals: Iterable[Total]) -> Total:
    """The sum of totals."""
    result = Total()
    for total in totals:
        result.add(total)
    return result
