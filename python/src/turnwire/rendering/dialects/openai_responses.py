"""openai-responses: OpenAI's responses API, with the whole conversation in ``input`` (``store: false``)."""

from __future__ import annotations

from turnwire import v1
from turnwire.rendering.dialects.common import data_url, parameters, schema
from turnwire.rendering.form import Block, Call, Log, Media, Message, Reasoning, Result, Role, Text
from turnwire.rendering.jsonwrite import put, quote, strings
from turnwire.rendering.mediatypes import PDF, kind
from turnwire.rendering.options import Settings

_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_RESERVED = frozenset({"model", "input", "tools"})


def entries(messages: list[Message], settings: Settings) -> list[str]:
    """The input items: texts, reasoning, calls and results of an assistant are items of their own."""
    written: list[str] = []
    for message in messages:
        if message.role is Role.USER:
            parts = [_content(block, index, settings) for index, block in enumerate(message.blocks)]
            written.append(f'{{"role":"user","content":{strings(filter(None, parts))}}}')
        else:
            written += filter(None, (_item(block, settings) for block in message.blocks))
    return written


def _content(block: Block, index: int, settings: Settings, *, inside: bool = False) -> str:
    """A part of a user's message, or of a result's list."""
    if isinstance(block, Text):
        return f'{{"type":"input_text","text":{quote(block.text)}}}'
    if not isinstance(block, Media):
        return ""
    if kind(block.mime) == PDF:
        if block.url:
            return f'{{"type":"input_file","file_url":{quote(block.url)}}}'
        name = quote(block.name or ("data" if inside else f"part-{index}.pdf"))
        return f'{{"type":"input_file","filename":{name},"file_data":{data_url(block)}}}'
    detail = ',"detail":"auto"' if settings.vendor_spelling else ""
    return f'{{"type":"input_image","image_url":{data_url(block)}{detail}}}'


def _item(block: Block, settings: Settings) -> str:
    if isinstance(block, Text):
        text = quote(block.text)
        if settings.vendor_spelling:
            return f'{{"role":"assistant","content":{text}}}'
        return f'{{"role":"assistant","content":[{{"type":"output_text","text":{text}}}]}}'
    if isinstance(block, Call):
        return (
            f'{{"type":"function_call","call_id":{quote(block.id)},"name":{quote(block.name)},'
            f'"arguments":{quote(block.input_json)}}}'
        )
    if isinstance(block, Result):
        output = quote(block.text)
        if block.media:
            parts: list[Block] = [Text(block.text)] if block.text or not settings.vendor_spelling else []
            parts += block.media
            output = strings(_content(part, index, settings, inside=True) for index, part in enumerate(parts))
        return f'{{"type":"function_call_output","call_id":{quote(block.call_id)},"output":{output}}}'
    if isinstance(block, Reasoning) and block.signature:
        name = f'"id":{quote(block.id)},' if block.id and settings.vendor_spelling else ""
        summary = f'{{"type":"summary_text","text":{quote(block.text)}}}' if block.text else ""
        return f'{{"type":"reasoning",{name}"encrypted_content":{quote(block.signature)},"summary":[{summary}]}}'
    return ""


def body(written: list[str], context: v1.PromptContext, settings: Settings, log: Log) -> str:
    """``{model, input, tools, …parameters}``; each system text is a developer's message before all others."""
    system = [f'{{"role":"developer","content":{quote(text)}}}' for text in context.system]
    pairs = [("model", quote(settings.model_id)), ("input", strings(system + written))]
    if context.tools:
        pairs.append(("tools", strings(_tool(tool) for tool in context.tools)))
    return put(pairs + parameters(context.parameters_json, _RENAMED, _RESERVED, log))


def _tool(tool: v1.ToolDefinition) -> str:
    pairs = [("type", '"function"'), ("name", quote(tool.name))]
    if tool.HasField("description"):
        pairs.append(("description", quote(tool.description)))
    return put([*pairs, ("parameters", schema(tool.input_schema_json)), ("strict", "false")])
