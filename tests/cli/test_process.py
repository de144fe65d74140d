"""The command line as a real process: signals, pipes, terminals, stores in odd states."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import turnwire
from tests.cli.support import EXPORT, SESSION, WAIT, command, environment, import_into, process, run, serving
from tests.client.flow import turn, user
from turnwire import v1
from turnwire.cli.program import app


def on_terminal(args: list[str], *, typed: str = "", interrupt_at: str = "", **more: str) -> tuple[int, str]:
    """Run a process on a terminal; returns the exit code and what it showed, both streams together.

    ``interrupt_at``: send SIGINT once this has been shown, and again where nothing came of it: one that comes in the
    moment between the question and the wait for its answer is seen only with the next. Not at once: one that comes
    while a process ends kills it.
    """
    leader, follower = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="100", **more)
    with subprocess.Popen(args, stdin=follower, stdout=follower, stderr=follower, env=env) as child:
        os.close(follower)
        if typed:
            os.write(leader, typed.encode())
        shown = b""
        interrupted = False
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            if not select.select([leader], [], [], WAIT / 4)[0]:
                if interrupted:
                    child.send_signal(signal.SIGINT)
                continue
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
            if interrupt_at and interrupt_at.encode() in shown:
                interrupt_at = ""
                interrupted = True
                child.send_signal(signal.SIGINT)
        code = child.wait(WAIT)
    os.close(leader)
    return code, shown.decode()


def test_colours_are_for_terminals_that_want_them(db: Path) -> None:
    args = command("--db", db, "show", SESSION)
    code, shown = on_terminal(args)
    assert (code, "\x1b[" in shown) == (0, True)
    code, shown = on_terminal(args, NO_COLOR="1")
    assert (code, "\x1b" in shown) == (0, False)
    assert "First turn" in shown
    assert "\x1b" not in process("--db", db, "show", SESSION, TERM="xterm-256color").out


def test_a_progress_bar_is_on_stderr_alone(db: Path) -> None:
    leader, follower = pty.openpty()
    env = environment(TERM="xterm-256color")
    args = command("--db", db, "verify", "--all")
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=follower, text=True, env=env) as child:
        os.close(follower)
        out, _ = child.communicate(timeout=WAIT)
    shown = b""
    with suppress(OSError):  # the other end is closed
        while piece := os.read(leader, 65536):
            shown += piece
    os.close(leader)
    assert (child.returncode, out.startswith(f"sound  {SESSION}")) == (0, True)
    assert b"verifying" in shown
    assert b"sound" not in shown


def test_the_bar_of_validate_has_rate_and_time_left(db: Path, tmp_path: Path) -> None:
    """Its last picture is at the end of the way, so that it was moved there; of a server's session too."""
    export = tmp_path / "all.tw"
    assert run("--db", db, "export", "--all", "-o", export).code == 0
    with serving(db) as (address, _):
        for args, rate in (
            (["--db", db, "validate"], r"[\d,]+ entries/s "),
            (["--server", address, "validate"], r"([\d,]+ entries/s )?"),
            (["--server", address, "validate", SESSION], r"([\d,]+ entries/s )?"),
            (["validate", export], r"([\d.]+ \w+/s )?"),  # of which one step tells no speed
        ):
            code, shown = on_terminal(command(*args), NO_COLOR="1")
            assert code == 0, shown
            *_, last = [line for line in re.split(r"[\r\n]", shown) if "%" in line] or [shown]
            assert re.search(rf"100% +{rate}0:00:00", last), last
            assert shown.rstrip().endswith("sound")


def test_a_terminal_gets_wrapped_lines(db: Path) -> None:
    _, shown = on_terminal(command("--db", db, "prompt", SESSION), NO_COLOR="1")
    assert max(len(line) for line in shown.splitlines()) <= 100


def test_a_stored_escape_sequence_does_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = json.loads(EXPORT.read_text())
    evil["info"]["title"] = "\x1b]0;owned\x07"
    evil["messages"][0]["parts"][0]["text"] = "\x1b[2J\x9b31m"
    file = tmp_path / "evil.json"
    file.write_text(json.dumps(evil))
    store = ["--db", str(tmp_path / "a.db")]
    import_into(store, file)
    _, shown = on_terminal(command(*store, "show", SESSION), NO_COLOR="1")
    assert not {"\x1b", "\x9b", "\x07"} & set(shown)
    for args in (["show", SESSION], ["sessions"], ["tail", SESSION, "--no-follow"], ["prompt", SESSION]):
        for more in ([], ["--json"]):
            assert not {"\x1b", "\x9b", "\x07"} & set(run(*store, *args, *more).out)


