"""Every command, on a file and through a server: exit code, the answer for people, and the answer as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.message import Message

from tests.cli.support import EXPORT, FIRST_TURN, LAST_TURN, LAST_USER, SESSION, run
from turnwire import v1
from turnwire.log import wire


def name(value: object) -> str:
    """The name of a case: its command."""
    return " ".join(map(str, value)) if isinstance(value, list) else ""


# A command, and what stands in its answer for people.
ANSWERS: list[tuple[list[str], str]] = [
    (["sessions"], SESSION),
    (["sessions", "--directory", "/tmp/demo", "--since", "2h", "--active"], SESSION),
    (["show", SESSION], '"First turn. [[reasontool]]"'),
    (["show", SESSION, "--message", LAST_USER, "--ids"], "prt_22bfd4b34001svOq3CNfm6IpxA"),
    (["replay", SESSION, "--revision", "3"], "revision 3  digest"),
    (["replay", SESSION, "--last-turns", "1"], "Third turn"),
    (["tail", SESSION, "--no-follow"], "    16  "),
    (["prompt", SESSION], f"9 items for turn {LAST_TURN}, from the history at revision 16"),
    (["prompt", SESSION, "--turn", FIRST_TURN, "--revision", "16"], f"3 items for turn {FIRST_TURN}"),
    (["prompt", SESSION, "--append", "user:go on"], "a dry run: nothing was recorded"),
    (["verify", SESSION], f"sound  {SESSION}  16 entries"),
    (["info"], "speaks    turnwire.v1"),
    (["schema"], "turnwire.v1.PromptPart"),
    (["schema", "Turn"], '"title": "turnwire.v1.Turn"'),
]

# A command that fails, its exit code, and how its one line on stderr begins.
FAILURES: list[tuple[list[str], int, str]] = [
    (["show", "ses_none"], 3, "SESSION_NOT_FOUND: there is no such session (session_id ses_none). Check the id; "),
    (["show", SESSION, "--message", "msg_none"], 3, "MESSAGE_NOT_FOUND: message_id: "),
    (["show", "not an id"], 2, "RULE_VIOLATION: session_id: "),
    (["replay", SESSION, "--revision", "99"], 2, "REVISION_OUT_OF_RANGE: revision: the head is 16. Use a revision"),
    (["replay", SESSION, "--revision", "0"], 2, "Invalid value for '--revision'"),
    (["replay", SESSION, "--from", "msg_none"], 3, "MESSAGE_NOT_FOUND: range.from_id: "),
    (["replay", SESSION, "--last-turns", "1", "--to", LAST_USER], 2, "--last-turns and --from/--to exclude"),
    (["replay", SESSION, "--json", "--binary"], 2, "--binary and --json exclude"),
    (["tail", SESSION, "--after", "99"], 2, "REVISION_OUT_OF_RANGE: after_revision: "),
    (["prompt", SESSION, "--turn", "trn_none"], 3, "TURN_NOT_FOUND: turn_id: "),
    (["prompt", SESSION, "--base", "prm_none"], 3, "PROMPT_NOT_FOUND: base_prompt_id: "),
    (["prompt", SESSION, "--get", "prm_none"], 3, "PROMPT_NOT_FOUND: prompt_id: "),
    (["prompt", SESSION, "--profile", "odd"], 2, "UNKNOWN_PROFILE: "),
    (["prompt", SESSION, "--remove", "msg_none"], 4, "ANCHOR_UNKNOWN: mutations[0].remove.message_id: "),
    (["prompt", SESSION, "--remove", "no id"], 2, "--remove: an id has 1 to 128 characters"),
    (["prompt", SESSION, "--append", "robot:x"], 2, "--append takes ROLE:TEXT"),
    (["prompt", SESSION, "--get", "prm_1", "--list"], 2, "--get, --list and computing a prompt exclude"),
    (["prompt", SESSION, "--record", "--dry-run"], 2, "--record and --dry-run exclude"),
    (["prompt", SESSION, "--base", "prm_1", "--revision", "3"], 2, "--base and --revision exclude"),
    (["fork", SESSION, "--id", SESSION], 4, "SESSION_ALREADY_EXISTS: "),
    (["fork", SESSION, "--title", " "], 2, "RULE_VIOLATION: title: "),
    (["delete", SESSION], 2, "delete asks before it deletes"),
    (["verify"], 2, "verify takes ids of sessions, or --all"),
    (["verify", "ses_none"], 3, "SESSION_NOT_FOUND: "),
    (["verify", SESSION, "no id"], 2, "an id has 1 to 128 characters"),
    (["sessions", "--colour", "red"], 2, "No such option: --colour"),
    (["sessions", "--label", "red"], 2, "--label takes KEY=VALUE"),
    (["sessions", "--since", "soon"], 2, "--since takes a time"),
    (["sessions", "--page-token", "!"], 2, "INVALID_PAGE_TOKEN: page_token: "),
    (["schema", "Nothing"], 2, "the schema has no message Nothing"),
    (["schema", "Turn", "--binary"], 2, "the descriptor set is always whole"),
    (["paint"], 2, "No such command 'paint'"),
    (["show"], 2, "Missing argument 'SESSION'"),
]


@pytest.mark.parametrize(
    ("args", "told"), ANSWERS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_people_get_an_answer(where: list[str], args: list[str], told: str) -> None:
    ran = run(*where, *args)
    assert (ran.code, ran.err) == (0, "")
    assert told in ran.out
    assert "\x1b" not in ran.out
    assert not any(line.endswith(" ") for line in ran.out.splitlines() if not line.lstrip().startswith("out "))


@pytest.mark.parametrize(("args", "code", "told"), FAILURES, ids=name)
def test_a_failure_is_one_line_and_an_exit_code(where: list[str], args: list[str], code: int, told: str) -> None:
    ran = run(*where, *args)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"turnwire: error: {told}")
    assert ran.err.count("\n") == 1


def test_options_of_every_command_stand_before_or_after_its_name(where: list[str]) -> None:
    before = run(*where, "--json", "show", SESSION)
    after = run("show", SESSION, *where, "--json")
    assert (before.code, before.err) == (0, "")
    assert before.out == after.out
    imported = run("import", *where, "opencode", "--json", EXPORT)
    assert (imported.code, imported.lines[0]["outcome"]) == (0, "unchanged")


MESSAGES: list[tuple[list[str], type[Message], int]] = [
    (["replay", SESSION, "--summaries"], v1.HistoryFrame, 3 + 9 + 3 + 1),
    (["replay", SESSION, "--last-turns", "1"], v1.HistoryFrame, 1 + 2 + 1),
    (["show", SESSION, "--message", LAST_USER], v1.HistoryFrame, 3),
    (["tail", SESSION, "--no-follow", "--after", "10"], v1.Entry, 6),
    (["sessions", "--limit", "1"], v1.Session, 1),
    (["info"], v1.GetServerInfoResponse, 1),
    (["prompt", SESSION, "--list"], v1.PromptRecord, 0),
]


@pytest.mark.parametrize(("args", "kind", "count"), MESSAGES, ids=name)
def test_scripts_get_one_message_a_line(where: list[str], args: list[str], kind: type[Message], count: int) -> None:
    ran = run(*where, "--json", *args)
    assert ran.code == 0
    assert len(ran.messages(kind)) == count


def test_show_gives_the_session_then_its_frames(where: list[str]) -> None:
    ran = run(*where, "show", SESSION, "--json")
    kinds = [next(iter(line)) for line in ran.lines]
    assert kinds == [
        "session",
        *("turn", "user", "assistant", "assistant"),
        *("turn", "user", "assistant", "assistant", "assistant"),
        *("turn", "user", "assistant"),
        "head",
    ]
    assert ran.lines[0]["session"]["id"] == SESSION


def test_binary_frames_are_those_of_json(where: list[str]) -> None:
    data = run(*where, "replay", SESSION, "--binary").raw
    frames: list[v1.HistoryFrame] = []
    while data:
        length = shift = at = 0
        while True:
            length |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                break
        assert data.startswith(wire.varint(length))
        frames.append(v1.HistoryFrame.FromString(data[at : at + length]))
        data = data[at + length :]
    assert frames == run(*where, "replay", SESSION, "--json").messages(v1.HistoryFrame)


def test_a_prompt_shows_origins_and_records_only_on_demand(where: list[str], copy: str) -> None:
    args = ["prompt", copy, "--append-to", "user:Briefly.", "--append", "user:Go on.", "--json"]
    dry = run(*where, *args)
    assert run(*where, "show", copy, "--json").lines[-1]["head"]["revision"] == "16"
    *items, end = dry.lines
    assert [line.get("messageId") for line in items][-2:] == ["msg_22bfd516e001xw1PpxbQXvS7v3", None]
    assert items[7]["messageId"] == LAST_USER
    assert [part.get("id") for part in items[7]["message"]["parts"]] == ["prt_22bfd4b34001svOq3CNfm6IpxA", None]
    assert items[7]["message"]["parts"][1] == {"text": {"text": "Briefly.", "synthetic": True}}
    assert items[-1]["mutation"] == {"index": 1}
    assert end["items"] == "10"
    assert "id" not in end["record"]

    recorded = run(*where, *args, "--record").lines[-1]
    assert recorded["record"]["digest"] == end["record"]["digest"]
    assert recorded["head"]["revision"] == "17"
    prompt_id = recorded["record"]["id"]
    again = run(*where, "prompt", copy, "--get", prompt_id)
    assert (again.code, f"recorded as {prompt_id}; computed again: the digest holds" in again.out) == (0, True)
    chained = run(*where, "prompt", copy, "--base", prompt_id, "--append", "assistant:Well.").out
    assert f"mutation 1 of {prompt_id}" in chained
    assert f"from the prompt {prompt_id}" in chained
    listed = run(*where, "prompt", copy, "--list", "--json").messages(v1.PromptRecord)
    assert [record.id for record in listed] == [prompt_id]
    assert "append to, append" in run(*where, "prompt", copy, "--list", "--turn", LAST_TURN).out
    assert run(*where, "prompt", copy, "--list", "--turn", FIRST_TURN).err == "turnwire: no prompt record\n"


def test_fork_and_delete(where: list[str]) -> None:
    ran = run(*where, "fork", SESSION, "--revision", "4", "--title", "A copy", "--json")
    (session,) = ran.messages(v1.Session)
    assert (session.properties.title, session.head.revision) == ("A copy", 4)
    assert (session.forked_from.session_id, session.forked_from.revision) == (SESSION, 4)
    shown = run(*where, "show", session.id).out
    assert f"forked from {SESSION} at revision 4" in shown
    deleted = run(*where, "delete", session.id, "--yes", "--json")
    assert (deleted.code, deleted.lines) == (0, [{"sessionIds": [session.id]}])
    for args in (["show", session.id], ["tail", session.id], ["delete", session.id, "--yes"]):
        ran = run(*where, *args)
        assert (ran.code, ran.err.split(":")[2]) == (3, " SESSION_DELETED")


def test_verify_goes_on_after_each(where: list[str]) -> None:
    ran = run(*where, "verify", "--all", "--json")
    assert ran.code == 0
    assert SESSION in [line["sessionId"] for line in ran.lines]
    assert all(line["sound"] for line in ran.lines)


def test_pages_of_sessions(where: list[str], copy: str) -> None:
    every = [line["id"] for line in run(*where, "sessions", "--limit", "0", "--json").lines]
    assert {copy, SESSION} <= set(every)
    first = run(*where, "sessions", "--limit", "1", "--json")
    token = first.err.removeprefix("turnwire: there are more: --page-token ").strip()
    rest = run(*where, "sessions", "--limit", "1000", "--json", "--page-token", token)
    assert [line["id"] for line in first.lines + rest.lines] == every
    assert rest.err == ""


def test_no_session_is_an_empty_answer(where: list[str]) -> None:
    for more, out in (([], ""), (["--json"], "")):
        ran = run(*where, "sessions", "--directory", "/nowhere", *more)
        assert (ran.code, ran.out) == (0, out)


def test_the_descriptor_set(tmp_path: Path) -> None:
    file = tmp_path / "schema.binpb"
    assert run("schema", "--output", file).code == 0
    assert run("schema", "--binary").raw == file.read_bytes()
    found = run("schema", "--json")
    assert found.code == 0
    names = [each["name"] for each in found.lines[0]["file"]]
    assert "turnwire/v1/part.proto" in names
    assert "[turnwire.v1.held_by]" in json.dumps(found.lines[0])


def test_version() -> None:
    assert run("--version").out == "turnwire 0.1.0\n"


def test_help_names_the_exit_codes() -> None:
    ran = run("--help", env={"COLUMNS": "200"})
    assert ran.code == 0
    for told in ("  0  done", "  3  there is no such session", "130  interrupted"):
        assert told in ran.out
