"""Rendering a long prompt against ``json.dumps`` of the result, in one process and turn by turn."""

from __future__ import annotations

import json

from bench import payloads
from bench.context import Bench
from bench.results import OURS, Ratio, Result, compared
from bench.rounds import interleave
from turnwire import v1
from turnwire.prompt import History, Message, Part, assemble, message, mutate, text_part
from turnwire.rendering import Dialect, render

_CALL = '{"command": "sed -n 1,40p README.md", "description": "Read the beginning of the file"}'
_MESSAGES = 1_000
_SPENT = v1.Tokens(input=1200, output=80)


async def renderings(bench: Bench) -> list[Result]:
    """Each dialect."""
    results = [await _rendering(bench, dialect, bench.scaled(_MESSAGES, 200)) for dialect in Dialect]
    slowest = max((each for result in results for each in result.ratios), key=lambda each: each.value)
    text = "1,000 messages assembled, mutated, rendered / json.dumps, cost, slowest dialect"
    results[-1].ratios.append(Ratio("render.slowest", text, slowest.value, "low", guarded=False))
    return results


async def _rendering(bench: Bench, dialect: Dialect, messages: int) -> Result:
    """Assemble, mutate and render ``messages`` stored messages of 2 KB in eight parts; the limit dumps the body.

    The history is given as the store gives it: each part as its own bytes, not parsed yet.
    """
    stored = [_user(at) if at % 4 == 0 else _assistant(at) for at in range(messages)]
    turn = v1.Turn(id=payloads.TURN, request=v1.TurnRequest(agent="build", model=payloads.MODEL))
    mutations = [
        v1.Mutation(prepend=v1.Prepend(message=message("user", text_part("Answer briefly.", synthetic=True)))),
        v1.Mutation(append_to=v1.AppendTo(role=v1.Role.ROLE_USER, parts=[text_part("Now.", synthetic=True)])),
        v1.Mutation(append=v1.Append(message=message("user", text_part("Go on.", synthetic=True)))),
    ]
    headers = [(header, [(part.id, part.SerializeToString()) for part in parts]) for header, parts in stored]

    def whole() -> str:
        history = History(
            [Message(header, [Part.stored(id, data) for id, data in parts]) for header, parts in headers],
            turns=[turn],
            revision=messages,
        )
        base = assemble(history, payloads.TURN)
        return render(mutate(base.items, mutations, base), dialect, payloads.MODEL).body

    body = json.loads(whole())

    async def ours(_: int) -> float:
        whole()
        return messages

    async def limit(_: int) -> float:
        json.dumps(body)
        return messages

    sides = await interleave({OURS: ours, "json.dumps": limit}, bench.rounds)
    key, title = f"render.{dialect.value}", f"{messages:,} messages assembled, mutated, rendered for {dialect.value}"
    result = compared(key, title, "messages", sides, limits={"json.dumps": ""})
    (rate,) = result.ratios
    result.ratios = [Ratio(f"{key}/json.dumps", f"{title} / json.dumps of the body, cost", 1 / rate.value, "low")]
    return result


def _user(at: int) -> tuple[v1.User, list[v1.PromptPart]]:
    return v1.User(id=f"msg_{at}", turn_id=payloads.TURN), [payloads.text(1_900)]


def _assistant(at: int) -> tuple[v1.Assistant, list[v1.PromptPart]]:
    """Two model calls: reasoning, a text and a tool with its output, then a text; steps around them."""
    header = v1.Assistant(id=f"msg_{at}", turn_id=payloads.TURN, run=v1.Run(agent="build", model=payloads.MODEL))
    header.time.completed.FromSeconds(1_700_000_000)
    thought = payloads.text(300)
    signed = v1.ProviderMetadata(metadata_json='{"anthropic":{"signature":"c2lnbmF0dXJl"}}', signed=True)
    reasoning = v1.PromptPart(id=thought.id, reasoning=v1.ReasoningPart(text=thought.text.text, provider=signed))
    tool = v1.ToolPart(call_id=f"call_{at}", name="shell", state=v1.ToolState.TOOL_STATE_COMPLETED, input_json=_CALL)
    tool.output = payloads.text(700).text.text
    start, finish = v1.StepStartPart(), v1.StepFinishPart(reason="stop", usage=v1.Usage(tokens=_SPENT))
    parts = [
        v1.PromptPart(step_start=start),
        reasoning,
        payloads.text(200),
        v1.PromptPart(tool=tool),
        v1.PromptPart(step_finish=finish),
        v1.PromptPart(step_start=start),
        payloads.text(300),
        v1.PromptPart(step_finish=finish),
    ]
    for of, part in enumerate(parts):
        part.id = part.id or f"prt_{at}_{of}"
    return header, parts
