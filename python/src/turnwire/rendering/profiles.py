"""Profiles: who makes the choices that a caller left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from turnwire import errors, v1
from turnwire.rendering.options import (
    DEFAULTS,
    Capabilities,
    Dialect,
    ForeignReasoning,
    Options,
    Settings,
    Stopped,
)

_CHAT, _RESPONSES = Dialect.OPENAI_CHAT, Dialect.OPENAI_RESPONSES
_ANTHROPIC, _GEMINI = Dialect.ANTHROPIC_MESSAGES, Dialect.GOOGLE_GEMINI

_MIB = 1024 * 1024

#: What the API of each dialect is known to take, whoever asks.
_TARGETS: Mapping[Dialect, Mapping[str, Any]] = {
    _CHAT: {
        "audio": True,
        "remote_pdf": False,
        "reasoning_field": "reasoning_content",
        "media_bytes": 45 * _MIB,
        "call_id_length": 40,
        "image_types": frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    },
    _RESPONSES: {
        "media_in_results": True,
        "signature_needed": True,
        "media_bytes": 45 * _MIB,
        "call_id_length": 64,
        "image_types": frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    },
    _ANTHROPIC: {
        "media_in_results": True,
        "signature_needed": True,
        "media_bytes": 30 * _MIB,
        "call_id_length": 64,
        "safe_call_ids": True,
        "merge": True,
        "trim_last": True,
        "image_types": frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    },
    _GEMINI: {
        "audio": True,
        "video": True,
        "media_in_assistant": True,
        "media_bytes": 18 * _MIB,
        "merge": True,
        "image_types": frozenset({"image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"}),
    },
}


def _default(dialect: Dialect, model: v1.ModelRef) -> Settings:
    """What a careful agent would choose: everything that can be sent is, and nothing that is refused."""
    settings = Settings(
        profile="default",
        dialect=dialect,
        provider_id=model.provider_id,
        model_id=model.model_id,
        interrupted_text="[Tool execution was interrupted]",
        compacted_text="[Old tool result content cleared]",
        empty_output_text="[No output]",
        leading_text="[The conversation begins with the assistant.]",
        closing_text="Continue.",
        moved_text="Attached media from tool result:",
        compaction_text="What did we do so far?",
        subtask_text="The following tool was executed by the user",
        text_separator="\n\n",
        assistant_last=dialect in (_CHAT, _RESPONSES),
    )
    return replace(settings, **_TARGETS[dialect])


def _opencode(dialect: Dialect, model: v1.ModelRef) -> Settings:
    """What opencode 1.18 sends for the same messages, byte for byte."""
    name = model.model_id.lower()
    claude = "claude" in name or "anthropic" in name
    mistral = any(word in name for word in ("mistral", "devstral", "codestral", "pixtral", "mixtral"))
    settings = Settings(
        profile="opencode",
        dialect=dialect,
        provider_id=model.provider_id,
        model_id=model.model_id,
        aborted=Stopped.KEEP,
        failed=Stopped.DROP,
        ignored_assistant_texts=True,
        foreign_reasoning=ForeignReasoning.TEXT,
        drop_reasoning_alone=False,
        reasoning_field="reasoning_content" if dialect is _CHAT else "",
        media_in_results=dialect in (_RESPONSES, _ANTHROPIC) or (dialect is _GEMINI and "gemini-3" in name),
        assistant_files=False,
        text_files=False,
        strict_media=False,
        moved_names=False,
        media_error=True,
        interrupted_text="[Tool execution was interrupted]",
        compacted_text="[Old tool result content cleared]",
        moved_text="Attached media from tool result:",
        compaction_text="What did we do so far?",
        subtask_text="The following tool was executed by the user",
        answer_in_place=False,
        interrupted_output=True,
        clean_inputs=False,
        empty_text_with_metadata=dialect is _RESPONSES,
        blank_beside_signed=True,
        keep_emptied_assistants=dialect is _CHAT,
        merge=dialect is _ANTHROPIC,
        assistant_first=True,
        assistant_last=True,
        trim_last=dialect is _ANTHROPIC,
        unique_call_ids=False,
        safe_call_ids="claude" in name,
        cache_marks=2 if dialect is _ANTHROPIC or claude else 0,
        empty_content=True,
        vendor_spelling=False,
    )
    if mistral:
        settings = replace(settings, short_call_ids=9, filler_text="Done.")
    if dialect is _CHAT and "deepseek" in name:
        settings = replace(settings, reasoning_field_always=True)
    return settings


PROFILES: Mapping[str, Callable[[Dialect, v1.ModelRef], Settings]] = MappingProxyType(
    {"default": _default, "opencode": _opencode}
)


def settings(dialect: Dialect, model: v1.ModelRef, options: Options = DEFAULTS, profile: str = "default") -> Settings:
    """The settings of a profile for a target, with a caller's options over them. Raises UnknownProfile."""
    make = PROFILES.get(profile or "default")
    if make is None:
        raise errors.UnknownProfile(f"the known profiles are {', '.join(PROFILES)}", profile=profile)
    chosen = make(dialect, model)
    over = _given(options, "capabilities") | _given(options.capabilities)
    if options.capabilities.reasoning_field is not None and chosen.profile == "opencode":
        # opencode's models have such a field only by configuration, and then always.
        over["reasoning_field_always"] = bool(options.capabilities.reasoning_field)
    if dialect is _CHAT:
        over["media_in_results"] = False  # its results are strings
    return replace(chosen, **over)


def _given(choices: Options | Capabilities, *without: str) -> dict[str, Any]:
    names = (name for name in choices.__dataclass_fields__ if name not in without)
    return {name: value for name in names if (value := getattr(choices, name)) is not None}
