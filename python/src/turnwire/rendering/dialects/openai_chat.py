"""openai-chat: the chat completions API of OpenAI and of the many that are compatible with it."""

from __future__ import annotations

from turnwire import v1
from turnwire.rendering.dialects.common import base64_of, data_url, marked, parameters, schema
from turnwire.rendering.form import Block, Call, Log, Media, Message, Reasoning, Result, Role, Text
from turnwire.rendering.jsonwrite import put, quote, strings
from turnwire.rendering.mediatypes import AUDIO, PDF, kind
from turnwire.rendering.options import Settings

_RENAMED = {"max_output_tokens": "max_tokens"}
_RESERVED = frozenset({"model", "messages", "tools"})


def entries(messages: list[Message], settings: Settings) -> list[str]:
    """The messages: each result is one of its own."""
    written: list[str] = []
    for message in messages:
        if message.role is Role.USER:
            written.append(_user(message.blocks))
        elif message.role is Role.ASSISTANT:
            written.append(_assistant(message.blocks, settings))
        else:
            written += [_result(block) for block in message.blocks if isinstance(block, Result)]
    return written


def _user(blocks: list[Block]) -> str:
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        only = blocks[0]
        return f'{{"role":"user","content":{quote(only.text)}{marked(only.marked)}}}'
    parts = [_content(block) for block in blocks if isinstance(block, Text | Media)]
    return f'{{"role":"user","content":{strings(parts)}}}'


def _content(block: Text | Media) -> str:
    if isinstance(block, Text):
        return f'{{"type":"text","text":{quote(block.text)}{marked(block.marked)}}}'
    what = kind(block.mime)
    if what == PDF:
        name = quote(block.name or "document.pdf")
        inner = f'"type":"file","file":{{"filename":{name},"file_data":{data_url(block)}}}'
    elif what == AUDIO:
        form = "wav" if "wav" in block.mime.lower() else "mp3"
        inner = f'"type":"input_audio","input_audio":{{"data":"{base64_of(block)}","format":"{form}"}}'
    else:
        inner = f'"type":"image_url","image_url":{{"url":{data_url(block)}}}'
    return f"{{{inner}{marked(block.marked)}}}"


def _assistant(blocks: list[Block], settings: Settings) -> str:
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[str] = []
    for block in blocks:
        if isinstance(block, Text):
            texts.append(block.text)
        elif isinstance(block, Call):
            calls.append(
                f'{{"id":{quote(block.id)},"type":"function","function":{{"name":{quote(block.name)},'
                f'"arguments":{quote(block.input_json)}}}{marked(block.marked)}}}'
            )
        elif isinstance(block, Reasoning):
            reasoning.append(block.text)
    text = settings.text_separator.join(texts)
    content = quote(text) if text or settings.empty_content or not calls else "null"
    thought = "".join(reasoning)
    field = f",{quote(settings.reasoning_field)}:{quote(thought)}" if settings.reasoning_field else ""
    called = f',"tool_calls":{strings(calls)}' if calls else ""
    if settings.reasoning_field_always:
        return f'{{"role":"assistant","content":{content}{called}{field}}}'
    return f'{{"role":"assistant","content":{content}{field if thought else ""}{called}}}'


def _result(block: Result) -> str:
    return (
        f'{{"role":"tool","tool_call_id":{quote(block.call_id)},"content":{quote(block.text)}{marked(block.marked)}}}'
    )


def body(written: list[str], context: v1.PromptContext, settings: Settings, log: Log) -> str:
    """``{model, messages, tools, …parameters}``; each system text is a message before all others."""
    system = [f'{{"role":"system","content":{quote(text)}}}' for text in context.system]
    if system and settings.cache_marks:
        system[-1] = f"{system[-1][:-1]}{marked(True)}}}"
    pairs = [("model", quote(settings.model_id)), ("messages", strings(system + written))]
    if context.tools:
        pairs.append(("tools", strings(_tool(tool) for tool in context.tools)))
    return put(pairs + parameters(context.parameters_json, _RENAMED, _RESERVED, log))


def _tool(tool: v1.ToolDefinition) -> str:
    function = [("name", quote(tool.name))]
    if tool.HasField("description"):
        function.append(("description", quote(tool.description)))
    function.append(("parameters", schema(tool.input_schema_json)))
    return put([("type", '"function"'), ("function", put(function))])
