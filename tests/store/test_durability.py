"""An append that was acknowledged is on the disk: counted syncs, kill -9 under load, and a power cut under load."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import turnwire
from tests.builders import text, turn, user
from tests.store import platter
from turnwire import errors, v1

ROOT = Path(__file__).parents[2]
COUNTER = Path(__file__).with_name("count_syncs.c")

on_a_platter = pytest.mark.skipif(not platter.possible(), reason="this Python's SQLite can not be reached by name")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The folder of what a power cut leaves."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def worker(command: str, disk: Path, path: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.durable_worker", command, str(disk), str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def counted(process: subprocess.Popen[str]) -> tuple[list[int], int]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    one_by_one, together = json.loads(out)
    return one_by_one, together


def killed(process: subprocess.Popen[str], after: int) -> dict[str, list[str]]:
    """Kill a process that says what was acknowledged; returns all that it said, by session."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    known: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line.endswith("\n"):  # the last may be cut off
            session, id = json.loads(line)
            known[session].append(id)
    return known


async def held(path: Path, sessions: list[str]) -> dict[str, list[str]]:
    """The messages of sessions in a file, each of which must be sound."""
    found: dict[str, list[str]] = {}
    async with turnwire.open(path) as store:
        for session in sessions:
            found[session] = [message.id for message in (await store.history(session)).messages]
            assert (await store.verify_session(session)).sound
    return found


def check(found: dict[str, list[str]], known: dict[str, list[str]], at_once: int = 1) -> None:
    """All that was acknowledged is there, in order, and at most what was on its way beside."""
    for session, ids in known.items():
        assert found[session][: len(ids)] == ids
        assert len(found[session]) <= len(ids) + at_once


@on_a_platter
def test_each_append_is_synced_before_it_is_acknowledged(disk: Path, tmp_path: Path) -> None:
    one_by_one, together = counted(worker("count", disk, tmp_path / "t.db"))
    assert len(one_by_one) == 100
    assert min(one_by_one) >= 1
    # Nobody waits for a sync of his own where one does for all.
    assert 1 <= together < 64


@pytest.mark.skipif(shutil.which("cc") is None, reason="counting the calls of the process itself takes a C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="counting the calls of the process itself takes LD_PRELOAD")
def test_each_sync_reaches_the_operating_system(disk: Path, tmp_path: Path) -> None:
    library = tmp_path / "count_syncs.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(COUNTER), "-ldl"], check=True)
    one_by_one, together = counted(worker("calls", disk, tmp_path / "t.db", LD_PRELOAD=str(library)))
    assert min(one_by_one) >= 1
    assert 1 <= together < 64


@on_a_platter
async def test_a_power_cut_under_load_loses_nothing_acknowledged(disk: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    known = killed(worker("load", disk, path), after=1500)
    assert sorted(known) == [f"s{caller}" for caller in range(8)]
    assert sum(map(len, known.values())) >= 1500
    check(await held(disk / "t.db", [*known]), known)  # what the disk got
    check(await held(path, [*known]), known)  # what the operating system got


@on_a_platter
async def test_such_a_power_cut_shows_what_does_not_wait_for_the_disk(disk: Path, tmp_path: Path) -> None:
    """The proof above can fail: without syncs a kill loses nothing, and a power cut does."""
    path = tmp_path / "t.db"
    known = killed(worker("relaxed", disk, path), after=300)
    check(await held(path, [*known]), known)
    lost = 0
    async with turnwire.open(disk / "t.db") as store:
        for session, ids in known.items():
            try:
                there = [message.id for message in (await store.history(session)).messages]
            except errors.SessionNotFound:
                there = []
            lost += len(set(ids) - set(there))
    assert lost > 0


@on_a_platter
async def test_a_server_that_loses_its_power_under_load(disk: Path, tmp_path: Path) -> None:
    """Single appends by many callers, batches and a stream at once, until the server is killed."""
    path = tmp_path / "t.db"
    command = [sys.executable, "-m", "tests.store.platter", str(disk), str(path)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"]
    known: dict[str, list[str]] = defaultdict(list)
    total = 0
    options = (("grpc.enable_retries", 0),)
    async with turnwire.Client.connect(address, options=options) as client:

        def acknowledged(session: str, ids: list[str]) -> None:
            nonlocal total
            known[session] += ids
            total += len(ids)
            if total >= 2000 and server.poll() is None:
                server.send_signal(signal.SIGKILL)

        async def unary(session: str, batch: int) -> None:
            await client.append(session, [turn()], create=True)
            for number in range(1_000_000):
                ids = [f"m{number}.{at}" for at in range(batch)]
                await client.append(session, [user(id, text("", "x" * 500)) for id in ids])
                acknowledged(session, ids)

        async def stream(session: str) -> None:
            await client.append(session, [turn()], create=True)
            requests = (turnwire.append_request(session, [user(f"m{number}")]) for number in range(1_000_000))
            number = 0
            async for outcome in client.append_stream(requests):
                assert isinstance(outcome, v1.AppendResponse)
                acknowledged(session, [f"m{number}"])
                number += 1

        works = [unary(f"single{caller}", 1) for caller in range(16)]
        works += [unary("batches", 50), stream("stream")]
        ended = await asyncio.gather(*works, return_exceptions=True)
    assert all(isinstance(each, errors.Unavailable) for each in ended)
    assert await asyncio.to_thread(server.wait) == -signal.SIGKILL
    server.stdout.close()
    for file in (disk / "t.db", path):
        found = await held(file, [*known])
        # The stream's client goes on to send while answers are on their way.
        stream_ids = known["stream"]
        assert found["stream"][: len(stream_ids)] == stream_ids
        check(found, {session: ids for session, ids in known.items() if session != "stream"}, at_once=50)
