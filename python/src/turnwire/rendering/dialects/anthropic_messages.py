"""anthropic-messages: Anthropic's messages API."""

from __future__ import annotations

from turnwire import v1
from turnwire.rendering.dialects.common import base64_of, by_side, marked, parameters, schema
from turnwire.rendering.form import Block, Call, Log, Media, Message, Result, Text
from turnwire.rendering.jsonwrite import put, quote, strings
from turnwire.rendering.mediatypes import PDF, kind
from turnwire.rendering.options import Settings

_RENAMED = {"max_output_tokens": "max_tokens", "max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
_RESERVED = frozenset({"model", "system", "messages", "tools"})


def entries(messages: list[Message], settings: Settings) -> list[str]:
    """The messages: results are the user's and stand before what the user wrote."""
    written: list[str] = []
    for assistant, group in by_side(messages, settings.merge):
        parts = strings(filter(None, (_content(block, settings) for message in group for block in message.blocks)))
        written.append(f'{{"role":"{"assistant" if assistant else "user"}","content":{parts}}}')
    return written


def _content(block: Block, settings: Settings) -> str:
    mark = marked(block.marked)
    if isinstance(block, Text):
        return f'{{"type":"text","text":{quote(block.text)}{mark}}}'
    if isinstance(block, Call):
        return (
            f'{{"type":"tool_use","id":{quote(block.id)},"name":{quote(block.name)},"input":{block.input_json}{mark}}}'
        )
    if isinstance(block, Result):
        content = quote(block.text)
        if block.media:
            parts: list[Block] = [Text(block.text)] if block.text or not settings.vendor_spelling else []
            content = strings(_content(part, settings) for part in (*parts, *block.media))
        error = ',"is_error":true' if block.error else ""
        return f'{{"type":"tool_result","tool_use_id":{quote(block.call_id)},"content":{content}{error}{mark}}}'
    if isinstance(block, Media):
        return _media(block, mark)
    if block.signature:
        return f'{{"type":"thinking","thinking":{quote(block.text)},"signature":{quote(block.signature)}}}'
    return f'{{"type":"redacted_thinking","data":{quote(block.redacted)}}}' if block.redacted else ""


def _media(block: Media, mark: str) -> str:
    pdf = kind(block.mime) == PDF
    if block.url:
        source = f'{{"type":"url","url":{quote(block.url)}}}'
    else:
        mime = quote("application/pdf" if pdf else block.mime)
        source = f'{{"type":"base64","media_type":{mime},"data":"{base64_of(block)}"}}'
    title = f',"title":{quote(block.name)}' if pdf and block.name else ""
    return f'{{"type":"{"document" if pdf else "image"}","source":{source}{title}{mark}}}'


def body(written: list[str], context: v1.PromptContext, settings: Settings, log: Log) -> str:
    """``{model, system, messages, tools, …parameters}``. ``max_tokens``, which the API wants, is a parameter."""
    pairs = [("model", quote(settings.model_id))]
    system = [f'{{"type":"text","text":{quote(text)}}}' for text in context.system if text]
    if system:
        if settings.cache_marks:
            system[-1] = f"{system[-1][:-1]}{marked(True)}}}"
        pairs.append(("system", strings(system)))
    pairs.append(("messages", strings(written)))
    if context.tools:
        pairs.append(("tools", strings(_tool(tool) for tool in context.tools)))
    return put(pairs + parameters(context.parameters_json, _RENAMED, _RESERVED, log))


def _tool(tool: v1.ToolDefinition) -> str:
    pairs = [("name", quote(tool.name))]
    if tool.HasField("description"):
        pairs.append(("description", quote(tool.description)))
    return put([*pairs, ("input_schema", schema(tool.input_schema_json))])