@pytest.mark.parametrize(("typed", "interrupt_at", "code"), [("y\n", "", 0), ("n\n", "", 130), ("", "for good?", 130)])
def test_delete_asks_on_a_terminal(db: Path, typed: str, interrupt_at: str, code: int) -> None:
    got, shown = on_terminal(command("--db", db, "delete", SESSION), typed=typed, interrupt_at=interrupt_at)
    assert (got, f"Delete {SESSION} (16 entries) for good?" in shown) == (code, True)
    assert run("--db", db, "show", SESSION).code == (3 if code == 0 else 0)


@pytest.mark.parametrize("more", [[], ["--json"], ["--binary"]])
def test_a_reader_that_goes_away_is_no_error(db: Path, more: list[str]) -> None:
    args = command("--db", db, "replay", SESSION, *more)
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(WAIT) == 141


def test_tail_follows_and_ends_on_an_interrupt(db: Path) -> None:
    args = command("--db", db, "tail", SESSION, "--after", "15", "--json")
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True, env=environment()) as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["revision"] == "16"
        assert run("--db", db, "prompt", SESSION, "--record").code == 0
        entry = json.loads(child.stdout.readline())
        assert (entry["revision"], "prompt" in entry) == ("17", True)
        child.send_signal(signal.SIGINT)
        assert child.wait(WAIT) == 130
        assert child.stdout.read() == ""


def test_tail_ends_when_the_session_is_deleted(db: Path) -> None:
    args = command("--db", db, "tail", SESSION, "--after", "15")
    pipe = subprocess.PIPE
    with subprocess.Popen(args, stdout=pipe, stderr=pipe, text=True, env=environment()) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().startswith("    16  ")
        assert run("--db", db, "delete", SESSION, "--yes").code == 0
        assert child.wait(WAIT) == 3
        assert child.stderr.read().startswith("turnwire: error: SESSION_DELETED: ")


def test_serve_says_where_it_listens_and_drains_on_sigterm(db: Path) -> None:
    with serving(db) as (address, server):
        assert run("--server", address, "show", SESSION).code == 0
        assert run("show", SESSION, env={"TURNWIRE_SERVER": address}).code == 0
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""
    ran = run("--server", address, "show", SESSION)
    assert (ran.code, ran.err.startswith("turnwire: error: UNAVAILABLE: ")) == (5, True)


def test_serve_ends_though_a_client_takes_nothing_any_more(tmp_path: Path) -> None:
    """gRPC waits 20 seconds for the connection of a tail that is not read: neither the store nor the end does."""
    db = tmp_path / "a.db"
    with turnwire.blocking.open(db) as tw:
        tw.append("ses_1", [turn()], create=True)
        for number in range(12):  # more than sockets hold
            tw.append("ses_1", [user(f"msg_{number}", "x" * 2_000_000)])
    with serving(db, "--grace", "0") as (address, server), deaf_tail(address, "ses_1") as client:
        assert select.select([client], [], [], WAIT)[0]
        time.sleep(0.5)  # for its buffers to fill
        begun = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT) == 0
        assert time.monotonic() - begun < 10
        assert server.stderr is not None
        assert server.stderr.read() == ""
    assert not Path(f"{db}-wal").exists()  # closed, and not just left


def deaf_tail(address: str, session: str) -> socket.socket:
    """A client in plain HTTP/2 that asks for a tail, allows as much as there is, and never reads."""

    def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
        return len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + body

    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/turnwire.v1.SessionService/Tail",
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    headers = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    request = v1.TailRequest(session_id=session).SerializeToString()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, _, port = address.rpartition(":")
    client.connect((host, int(port)))
    client.sendall(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(4, 0, 0, (4).to_bytes(2) + (2**31 - 1).to_bytes(4))  # the window of streams, and of all together
        + frame(8, 0, 0, (2**31 - 1 - 65_535).to_bytes(4))
        + frame(1, 4, 1, headers)
        + frame(0, 1, 1, b"\0" + len(request).to_bytes(4) + request)
    )
    return client


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_heeds_signals_as_soon_as_it_says_that_it_listens(db: Path, number: signal.Signals, at: int) -> None:
    with serving(db) as (_, server):
        server.send_signal(number)
        assert server.wait(WAIT) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""


