"""For every rule of the session layer, logs that break exactly it; each begins behind properties and turn ``t``."""

from __future__ import annotations

from collections.abc import Callable

from tests.builders import (
    COMPLETED,
    ERROR,
    PENDING,
    RUNNING,
    THEN,
    assistant,
    clear,
    compaction,
    delta,
    properties,
    put,
    reasoning,
    remove,
    remove_part,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from tests.validation.logs import chained, found_in, head, opening, raw
from turnwire import v1

MODEL = v1.ModelRef(provider_id="acme", model_id="m-1")
DIGEST = bytes(32)

Entries = list[v1.EntryInput]


def record(id: str = "p", *, base: int = 2, base_prompt: str = "", context: bytes = b"") -> v1.EntryInput:
    made = v1.PromptRecord(id=id, turn_id="t", base_revision=base, assembly_version=1, profile="default", digest=DIGEST)
    made.created.FromSeconds(THEN)
    if base_prompt:
        made.base_prompt_id = base_prompt
    if context:
        made.context_digest = context
    return v1.EntryInput(prompt=made)


def rendering(prompt: str = "p") -> v1.EntryInput:
    made = v1.PromptRendering(
        prompt_id=prompt, dialect=v1.Dialect.DIALECT_OPENAI_CHAT, model=MODEL, profile="default", renderer_version=1
    )
    made.body_sha256 = DIGEST
    return v1.EntryInput(rendering=made)


def context() -> v1.EntryInput:
    return v1.EntryInput(context=v1.PromptContext(system=["Be brief."]))


def usage(input: int, cost: float = 0.5) -> v1.Usage:
    return v1.Usage(cost=cost, tokens=v1.Tokens(input=input, output=1))


def spending(whole: v1.Usage, *steps: v1.Usage) -> v1.EntryInput:
    made = assistant(
        "a",
        *(
            v1.PromptPart(id=f"s{at}", step_finish=v1.StepFinishPart(reason="stop", usage=each))
            for at, each in enumerate(steps)
        ),
        completed=True,
    )
    made.assistant.assistant.usage.CopyFrom(whole)
    return made


def timed(part: v1.PromptPart, start: int, end: int) -> v1.PromptPart:
    time = getattr(part, part.WhichOneof("kind") or "").time
    time.start.FromSeconds(THEN + start)
    time.end.FromSeconds(THEN + end)
    return part


def changed(entry: v1.EntryInput, apply: Callable[[v1.Assistant], object]) -> v1.EntryInput:
    apply(entry.assistant.assistant)
    return entry


def done(id: str = "p", call_id: str = "c1") -> v1.PromptPart:
    return tool(id, call_id, state=COMPLETED, output="ok")


def summary_of(parent: str) -> v1.EntryInput:
    made = assistant("b", text("q", "short"), parent=parent, completed=True, finish="stop")
    made.assistant.assistant.result.kind = v1.ResultKind.RESULT_KIND_SUMMARY
    return made


def forked() -> v1.EntryInput:
    made = properties()
    made.forked_from.CopyFrom(v1.ForkOrigin(session_id="other", revision=1, digest=DIGEST))
    return v1.EntryInput(session=made)


def anchored(base: Entries, before: str) -> Entries:
    """A prompt record whose mutation names a message."""
    made = record()
    message = v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[v1.PromptPart(text=v1.TextPart(text="x"))])
    made.prompt.mutations.add(insert_before=v1.InsertBefore(message_id=before, message=message))
    return [*base, made]


