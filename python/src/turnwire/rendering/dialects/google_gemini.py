"""google-gemini: the generateContent request of Google's Gemini API. The model's name is in its address, not here."""

from __future__ import annotations

from turnwire import v1
from turnwire.rendering.dialects.common import base64_of, by_side, parameters, schema
from turnwire.rendering.form import Block, Call, Log, Media, Message, Reasoning, Result
from turnwire.rendering.jsonwrite import put, quote, strings
from turnwire.rendering.options import Settings

_RENAMED = {
    "max_tokens": "maxOutputTokens",
    "max_output_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "stop_sequences": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_RESERVED = frozenset({"model", "systemInstruction", "contents", "tools"})
_TOP = frozenset(
    {"toolConfig", "safetySettings", "generationConfig", "cachedContent", "labels", "serviceTier", "store"}
)


def entries(messages: list[Message], settings: Settings) -> list[str]:
    """The contents: results are the user's."""
    written: list[str] = []
    for assistant, group in by_side(messages, settings.merge):
        parts = [part for message in group for block in message.blocks for part in _parts(block, settings)]
        if parts:
            written.append(f'{{"role":"{"model" if assistant else "user"}","parts":{strings(parts)}}}')
    return written


def _parts(block: Block, settings: Settings) -> list[str]:
    if isinstance(block, Result):
        return _result(block, settings)
    if isinstance(block, Media):
        return [_media(block)]
    sign = f',"thoughtSignature":{quote(block.signature)}' if block.signature else ""
    if isinstance(block, Call):
        return [f'{{"functionCall":{{"name":{quote(block.name)},"args":{block.input_json}}}{sign}}}']
    thought = ',"thought":true' if isinstance(block, Reasoning) else ""
    return [f'{{"text":{quote(block.text)}{thought}{sign}}}'] if block.text or sign else []


def _media(block: Media) -> str:
    mime = quote(block.mime)
    if block.url:
        return f'{{"fileData":{{"mimeType":{mime},"fileUri":{quote(block.url)}}}}}'
    return f'{{"inlineData":{{"mimeType":{mime},"data":"{base64_of(block)}"}}}}'


def _result(block: Result, settings: Settings) -> list[str]:
    name, text = quote(block.name), quote(block.text)
    if settings.vendor_spelling:
        response = f'{{"{"error" if block.error else "output"}":{text}}}'
        media = f',"parts":{strings(_media(one) for one in block.media)}' if block.media else ""
        return [f'{{"functionResponse":{{"name":{name},"response":{response}{media}}}}}']
    parts = [f'{{"functionResponse":{{"name":{name},"response":{{"name":{name},"content":{text}}}}}}}']
    for one in block.media:
        parts += [_media(one), '{"text":"Tool executed successfully and returned this image as a response"}']
    return parts


def body(written: list[str], context: v1.PromptContext, settings: Settings, log: Log) -> str:
    """``{systemInstruction, contents, tools, …}``; parameters that are no top member go into generationConfig."""
    pairs: list[tuple[str, str]] = []
    if any(context.system):
        texts = strings(f'{{"text":{quote(text)}}}' for text in context.system if text)
        pairs.append(("systemInstruction", f'{{"parts":{texts}}}'))
    pairs.append(("contents", strings(written)))
    if context.tools:
        declared = strings(_tool(tool) for tool in context.tools)
        pairs.append(("tools", f'[{{"functionDeclarations":{declared}}}]'))
    given = parameters(context.parameters_json, _RENAMED, _RESERVED, log)
    config = [pair for pair in given if pair[0] not in _TOP]
    pairs += [pair for pair in given if pair[0] in _TOP and pair[0] != "generationConfig"]
    whole = dict(given).get("generationConfig", "")
    if whole.startswith("{"):
        config = list((dict(parameters(whole, {}, (), log)) | dict(config)).items())
    if config:
        pairs.append(("generationConfig", put(config)))
    return put(pairs)


def _tool(tool: v1.ToolDefinition) -> str:
    pairs = [("name", quote(tool.name))]
    if tool.HasField("description"):
        pairs.append(("description", quote(tool.description)))
    return put([*pairs, ("parametersJsonSchema", schema(tool.input_schema_json))])
