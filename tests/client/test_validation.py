"""Validating over every transport, with the same outcome."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import turnwire
from tests.builders import COMPLETED, assistant, put, tool, turn
from turnwire import errors, v1
from turnwire.calls import Service


async def left_a_final_state(tw: Service) -> None:
    entries = [turn(), assistant("a", tool("p", state=COMPLETED, output="ok")), put("a", tool("p"))]
    await tw.append("ses_1", entries, create=True)


async def test_validate_session(tw: Service) -> None:
    await left_a_final_state(tw)
    revisions: list[int] = []
    summaries: list[v1.ValidationSummary] = []
    found = [
        finding
        async for finding in tw.validate_session("ses_1", on_progress=revisions.append, on_summary=summaries.append)
    ]
    assert [(finding.revision, finding.rule, finding.value) for finding in found] == [
        (4, "session.tool.left", "TOOL_STATE_RUNNING")
    ]
    assert revisions[-1] == 4
    (summary,) = summaries
    assert (summary.checked, summary.warnings, summary.head.revision) == (4, 1, 4)
    assert [finding async for finding in tw.validate_session("ses_1", ignore=["session.tool"])] == []
    with pytest.raises(errors.UnknownFilter) as unknown:
        [finding async for finding in tw.validate_session("ses_1", select=["sessions"])]
    assert unknown.value.path == "select[0]"
    with pytest.raises(errors.SessionNotFound):
        [finding async for finding in tw.validate_session("none")]


async def test_validate_messages(tw: Service) -> None:
    good, bad = v1.ModelRef(provider_id="p", model_id="m"), v1.ModelRef(provider_id="p")
    json = v1.ValidateMessagesRequest(type="ModelRef", json='{"providerId": 5}')

    async def given() -> AsyncIterator[v1.ModelRef | v1.ValidateMessagesRequest]:
        for message in (good, bad, json, good):
            yield message

    answers = [[finding.rule for finding in found] async for found in tw.validate_messages(given())]
    assert answers == [[], ["string.min_len"], ["storage.json"], []]
    part = tool("p")
    answers = [[each.rule for each in found] async for found in tw.validate_messages([part], role="user")]
    assert answers == [["turnwire.held_by"]]
    answers = [[each.rule for each in found] async for found in tw.validate_messages([part], stored=False)]
    assert answers == [["turnwire.stored_only"]]


async def test_many_messages_go_out_before_the_first_is_answered(tw: Service) -> None:
    message = v1.ModelRef(provider_id="p", model_id="m")
    answers = [found async for found in tw.validate_messages([message] * 2000)]
    assert answers == [[]] * 2000


def test_without_async() -> None:
    with turnwire.blocking.open(":memory:") as tw:
        tw.append("s", [turn()], create=True)
        assert list(tw.validate_session("s")) == []
        assert [[each.rule for each in found] for found in tw.validate_messages([v1.ModelRef(model_id="m")])] == [
            ["string.min_len"]
        ]