#: Entries behind `opening`, by the rule that they break.
LOGS: dict[str, list[Entries]] = {
    "session.forked_from": [[forked()]],
    "session.ref.turn": [[user("u", turn="none")], [assistant("a", turn="none")]],
    "session.ref.message": [
        [user("u", before="none")],
        [assistant("a", parent="none")],
        [user("u", compaction("p", "none"))],
        [summary("none")],
        [remove("none")],
        [revert("none")],
        anchored([user("u")], "none"),
    ],
    "session.ref.part": [
        [user("u"), put("u", text("p", "x"), before="none")],
        [user("u", text("p")), user("w", text("q")), put("u", text("r", "x"), before="q")],
        [delta("none", 0, "x")],
        [remove_part("none")],
        [user("u"), revert("u", "none")],
        [user("u", text("p")), user("w"), revert("w", "p")],
    ],
    "session.ref.prompt": [[record("p", base_prompt="none")], [rendering("none")]],
    "session.ref.context": [[record(context=DIGEST)]],
    "session.ref.revision": [[record(base=3)]],
    "session.ref.gone": [
        [user("u"), remove("u"), put("u", text("p", "x"))],
        [user("u"), remove("u"), summary("u")],
        [user("u"), remove("u"), remove("u")],
        [user("u"), remove("u"), user("w", before="u")],
        [user("u", text("p")), remove_part("p"), delta("p", 0, "x")],
        [user("u", text("p")), remove_part("p"), put("u", text("q"), before="p")],
        [user("u", text("p")), remove("u"), delta("p", 0, "x")],
        [user("u", text("p")), remove("u"), remove_part("p")],
        [user("u"), revert("u"), user("w"), put("u", text("p", "x"))],
        [user("u", text("p"), text("q")), revert("u", "q"), user("w"), delta("q", 0, "x")],
    ],
    "session.ref.self": [
        [user("u", before="u")],
        [assistant("a", parent="a")],
        [user("u"), put("u", text("p"), before="p")],
    ],
    "session.orphan_part": [[put("none", text("p", "x"))]],
    "session.written_once": [
        [turn()],
        [record(), record()],
        [context(), context()],
        [record(), rendering(), rendering()],
    ],
    "session.role": [[user("x"), assistant("x")]],
    "session.turn_changed": [[turn("t2"), user("u"), user("u", turn="t2")]],
    "session.parent_role": [[assistant("a"), assistant("b", parent="a")]],
    "session.parent_turn": [[turn("t2"), user("u"), assistant("a", parent="u", turn="t2")]],
    "session.place": [
        [user("u"), user("w"), user("w", before="u")],
        [user("u", text("p"), text("q")), put("u", text("q"), before="p")],
    ],
    "session.part_twice": [[user("u", text("p", "x"), text("p", "y"))]],
    "session.part_moved": [
        [user("u", text("p")), user("w", text("p"))],
        [user("u", text("p")), user("w"), put("w", text("p"))],
    ],
    "session.part_removed": [
        [user("u", text("p")), remove_part("p"), put("u", text("p"))],
        [user("u", text("p"), text("q")), revert("u", "q"), user("w"), put("u", text("q"))],
    ],
    "session.part_kind": [[assistant("a", text("p")), put("a", reasoning("p"))]],
    "session.call_id": [[assistant("a", tool("p", "c1")), put("a", tool("q", "c1"))]],
    "session.delta.target": [
        [user("u", text("p")), delta("p", 0, output="x")],
        [assistant("a", tool("p")), delta("p", 0, "x")],
        [user("u", compaction("p")), delta("p", 0, "x")],
    ],
    "session.delta.sealed": [
        [user("u", text("p", ended=True)), delta("p", 0, "x")],
        [assistant("a", done()), delta("p", 2, output="x")],
        [assistant("a", text("p"), completed=True), delta("p", 0, "x")],
    ],
    "session.delta.offset": [
        [user("u", text("p", "häh")), delta("p", 3, "x")],
        [user("u", text("p")), delta("p", 0, "xy"), delta("p", 0, "xy")],
        [assistant("a", tool("p")), delta("p", 0, raw_input="{"), delta("p", 1, output="x")],
    ],
    "session.tool.left": [
        [assistant("a", done()), put("a", tool("p", state=RUNNING))],
        [assistant("a", tool("p", state=ERROR)), put("a", done())],
        [assistant("a", done()), put("a", tool("p", state=ERROR))],
    ],
    "session.tool.back": [[assistant("a", tool("p")), put("a", tool("p", state=PENDING))]],
    "session.tool.content": [
        [assistant("a", tool("p", state=COMPLETED))],
        [assistant("a", tool("p", state=PENDING, output="x"))],
        [assistant("a", v1.PromptPart(id="p", tool=v1.ToolPart(call_id="c", name="n", state=RUNNING, error="no")))],
        [assistant("a", timed(tool("p"), 0, 1))],
    ],
    "session.tool.open": [[assistant("a", tool("p"), completed=True)]],
    "session.times": [
        [assistant("a", timed(text("p"), 1, 0))],
        [assistant("a", timed(reasoning("p"), 1, 0))],
        [assistant("a", timed(done(), 1, 0))],
        [changed(assistant("a", completed=True), lambda a: a.time.completed.FromSeconds(THEN - 1))],
    ],
    "session.revert.open": [[user("u"), revert("u"), revert("u")]],
    "session.revert.none": [[clear()], [user("u"), revert("u"), user("w"), clear()]],
    "session.compaction.tail": [
        [user("u", compaction("p", "u"))],
        [user("u"), user("w", compaction("p", "u"), before="u")],
        [user("u"), remove("u"), user("w", compaction("p", "u"))],
    ],
    "session.compaction.summary": [[user("u"), summary_of("u")]],
    "session.usage.sum": [
        [spending(usage(3), usage(1), usage(1))],
        [spending(usage(2), usage(1))],
        [spending(usage(1, 0.7), usage(1, 0.5))],
    ],
    "session.usage.last_step": [[spending(usage(4, 1.0), usage(3), usage(4))]],
}


def _envelope() -> dict[str, list[Callable[[], list[v1.Finding]]]]:
    whole = raw(*opening(), user("u"), user("w"))
    wrong_head = head(whole)
    wrong_head.digest = DIGEST
    later = head(whole)
    later.recorded.seconds += 1
    back = chained([*whole[:3], whole[3]._replace(recorded_us=whole[0].recorded_us)])
    return {
        "session.revision": [
            lambda: found_in([*whole[:2], *whole[3:]]),
            lambda: found_in([*whole[:3], whole[2], *whole[3:]]),
        ],
        "session.digest": [
            lambda: found_in([*whole[:2], whole[2]._replace(payload=raw(*opening(), user("v"))[2].payload), whole[3]]),
            lambda: found_in([*whole[:3], whole[3]._replace(digest=DIGEST)]),
        ],
        "session.head": [lambda: found_in(whole, end=wrong_head), lambda: found_in(whole, end=later)],
        "session.recorded": [lambda: found_in(back, end=head([back[3]._replace(recorded_us=whole[2].recorded_us)]))],
        "session.first": [lambda: found_in(raw(turn(), user("u")))],
    }


#: What is found where an entry's envelope, or the head, breaks a rule.
ENVELOPES = _envelope()
