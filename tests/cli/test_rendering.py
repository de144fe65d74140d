"""``turnwire render``: the exact body, what was changed, and what is recorded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import FIRST_TURN, SESSION, command, environment, process, run
from tests.rendering import checker
from turnwire import v1
from turnwire.rendering import Dialect, Rule


def rendered(where: list[str], *args: str | Path) -> Any:
    ran = run(*where, "render", SESSION, *args, "--json")
    assert (ran.code, ran.err) == (0, "")
    (found,) = ran.lines
    return found


@pytest.mark.parametrize("dialect", Dialect)
def test_stdout_has_the_exact_body(where: list[str], dialect: Dialect) -> None:
    ran = run(*where, "render", SESSION, "--as", dialect.value)
    assert ran.code == 0
    assert not ran.out.endswith("\n")
    assert checker.faults(ran.out, dialect) == []
    found = rendered(where, "--as", dialect.value)
    assert hashlib.sha256(ran.raw).hexdigest() == found["sha256"]
    assert json.loads(ran.out) == found["body"]
    assert (found["dialect"], found["profile"], found["rendererVersion"]) == (dialect.value, "default", 1)
    assert found["model"] == {"providerId": "fake", "modelId": "fake-model"}
    assert "revision" not in found


def test_the_body_goes_to_a_file_as_it_is(db: Path, tmp_path: Path) -> None:
    ran = process("--db", db, "render", SESSION, "--as", "openai-chat")
    (found,) = run("--db", db, "render", SESSION, "--as", "openai-chat", "--json").lines
    assert (ran.code, ran.err) == (0, "")
    assert hashlib.sha256(ran.raw).hexdigest() == found["sha256"]


def test_changes_are_counted_and_listed(where: list[str]) -> None:
    args = ["render", SESSION, "--as", "anthropic-messages"]
    counted = run(*where, *args)
    assert counted.err == (
        "turnwire: 3 differences to what is stored: unsigned_reasoning 2, closing_user 1 (--changes lists them)\n"
    )
    listed = run(*where, *args, "--changes")
    assert listed.out == counted.out
    lines = listed.err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("turnwire: unsigned_reasoning (message msg_")
    assert lines[0].endswith("): Reasoning that lacks what the provider wants back with it was left out.")
    assert rendered(where, "--as", "anthropic-messages")["changes"][2].keys() == {"rule", "messageId"}
    none = run(*where, "render", SESSION, "--as", "openai-chat", "--changes")
    assert none.err == "turnwire: nothing is sent otherwise than it is stored\n"


def test_every_rule_has_a_meaning() -> None:
    from turnwire.cli.rendering import _meaning

    assert [rule for rule in Rule if not _meaning(rule).endswith(".")] == []


def test_turn_revision_model_and_options(where: list[str]) -> None:
    first = rendered(where, "--as", "openai-chat", "--turn", FIRST_TURN, "--model", "acme/x/y")
    assert first["model"] == {"providerId": "acme", "modelId": "x/y"}
    assert first["body"]["model"] == "x/y"
    assert {change["rule"] for change in first["changes"]} == {"foreign_reasoning"}
    text = rendered(where, "--as", "openai-chat", "--model", "acme/x", "--foreign-reasoning", "text")
    assert {change["rule"] for change in text["changes"]} == {"reasoning_as_text"}
    cut = rendered(where, "--as", "openai-chat", "--output-bytes", "10")
    assert "output_cut" in {change["rule"] for change in cut["changes"]}
    own = rendered(where, "--as", "google-gemini", "--closing-text", "Go on, please.", "--no-images")
    assert own["body"]["contents"][-1]["parts"] == [{"text": "Go on, please."}]
    early = rendered(where, "--as", "openai-chat", "--turn", FIRST_TURN, "--revision", "4")
    assert len(early["body"]["messages"]) < len(first["body"]["messages"])
    marked = rendered(where, "--as", "anthropic-messages", "--profile", "opencode")
    assert json.dumps(marked["body"]).count("ephemeral") == 2


def test_recording(where: list[str], copy: str) -> None:
    args = [*where, "render", copy, "--as", "openai-chat", "--record"]
    ran = run(*args, "--json")
    found = ran.lines[0]
    prompt_id = found["promptId"]
    assert found["revision"] == 18
    assert (run(*args, "--prompt", prompt_id, "--json")).lines[0] == found
    told = run(*args, "--prompt", prompt_id)
    assert told.err == f"turnwire: recorded for the prompt {prompt_id} at revision 18\n"
    entries = run(*where, "tail", copy, "--no-follow", "--json", "--after", "17").messages(v1.Entry)
    assert [entry.rendering.body_sha256.hex() for entry in entries] == [found["sha256"]]
    line = run(*where, "tail", copy, "--no-follow", "--after", "17").out
    assert f"rendering     {prompt_id}  as openai-chat for fake/fake-model, SHA-256 {found['sha256'][:16]}" in line
    shown = run(*where, "prompt", copy, "--get", prompt_id)
    assert f"rendered as openai-chat for fake/fake-model, SHA-256 {found['sha256'][:16]}, profile default" in shown.out
    (end,) = [each for each in run(*where, "prompt", copy, "--get", prompt_id, "--json").lines if "record" in each]
    assert len(end["renderings"]) == 1


def test_a_context_from_a_file(where: list[str], copy: str, tmp_path: Path) -> None:
    file = tmp_path / "context.json"
    file.write_text('{"system": ["Be brief."], "parametersJson": "{\\"temperature\\": 1.0}"}')
    args = [*where, "render", copy, "--as", "openai-chat", "--context"]
    ran = run(*args, file)
    assert json.loads(ran.out)["messages"][0] == {"role": "system", "content": "Be brief."}
    assert ran.out.endswith(',"temperature":1.0}')
    assert run(*args, "-", input=file.read_text()).out == ran.out
    recorded = run(*args, file, "--record", "--json").lines[0]
    again = run(*where, "render", copy, "--as", "openai-chat", "--prompt", recorded["promptId"])
    assert again.out == ran.out
    file.write_text("{")
    broken = run(*args, file)
    assert (broken.code, broken.out) == (2, "")
    assert "is not a turnwire.v1.PromptContext" in broken.err


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["--as", "morse"], 2, "Invalid value for '--as'"),
        ([], 2, "Missing option '--as'"),
        (["--as", "openai-chat", "--model", "x"], 2, '--model: a model is "provider/model"'),
        (["--as", "openai-chat", "--prompt", "p", "--turn", "t"], 2, "a prompt record has its own turn"),
        (["--as", "openai-chat", "--prompt", "prm_none"], 3, "PROMPT_NOT_FOUND: prompt_id: "),
        (["--as", "openai-chat", "--turn", "trn_none"], 3, "TURN_NOT_FOUND: turn_id: "),
        (["--as", "openai-chat", "--profile", "odd"], 2, "UNKNOWN_PROFILE: "),
        (["--as", "openai-chat", "--cache-marks", "9"], 2, "RULE_VIOLATION: options.cache_marks: "),
        (["--as", "openai-chat", "--context", "none.json"], 2, "--context: cannot read none.json"),
        (["--as", "openai-chat", "--turn", FIRST_TURN, "--revision", "2"], 4, "EMPTY_PROMPT: "),
    ],
)
def test_failures(where: list[str], args: list[str], code: int, told: str) -> None:
    ran = run(*where, "render", SESSION, *args)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"turnwire: error: {told}")


def test_a_terminal_gets_nothing_that_drives_it(tmp_path: Path) -> None:
    """On a terminal the body is escaped where it must be, and ends with a line break."""
    import os
    import pty
    import subprocess

    import turnwire

    db = tmp_path / "t.db"
    with turnwire.blocking.open(db) as tw:
        session = tw.open_session("ses_1")
        turn = session.start_turn("build", model="acme/m")
        turn.add_user("a\u202eb\x9b31m")
    main, side = pty.openpty()
    try:
        args = command("--db", db, "render", "ses_1", "--as", "openai-chat")
        done = subprocess.run(args, stdout=side, stderr=subprocess.PIPE, env=environment(), check=False, timeout=30)
        shown = os.read(main, 10_000).decode()
    finally:
        os.close(main)
        os.close(side)
    assert done.returncode == 0
    assert shown == '{"model":"m","messages":[{"role":"user","content":"a\\u202eb\\u009b31m"}]}\r\n'


def test_a_revision_beyond_the_head_is_named_as_it_was_given(db: Path) -> None:
    ran = run("--db", db, "render", SESSION, "--as", "openai-chat", "--revision", "999")
    assert ran.code != 0
    assert "from_revision" not in ran.err
    assert "revision" in ran.err
