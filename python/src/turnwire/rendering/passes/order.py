"""The order of messages: neighbours, beginning, end, cache marks."""

from __future__ import annotations

from dataclasses import replace

from turnwire.rendering.form import Log, Message, Role, Rule, Text
from turnwire.rendering.options import Settings
from turnwire.rendering.passes.edit import with_blocks
from turnwire.rendering.passes.reasoning import reasoning_alone
from turnwire.rendering.passes.texts import empty_messages


def fill_in(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put a fixed assistant message between results and a user, for models that want one there."""
    if not settings.filler_text:
        return messages
    result: list[Message] = []
    for index, message in enumerate(messages):
        result.append(message)
        if message.role is Role.TOOL and index + 1 < len(messages) and messages[index + 1].role is Role.USER:
            log.message(Rule.FILLER, message)
            result.append(Message(Role.ASSISTANT, [Text(settings.filler_text)]))
    return result


def mark(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put a cache mark on the last block of each of the last messages, counted before neighbours are merged.

    Whether anything comes of a mark is the writer's business: some blocks cannot bear one.
    """
    if not settings.cache_marks or not messages:
        return messages
    if any(block.marked for message in messages for block in message.blocks):
        return messages  # merging may have moved them since: they stand where they were put
    start = max(len(messages) - settings.cache_marks, 0)
    return messages[:start] + [_marked(message) for message in messages[start:]]


def _marked(message: Message) -> Message:
    if not message.blocks:
        return message
    return with_blocks(message, [*message.blocks[:-1], replace(message.blocks[-1], marked=True)])


def merge(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Join neighbours of one role. Results count as the user's, which is how they are sent, but stay apart here."""
    if not settings.merge:
        return messages
    result: list[Message] = []
    for message in messages:
        if result and result[-1].role is message.role is not Role.TOOL:
            log.message(Rule.MERGED, message)
            result[-1] = with_blocks(result[-1], [*result[-1].blocks, *message.blocks])
        else:
            result.append(message)
    return result


def begin(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put a user's message before an assistant's at the beginning."""
    if settings.assistant_first or not messages or messages[0].role is not Role.ASSISTANT:
        return messages
    log.message(Rule.LEADING_USER, messages[0])
    return [Message(Role.USER, [Text(settings.leading_text)]), *messages]


def close(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put a user's message after an assistant's at the end, or make that one fit to be gone on with."""
    if not messages or messages[-1].role is not Role.ASSISTANT:
        return messages
    last = messages[-1]
    if not settings.assistant_last:
        log.message(Rule.CLOSING_USER, last)
        return [*messages, Message(Role.USER, [Text(settings.closing_text)])]
    if not settings.trim_last or not last.blocks:
        return messages
    text = last.blocks[-1]
    if not isinstance(text, Text) or text.text == text.text.strip():
        return messages
    log.add(Rule.TRIMMED, text.origin)
    if not text.text.strip():
        # What is left is judged again: it may be reasoning alone, or nothing.
        rest = reasoning_alone([with_blocks(last, last.blocks[:-1])], settings, log)
        left = [*messages[:-1], *empty_messages(rest, settings, log)]
        if text.marked and left:  # what is cached now ends with the block before
            left[-1] = _marked(left[-1])
        return close(left, settings, log)
    return [*messages[:-1], with_blocks(last, [*last.blocks[:-1], replace(text, text=text.text.strip())])]
