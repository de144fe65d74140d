"""What the passes share: to make messages with other blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from turnwire.rendering.form import Block, Message

B = TypeVar("B", bound=Block)


def with_blocks(message: Message, blocks: Iterable[Block]) -> Message:
    """The message with other blocks."""
    return Message(message.role, list(blocks), message.message_id, message.item)


def each(messages: list[Message], kind: type[B], edit: Callable[[B], Block | None]) -> list[Message]:
    """Every block of a kind through ``edit``, which gives the block itself, another one, or None: it goes.

    Messages that lose all their blocks stay. What is not changed is handed on.
    """
    result = messages
    for index, message in enumerate(messages):
        edited: list[Block] | None = None
        for at, block in enumerate(message.blocks):
            # A comparison of types, not isinstance: no block has subclasses, and this is done for each of them.
            if type(block) is kind:
                new = edit(cast(B, block))
                if new is block:
                    if edited is not None:
                        edited.append(block)
                    continue
                if edited is None:
                    edited = message.blocks[:at]
                if new is not None:
                    edited.append(new)
            elif edited is not None:
                edited.append(block)
        if edited is not None:
            if result is messages:
                result = list(messages)
            result[index] = with_blocks(message, edited)
    return result
