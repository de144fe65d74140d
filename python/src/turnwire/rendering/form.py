"""The form between a prompt and a provider's request: roles and blocks that are common to all dialects.

Reading makes it of prompt items, the passes (`turnwire.rendering.passes`) turn it into one that the target accepts, and
a writer (`turnwire.rendering.dialects`) spells it. A call and its result, which are one part when stored, are two
blocks here: results stand in a message of role TOOL of their own, as a model gets them.

Messages and blocks are never changed once they are made: a pass makes others. What it did not touch it hands on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias


class Role(StrEnum):
    """Who a message comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Rule(StrEnum):
    """Why something is sent otherwise than it is stored. The names are part of the public contract."""

    ABORTED = "aborted"
    """A message was left out because its run was stopped."""
    FAILED = "failed"
    """A message was left out because its run failed."""
    IGNORED = "ignored"
    """A text that is for people only was left out."""
    NOT_CONTENT = "not_content"
    """An extension, or a part of a kind that this build does not know, was left out."""
    FIXED_TEXT = "fixed_text"
    """A fixed text stands for a compaction or a subtask."""
    FOREIGN_REASONING = "foreign_reasoning"
    """Reasoning of another model was left out."""
    REASONING_AS_TEXT = "reasoning_as_text"
    """Reasoning of another model is sent as text."""
    UNSIGNED_REASONING = "unsigned_reasoning"
    """Reasoning that lacks what the provider wants back with it was left out."""
    REASONING_ALONE = "reasoning_alone"
    """Reasoning that no text and no call of its model call follows was left out."""
    FOREIGN_METADATA = "foreign_metadata"
    """A signature that another model put to a text or a call was left out."""
    MEDIA_UNSUPPORTED = "media_unsupported"
    """A placeholder stands for media that the target does not take."""
    MEDIA_UNREACHABLE = "media_unreachable"
    """Media without content, for example a path of another machine: a placeholder, or nothing for a mere mention."""
    MEDIA_LIMIT = "media_limit"
    """A placeholder stands for older media, so that all of it fits into the limit."""
    MEDIA_MOVED = "media_moved"
    """Media of a tool result or of the assistant follows in a message of the user."""
    MEDIA_TYPE = "media_type"
    """The media type is spelled as the provider knows it."""
    FILE_AS_TEXT = "file_as_text"
    """The content of a text file is sent as text."""
    COMPACTED_OUTPUT = "compacted_output"
    """A placeholder stands for a tool output that was marked as compacted."""
    OUTPUT_CUT = "output_cut"
    """A tool output was cut to the limit; a mark tells its full length."""
    EMPTY_OUTPUT = "empty_output"
    """A placeholder stands for an empty tool output."""
    EMPTY_TEXT = "empty_text"
    """An empty text was left out."""
    BLANK_TEXT = "blank_text"
    """An empty text between signed reasoning became one blank."""
    EMPTY_MESSAGE = "empty_message"
    """A message of which nothing is left was left out."""
    INTERRUPTED = "interrupted"
    """A call without a result got an error result."""
    RESULT_WITHOUT_CALL = "result_without_call"
    """A result was left out because its call is not there, or has another result."""
    RESULT_ORDER = "result_order"
    """Results were put directly after their calls and into their order."""
    ANSWERED_IN_PLACE = "answered_in_place"
    """A message was divided, so that results come before what the model wrote after it had them."""
    MERGED = "merged"
    """A message was joined with the one before it, which has the same role."""
    LEADING_USER = "leading_user"
    """A message of the user was put before an assistant's at the beginning."""
    CLOSING_USER = "closing_user"
    """A message of the user was put after an assistant's at the end."""
    TRIMMED = "trimmed"
    """White space at the end of a closing assistant's text was left out."""
    CALL_ID = "call_id"
    """A call id was changed: it stands there already, or is none that the provider takes."""
    INPUT_WRAPPED = "input_wrapped"
    """A tool input that is no object was put into one."""
    SURROGATE = "surrogate"
    """Lone surrogates in a tool input became U+FFFD."""
    FILLER = "filler"
    """A fixed assistant message was put between a result and a user, for models that want one."""
    PARAMETER = "parameter"
    """A parameter was left out because the renderer itself writes that member of the body."""
    UNKNOWN = "unknown"
    """A rule of a later version than this one, which a server named."""


class Origin(NamedTuple):
    """Where a block comes from: ids of the stored message and part, empty where there is none."""

    message_id: str = ""
    part_id: str = ""


NOWHERE = Origin()


class Change(NamedTuple):
    """One difference between what is stored and what is sent."""

    rule: Rule
    message_id: str = ""
    part_id: str = ""


@dataclass(slots=True)
class Text:
    """A text. ``signature`` is what the provider wants back with it; ``metadata`` says that there is provider metadata
    of this very model."""

    text: str
    origin: Origin = NOWHERE
    signature: str = ""
    metadata: bool = False
    marked: bool = False


@dataclass(slots=True)
class Reasoning:
    """Reasoning. ``own``: the target model made it. ``redacted`` is content that only the provider can read, ``id`` the
    provider's own name of it."""

    text: str
    origin: Origin = NOWHERE
    own: bool = False
    signature: str = ""
    redacted: str = ""
    id: str = ""
    marked: bool = False


@dataclass(slots=True)
class Media:
    """A picture, document, sound or film: ``data`` in base64, or a web address as ``url``, or neither of them if the
    content cannot be had."""

    mime: str
    data: str = ""
    url: str = ""
    name: str = ""
    origin: Origin = NOWHERE
    marked: bool = False


@dataclass(slots=True)
class Call:
    """A tool call. ``input_json`` is one JSON document, compact."""

    id: str
    name: str
    input_json: str
    origin: Origin = NOWHERE
    signature: str = ""
    marked: bool = False


@dataclass(slots=True)
class Result:
    """The result of a call. ``fixed``: the text is as it shall be, because it is a placeholder or was cut already."""

    call_id: str
    name: str
    text: str
    origin: Origin = NOWHERE
    error: bool = False
    media: tuple[Media, ...] = ()
    compacted: bool = False
    fixed: bool = False
    marked: bool = False


Block: TypeAlias = Text | Reasoning | Media | Call | Result


@dataclass(slots=True)
class Message:
    """A message: one block list, and the index of the prompt item that it was made of.

    An assistant item of several model calls makes several messages, which share ``item``.
    """

    role: Role
    blocks: list[Block]
    message_id: str = ""
    item: int = -1


@dataclass(slots=True)
class Log:
    """The changes, in the order in which the passes made them."""

    changes: list[Change] = field(default_factory=list[Change])

    def add(self, rule: Rule, origin: Origin) -> None:
        """Note a change of one block."""
        self.changes.append(Change(rule, origin.message_id, origin.part_id))

    def message(self, rule: Rule, message: Message) -> None:
        """Note a change of a whole message."""
        self.changes.append(Change(rule, message.message_id))


def has(messages: Iterable[Message], *kinds: type[Block]) -> bool:
    """Whether any message holds a block of one of the kinds."""
    return any(isinstance(block, kinds) for message in messages for block in message.blocks)
