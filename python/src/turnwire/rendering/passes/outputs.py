"""The texts of tool results: compacted, too long, empty."""

from __future__ import annotations

from dataclasses import replace

from turnwire.rendering.form import Log, Message, Result, Rule
from turnwire.rendering.options import Settings
from turnwire.rendering.passes.edit import each


def compacted_outputs(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put a placeholder in the place of outputs that are marked as compacted; their media goes."""

    def edit(block: Result) -> Result:
        if not block.compacted:
            return block
        log.add(Rule.COMPACTED_OUTPUT, block.origin)
        return replace(block, text=settings.compacted_text, media=(), compacted=False, fixed=True)

    return each(messages, Result, edit)


def cut_outputs(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Cut outputs to the limit, at the end of a code point, and tell their full length."""
    limit = settings.output_bytes
    if not limit:
        return messages

    def edit(block: Result) -> Result:
        if block.fixed or len(block.text) * 4 <= limit:
            return block
        data = block.text.encode()
        if len(data) <= limit:
            return block
        log.add(Rule.OUTPUT_CUT, block.origin)
        kept = data[:limit].decode(errors="ignore")
        mark = f"[Output cut: {len(kept.encode())} of {len(data)} bytes are shown]"
        return replace(block, text=f"{kept}\n{mark}", fixed=True)

    return each(messages, Result, edit)


def empty_outputs(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put a placeholder in the place of outputs that are exactly empty and have no media either."""
    if not settings.empty_output_text:
        return messages

    def edit(block: Result) -> Result:
        if block.text or block.media:
            return block
        log.add(Rule.EMPTY_OUTPUT, block.origin)
        return replace(block, text=settings.empty_output_text, fixed=True)

    return each(messages, Result, edit)
