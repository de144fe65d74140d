"""Reading: from the items of a prompt to the form that the passes work on.

What is no content for a model (steps, snapshots, patches, retries, mentions of agents) ends here; steps divide an
assistant's message into one message per model call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from turnwire import v1
from turnwire.prompt import Item
from turnwire.rendering import jsonwrite, mediatypes
from turnwire.rendering.form import Block, Call, Log, Message, Origin, Reasoning, Result, Role, Rule, Text
from turnwire.rendering.options import Dialect, Settings, Stopped

_LONE = re.compile("[\ud800-\udfff]")

_USER = v1.Role.ROLE_USER
_COMPLETED = v1.ToolState.TOOL_STATE_COMPLETED
_ERROR = v1.ToolState.TOOL_STATE_ERROR

# Where the providers' metadata holds what binds the content: the provider's family, the key, the key of content that
# only the provider can read.
_BINDING: dict[Dialect, tuple[str, str, str]] = {
    Dialect.ANTHROPIC_MESSAGES: ("anthropic", "signature", "redactedData"),
    Dialect.OPENAI_RESPONSES: ("openai", "reasoningEncryptedContent", ""),
    Dialect.GOOGLE_GEMINI: ("google", "thoughtSignature", ""),
}


def read(items: Iterable[Item], settings: Settings, log: Log) -> list[Message]:
    """The messages of a prompt. An item of which nothing is content makes none."""
    reader = _Reader(settings, log)
    for index, item in enumerate(items):
        if item.role == _USER:
            reader.user(item, index)
        elif reader.wanted(item):
            reader.assistant(item, index)
    return reader.messages


class _Reader:
    def __init__(self, settings: Settings, log: Log) -> None:
        self.messages: list[Message] = []
        self._settings = settings
        self._log = log
        self._binding = _BINDING.get(settings.dialect)

    def user(self, item: Item, index: int) -> None:
        blocks: list[Block] = []
        for part in item.parts:
            message = part.message
            origin = Origin(item.message_id, message.id)
            match message.WhichOneof("kind"):
                case "text":
                    if message.text.ignored:
                        self._log.add(Rule.IGNORED, origin)
                    else:
                        blocks.append(Text(message.text.text, origin))
                case "file":
                    self._file(message.file, origin, blocks)
                case "compaction":
                    blocks.append(Text(self._settings.compaction_text, origin))
                    self._log.add(Rule.FIXED_TEXT, origin)
                case "subtask":
                    blocks.append(Text(self._settings.subtask_text, origin))
                    self._log.add(Rule.FIXED_TEXT, origin)
                case "agent":
                    pass  # the text that holds the mention says what is meant
                case kind:
                    self._other(kind, origin)
        if blocks:
            self.messages.append(Message(Role.USER, blocks, item.message_id, index))

    def wanted(self, item: Item) -> bool:
        """Whether an assistant is sent at all, by how its run ended."""
        facts = item.facts
        if facts is None or not facts.HasField("failure"):
            return True
        settings = self._settings
        kind = facts.failure.WhichOneof("kind")
        if kind == "aborted":
            more = any(part.kind not in ("step_start", "reasoning") for part in item.parts)
            keep = more and settings.aborted is Stopped.KEEP
            rule = Rule.ABORTED
        else:
            # An answer that the provider withheld is not put before it again.
            keep = kind != "content_filter" and settings.failed is Stopped.KEEP
            rule = Rule.FAILED
        if not keep:
            self._log.add(rule, Origin(item.message_id))
        return keep

    def assistant(self, item: Item, index: int) -> None:
        blank = self._settings.blank_beside_signed and any(
            part.kind == "reasoning"
            and _bound(part.message.reasoning.provider.metadata_json, ("anthropic", "signature", ""))[0]
            for part in item.parts
        )
        model = item.facts.model if item.facts is not None and item.facts.HasField("model") else None
        own_item = model is not None and self._is_target(model)
        blocks: list[Block] = []
        results: list[Result] = []
        for part in item.parts:
            message = part.message
            match message.WhichOneof("kind"):
                case "text":
                    text = message.text
                    origin = Origin(item.message_id, message.id)
                    if text.ignored and not self._settings.ignored_assistant_texts:
                        self._log.add(Rule.IGNORED, origin)
                        continue
                    content = text.text
                    if blank and not content:
                        content = " "
                        self._log.add(Rule.BLANK_TEXT, origin)
                    block = Text(content, origin)
                    if text.HasField("provider"):
                        own = self._own(text.provider, own_item)
                        block.metadata = own and bool(text.provider.metadata_json)
                        block.signature = self._signature(text.provider, own, origin)
                    blocks.append(block)
                case "reasoning":
                    reasoning = message.reasoning
                    own = self._own(reasoning.provider, own_item)
                    signature = redacted = name = ""
                    if own and self._binding is not None and reasoning.provider.metadata_json:
                        signature, redacted = _bound(reasoning.provider.metadata_json, self._binding)
                        if self._settings.dialect is Dialect.OPENAI_RESPONSES:
                            name = _bound(reasoning.provider.metadata_json, ("openai", "itemId", ""))[0]
                    origin = Origin(item.message_id, message.id)
                    blocks.append(Reasoning(reasoning.text, origin, own, signature, redacted, name))
                case "tool":
                    self._tool(message.tool, Origin(item.message_id, message.id), own_item, blocks, results)
                case "step_start":
                    self._step(blocks, results, item, index)
                    blocks, results = [], []
                case "file":
                    if self._settings.assistant_files:
                        self._file(message.file, Origin(item.message_id, message.id), blocks)
                case "step_finish" | "snapshot" | "patch" | "retry":
                    pass
                case kind:
                    self._other(kind, Origin(item.message_id, message.id))
        self._step(blocks, results, item, index)

    def _step(self, blocks: list[Block], results: list[Result], item: Item, index: int) -> None:
        if blocks:
            self.messages.append(Message(Role.ASSISTANT, blocks, item.message_id, index))
            if results:
                self.messages.append(Message(Role.TOOL, list(results), item.message_id, index))

    def _tool(
        self, tool: v1.ToolPart, origin: Origin, own_item: bool, blocks: list[Block], results: list[Result]
    ) -> None:
        settings = self._settings
        document = jsonwrite.compact(tool.input_json) or "{}"
        call = Call(tool.call_id, tool.name, document, origin)
        if tool.HasField("provider"):
            call.signature = self._signature(tool.provider, self._own(tool.provider, own_item), origin)
        blocks.append(call)
        if tool.state == _COMPLETED:
            result = Result(tool.call_id, tool.name, tool.output, origin, compacted=tool.HasField("compacted"))
            if tool.attachments and not result.compacted:
                strict = settings.strict_media
                files = (attachment.file for attachment in tool.attachments)
                result.media = tuple(mediatypes.media(file, origin, strict=strict) for file in files)
            results.append(result)
        elif tool.state == _ERROR:
            partial = _interrupted_output(tool) if settings.interrupted_output else None
            if partial is not None:
                results.append(Result(tool.call_id, tool.name, partial, origin))
            else:
                text = tool.error or ("" if settings.interrupted_output else tool.output)
                results.append(Result(tool.call_id, tool.name, text, origin, error=True))
        # Every other state, one that this build does not know included, is not finished: the call stays open here.

    def _file(self, file: v1.FilePart, origin: Origin, blocks: list[Block]) -> None:
        settings = self._settings
        if not settings.text_files and file.mime in ("text/plain", mediatypes.FOLDER):
            return  # a mention: what was read of it is in the texts beside it
        blocks.append(mediatypes.media(file, origin, strict=settings.strict_media))

    def _other(self, kind: str | None, origin: Origin) -> None:
        self._log.add(Rule.NOT_CONTENT, origin)

    def _is_target(self, model: v1.ModelRef) -> bool:
        return model.provider_id == self._settings.provider_id and model.model_id == self._settings.model_id

    def _own(self, provider: v1.ProviderMetadata, own_item: bool) -> bool:
        return self._is_target(provider.model) if provider.HasField("model") else own_item

    def _signature(self, provider: v1.ProviderMetadata, own: bool, origin: Origin) -> str:
        """What the provider wants back with a text or a call. Only Google signs these."""
        if not own:
            if provider.signed:
                self._log.add(Rule.FOREIGN_METADATA, origin)
            return ""
        if self._settings.dialect is not Dialect.GOOGLE_GEMINI or not provider.metadata_json:
            return ""
        return _bound(provider.metadata_json, _BINDING[Dialect.GOOGLE_GEMINI])[0]


def _bound(document: str, binding: tuple[str, str, str]) -> tuple[str, str]:
    """The signature in provider metadata and the redacted content; empty where there is none.

    They are looked for at the provider's family, at the top, and at any other family that has them (a provider's
    models are also served by others).
    """
    family, signature, redacted = binding
    if signature not in document and not (redacted and redacted in document):
        return "", ""
    metadata = jsonwrite.value(document)
    for place in (metadata.get(family), metadata, *metadata.values()):
        if isinstance(place, dict):
            place = cast("dict[str, Any]", place)
            found = _text(place.get(signature)), _text(place.get(redacted)) if redacted else ""
            if any(found) and (family != "google" or _BASE64.fullmatch(found[0])):
                return found
    return "", ""


# Google's API takes signatures as bytes in base 64, and refuses a whole request for one that is not.
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?", re.ASCII)


def _text(value: Any) -> str:
    """A string that can be sent: no lone surrogates."""
    return value if isinstance(value, str) and _LONE.search(value) is None else ""


def _interrupted_output(tool: v1.ToolPart) -> str | None:
    """What an interrupted call had put out until then."""
    if "interrupted" not in tool.metadata_json:
        return None
    metadata = jsonwrite.value(tool.metadata_json)
    output = metadata.get("output")
    if metadata.get("interrupted") is not True or not isinstance(output, str):
        return None
    return _LONE.sub("\ufffd", output)
