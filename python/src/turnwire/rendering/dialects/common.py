"""What the writers share."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from turnwire.rendering.form import Change, Log, Media, Message, Role, Rule
from turnwire.rendering.jsonwrite import compact, members, quote

#: The mark of Anthropic's prompt cache, as a further member of a block.
CACHE_MARK = ',"cache_control":{"type":"ephemeral"}'

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_EMPTY_SCHEMA = '{"type":"object","properties":{}}'


def marked(is_marked: bool) -> str:
    """The cache mark where there is one."""
    return CACHE_MARK if is_marked else ""


def data_url(media: Media) -> str:
    """The address of media: its web address or a data URL, as a JSON string."""
    # Base64 and media types need no escapes, and may be long.
    return quote(media.url) if media.url else f'{quote(f"data:{media.mime};base64,")[:-1]}{base64_of(media)}"'


def base64_of(media: Media) -> str:
    """The data of media as it stands inside a JSON string."""
    # Only data that was not looked into can hold what needs escapes.
    return media.data if media.data.isascii() and _ESCAPED.search(media.data) is None else quote(media.data)[1:-1]


def schema(document: str) -> str:
    """The JSON schema of a tool's input; one that takes any object if there is none."""
    return compact(document) or _EMPTY_SCHEMA


def parameters(document: str, renamed: Mapping[str, str], reserved: Collection[str], log: Log) -> list[tuple[str, str]]:
    """The parameters of a call as members of the body: renamed to the dialect's spelling, in order.

    What the renderer itself writes is left out, and so is what two names become one for, but the last.
    """
    if not document:
        return []
    found: dict[str, str] = {}
    for key, value in members(document):
        name = renamed.get(key, key)
        if name in reserved or name in found:
            log.changes.append(Change(Rule.PARAMETER))
        if name not in reserved:
            found[name] = value
    return list(found.items())


def by_side(messages: list[Message], together: bool) -> list[tuple[bool, list[Message]]]:
    """The messages in groups of one side: (whether the assistant's, messages). Not together: each its own group."""
    groups: list[tuple[bool, list[Message]]] = []
    for message in messages:
        assistant = message.role is Role.ASSISTANT
        if together and groups and groups[-1][0] is assistant:
            groups[-1][1].append(message)
        else:
            groups.append((assistant, [message]))
    return groups
