"""From any sequence of legal messages every dialect renders to something that its checker accepts."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rendering import checker
from tests.rendering.prompts import TARGET, prompts
from turnwire.errors import EmptyPrompt
from turnwire.prompt import Item
from turnwire.rendering import Dialect, ForeignReasoning, MediaPolicy, Options, render
from turnwire.rendering.form import Log
from turnwire.rendering.passes import normalise
from turnwire.rendering.profiles import PROFILES
from turnwire.rendering.profiles import settings as settings_of
from turnwire.rendering.reading import read

OPTIONS = st.builds(
    Options,
    foreign_reasoning=st.sampled_from([None, *ForeignReasoning]),
    media=st.sampled_from([None, *MediaPolicy]),
    media_bytes=st.sampled_from([None, 0, 1, 40]),
    output_bytes=st.sampled_from([None, 0, 1, 10]),
)

# What takes the time is to draw a session, so that each is rendered for every dialect.
examples = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@examples
@given(items=prompts(), options=OPTIONS)
def test_every_legal_session_gives_a_body_that_the_vendor_takes(items: tuple[Item, ...], options: Options) -> None:
    for dialect in Dialect:
        try:
            first = render(items, dialect, TARGET, options=options)
        except EmptyPrompt:
            continue
        assert checker.faults(first.body, dialect) == [], dialect
        assert render([item.to_proto() for item in items], dialect, TARGET, options=options) == first


@examples
@given(items=prompts(), options=OPTIONS)
def test_normalising_twice_is_normalising_once(items: tuple[Item, ...], options: Options) -> None:
    for dialect in Dialect:
        for profile in PROFILES:
            chosen = settings_of(dialect, TARGET, options, profile)
            once = normalise(read(items, chosen, Log()), chosen, Log())
            again = Log()
            assert normalise(once, chosen, again) == once, (dialect, profile)
            assert again.changes == []


@examples
@given(items=prompts(), more=prompts())
def test_what_is_added_at_the_end_changes_nothing_before_it(items: tuple[Item, ...], more: tuple[Item, ...]) -> None:
    without = Options(media_bytes=0)  # a limit that old media gives way to is the one exception
    for dialect in Dialect:
        try:
            before = blocks(render(items, dialect, TARGET, options=without).body, dialect)
            after = blocks(render([*items, *more], dialect, TARGET, options=without).body, dialect)
        except EmptyPrompt:
            continue
        if before[-1] == '"Continue."':
            before.pop()  # it stands in for the message of the user that now comes
        assert after[: len(before)] == before, dialect


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
