"""The writers: one module a dialect, each with ``entries`` (the messages as JSON texts) and ``body``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from turnwire import v1
from turnwire.rendering.dialects import anthropic_messages, google_gemini, openai_chat, openai_responses
from turnwire.rendering.form import Log, Message
from turnwire.rendering.options import Dialect, Settings


class Writer(Protocol):
    """What a dialect's module has."""

    def entries(self, messages: list[Message], settings: Settings) -> list[str]:
        """Each entry of ``messages``, ``input`` or ``contents`` as a JSON text."""
        ...

    def body(self, written: list[str], context: v1.PromptContext, settings: Settings, log: Log) -> str:
        """The request's body as a JSON text, with the entries that were ``written``."""
        ...


WRITERS: Mapping[Dialect, Writer] = MappingProxyType(
    {
        Dialect.OPENAI_CHAT: openai_chat,
        Dialect.OPENAI_RESPONSES: openai_responses,
        Dialect.ANTHROPIC_MESSAGES: anthropic_messages,
        Dialect.GOOGLE_GEMINI: google_gemini,
    }
)
