"""The passes: each makes one kind of thing acceptable, and is a pure function of the messages and the settings.

A pass that finds nothing to do gives back what it got. Doing all of them twice gives what doing them once gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from turnwire.rendering.form import Block, Call, Log, Media, Message, Reasoning, Result, Text
from turnwire.rendering.options import Settings
from turnwire.rendering.passes.calls import answer_calls, answer_in_place, clean_inputs, rename_calls
from turnwire.rendering.passes.files import assistant_media, limit_media, move_media, place_media, place_result_media
from turnwire.rendering.passes.order import begin, close, fill_in, mark, merge
from turnwire.rendering.passes.outputs import compacted_outputs, cut_outputs, empty_outputs
from turnwire.rendering.passes.reasoning import foreign_reasoning, reasoning_alone, unsigned_reasoning
from turnwire.rendering.passes.texts import empty_messages, empty_texts

Pass: TypeAlias = Callable[[list[Message], Settings, Log], list[Message]]

#: All passes in their order, each with the kinds of block without which it has nothing to do (none: always run).
ORDER: tuple[tuple[Pass, frozenset[type[Block]]], ...] = (
    (foreign_reasoning, frozenset({Reasoning})),
    (unsigned_reasoning, frozenset({Reasoning})),
    (clean_inputs, frozenset({Call})),
    (compacted_outputs, frozenset({Result})),
    (place_result_media, frozenset({Result})),
    (assistant_media, frozenset({Media})),
    (move_media, frozenset({Result})),
    (place_media, frozenset({Media, Result})),
    (limit_media, frozenset({Media, Result})),
    (cut_outputs, frozenset({Result})),
    (empty_outputs, frozenset({Result})),
    (empty_texts, frozenset({Text})),
    (answer_calls, frozenset({Call, Result})),
    (answer_in_place, frozenset({Call})),
    (reasoning_alone, frozenset({Reasoning})),
    (empty_messages, frozenset()),
    (fill_in, frozenset({Result})),
    (mark, frozenset()),
    (merge, frozenset()),
    (begin, frozenset()),
    (close, frozenset()),
    (rename_calls, frozenset({Call})),
)


def normalise(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Do all passes in their order."""
    kinds = {type(block) for message in messages for block in message.blocks}
    for step, needs in ORDER:
        if not needs or not needs.isdisjoint(kinds):
            messages = step(messages, settings, log)
    return messages
