"""Whole bodies, as they are spelled for each dialect: texts, calls, media, system, tools and parameters."""

from __future__ import annotations

import json

import pytest

from tests.rendering.sessions import X, assistant, file, items, tool, user
from turnwire import v1
from turnwire.rendering import Dialect, Rule, render

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="

SESSION = items(
    user("Look.", file(PNG, name="a.png"), file(PDF, "application/pdf", "a.pdf")),
    assistant("I do.", tool("c1", "out", input_json='{ "n": 1.0 }')),
    assistant(tool("c2", state=v1.ToolState.TOOL_STATE_ERROR, error="bad")),
    user("Go on."),
)
CONTEXT = v1.PromptContext(
    system=["Be brief."],
    tools=[v1.ToolDefinition(name="sh", description="Runs.", input_schema_json='{"type": "object"}')],
    parameters_json='{"temperature": 0.50, "max_tokens": 9, "model": "mine"}',
)

BODIES = {
    Dialect.OPENAI_CHAT: (
        '{"model":"x","messages":[{"role":"system","content":"Be brief."},'
        '{"role":"user","content":[{"type":"text","text":"Look."},'
        '{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},'
        '{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]},'
        '{"role":"assistant","content":"I do.","tool_calls":[{"id":"c1","type":"function",'
        '"function":{"name":"sh","arguments":"{\\"n\\":1.0}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"out"},'
        '{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function",'
        '"function":{"name":"sh","arguments":"{}"}}]},'
        '{"role":"tool","tool_call_id":"c2","content":"bad"},'
        '{"role":"user","content":"Go on."}],'
        '"tools":[{"type":"function","function":{"name":"sh","description":"Runs.","parameters":{"type":"object"}}}],'
        '"temperature":0.50,"max_tokens":9}'
    ),
    Dialect.OPENAI_RESPONSES: (
        '{"model":"x","input":[{"role":"developer","content":"Be brief."},'
        '{"role":"user","content":[{"type":"input_text","text":"Look."},'
        '{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"},'
        '{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}]},'
        '{"role":"assistant","content":"I do."},'
        '{"type":"function_call","call_id":"c1","name":"sh","arguments":"{\\"n\\":1.0}"},'
        '{"type":"function_call_output","call_id":"c1","output":"out"},'
        '{"type":"function_call","call_id":"c2","name":"sh","arguments":"{}"},'
        '{"type":"function_call_output","call_id":"c2","output":"bad"},'
        '{"role":"user","content":[{"type":"input_text","text":"Go on."}]}],'
        '"tools":[{"type":"function","name":"sh","description":"Runs.","parameters":{"type":"object"},"strict":false}],'
        '"temperature":0.50,"max_output_tokens":9}'
    ),
    Dialect.ANTHROPIC_MESSAGES: (
        '{"model":"x","system":[{"type":"text","text":"Be brief."}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"Look."},'
        '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},'
        '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf"}]},'
        '{"role":"assistant","content":[{"type":"text","text":"I do."},'
        '{"type":"tool_use","id":"c1","name":"sh","input":{"n":1.0}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"out"}]},'
        '{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"sh","input":{}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"bad","is_error":true},'
        '{"type":"text","text":"Go on."}]}],'
        '"tools":[{"name":"sh","description":"Runs.","input_schema":{"type":"object"}}],'
        '"temperature":0.50,"max_tokens":9}'
    ),
    Dialect.GOOGLE_GEMINI: (
        '{"systemInstruction":{"parts":[{"text":"Be brief."}]},'
        '"contents":[{"role":"user","parts":[{"text":"Look."},'
        '{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},'
        '{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}}]},'
        '{"role":"model","parts":[{"text":"I do."},{"functionCall":{"name":"sh","args":{"n":1.0}}}]},'
        '{"role":"user","parts":[{"functionResponse":{"name":"sh","response":{"output":"out"}}}]},'
        '{"role":"model","parts":[{"functionCall":{"name":"sh","args":{}}}]},'
        '{"role":"user","parts":[{"functionResponse":{"name":"sh","response":{"error":"bad"}}},{"text":"Go on."}]}],'
        '"tools":[{"functionDeclarations":[{"name":"sh","description":"Runs.","parametersJsonSchema":{"type":"object"}}]}],'
        '"generationConfig":{"temperature":0.50,"maxOutputTokens":9}}'
    ),
}


@pytest.mark.parametrize("dialect", Dialect)
def test_the_body_is_spelled_like_this(dialect: Dialect) -> None:
    rendering = render(SESSION, dialect, X, context=CONTEXT)
    assert rendering.body == BODIES[dialect]
    json.loads(rendering.body)
    assert [change.rule for change in rendering.changes][-1] is Rule.PARAMETER


@pytest.mark.parametrize("dialect", Dialect)
def test_media_of_results_is_where_the_dialect_has_a_place_for_it(dialect: Dialect) -> None:
    part = tool("c1", "out")
    part.tool.attachments.add(file=v1.FilePart(mime="image/png", url=PNG))
    body = json.loads(render(items(user("a"), assistant(part)), dialect, X).body)
    picture = {"url": PNG}
    match dialect:
        case Dialect.OPENAI_CHAT:
            assert body["messages"][-1]["content"][1] == {"type": "image_url", "image_url": picture}
        case Dialect.OPENAI_RESPONSES:
            assert [one["type"] for one in body["input"][-1]["output"]] == ["input_text", "input_image"]
        case Dialect.ANTHROPIC_MESSAGES:
            assert [one["type"] for one in body["messages"][-1]["content"][0]["content"]] == ["text", "image"]
        case Dialect.GOOGLE_GEMINI:
            assert list(body["contents"][-1]["parts"][-1]) == ["inlineData"]


@pytest.mark.parametrize("dialect", Dialect)
def test_web_addresses_are_sent_as_addresses(dialect: Dialect) -> None:
    address = "https://example.org/a.png"
    assert f'"{address}"' in render(items(user(file(address))), dialect, X).body


def test_generation_config_of_gemini_takes_in_the_parameters() -> None:
    context = v1.PromptContext(parameters_json='{"generationConfig":{"topK":1,"seed":2},"seed":3,"labels":{}}')
    body = render(items(user("a")), Dialect.GOOGLE_GEMINI, X, context=context).body
    assert body.endswith('"labels":{},"generationConfig":{"topK":1,"seed":3}}')
