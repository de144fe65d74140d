"""``turnwire export`` and ``turnwire import turnwire``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.support import DATA, EXPORT, SESSION, run, serving


def heads(db: Path) -> dict[str, object]:
    """The heads of all sessions of a store."""
    return {line["id"]: line["head"] for line in run("--db", db, "sessions", "--json").lines}


def test_what_opencode_export_writes(where: list[str], tmp_path: Path) -> None:
    ran = run(*where, "export", SESSION, "--format", "opencode")
    assert (ran.code, json.loads(ran.out)) == (0, json.loads(EXPORT.read_text()))
    assert run(*where, "export", SESSION, "--format", "opencode", "-o", tmp_path / "one.json").out == ""
    assert (tmp_path / "one.json").read_text() == ran.out
    assert list(tmp_path.iterdir()) == [tmp_path / "one.json"]


def test_all_sessions_for_another_program_go_to_a_directory(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    assert run("--db", db, "import", "opencode", DATA).code == 0
    assert run("--db", db, "export", "--all", "--format", "opencode").code == 2
    (tmp_path / "out").mkdir()
    assert run("--db", db, "export", "--all", "--format", "opencode", "--out", tmp_path / "out").code == 0
    originals = [json.loads(file.read_text()) for file in DATA.glob("*.json")]
    exported = [json.loads(file.read_text()) for file in (tmp_path / "out").iterdir()]
    assert sorted(exported, key=lambda one: str(one["info"]["id"])) == sorted(
        originals, key=lambda one: str(one["info"]["id"])
    )


def test_out_and_back(tmp_path: Path) -> None:
    db, other = tmp_path / "a.db", tmp_path / "b.db"
    assert run("--db", db, "import", "opencode", DATA).code == 0
    for name, option in (("binary", []), ("lines", ["--json-lines"]), ("json", ["--json"])):
        ran = run("--db", db, "export", "--all", "--out", tmp_path / name, *option)
        assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "lines").read_bytes() == (tmp_path / "json").read_bytes()
    first = run("--db", other, "import", "turnwire", tmp_path / "binary")
    assert (first.code, first.out.splitlines()[1].startswith("imported: 6 sessions, ")) == (0, True)
    assert heads(other) == heads(db)
    again = run("--db", other, "import", "turnwire", tmp_path / "lines", "--json")
    assert {line["outcome"] for line in again.lines[:-1]} == {"unchanged"}
    assert run("--db", other, "verify", "--all").code == 0


def test_a_later_export_goes_on(db: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.db"
    run("--db", db, "export", "--all", "-o", tmp_path / "1")
    run("--db", db, "import", "opencode", DATA)
    run("--db", db, "fork", SESSION, "--id", "ses_new")
    assert run("--db", db, "export", "--all", "--after", tmp_path / "1", "-o", tmp_path / "2").code == 0
    assert run("--db", other, "import", "turnwire", tmp_path / "1", tmp_path / "2").code == 0
    assert heads(other) == heads(db)
    assert len(heads(db)) == 7


def test_an_earlier_export_of_another_store_is_refused(db: Path, tmp_path: Path) -> None:
    second = tmp_path / "b.db"
    changed = json.loads(EXPORT.read_text())
    changed["info"]["title"] = "other"
    (tmp_path / "other.json").write_text(json.dumps(changed))
    run("--db", second, "import", "opencode", tmp_path / "other.json")
    run("--db", db, "export", SESSION, "-o", tmp_path / "1")
    ran = run("--db", second, "export", SESSION, "--after", tmp_path / "1")
    assert ran.code == 2
    assert "is not the session that --after has" in ran.err
    assert run("--db", second, "import", "turnwire", tmp_path / "1").code == 1


def test_through_a_server_out_but_not_in(db: Path, tmp_path: Path) -> None:
    run("--db", db, "export", SESSION, "-o", tmp_path / "1")
    with serving(db) as (address, _):
        assert run("--server", address, "export", SESSION).raw == (tmp_path / "1").read_bytes()
        ran = run("--server", address, "import", "turnwire", tmp_path / "1")
    assert (ran.code, "writes into a file" in ran.err) == (2, True)


def test_wrong_usage(db: Path, tmp_path: Path) -> None:
    for args in (
        ["export"],
        ["export", SESSION, "--all"],
        ["export", SESSION, "--format", "nothing"],
        ["export", SESSION, "--format", "opencode", "--json-lines"],
        ["export", SESSION, "--after", str(EXPORT)],
    ):
        assert run("--db", db, *args).code == 2, args
    assert run("--db", db, "export", "ses_none").code == 3
    ran = run("--db", db, "import", "turnwire", EXPORT, tmp_path / "none")
    assert ran.code == 1
    assert "not a file that `turnwire export` wrote" in ran.out


def test_all_go_into_a_directory_that_is_made(db: Path, tmp_path: Path) -> None:
    into = tmp_path / "new" / "folder"
    assert run("--db", db, "export", "--all", "--format", "opencode", "-o", into).code == 0
    assert [file.name for file in into.iterdir()] == [f"{SESSION}.json"]
    assert json.loads((into / f"{SESSION}.json").read_text()) == json.loads(EXPORT.read_text())
    ran = run("--db", db, "export", "--all", "--format", "opencode", "-o", into / f"{SESSION}.json")
    assert (ran.code, "takes a directory for several sessions" in ran.err) == (2, True)
