"""Outcomes as responses of AppendStream."""

from __future__ import annotations

import pytest

from turnwire import errors, v1
from turnwire.server.appendstream import responses


def reply(revision: int, results: int = 1) -> v1.AppendResponse:
    return v1.AppendResponse(
        head=v1.Head(revision=revision), results=[v1.AppendResult(revision=1, id="m" * 90) for _ in range(results)]
    )


@pytest.mark.parametrize(
    ("results", "together"),
    [([], []), ([1, 1, 1], [3]), ([1, 1000, 1, 1], [2, 2]), ([1000, 1000], [1, 1]), ([1000, 1], [1, 1])],
)
def test_outcomes_share_a_response_until_it_is_large(results: list[int], together: list[int]) -> None:
    replies = [reply(revision, count) for revision, count in enumerate(results, 1)]
    read = [v1.AppendStreamResponse.FromString(raw) for raw in responses(replies)]
    assert [len(each.outcomes) for each in read] == together
    assert [outcome.append for each in read for outcome in each.outcomes] == replies


def test_a_refusal_has_its_place() -> None:
    (raw,) = responses([reply(1), errors.SessionNotFound("there is no such session", session_id="s"), reply(2)])
    outcomes = v1.AppendStreamResponse.FromString(raw).outcomes
    assert [each.WhichOneof("outcome") for each in outcomes] == ["append", "refusal", "append"]
    assert outcomes[1].refusal.code == 5
