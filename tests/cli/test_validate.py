"""``turnwire validate``: targets, forms of output, selection, exit codes."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import run
from tests.formats.samples import DATA
from tests.validation.storage_cases import delimited
from turnwire import v1


def broken(path: Path) -> Path:
    """A file of messages: a right one, and two that are wrong."""
    right = v1.ModelRef(provider_id="p", model_id="m").SerializeToString()
    wrong = v1.ModelRef(provider_id="p").SerializeToString()
    path.write_bytes(delimited(right, wrong, wrong))
    return path


def test_a_store_and_a_server(where: list[str]) -> None:
    ran = run(*where, "validate")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith(": sound\n")
    assert "entries" in ran.out
    ran = run(*where, "--json", "validate", support.SESSION)
    assert ran.code == 0
    (summary,) = ran.lines
    assert summary["summary"]["sessions"] == 1
    assert summary["summary"]["errors"] == 0
    ran = run(*where, "validate", "ses_none")
    assert ran.code == 2
    assert "SESSION_NOT_FOUND" in ran.err


def test_findings_for_people(tmp_path: Path) -> None:
    path = broken(tmp_path / "models.bin")
    ran = run("validate", path, "--type", "ModelRef")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        f"({path})",
        "  error   string.min_len  byte 7",
        '          model_id = ""',
        "          a text is too short: must have at least 1 character",
        "  error   string.min_len  byte 11",
        '          model_id = ""',
        "          a text is too short: must have at least 1 character",
        "3 messages: 2 errors",
    ]


@pytest.mark.parametrize("option", [["--json"], ["--format", "json"]])
def test_findings_for_scripts(option: list[str], tmp_path: Path) -> None:
    path = broken(tmp_path / "models.bin")
    ran = run("validate", path, "--type", "turnwire.v1.ModelRef", *option)
    assert ran.code == 1
    assert ran.lines[0] == {
        "text": "a text is too short",
        "rule": "string.min_len",
        "severity": "SEVERITY_ERROR",
        "layer": "RULE_LAYER_SCHEMA",
        "path": "model_id",
        "value": '""',
        "expected": "must have at least 1 character",
        "source": str(path),
        "place": "byte 7",
    }
    assert [next(iter(line)) for line in ran.lines[1:]] == ["text", "summary"]


def test_selection(tmp_path: Path) -> None:
    path = broken(tmp_path / "models.bin")
    how = ["validate", str(path), "--type", "ModelRef"]
    assert run(*how, "--ignore", "string").code == 0
    assert run(*how, "--select", "session", "--select", "storage.torn").code == 0
    assert run(*how, "--select", "string.min_len").code == 1
    ran = run(*how, "--select", "string.min")
    assert ran.code == 2
    assert "select[0]: no rule or layer is called 'string.min'" in ran.err
    assert "unfiltered" not in ran.err
    for layer, code in (("schema", 1), ("session", 0), ("storage", 0)):
        assert run(*how, "--select", layer).code == code
        assert run(*how, "--ignore", layer).code == 1 - code


def test_warnings_count_when_it_is_strict(tmp_path: Path) -> None:
    document = json.loads((DATA / "surrogates.json").read_text())
    path = tmp_path / "surrogates.json"
    path.write_text(json.dumps(document))
    ran = run("validate", path)
    assert ran.code == 0
    assert "storage.import.repaired" in ran.out
    assert "1 session, 5 entries: 1 warning" in ran.out
    assert run("validate", path, "--strict").code == 1
    assert run("validate", path, "--strict", "--ignore", "storage.import").code == 0


def test_what_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    path = broken(tmp_path / "models.bin")
    ran = run("validate", empty, tmp_path / "no such", path, "--type", "ModelRef")
    assert ran.code == 2
    assert f"{empty}: it is empty" in ran.err
    assert "no such: neither a file nor a session" in ran.err
    assert "3 messages: 2 errors, 2 targets could not be read" in ran.out


def test_wrong_usage(tmp_path: Path) -> None:
    path = broken(tmp_path / "models.bin")
    assert run("validate", path, "--type", "Model").code == 2
    assert run("validate", path, "--json", "--format", "text").code == 2
    assert run("validate", "--session", "no id").code == 2


@pytest.mark.parametrize(
    "args",
    [
        ["validate", ""],
        ["import", "opencode", ""],
        ["import", "turnwire", "x.tw", ""],
        ["export", "--all", "-o", ""],
        ["export", "--all", "--after", ""],
        ["schema", "--output", ""],
        ["serve", "--socket", ""],
        ["--db", "", "sessions"],
    ],
)
def test_an_empty_path_is_not_this_directory(args: list[str], tmp_path: Path) -> None:
    ran = run(*args, env={"XDG_DATA_HOME": str(tmp_path)})
    assert (ran.code, ran.out) == (2, "")
    assert any(word in ran.err for word in ("an empty text is no path", "an empty TARGET", "--db takes the path"))
    assert not list(tmp_path.iterdir())


def test_a_damaged_store(db: Path) -> None:
    """One session whose payloads are damaged stops no other, and neither does the store's listing."""
    ran = run("--db", db, "fork", support.SESSION, "--id", "ses_fork")
    assert ran.code == 0
    connection = sqlite3.connect(db)
    ((key,),) = connection.execute("SELECT key FROM session WHERE id = 'ses_fork'")
    connection.execute("UPDATE entry SET payload = x'ff' WHERE pos = ?", ((key << 32) + 1,))
    connection.execute("UPDATE entry SET payload = x'ff' WHERE pos = ?", ((key << 32) + 3,))
    connection.commit()
    connection.close()
    ran = run("validate", db, "--json")
    assert ran.code == 1
    found = {(line.get("sessionId"), line["rule"]) for line in ran.lines[:-1]}
    assert found == {("ses_fork", "storage.bytes"), ("ses_fork", "session.digest")}
    assert ran.lines[-1]["summary"]["sessions"] == 2
    assert run("validate", db, "--session", support.SESSION).code == 0


