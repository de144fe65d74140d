"""What leaves the command line: exit codes, error lines, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import run
from turnwire import errors, v1
from turnwire.cli.app import Shared
from turnwire.cli.output import EXIT_CODES, ExitCode, Output, exit_code, explain, what_to_do
from turnwire.cli.source import NoStore, Source
from turnwire.cli.usage import Usage, labels_of, time_of
from turnwire.validation import unknown


@pytest.mark.parametrize("cls", errors.BY_REASON.values(), ids=lambda cls: cls.__name__)
def test_every_reason_has_an_exit_code_and_advice(cls: type[errors.TurnwireError]) -> None:
    text = "it is wrong"
    violation = errors.Violation("a.b", "required", text)
    error = errors.RuleViolation([violation]) if cls is errors.RuleViolation else cls(text, path="a.b")
    line = explain(error)
    assert line.startswith(f"{error.reason_name}: a.b: it is wrong. ")
    assert line.endswith(what_to_do()[error.reason])
    assert len(what_to_do()[error.reason]) > 5
    assert exit_code(error) in EXIT_CODES


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SessionDeleted("x"), ExitCode.NOT_FOUND),
        (errors.TurnConflict("x"), ExitCode.CONFLICT),
        (errors.RevisionConflict("x"), ExitCode.CONFLICT),
        (errors.AnchorCompacted("x"), ExitCode.CONFLICT),
        (errors.RevisionOutOfRange("x"), ExitCode.USAGE),
        (errors.StoreForeign("x"), ExitCode.USAGE),
        (errors.StoreTooNew("x"), ExitCode.USAGE),
        (errors.StoreReadOnly("x"), ExitCode.USAGE),
        (errors.StoreBusy("x"), ExitCode.UNAVAILABLE),
        (errors.StoreFull("x"), ExitCode.UNAVAILABLE),
        (errors.ConnectionFailed("x"), ExitCode.UNAVAILABLE),
        (errors.DeadlineExceeded("x"), ExitCode.UNAVAILABLE),
        (errors.CorruptData("x"), ExitCode.FINDINGS),
        (errors.InternalError("x"), ExitCode.USAGE),
        (NoStore("x"), ExitCode.NOT_FOUND),
    ],
)
def test_exit_codes(error: errors.TurnwireError, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_an_error_without_a_reason_is_named_by_its_status() -> None:
    assert explain(errors.ConnectionFailed("refused\nby peer")) == "UNAVAILABLE: refused␊by peer"


def test_ids_are_named() -> None:
    error = errors.UnknownTurn("no such turn", path="entries[0]", turn_id="t1", session_id="s1")
    assert explain(error).startswith("UNKNOWN_TURN: entries[0]: no such turn (turn_id t1, session_id s1). Append")


def test_unknown_fields_are_left_out_and_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(json=True)
    message = v1.HistoryFrame(user=v1.User(id="m", parts=[v1.PromptPart.FromString(b"\x0a\x01p\xa2\x06\x01x")]))
    assert unknown.any_in(message)
    assert not unknown.any_in(v1.HistoryFrame(user=v1.User(id="m")))
    out.message(message)
    out.message(v1.Head(revision=2**53 + 1))
    out.close()
    written = capsys.readouterr()
    assert [json.loads(line) for line in written.out.splitlines()] == [
        {"user": {"id": "m", "parts": [{"id": "p"}]}},
        {"revision": "9007199254740993"},
    ]
    told = "JSON cannot carry fields that this version does not know; 1 object had some, which were left out"
    assert written.err == f"turnwire: {told}\n"


def test_nothing_is_said_when_nothing_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(json=True)
    out.message(v1.Head(revision=1))
    out.named(v1.VerifySessionResponse(sound=True), sessionId="s")
    out.close()
    assert capsys.readouterr() == ('{"revision": "1"}\n{"sessionId": "s", "sound": true}\n', "")


def test_where_the_sessions_are() -> None:
    def chosen(db: str | None = None, server: str | None = None, **env: str) -> Source:
        return Source.chosen(db, server, env)

    assert chosen("a.db") == Source(db=Path("a.db"))
    assert chosen(server="h:1") == Source(server="h:1")
    assert chosen(server="unix:/s") == Source(server="unix:/s")
    assert chosen(TURNWIRE_DB="b.db") == Source(db=Path("b.db"))
    assert chosen(TURNWIRE_SERVER="h:2") == Source(server="h:2")
    assert chosen("a.db", TURNWIRE_SERVER="h:2") == Source(db=Path("a.db"))
    assert chosen(server="h:1", TURNWIRE_DB="b.db") == Source(server="h:1")
    assert chosen(XDG_DATA_HOME="/data") == Source(db=Path("/data/turnwire/turnwire.db"))
    assert chosen(XDG_DATA_HOME="").db == Path.home() / ".local/share/turnwire/turnwire.db"


@pytest.mark.parametrize(
    ("db", "server", "env", "told"),
    [
        ("a", "h:1", {}, "--db and --server exclude"),
        (None, None, {"TURNWIRE_DB": "a", "TURNWIRE_SERVER": "h:1"}, "TURNWIRE_DB and TURNWIRE_SERVER exclude"),
        (None, "localhost", {}, "a server is HOST:PORT"),
        ("", None, {}, "--db takes"),
    ],
)
def test_both_or_neither_is_refused(db: str | None, server: str | None, env: dict[str, str], told: str) -> None:
    with pytest.raises(Usage, match=told):
        Source.chosen(db, server, env)


def test_options_before_and_after_the_command() -> None:
    assert Shared("a").over(None, None, True) == Shared("a", None, True)
    assert Shared("a").over("a", None, False) == Shared("a")
    with pytest.raises(Usage, match="--db is given twice"):
        Shared("a").over("b", None, False)


def test_times() -> None:
    assert time_of("2026-01-31T14:05:09Z", "--since").ToJsonString() == "2026-01-31T14:05:09Z"
    assert time_of("2026-01-31T14:05:09.5+01:00", "--since").ToJsonString() == "2026-01-31T13:05:09.500Z"
    hours = time_of("1h", "--since").seconds - time_of("3h", "--since").seconds
    assert abs(hours - 7200) <= 1
    for wrong in ("", "soon", "5", "5y", "99999999w", "2026-13-01"):
        with pytest.raises(Usage, match="--until takes a time"):
            time_of(wrong, "--until")


def test_labels() -> None:
    assert labels_of(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    for wrong in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(Usage, match="--label"):
            labels_of(wrong)


def test_help_says_that_two_sources_are_an_error() -> None:
    told = " ".join(run("--help").out.split())
    assert "Without these options TURNWIRE_DB or TURNWIRE_SERVER tells; it is an error if both are set." in told
    ran = run("sessions", env={"TURNWIRE_DB": "a", "TURNWIRE_SERVER": "h:1"})
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "TURNWIRE_DB and TURNWIRE_SERVER exclude each other" in ran.err


def test_advice_of_the_command_line_is_for_its_users() -> None:
    for error in (errors.SessionNotFound("x"), errors.TurnNotFound("x"), errors.PromptNotFound("x")):
        assert "`turnwire " in explain(error)
