"""Totals of tokens and cost: buckets that do not overlap, unknown apart from free, exact sums."""

from __future__ import annotations

import sys

from turnwire import v1
from turnwire.totals import SessionTotals, Total, by_model, of_message, together


def usage(cost: float | None = None, **tokens: int) -> v1.Usage:
    made = v1.Usage(cost=cost)
    cache = {name: tokens.pop(name) for name in ("read", "write") if name in tokens}
    if tokens or cache:
        made.tokens.CopyFrom(v1.Tokens(**tokens))
        if cache:
            made.tokens.cache.CopyFrom(v1.CacheTokens(**cache))
    return made


def answer(spent: v1.Usage, *steps: v1.Usage, turn: str = "t", model: str = "m") -> v1.Assistant:
    made = v1.Assistant(turn_id=turn, usage=spent)
    made.run.model.CopyFrom(v1.ModelRef(provider_id="acme", model_id=model))
    made.parts.extend(v1.PromptPart(step_finish=v1.StepFinishPart(usage=step)) for step in steps)
    return made


def test_the_buckets_add_up_and_the_providers_own_total_is_left_alone() -> None:
    total = of_message(answer(usage(0.5, total=999, input=1, output=20, reasoning=300, read=4000, write=50000)))
    assert [*total.buckets()] == [1, 20, 300, 4000, 50000]
    assert total.tokens == 54321
    assert (total.messages, total.unpriced, total.dollars) == (1, 0, 0.5)


def test_a_message_counts_for_its_steps_unless_it_says_nothing() -> None:
    steps = usage(0.1, input=1), usage(0.2, input=2)
    assert of_message(answer(usage(0.3, input=3), *steps)).tokens == 3
    unsaid = of_message(answer(v1.Usage(), *steps))
    assert (unsaid.tokens, unsaid.dollars, unsaid.unpriced) == (3, 0.3, 0)


def test_unknown_is_not_free() -> None:
    assert of_message(answer(usage(0.0, input=1))).unpriced == 0
    assert of_message(answer(usage(None, input=1))).unpriced == 1
    assert of_message(answer(v1.Usage())) == Total(messages=1, unpriced=1)


def test_costs_are_added_as_decimals_and_stay_finite() -> None:
    ten = together(of_message(answer(usage(0.1))) for _ in range(10))
    assert ten.dollars == 1.0
    assert together(of_message(answer(usage(1e308))) for _ in range(3)).dollars == sys.float_info.max


def test_by_turn_and_by_model() -> None:
    one, other = SessionTotals(v1.Session(id="s")), SessionTotals(v1.Session(id="o"))
    one.add(v1.Turn(id="t", request=v1.TurnRequest(agent="build")))
    one.add(v1.User(turn_id="t"))
    one.add(answer(usage(1.0, input=1)))
    one.add(answer(usage(2.0, output=10), model="n"))
    one.add(v1.Turn(id="u"))
    one.add(answer(usage(4.0, reasoning=100), turn="u"))
    one.add(v1.Head())
    other.add(answer(usage(8.0, read=1000), model="n"))
    assert {id: total.tokens for id, total in one.turns.items()} == {"t": 11, "u": 100}
    assert {name: total.dollars for (_, name), total in one.models.items()} == {"m": 5.0, "n": 2.0}
    assert (one.total.messages, one.total.tokens, one.total.dollars) == (3, 111, 7.0)
    assert one.settings["t"].agent == "build"
    assert {name: total.tokens for (_, name), total in by_model([one, other]).items()} == {"m": 101, "n": 1010}
    assert together([one.total, other.total]).tokens == 1111
