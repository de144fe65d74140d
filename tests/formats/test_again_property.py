"""Whatever a source becomes, importing it again makes the history what it has, and then nothing is left to do."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import turnwire
from tests.formats.samples import assistant, document, exact, take, text, user
from turnwire.formats import Outcome, Report, ledger, stored
from turnwire.formats.load import load
from turnwire.formats.opencode import OPENCODE

_MESSAGES = 5
_PARTS = 3


@st.composite
def versions(draw: st.DrawFn) -> list[str]:
    """Exports of one session as it changes: messages come, go, come back and change, and so do parts within them."""
    found: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        messages: list[dict[str, Any]] = []
        for number in range(1, _MESSAGES + 1):
            if not draw(st.booleans()):
                continue
            names = [f"prt_{number}{at}" for at in range(_PARTS) if draw(st.booleans())]
            parts = [text(name, draw(st.sampled_from("ab"))) for name in names]
            summary = draw(st.sampled_from([{}, {"summary": {"diffs": []}}, {"summary": {"title": "t", "diffs": []}}]))
            agent = draw(st.sampled_from(["build", "plan"]))
            if number % 2:
                messages.append(user(f"msg_{number}", *parts, at=number, agent=agent, **summary))
            else:
                asked = [one["info"]["id"] for one in messages if one["info"]["role"] == "user"]
                parent = draw(st.sampled_from(asked)) if asked else None
                messages.append(assistant(f"msg_{number}", *parts, at=number, parent=parent, agent=agent))
        info: dict[str, Any] = {"title": draw(st.sampled_from("ab"))}
        if messages and draw(st.booleans()):
            hidden = draw(st.sampled_from(messages))
            info["revert"] = {"messageID": hidden["info"]["id"]}
            if hidden["parts"] and draw(st.booleans()):
                info["revert"]["partID"] = draw(st.sampled_from(hidden["parts"]))["id"]
        found.append(document(*messages, **info))
    return found


@settings(max_examples=150, deadline=None)
@given(versions())
def test_the_history_becomes_what_the_source_has(found: list[str]) -> None:
    asyncio.run(_follow(found))


async def _follow(found: list[str]) -> None:
    async with turnwire.open(":memory:") as client:
        for whole in found:
            report = Report()
            await load(client, take(whole), report)
            assert report.complete, [str(note) for note in report.notes]
            assert exact(OPENCODE.export(await stored.history(client, "ses_1"))) == exact(whole)
            head = (await client.get_session("ses_1")).head.revision
            assert await load(client, take(whole), Report()) is Outcome.UNCHANGED
            # Without the digest of the whole, each object is compared.
            session = take(whole)
            session.digest = "unknown"
            assert await load(client, session, Report()) is Outcome.UNCHANGED
            assert (await client.get_session("ses_1")).head.revision == head
        assert (await client.verify_session("ses_1")).sound
        assert ledger.mark_of((await client.get_session("ses_1")).properties) is not None
