"""Prompts: what one model call gets, computed from a history and never kept in it.

``assemble(history, turn) -> mutate -> (render)``: pure functions, no clock, no randomness. Equal input, equal
bytes.
``PromptEditor`` is the face for people and hooks; the service runs the same functions.
"""

from turnwire.prompt.assembly import Assembly, assemble
from turnwire.prompt.build import assistant_message, file_part, message, text_part, tool_part, user_message
from turnwire.prompt.digests import digest
from turnwire.prompt.editor import PromptEditor
from turnwire.prompt.history import Fate, Fates, History, Message
from turnwire.prompt.items import Item, as_base
from turnwire.prompt.mutation import anchors, apply_records, mutate
from turnwire.prompt.parts import Part
from turnwire.prompt.profiles import ASSEMBLY_VERSION, PROFILES, Profile, profile_named, require_version

__all__ = [
    "ASSEMBLY_VERSION",
    "PROFILES",
    "Assembly",
    "Fate",
    "Fates",
    "History",
    "Item",
    "Message",
    "Part",
    "Profile",
    "PromptEditor",
    "anchors",
    "apply_records",
    "as_base",
    "assemble",
    "assistant_message",
    "digest",
    "file_part",
    "message",
    "mutate",
    "profile_named",
    "require_version",
    "text_part",
    "tool_part",
    "user_message",
]
