"""Reasoning: only the model that made it gets it back."""

from __future__ import annotations

from turnwire.prompt.assembly import WHITE_SPACE
from turnwire.rendering.form import Block, Log, Message, Reasoning, Rule, Text
from turnwire.rendering.options import ForeignReasoning, Settings
from turnwire.rendering.passes.edit import each, with_blocks

# JavaScript trims the byte order mark too.
_BLANK = WHITE_SPACE + "\ufeff"


def foreign_reasoning(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Leave out reasoning of other models, or send it as text; messages of nothing else go."""

    def edit(block: Reasoning) -> Block | None:
        if block.own:
            return block
        if settings.foreign_reasoning is ForeignReasoning.TEXT and block.text.strip(_BLANK):
            log.add(Rule.REASONING_AS_TEXT, block.origin)
            return Text(block.text, block.origin)
        log.add(Rule.FOREIGN_REASONING, block.origin)
        return None

    edited = each(messages, Reasoning, edit)
    if edited is messages:
        return messages
    result: list[Message] = []
    for old, new in zip(messages, edited, strict=True):
        if new.blocks or not old.blocks:
            result.append(new)
        else:
            log.message(Rule.EMPTY_MESSAGE, old)
    return result


def unsigned_reasoning(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Leave out reasoning that lacks what the provider takes it with: its own signature, or its own name of it."""
    named = settings.dialect == "openai-responses" and settings.vendor_spelling
    unsigned = not settings.signature_needed and (settings.reasoning_field or settings.dialect != "openai-chat")
    if unsigned and not named:
        return messages

    def edit(block: Reasoning) -> Block | None:
        if (unsigned or block.signature or block.redacted) and (block.id or not named):
            return block
        log.add(Rule.UNSIGNED_REASONING, block.origin)
        return None

    return each(messages, Reasoning, edit)


def reasoning_alone(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Leave out reasoning at the end of a model call: it came of a call that broke off, and providers refuse it.

    It is judged by its own model call, whatever follows, so that a message added later changes nothing here.
    """
    if not settings.drop_reasoning_alone:
        return messages
    result: list[Message] = []
    for message in messages:
        if not message.blocks or type(message.blocks[-1]) is not Reasoning:
            result.append(message)
            continue
        kept = list(message.blocks)
        while kept and isinstance(kept[-1], Reasoning):
            log.add(Rule.REASONING_ALONE, kept.pop().origin)
        result.append(with_blocks(message, kept))
    return result
