"""Histories, prompts and entries for people: everything that is there is shown, and nothing of it drives a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies
from turnwire import v1
from turnwire.cli import render, tables
from turnwire.cli.output import Line
from turnwire.cli.parts import Detail, failure, part_lines, usage

FULL = Detail(full=True, ids=True)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def shown(lines: Iterable[Line]) -> str:
    return "\n".join(" " * line.indent + line.text.plain for line in lines)


def of_part(detail: Detail = FULL, **kind: object) -> str:
    return shown(part_lines(v1.PromptPart(id="p1", **kind), detail))  # type: ignore[arg-type]  # one kind each


def safe(text: str) -> bool:
    return {char for char in text if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}


EVIL = "\x1b]0;owned\x07\x9b2J"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ({"text": v1.TextPart(text="a\nb", synthetic=True)}, "  text synthetic  p1\n    a\n    b"),
        ({"text": v1.TextPart(text="", ignored=True)}, "  text ignored  p1\n    (empty)"),
        ({"reasoning": v1.ReasoningPart(text="hm", provider={"signed": True})}, "  reasoning signed  p1\n    hm"),
        (
            {"file": v1.FilePart(mime="image/png", filename="a.png", url="data:image/png;base64,AAAA")},
            "  file  image/png  a.png  data, 26 bytes as a URL  p1",
        ),
        ({"file": v1.FilePart(url="file:///x")}, "  file  no media type  file:///x  p1"),
        (
            {"tool": v1.ToolPart(call_id="c1", name="ls", state=3, input_json="{}", output="x\n", title="List")},
            "  tool ls completed  List  c1  p1\n    in  {}\n    out x",
        ),
        (
            {"tool": v1.ToolPart(call_id="c1", name="ls", state=4, raw_input='{"a', error="gone")},
            '  tool ls error  c1  p1\n    in… {"a\n    err gone',
        ),
        ({"tool": v1.ToolPart(call_id="c1", name="ls", state=9)}, "  tool ls state 9  c1  p1"),  # type: ignore[arg-type]
        (
            {"subtask": v1.SubtaskPart(agent="explore", description="Look", prompt="Find it")},
            "  subtask  for explore: Look  p1\n    Find it",
        ),
        ({"agent": v1.AgentPart(name="explore")}, "  agent  @explore  p1"),
        ({"step_start": v1.StepStartPart()}, "  step start  p1"),
        (
            {"step_finish": v1.StepFinishPart(reason="stop", usage={"cost": 0.5, "tokens": {"input": 1200}})},
            "  step finish  stop  $0.5  in 1,200  p1",
        ),
        ({"snapshot": v1.SnapshotPart(snapshot="abc")}, "  snapshot  abc  p1"),
        ({"patch": v1.PatchPart(hash="abc", files=["x", "y"])}, "  patch  abc  2 files  p1\n    x\n    y"),
        (
            {"retry": v1.RetryPart(attempt=2, failure={"api": {"message": "busy", "status_code": 503}})},
            "  retry  attempt 2  p1\n    api 503: busy",
        ),
        (
            {"compaction": v1.CompactionPart(auto=True, tail_start_id="m5")},
            "  compaction  automatic  tail from m5  p1",
        ),
        (
            {"extension": v1.ExtensionPart(type="x/widget", data_json='{"a":1}')},
            '  extension  x/widget  p1\n    {"a":1}',
        ),
    ],
)
def test_every_kind_of_part(kind: dict[str, object], told: str) -> None:
    assert of_part(**kind) == told


def test_every_kind_is_covered() -> None:
    mark = next(mark for mark in test_every_kind_of_part.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    covered = {next(iter(kind)) for kind, _ in mark.args[1]}
    assert covered == {field.name for field in v1.PromptPart.DESCRIPTOR.oneofs_by_name["kind"].fields}


def test_a_part_of_a_later_schema_is_named() -> None:
    part = v1.PromptPart.FromString(b"\x0a\x02p1\xa2\x06\x01x")  # field 100
    assert shown(part_lines(part, FULL)) == "  a part of a kind that this version does not know (field 100)  p1"


def test_long_contents_are_shortened_and_said_to_be() -> None:
    output = "\n".join(f"line {number}" for number in range(40)) + "\n" + "x" * 1000
    tool = v1.ToolPart(call_id="c", name="t", state=v1.ToolState.TOOL_STATE_COMPLETED, output=output)
    short = of_part(Detail(), tool=tool)
    assert "out line 11\n" in short
    assert short.endswith("out … 29 more lines (--full shows all)")
    assert of_part(FULL, tool=tool).endswith("x" * 1000)
    wide = of_part(Detail(), reasoning=v1.ReasoningPart(text="y" * 301))
    assert wide.endswith("y" * 300 + "… 1 more characters")


def test_a_persons_text_is_never_shortened() -> None:
    text = "\n".join("z" * 500 for _ in range(50))
    assert of_part(Detail(), text=v1.TextPart(text=text)) == "\n".join("  " + line for line in text.split("\n"))


def test_a_part_that_a_mutation_added_is_marked() -> None:
    item = v1.PromptItem(message_id="m1", message={"role": 1})
    item.message.parts.add(id="p1").text.text = "old"
    item.message.parts.add().text.text = "new"
    assert shown(render.item_lines(3, item, Detail(ids=True))) == (
        "\n  3 user        stored m1\n    text  p1\n      old\n    text  added by a mutation\n      new"
    )


def test_failures_and_usage() -> None:
    assert failure(v1.Failure(aborted={"message": "stopped"})) == "aborted: stopped"
    assert failure(v1.Failure(unknown={"name": "E", "message": ""})) == "unknown E"
    assert failure(v1.Failure(output_length={})) == "output length"
    assert failure(v1.Failure()) == "failed"
    tokens = v1.Tokens(input=1, output=2, reasoning=3, cache={"read": 4, "write": 5})
    assert usage(v1.Usage(cost=0.25, tokens=tokens)) == "$0.25  in 1  out 2  reasoning 3  cache read 4  cache write 5"
    assert usage(v1.Usage()) == ""


def test_stored_escape_sequences_are_visible() -> None:
    told = of_part(text=v1.TextPart(text=EVIL))
    assert told.endswith("␛]0;owned␇\\u{9b}2J")
    frame = v1.HistoryFrame(turn=v1.Turn(id="t", request={"agent": EVIL, "model": {"provider_id": EVIL}}))
    assert safe(shown(render.frame_lines(frame, FULL)))


@QUICK
@given(st.data(), st.sampled_from(["turn", "user", "assistant", "parts", "summary", "head"]), st.booleans())
def test_any_history_can_be_shown(data: st.DataObject, kind: str, full: bool) -> None:
    field = v1.HistoryFrame.DESCRIPTOR.fields_by_name[kind]
    assert field.message_type is not None
    message = data.draw(strategies.messages(getattr(v1, field.message_type.name), stored=True))
    frame = v1.HistoryFrame(**{kind: message})
    assert safe(shown(render.frame_lines(frame, Detail(full=full, ids=full))))


@QUICK
@given(
    strategies.messages(v1.Entry, stored=True), strategies.messages(v1.PromptItem), strategies.messages(v1.PromptEnd)
)
def test_any_entry_and_prompt_can_be_shown(entry: v1.Entry, item: v1.PromptItem, end: v1.PromptEnd) -> None:
    line = render.entry_line(entry).plain
    assert safe(line)
    assert "\n" not in line
    assert safe(shown(render.item_lines(1, item, FULL)))
    assert safe(shown(render.prompt_lines(end, dry_run=False, recomputed=True)))


@QUICK
@given(strategies.messages(v1.Session), strategies.messages(v1.GetServerInfoResponse))
def test_any_session_and_server_can_be_shown(session: v1.Session, info: v1.GetServerInfoResponse) -> None:
    assert safe(shown(tables.session_lines(session)))
    assert safe(shown(tables.server(info)))
    assert tables.sessions([session]).row_count == 1


def test_findings() -> None:
    response = v1.VerifySessionResponse(sound=False, entries=2, head={"digest": bytes(32)})
    response.findings.add(revision=2, text="the entry is missing")
    response.findings.add(text="all wrong")
    assert shown(tables.verified("s1", response)) == (
        "NOT SOUND  s1  2 entries, digest 0000000000000000\n"
        "  revision 2: the entry is missing\n  the session: all wrong"
    )
