"""From any sequence of legal messages every dialect renders to something that its checker accepts."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.render import checker
from tests.render.prompts import TARGET, prompts
from turnwire.prompt import Item
from turnwire.render import Dialect, EmptyPrompt, ForeignReasoning, MediaPolicy, Options, render
from turnwire.render.form import Log
from turnwire.render.passes import normalise
from turnwire.render.profiles import PROFILES
from turnwire.render.profiles import settings as settings_of
from turnwire.render.reading import read

OPTIONS = st.builds(
    Options,
    foreign_reasoning=st.sampled_from([None, *ForeignReasoning]),
    media=st.sampled_from([None, *MediaPolicy]),
    media_bytes=st.sampled_from([None, 0, 1, 40]),
    output_bytes=st.sampled_from([None, 0, 1, 10]),
)

examples = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("dialect", Dialect)
@examples
@given(items=prompts(), options=OPTIONS)
def test_every_legal_session_gives_a_body_that_the_vendor_takes(
    dialect: Dialect, items: tuple[Item, ...], options: Options
) -> None:
    try:
        first = render(items, dialect, TARGET, options=options)
    except EmptyPrompt:
        return
    assert checker.faults(first.body, dialect) == []
    assert render([item.to_proto() for item in items], dialect, TARGET, options=options) == first


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dialect", Dialect)
@examples
@given(items=prompts(), options=OPTIONS)
def test_normalising_twice_is_normalising_once(
    dialect: Dialect, profile: str, items: tuple[Item, ...], options: Options
) -> None:
    chosen = settings_of(dialect, TARGET, options, profile)
    once = normalise(read(items, chosen, Log()), chosen, Log())
    again = Log()
    assert normalise(once, chosen, again) == once
    assert again.changes == []


@pytest.mark.parametrize("dialect", Dialect)
@examples
@given(items=prompts(), more=prompts())
def test_what_is_added_at_the_end_changes_nothing_before_it(
    dialect: Dialect, items: tuple[Item, ...], more: tuple[Item, ...]
) -> None:
    without = Options(media_bytes=0)  # a limit that old media gives way to is the one exception
    try:
        before = blocks(render(items, dialect, TARGET, options=without).body, dialect)
        after = blocks(render([*items, *more], dialect, TARGET, options=without).body, dialect)
    except EmptyPrompt:
        return
    if before[-1] == '"Continue."':
        before.pop()  # it stands in for the message of the user that now comes
    assert after[: len(before)] == before


def blocks(body: str, dialect: Dialect) -> list[str]:
    """The content of a body as one flat list; the borders of messages do not show."""
    data = json.loads(body)
    flat: list[object] = []
    match dialect:
        case Dialect.OPENAI_CHAT:
            flat = data["messages"]
        case Dialect.OPENAI_RESPONSES:
            flat = data["input"]
        case Dialect.ANTHROPIC_MESSAGES:
            contents = (block for message in data["messages"] for block in message["content"])
            flat = [block["text"] if set(block) == {"type", "text"} else block for block in contents]
        case Dialect.GOOGLE_GEMINI:
            parts = (part for content in data["contents"] for part in content["parts"])
            flat = [part["text"] if set(part) == {"text"} else part for part in parts]
    return [json.dumps(block) for block in flat]
