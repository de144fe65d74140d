"""What a caller may choose, and the settings that come of it.

`Options` holds only choices that were made; a profile, the dialect and the model give the rest (`settings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Dialect(StrEnum):
    """The request format of a provider."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC_MESSAGES = "anthropic-messages"
    GOOGLE_GEMINI = "google-gemini"


class ForeignReasoning(StrEnum):
    """What becomes of reasoning that another model made."""

    DROP = "drop"
    TEXT = "text"


class MediaPolicy(StrEnum):
    """What becomes of media."""

    KEEP = "keep"
    PLACEHOLDER = "placeholder"


class Stopped(StrEnum):
    """What becomes of an assistant message whose run was stopped or failed."""

    KEEP = "keep"
    """What was stored of it is sent, unless that is nothing but reasoning, or an answer that the provider withheld."""
    DROP = "drop"
    """It is left out."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the target takes. None: what is usual for the dialect."""

    images: bool | None = None
    pdf: bool | None = None
    audio: bool | None = None
    video: bool | None = None
    #: Pictures and documents inside tool results.
    media_in_results: bool | None = None
    #: The conversation may begin with the assistant.
    assistant_first: bool | None = None
    #: The conversation may end with the assistant, which the model then goes on with.
    assistant_last: bool | None = None
    #: Openai-chat only: the field of an assistant message that takes its reasoning back. Empty: there is none.
    reasoning_field: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of a caller. None: the profile's.

    Sizes are in bytes: of a tool output its UTF-8, of media the text that carries it (base64 or address). 0: no limit.
    A choice may be given by its name, for example ``aborted="keep"``. Raises ValueError for a name that is none.
    """

    foreign_reasoning: ForeignReasoning | None = None
    media: MediaPolicy | None = None
    media_bytes: int | None = None
    output_bytes: int | None = None
    aborted: Stopped | None = None
    failed: Stopped | None = None
    #: How many messages at the end bear a cache mark, for targets that know them.
    cache_marks: int | None = None
    interrupted_text: str | None = None
    compacted_text: str | None = None
    empty_output_text: str | None = None
    leading_text: str | None = None
    closing_text: str | None = None
    capabilities: Capabilities = Capabilities()

    def __post_init__(self) -> None:
        for name, kind in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                try:
                    object.__setattr__(self, name, kind(value))
                except ValueError:
                    known = ", ".join(f'"{each}"' for each in kind)
                    raise ValueError(f"{name} is one of {known}, and not {value!r}") from None


_CHOICES: dict[str, type[StrEnum]] = {
    "foreign_reasoning": ForeignReasoning,
    "media": MediaPolicy,
    "aborted": Stopped,
    "failed": Stopped,
}

#: No choice at all.
DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice, made. A profile makes it; passes and writers read nothing else."""

    profile: str
    dialect: Dialect
    provider_id: str
    model_id: str

    # Assistants that did not end well
    aborted: Stopped = Stopped.KEEP
    failed: Stopped = Stopped.KEEP
    #: Texts of the assistant that are for people only are sent nevertheless.
    ignored_assistant_texts: bool = False

    # Reasoning and metadata
    foreign_reasoning: ForeignReasoning = ForeignReasoning.DROP
    #: Own reasoning without the provider's signature is left out.
    signature_needed: bool = False
    #: Reasoning that nothing of its model call follows is left out.
    drop_reasoning_alone: bool = True
    reasoning_field: str = ""
    #: The reasoning field stands in every assistant message, after the calls.
    reasoning_field_always: bool = False

    # Media
    media: MediaPolicy = MediaPolicy.KEEP
    media_bytes: int = 0
    images: bool = True
    pdf: bool = True
    audio: bool = False
    video: bool = False
    media_in_results: bool = False
    #: Files of the assistant are sent at all.
    assistant_files: bool = True
    #: Assistants may hold media.
    media_in_assistant: bool = False
    #: Media that moved out of a tool result keeps its name.
    moved_names: bool = True
    #: What stands for media that the model does not take is worded as opencode does it.
    media_error: bool = False
    #: Files of web addresses: pictures, documents.
    remote_images: bool = True
    remote_pdf: bool = True
    #: The types of pictures that the target takes. Empty: all.
    image_types: frozenset[str] = frozenset()
    #: Text files are sent as text. Else they, and folders, are mentions, whose content is in the texts beside them.
    text_files: bool = True
    #: Data that is no base64 has no content.
    strict_media: bool = True

    # Texts
    interrupted_text: str = ""
    compacted_text: str = ""
    empty_output_text: str = ""
    leading_text: str = ""
    closing_text: str = ""
    moved_text: str = ""
    compaction_text: str = ""
    subtask_text: str = ""
    filler_text: str = ""

    # Results
    output_bytes: int = 0
    #: Results stand before what their model wrote after the calls.
    answer_in_place: bool = True
    #: The partial output of an interrupted call is its result.
    interrupted_output: bool = False
    #: Tool inputs are objects without lone surrogates.
    clean_inputs: bool = True

    # Empty texts and messages
    #: An empty text with metadata of the target model stays.
    empty_text_with_metadata: bool = False
    #: An empty text beside signed reasoning becomes one blank.
    blank_beside_signed: bool = False
    #: An assistant message that only lost empty texts stays.
    keep_emptied_assistants: bool = False

    # Order
    merge: bool = False
    assistant_first: bool = False
    assistant_last: bool = False
    #: Trailing white space of a closing assistant is left out.
    trim_last: bool = False

    # Call ids
    unique_call_ids: bool = True
    #: Characters that a call id may not have become "_".
    safe_call_ids: bool = False
    #: The most characters of a call id. 0: any number.
    call_id_length: int = 0
    #: Call ids are cut to so many letters and digits, and filled with zeros. 0: they are not.
    short_call_ids: int = 0

    cache_marks: int = 0
    #: What stands between the texts of one assistant message where the target takes a single string.
    text_separator: str = ""
    #: A call without text has the content "" and not null.
    empty_content: bool = False
    #: Items of reasoning bear the provider's ids, assistants' texts are plain strings, pictures ask for a detail
    #: (openai-responses); results say output or error (google-gemini). Else the spelling is that of the AI SDK.
    vendor_spelling: bool = True