# A module that is needed at once takes as long to load as the test wants.
SLOW = """
import sys, time
print("loading", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("args", [["show", SESSION], ["tail", SESSION], ["serve"], ["--version"]])
def test_an_interrupt_while_the_program_is_loaded(tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "typer.py").write_text(SLOW)
    env = environment(PYTHONPATH=str(tmp_path))
    pipe = subprocess.PIPE
    with subprocess.Popen(command("--db", "none.db", *args), stdout=pipe, stderr=pipe, env=env) as child:
        try:
            assert child.stdout is not None
            assert child.stderr is not None
            assert child.stdout.readline() == b"loading\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(WAIT) == 130
            assert child.stderr.read() == b""
        finally:
            child.kill()


# The interpreter's own start cannot be made quiet, so that the time runs from its end.
STARTED = "from turnwire.cli import main; print('started', flush=True); main()"


@pytest.mark.parametrize("after", [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5])
def test_an_interrupt_at_any_time(db: Path, after: float) -> None:
    """While the program is loaded, while the store is opened, and then."""
    args = [sys.executable, "-c", STARTED, "--db", str(db), "tail", SESSION]
    pipe = subprocess.PIPE
    with subprocess.Popen(args, stdout=pipe, stderr=pipe, env=environment()) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"started\n"
        time.sleep(after)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=WAIT)
        assert (child.returncode, err) == (130, b"")


def test_serve_on_a_socket_with_limits(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    limits = ("--part-bytes", "1000", "--request-bytes", "70000", "--append-entries", "7")
    args = command("--db", tmp_path / "a.db", "serve", "--socket", socket, "--json", "--log-format", "json", *limits)
    pipe = subprocess.PIPE
    with subprocess.Popen(args, stdout=pipe, stderr=pipe, text=True, env=environment()) as server:
        try:
            assert server.stdout is not None
            assert server.stderr is not None
            said = json.loads(server.stdout.readline())
            assert said == {"address": f"unix:{socket}", "db": str(tmp_path / "a.db"), "pid": server.pid}
            info = run("--server", said["address"], "info", "--json").lines[0]["limits"]
            assert info["partBytes"] == "1000"
            assert info["requestBytes"] == "70000"
            assert info["appendEntries"] == "7"
            refused = run("--server", said["address"], "import", "opencode", EXPORT, "--json")
            assert refused.code == 1
            assert "LARGE" in refused.lines[-1]["notes"][0]["reason"]
            server.terminate()
            logged = [json.loads(line) for line in server.stderr.read().splitlines()]
            assert "GetServerInfo" in {line.get("method") for line in logged}
            assert server.wait(WAIT) == 0
        finally:
            if server.poll() is None:
                server.kill()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--server", "h:1", "serve"], "serve serves a file"),
        (["serve", "--socket", "s", "--port", "1"], "--socket excludes"),
        (["serve", "--part-bytes", "70000", "--request-bytes", "70000"], "--part-bytes must be less"),
        (["serve", "--port", "70000"], "Invalid value for '--port'"),
    ],
)
def test_serve_refuses_what_cannot_be(args: list[str], told: str, tmp_path: Path) -> None:
    ran = run(*args, env={"XDG_DATA_HOME": str(tmp_path)})
    assert (ran.code, ran.err.startswith(f"turnwire: error: {told}")) == (2, True)


def test_a_port_that_is_taken(db: Path) -> None:
    with serving(db) as (address, _):
        ran = process("--db", db, "serve", "--port", address.rpartition(":")[2])
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("turnwire: error: ")
        assert ran.err.count("\n") == 1


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    db = tmp_path / "none.db"
    ran = run("--db", db, "sessions")
    assert (ran.code, ran.err.startswith(f"turnwire: error: NOT_FOUND: there is no store at {db}")) == (3, True)
    assert not db.exists()
    ran = run("sessions", env={"XDG_DATA_HOME": str(tmp_path)})
    assert (ran.code, f"{tmp_path}/turnwire/turnwire.db" in ran.err) == (3, True)


@pytest.mark.parametrize(
    "args", [["sessions"], ["show", SESSION], ["fork", SESSION], ["verify", "--all"], ["export", "--all"], ["info"]]
)
def test_an_empty_file_is_not_made_a_store(tmp_path: Path, args: list[str]) -> None:
    db = tmp_path / "empty.db"
    db.touch()
    ran = run("--db", db, *args)
    assert (ran.code, ran.err.startswith(f"turnwire: error: NOT_FOUND: the file {db} is empty, and no store")) == (
        3,
        True,
    )
    assert (db.stat().st_size, [each.name for each in tmp_path.iterdir()]) == (0, ["empty.db"])


def test_an_import_takes_an_empty_file(tmp_path: Path) -> None:
    db = tmp_path / "empty.db"
    db.touch()
    import_into(["--db", str(db)], EXPORT)
    assert run("--db", db, "show", SESSION).code == 0


def test_files_that_are_no_stores(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("hello")
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = foreign.read_bytes()
    for path in (text, foreign, tmp_path):
        ran = run("--db", path, "sessions")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert run("--db", foreign, "sessions").err.startswith("turnwire: error: STORE_FOREIGN: ")
    assert (text.read_text(), foreign.read_bytes()) == ("hello", before)


def test_damage_is_a_finding_and_does_not_stop_the_others(db: Path) -> None:
    assert run("--db", db, "fork", SESSION, "--id", "ses_other").code == 0
    data = db.read_bytes()
    assert b"Edited README.md." in data
    # One letter in each copy but the last: one of the two sessions is damaged.
    at = data.index(b"Edited README.md.")
    db.write_bytes(data[:at] + b"Xdited" + data[at + 6 :])
    ran = run("--db", db, "verify", "--all", "--json")
    assert ran.code == 1
    assert sorted(line.get("sound", False) for line in ran.lines) == [False, True]
    assert "NOT SOUND" in run("--db", db, "verify", "--all").out
    # One that is not there stops the others neither, and damage is the worse finding.
    ran = run("--db", db, "verify", "ses_none", SESSION, "ses_other", "--json")
    assert (ran.code, [line["sessionId"] for line in ran.lines]) == (1, [SESSION, "ses_other"])
    assert ran.err.startswith("turnwire: error: SESSION_NOT_FOUND: ")


def test_verify_goes_on_behind_a_session_that_is_not_there(where: list[str], copy: str) -> None:
    ran = run(*where, "verify", "ses_none", copy, "ses_never", SESSION)
    assert ran.code == 3
    assert [line.split()[:2] for line in ran.out.splitlines()] == [["sound", copy], ["sound", SESSION]]
    assert [line.partition(" (")[2].partition(")")[0] for line in ran.err.splitlines()] == [
        "session_id ses_none",
        "session_id ses_never",
    ]


def test_an_unreachable_server(tmp_path: Path) -> None:
    started = time.monotonic()
    ran = run("--server", f"unix:{tmp_path}/none", "sessions")
    assert (ran.code, ran.err.startswith("turnwire: error: UNAVAILABLE: ")) == (5, True)
    assert time.monotonic() - started < 15


def test_arguments_that_are_no_text() -> None:
    ran = subprocess.run(
        [*command("--db", ":memory:", "show"), b"ses_\xff"],
        capture_output=True,
        env=environment(),
        timeout=WAIT,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"turnwire: error: ")
    assert ran.stderr.count(b"\n") == 1


def test_a_fault_of_the_program_shows_no_traceback(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret content")

    monkeypatch.setattr("turnwire.calls.sessions.SessionCalls.get_session", broken)
    ran = run("--db", db, "show", SESSION)
    assert (ran.code, ran.err) == (
        2,
        "turnwire: error: a fault of the program: ZeroDivisionError; TURNWIRE_TRACEBACK=1 shows where\n",
    )


def test_the_console_script_runs_the_same_program() -> None:
    assert app.info.name == "turnwire"
    assert process("--version").out == "turnwire 0.1.0\n"
