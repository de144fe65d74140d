"""Real processes on one file of a SQLite store."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import CALLER, append, get_session, opened, read, replay, user
from tests.store.test_sqlite_tail import indexed
from turnwire import v1
from turnwire.engine import Engine
from turnwire.log.fold import fold
from turnwire.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]


def start(command: str, path: Path, *arguments: object, file_bytes: int = 0) -> subprocess.Popen[str]:
    def limit() -> None:
        if file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))

    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.worker", command, str(path), *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=limit if file_bytes else None,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(*processes: subprocess.Popen[str], say: str = "") -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(say + "\n")
        process.stdin.flush()


def rest(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.split("\n")[:-1]


async def test_c73_eight_processes_append_to_one_session(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    processes = [start("load", path, name, 200) for name in "abcdefgh"]
    assert {line(process) for process in processes} == {"ready"}
    go(*processes)
    revisions: list[int] = []
    for process in processes:
        *acknowledged, last = rest(process)
        assert last == "done"
        assert len(acknowledged) == 200
        revisions += [int(each.split()[1]) for each in acknowledged]
    # Properties and turn, and then 1,600 messages without a hole.
    assert sorted(revisions) == list(range(3, 1603))
    engine = Engine(SqliteStore.open(path))
    history = await replay(engine, "s")
    assert sorted(history.ids) == sorted(f"{name}.{number}" for name in "abcdefgh" for number in range(200))
    for name in "abcdefgh":  # each in its own order
        mine = [id for id in history.ids if id.startswith(name)]
        assert mine == [f"{name}.{number}" for number in range(200)]
    verified = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))
    assert (verified.sound, verified.entries) == (True, 1602)
    await engine.close()


async def test_c75_eight_processes_open_a_new_file_together(tmp_path: Path) -> None:
    processes = [start("open", tmp_path, number) for number in range(8)]
    assert {line(process) for process in processes} == {"ready"}
    names = [f"{number}.db" for number in range(5)]
    for name in names:
        go(*processes, say=name)
        assert [line(process) for process in processes] == ["done"] * 8
    assert [rest(process) for process in processes] == [[]] * 8
    for name in names:
        engine = Engine(SqliteStore.open(tmp_path / name))
        listed = await engine.list_sessions(CALLER, v1.ListSessionsRequest())
        assert sorted(session.id for session in listed.sessions) == [f"s{number}" for number in range(8)]
        await engine.close()


async def test_killed_in_the_middle_of_a_load(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    process = start("load", path, "a", 1_000_000)
    assert line(process) == "ready"
    go(process)
    acknowledged = [line(process) for _ in range(300)]
    os.kill(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    acknowledged += [each for each in process.stdout.read().split("\n") if each.count(" ") == 1]
    process.wait()
    engine = Engine(SqliteStore.open(path))
    ids = (await replay(engine, "s")).ids
    known = [each.split()[0] for each in acknowledged]
    assert ids[: len(known)] == known
    # At most the one that was on its way came without a word.
    assert len(ids) <= len(known) + 1
    verified = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))
    assert verified.sound
    # The next goes on from there.
    response = await append(engine, "s", user("next"))
    assert response.head.revision == len(ids) + 3
    await engine.close()


async def test_what_a_killed_process_had_not_indexed(tmp_path: Path) -> None:
    """Its last entries are there for who may only read, who goes on, and who reads then."""
    path = tmp_path / "t.db"
    process = start("turns", path)
    engine = Engine(SqliteStore.open(path))
    await opened(engine)
    await engine.close()
    assert line(process) == "ready"
    for at in range(100):
        go(process, say=f"u{at}")
        assert line(process) == str(at + 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert indexed(path) == (66, True)
    wanted = [f"u{at}" for at in range(100)]
    reading = Engine(SqliteStore.open(path, read_only=True))
    assert (await replay(reading, "s")).ids == wanted
    assert (await replay(reading, "s", 80)).ids == wanted[:78]
    assert (await get_session(reading, "s")).head.revision == 102
    await reading.close()
    assert indexed(path) == (66, True)
    engine = Engine(SqliteStore.open(path))
    assert (await append(engine, "s", user("next"))).head.revision == 103
    assert indexed(path) == (66, True)
    assert (await replay(engine, "s")).ids == [*wanted, "next"]
    assert indexed(path) == (103, False)
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))).sound
    await engine.close()


async def test_processes_take_turns_on_one_session(tmp_path: Path) -> None:
    """Each knows what the others have appended, and the index in the file is never wrong."""
    path = tmp_path / "t.db"
    engine = Engine(SqliteStore.open(path, inline=True))
    await opened(engine)
    processes = [start("turns", path) for _ in range(2)]
    assert [line(process) for process in processes] == ["ready", "ready"]
    revision = 2
    for at in range(150):
        for process in processes:
            go(process, say=f"p{revision}")
            revision += 1
            assert line(process) == str(revision)
        revision += 1
        assert (await append(engine, "s", user(f"p{revision - 1}"))).head.revision == revision
        if at % 40 == 13:  # indexes what all three have appended
            assert (await replay(engine, "s", last_turns=1)).ids[-1] == f"p{revision - 1}"
    for process in processes:
        assert rest(process) == []
    await engine.close()
    assert indexed(path) == (452, False)
    engine = Engine(SqliteStore.open(path))
    entries = await read(engine, "s")
    assert [entry.revision for entry in entries] == list(range(1, 453))
    for at in (*range(3, 452, 37), 452):
        assert (await replay(engine, "s", at)).ids == [message.id for message in fold(entries, at).messages()]
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))).sound
    await engine.close()


async def test_no_room(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk, which a test can not always have."""
    path = tmp_path / "t.db"
    process = start("fill", path, file_bytes=4 * 1024 * 1024)
    full, count = line(process).split()
    assert full == "full"
    assert 100 < int(count) < 200
    # What was acknowledged is there, for others too.
    engine = Engine(SqliteStore.open(path, read_only=True))
    assert (await get_session(engine, "s")).head.revision == int(count) + 2
    await engine.close()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    go(process)
    assert rest(process) == [f"sound True {int(count) + 3}"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
async def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        process = start("fill", disk / "t.db")
        full, count = line(process).split()
        assert full == "full"
        assert int(count) > 20
        subprocess.run(["mount", "-o", "remount,size=32m", str(disk)], check=True)
        go(process)
        assert rest(process) == [f"sound True {int(count) + 3}"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


async def test_two_processes_and_an_embedded_user_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    engine = Engine(SqliteStore.open(path))
    await opened(engine)
    watcher = start("tail", path)
    assert line(watcher) == "caught_up"
    writer = start("load", path, "w", 100)
    assert line(writer) == "ready"
    go(writer)
    for number in range(100):
        await append(engine, "s", user(f"e.{number}"))
        await replay(engine, "s", last_turns=1)
    assert rest(writer)[-1] == "done"
    await append(engine, "s", user("last"))
    seen = rest(watcher)
    entries = [entry.user.user.id for entry in await read(engine, "s", 3)]
    assert seen == entries
    assert len(entries) == 201
    await engine.close()
