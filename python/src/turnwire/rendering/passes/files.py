"""Media: what the target does not take becomes text, what it does not take there moves, and all of it fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from turnwire.rendering import mediatypes
from turnwire.rendering.form import Block, Log, Media, Message, Result, Role, Rule, Text
from turnwire.rendering.options import Dialect, MediaPolicy, Settings
from turnwire.rendering.passes.edit import each, with_blocks

_AUDIO_TYPES = frozenset({"audio/wav", "audio/mp3", "audio/mpeg", "audio/x-wav"})
_SPELLED = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg"}

_Take: TypeAlias = Callable[[Block, list[Block]], Block | None]


def place_media(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put texts in the place of media that has no content here, or that the target does not take.

    A text file's content becomes text. A mention, that is a text file or folder without content, just goes: what was
    read of it is in the texts beside it.
    """
    return each(messages, Media, lambda block: _placed(block, settings, log))


def place_result_media(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Do the same in tool results, where such texts come after the output. opencode lets all media through here."""

    def edit(block: Result) -> Result:
        if not block.media:
            return block
        if settings.media_error:
            stay = tuple(one for one in block.media if one.data or not settings.media_in_results)
            return block if len(stay) == len(block.media) else replace(block, media=stay)
        placed = [_placed(one, settings, log) for one in block.media]
        if all(new is old for new, old in zip(placed, block.media, strict=True)):
            return block
        texts = [block.text] if block.text else []
        texts += [one.text for one in placed if isinstance(one, Text)]
        return replace(block, text="\n".join(texts), media=tuple(one for one in placed if isinstance(one, Media)))

    return each(messages, Result, edit)


def _placed(media: Media, settings: Settings, log: Log) -> Media | Text | None:
    if not media.mime and media.data and settings.strict_media:
        media = replace(media, mime=mediatypes.sniffed(media.data))
        log.add(Rule.MEDIA_TYPE, media.origin)
    kind = mediatypes.kind(media.mime)
    if not media.data and not media.url:
        log.add(Rule.MEDIA_UNREACHABLE, media.origin)
        if kind == mediatypes.TEXT or media.mime == mediatypes.FOLDER:
            return None
        return Text(f"[{_called(media, kind)}: its content is not available]", media.origin)
    if kind == mediatypes.TEXT and settings.text_files and media.data:
        content = mediatypes.text_of(media)
        if content is not None:
            log.add(Rule.FILE_AS_TEXT, media.origin)
            return Text(f"[{_called(media, kind)}]\n{content}", media.origin)
    if settings.media_error:
        if kind not in _SWITCH or getattr(settings, _SWITCH[kind]):
            return media
        log.add(Rule.MEDIA_UNSUPPORTED, media.origin)
        name = f'"{media.name}"' if media.name else kind
        text = f"ERROR: Cannot read {name} (this model does not support {kind} input). Inform the user."
        return Text(text, media.origin)
    if settings.media is MediaPolicy.PLACEHOLDER or not _taken(media, kind, settings):
        log.add(Rule.MEDIA_UNSUPPORTED, media.origin)
        return Text(f"[{_called(media, kind)}: left out, the model does not take it]", media.origin)
    spelled = _SPELLED.get(media.mime.lower())
    if spelled is not None and settings.image_types:
        log.add(Rule.MEDIA_TYPE, media.origin)
        return replace(media, mime=spelled)
    return media


_SWITCH = {mediatypes.IMAGE: "images", mediatypes.PDF: "pdf", mediatypes.AUDIO: "audio", mediatypes.VIDEO: "video"}


def _taken(media: Media, kind: str, settings: Settings) -> bool:
    if kind not in _SWITCH or not getattr(settings, _SWITCH[kind]):
        return False
    mime = media.mime.lower()
    if kind == mediatypes.IMAGE:
        if media.url and not settings.remote_images:
            return False
        return not settings.image_types or _SPELLED.get(mime, mime) in settings.image_types
    if kind == mediatypes.PDF:
        return not media.url or settings.remote_pdf
    if settings.dialect is Dialect.OPENAI_CHAT:
        return kind == mediatypes.AUDIO and not media.url and mime in _AUDIO_TYPES
    return settings.dialect is Dialect.GOOGLE_GEMINI


def _called(media: Media, kind: str) -> str:
    what = {mediatypes.PDF: "PDF", mediatypes.TEXT: "file", mediatypes.OTHER: "file"}.get(kind, kind).capitalize()
    return f'{what} "{media.name}"' if media.name else what


def move_media(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Move the media of tool results, where the target does not take it there, into a user's message.

    It follows the whole assistant message with all its results.
    """
    if settings.media_in_results:
        return messages

    def take(block: Block, moved: list[Block]) -> Block:
        if not isinstance(block, Result) or not block.media:
            return block
        moved += block.media if settings.moved_names else (replace(media, name="") for media in block.media)
        return replace(block, media=())

    return _moved(messages, Role.TOOL, take, settings, log)


def assistant_media(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Move media of the assistant, where the target does not take it there, into a user's message after it."""
    if settings.media_in_assistant:
        return messages

    def take(block: Block, moved: list[Block]) -> Block | None:
        if not isinstance(block, Media):
            return block
        moved.append(block)
        return None

    return _moved(messages, Role.ASSISTANT, take, settings, log)


def _moved(messages: list[Message], role: Role, take: _Take, settings: Settings, log: Log) -> list[Message]:
    """Take media out of messages of a role and put it after the last message of the same item."""
    result: list[Message] = []
    moved: list[Block] = []
    last = len(messages) - 1
    for index, message in enumerate(messages):
        if message.role is role:
            before = len(moved)
            blocks = [new for block in message.blocks if (new := take(block, moved)) is not None]
            if len(moved) > before:
                message = with_blocks(message, blocks)
        result.append(message)
        if moved and (index == last or messages[index + 1].item != message.item):
            for block in moved:
                if isinstance(block, Media):
                    log.add(Rule.MEDIA_MOVED, block.origin)
            text = Text(settings.moved_text)
            result.append(Message(Role.USER, [text, *moved], message.message_id, message.item))
            moved = []
    return result


def limit_media(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Put placeholders in the place of the oldest media, so that the rest fits into the limit.

    The newest is counted first; from the first one on that no longer fits, everything older goes.
    """
    if not settings.media_bytes:
        return messages
    media = [one for message in messages for block in message.blocks for one in _media_of(block)]
    left = settings.media_bytes
    kept = len(media)
    while kept and (left := left - len(media[kept - 1].data) - len(media[kept - 1].url)) >= 0:
        kept -= 1
    if not kept:
        return messages
    dropped = {id(one) for one in media[:kept]}

    def result(block: Result) -> Result:
        if not any(id(one) in dropped for one in block.media):
            return block
        texts = [block.text] if block.text else []
        texts += [_dropped(one, log).text for one in block.media if id(one) in dropped]
        return replace(block, text="\n".join(texts), media=tuple(one for one in block.media if id(one) not in dropped))

    messages = each(messages, Media, lambda block: _dropped(block, log) if id(block) in dropped else block)
    return each(messages, Result, result)


def _media_of(block: Block) -> tuple[Media, ...]:
    if isinstance(block, Media):
        return (block,)
    return block.media if isinstance(block, Result) else ()


def _dropped(media: Media, log: Log) -> Text:
    log.add(Rule.MEDIA_LIMIT, media.origin)
    called = _called(media, mediatypes.kind(media.mime))
    return Text(f"[{called}: left out, newer media fills the limit]", media.origin)