def test_what_was_exported(db: Path, tmp_path: Path) -> None:
    for form in ([], ["--json-lines"]):
        out = tmp_path / "all.tw"
        out.unlink(missing_ok=True)
        assert run("--db", db, "export", "--all", "-o", out, *form).code == 0
        ran = run("validate", out)
        assert (ran.code, ran.err) == (0, "")
        assert "1 session" in ran.out
    data = (tmp_path / "all.tw").read_bytes()
    (tmp_path / "all.tw").write_bytes(data.replace(b'"title"', b'"title', 1))
    ran = run("validate", tmp_path / "all.tw")
    assert ran.code == 1
    assert "storage.json" in ran.out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello, world\n", "in no form that is known"),
        (b"null\n", "in no form that is known"),
        (bytes(range(254, 0, -1)), "in no form that is known"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("{}".encode("utf-16"), "UTF-16"),
        (gzip.compress(b"SQLite format 3\0" + bytes(4096)), "a SQLite database, compressed with gzip"),
        (b"SQLite format 3\0" + bytes(200), "a SQLite database whose header or first page is damaged"),
    ],
)
def test_what_is_in_no_known_form_is_no_finding(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    ran = run("validate", path)
    assert ran.code == 2
    assert ran.err.startswith(f"turnwire: error: {path}: ")
    assert why in ran.err


@pytest.mark.parametrize("at", [0, 16, 68])
def test_a_store_whose_header_is_damaged(db: Path, at: int) -> None:
    data = bytearray(db.read_bytes())
    data[at : at + 4] = b"\xee" * 4
    db.write_bytes(data)
    ran = run("validate", db)
    assert ran.code == 2
    assert "damaged" in ran.err


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for arguments in (["validate", fifo], ["--db", fifo, "validate"], ["--db", fifo, "validate", "ses_1"]):
        ran = run(*arguments)
        assert ran.code == 2
        assert f"{fifo}: neither a regular file nor a directory" in ran.err


def test_a_target_that_is_nothing_is_named(tmp_path: Path, db: Path) -> None:
    for store in (tmp_path / "none.db", db):
        ran = run("--db", store, "validate", "nothing-here")
        assert ran.code == 2
        assert "nothing-here: neither a file nor a session" in ran.err


def test_a_directory_of_stores_and_exports(db: Path, tmp_path: Path) -> None:
    assert run("--db", db, "export", "--all", "-o", tmp_path / "all.tw").code == 0
    (tmp_path / "hello.txt").write_text("hello")
    os.mkfifo(tmp_path / "fifo")
    ran = run("--json", "validate", tmp_path)
    note = f"turnwire: {tmp_path}: passed over what is in no form that is known: fifo, hello.txt\n"
    assert (ran.code, ran.err) == (0, note)
    assert ran.lines[-1]["summary"]["sessions"] == 2


def test_a_directory_of_all_that_files_may_be(db: Path, tmp_path: Path) -> None:
    """What lies in it is checked as if it were named, but for what is below it, and files that SQLite has beside."""
    folder = tmp_path / "of all"
    (folder / "below").mkdir(parents=True)
    (folder / "models.jsonl").write_text('{"providerId": "acme", "modelId": ""}\n')
    (folder / "three-turns.json").write_bytes((DATA / "three-turns.json").read_bytes())
    assert run("--db", db, "export", "--all", "-o", folder / "all.tw").code == 0
    (folder / "cut.tw").write_bytes((folder / "all.tw").read_bytes()[:-1])
    for end in ("", "-wal"):
        (folder / f"turnwire.db{end}").write_bytes(db.read_bytes() if not end else b"")
    for at in range(6):
        (folder / f"{at}.png").write_bytes(bytes(range(at, 256)))
    ran = run("--json", "validate", folder)
    assert ran.code == 1
    assert {Path(line["source"]).name for line in ran.lines[:-1]} == {"cut.tw"}
    assert ran.lines[-1]["summary"]["sessions"] == 4
    assert ran.err.endswith(" 0.png, 1.png, 2.png, 3.png, 4.png and 3 more\n")
    ran = run("--json", "validate", folder / "below")
    assert (ran.code, ran.err) == (2, f"turnwire: error: {folder / 'below'}: nothing that can be checked is there\n")


def test_a_directory_of_messages_of_one_type(tmp_path: Path) -> None:
    (tmp_path / "models.jsonl").write_text('{"providerId": "acme", "modelId": ""}\n')
    ran = run("--json", "validate", tmp_path, "--type", "ModelRef")
    assert [line.get("rule") for line in ran.lines] == ["string.min_len", None]


def test_some_sessions_of_files(db: Path, tmp_path: Path) -> None:
    assert run("--db", db, "fork", support.SESSION, "--id", "ses_fork").code == 0
    for form in ([], ["--json-lines"]):
        out = tmp_path / f"all{len(form)}.tw"
        assert run("--db", db, "export", "--all", "-o", out, *form).code == 0
        for wanted, sessions in ((["ses_fork"], 1), (["ses_fork", support.SESSION], 2)):
            ran = run("--json", "validate", out, *(word for id in wanted for word in ("--session", id)))
            assert ran.code == 0
            assert ran.lines[-1]["summary"]["sessions"] == sessions
    ran = run("validate", out, db, "--session", "ses_none", "--session", "ses_fork")
    assert ran.code == 2
    assert ran.err == "turnwire: error: ses_none: this session is in none of the targets\n"
    assert run("--db", db, "validate", "--session", "ses_none").code == 2
    export = DATA / "three-turns.json"
    assert run("validate", export, "--session", "ses_none").code == 2
