"""Mutations as options: their order, their forms, and files of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import LAST_USER, SESSION, run
from turnwire import prompt, v1
from turnwire.cli.edits import Edit, mutations
from turnwire.cli.usage import Usage


def note(text: str) -> v1.PromptPart:
    return prompt.text_part(text, synthetic=True)


def test_the_order_is_that_of_the_command_line(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "edits.json"
    file.write_text(json.dumps([{"prepend": {"message": {"role": "ROLE_USER", "parts": [{"text": {"text": "f"}}]}}}]))
    ran = run(
        *("--db", db, "prompt", SESSION, "--json"),
        *("--append", "user:a", "--append-to", "user:b", "--append=assistant:c", "--mutations", file),
        *("--append", "user:d", "--turn", "trn_22bfd4b30001PqtvpeHmVb4cDL_bad638d9dd242423"),
    )
    assert ran.code == 0
    kinds = [next(iter(each)) for each in ran.lines[-1]["record"]["mutations"]]
    assert kinds == ["append", "appendTo", "append", "prepend", "append"]
    texts = [[part["text"]["text"] for part in line["message"]["parts"]] for line in ran.lines[-4:-1]]
    assert texts == [["a", "b"], ["c"], ["d"]]


def test_a_value_that_looks_like_an_edit_is_no_edit(db: Path) -> None:
    ran = run("--db", db, "prompt", SESSION, "--json", "--append", "--remove", "--append", "user:x")
    assert ran.err.startswith("turnwire: error: --append takes ROLE:TEXT")
    ran = run("--db", db, "prompt", SESSION, "--turn", "--append", "--append", "user:x")
    assert ran.err.startswith("turnwire: error: RULE_VIOLATION: turn_id") or "TURN_NOT_FOUND" in ran.err


def test_every_form() -> None:
    given = [
        Edit("--append", "user:a:b"),
        Edit("--prepend", "assistant:"),
        Edit("--append-to", "user:c"),
        Edit("--insert-after", "m:1:user:d"),
        Edit("--insert-before", "m:user:user:e"),
        Edit("--remove", "m:2"),
        Edit("--remove-part", "p:3"),
        Edit("--replace-part", "p4:f:g"),
    ]
    user = v1.Role.ROLE_USER
    assert mutations(given) == [
        v1.Mutation(append=v1.Append(message=prompt.user_message(note("a:b")))),
        v1.Mutation(prepend=v1.Prepend(message=prompt.assistant_message(note("")))),
        v1.Mutation(append_to=v1.AppendTo(role=user, parts=[note("c")])),
        v1.Mutation(insert_after=v1.InsertAfter(message_id="m:1", message=prompt.user_message(note("d")))),
        v1.Mutation(insert_before=v1.InsertBefore(message_id="m", message=prompt.user_message(note("user:e")))),
        v1.Mutation(remove=v1.Remove(message_id="m:2")),
        v1.Mutation(remove_part=v1.RemovePart(part_id="p:3")),
        v1.Mutation(replace_part=v1.ReplacePart(part_id="p4", part=note("f:g"))),
    ]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--append", "no colon"),
        ("--append", "system:x"),
        ("--append", "ROLE_USER:x"),
        ("--insert-after", "user:x"),
        ("--insert-after", "m1:x"),
        ("--insert-before", "a b:user:x"),
        ("--remove", ""),
        ("--remove-part", "p" * 129),
        ("--replace-part", "p1"),
    ],
)
def test_a_form_that_is_not_right_is_refused(option: str, value: str) -> None:
    with pytest.raises(Usage, match=option):
        mutations([Edit(option, value)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[", "is not JSON"),
        ('{"remove": {"messageId": NaN}}', "NaN is no JSON"),
        ("[" * 100_000, "is not JSON"),
        ('[{"remove": {"messageId": "m"}}, {"paint": {}}]', "number 1: not a turnwire.v1.Mutation"),
        ("[7]", "number 0: not a turnwire.v1.Mutation"),
        ("null", "number 0: not a turnwire.v1.Mutation"),
        ("\udce4", "is not JSON"),
    ],
)
def test_a_file_that_holds_no_mutations_is_refused(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "edits.json"
    file.write_text(content, errors="surrogateescape")
    with pytest.raises(Usage, match=told):
        mutations([Edit("--mutations", str(file))])


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(Usage, match="cannot read /nowhere: No such file"):
        mutations([Edit("--mutations", "/nowhere")])


def test_mutations_from_stdin(db: Path) -> None:
    edit = json.dumps({"remove": {"messageId": LAST_USER}})
    ran = run("--db", db, "prompt", SESSION, "--json", "--mutations", "-", input=edit)
    assert (ran.code, ran.lines[-1]["items"]) == (0, "8")


def test_errors_of_mutations_keep_their_reasons(db: Path) -> None:
    where = ("--db", db, "prompt", SESSION)
    ran = run(*where, "--remove", LAST_USER, "--insert-after", f"{LAST_USER}:user:x")
    assert ran.code == 4
    told = "turnwire: error: ANCHOR_NOT_IN_PROMPT: mutations[1].insert_after.message_id: "
    assert ran.err.startswith(told)
    assert ran.err.endswith(f"(message_id {LAST_USER}). Take the ids from the prompt's items.\n")
