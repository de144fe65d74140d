"""Empty texts, and messages of which nothing is left."""

from __future__ import annotations

from turnwire.rendering.form import Block, Log, Message, Role, Rule, Text
from turnwire.rendering.options import Settings
from turnwire.rendering.passes.edit import each


def empty_texts(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Leave out texts that are exactly empty; white space stays."""

    def edit(block: Text) -> Block | None:
        if block.text:
            return block
        if (settings.empty_text_with_metadata and block.metadata) or block.signature:
            return block
        log.add(Rule.EMPTY_TEXT, block.origin)
        return None

    return each(messages, Text, edit)


def empty_messages(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Leave out messages without blocks."""
    if all(message.blocks for message in messages):
        return messages
    result: list[Message] = []
    for message in messages:
        if message.blocks or (settings.keep_emptied_assistants and message.role is Role.ASSISTANT):
            result.append(message)
        else:
            log.message(Rule.EMPTY_MESSAGE, message)
    return result
