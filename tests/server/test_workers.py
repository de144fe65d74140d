"""Several processes behind one port: nothing is lost or doubled, each serves, each is replaced, all end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.client.flow import turn, user
from turnwire import errors, v1
from turnwire.server import Options, Workers

CONNECTIONS = 12
BEGINNING = 2  # entries that come before: of the session and of its turn
WAIT_S = 30.0


@contextmanager
def serving(db: Path, *args: str, workers: int = 2) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``turnwire serve --workers``; gives the address and the process that was started."""
    arguments = [sys.executable, "-m", "turnwire", "--db", str(db), "serve", "--workers", str(workers), *args]
    log = db.with_name("log")
    with log.open("w") as stderr:
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            assert server.stdout is not None
            line = server.stdout.readline().strip()
            assert line.startswith("listening on "), log.read_text()
            yield line.removeprefix("listening on "), server
        finally:
            server.kill()  # its workers end by themselves
            server.wait()
            server.stdout.close()


def below(pid: int) -> set[int]:
    """The processes that a process has started."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def connections(pid: int, port: int) -> int:
    """How many connections to a port of this machine a process has accepted."""
    tables = (Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    established = {row[9] for row in rows if int(row[1].split(":")[1], 16) == port and row[3] == "01"}
    links: list[str] = []
    with suppress(FileNotFoundError):  # it has ended
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                links.append(os.readlink(each))
    return sum(link.removeprefix("socket:[").removesuffix("]") in established for link in links)


def until(true: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def connected(stack: AsyncExitStack, address: str, count: int = CONNECTIONS) -> list[turnwire.Client]:
    """Clients with a connection each."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    made = [turnwire.Client.connect(address, options=options) for _ in range(count)]
    return [await stack.enter_async_context(each) for each in made]


async def test_connections_are_spread_and_one_session_stays_one(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", "--port", "0", "--log-format", "none") as (address, server):
        port = int(address.rpartition(":")[2])
        async with AsyncExitStack() as stack:
            clients = await connected(stack, address)
            await clients[0].append("s", [turn()], create=True)
            each = 15

            async def write(at: int, client: turnwire.Client) -> None:
                for number in range(each):
                    await client.append("s", [user(f"msg_{at}_{number}")])

            await asyncio.gather(*(write(at, client) for at, client in enumerate(clients)))
            # Once in 2,000 times all are with one by chance; then more are made.
            while not all(connections(pid, port) for pid in below(server.pid)):
                assert len(clients) < 3 * CONNECTIONS
                clients += await connected(stack, address, 1)
                await clients[-1].get_session("s")
            heads = {(await client.get_session("s")).head.digest for client in clients}
            assert len(heads) == 1
            found = [item.id async for item in clients[-1].replay("s") if isinstance(item, v1.User)]
            assert sorted(found) == sorted(f"msg_{at}_{n}" for at in range(CONNECTIONS) for n in range(each))
            entries = [entry.revision async for entry in clients[0].read_entries("s")]
            assert entries == list(range(1, len(found) + BEGINNING + 1))
            assert (await clients[0].verify_session("s")).sound


async def test_a_tail_sees_what_other_processes_write_and_a_retry_is_known_to_all(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", "--port", "0", "--log-format", "none") as (address, _):
        async with AsyncExitStack() as stack:
            clients = await connected(stack, address)
            await clients[0].append("s", [turn()], create=True)
            seen: list[list[int]] = [[] for _ in clients]

            async def follow(at: int, client: turnwire.Client) -> None:
                async for entry in client.tail("s"):
                    if isinstance(entry, v1.Entry):
                        seen[at].append(entry.revision)
                    if len(seen[at]) == CONNECTIONS + BEGINNING:
                        return

            async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
                for at, client in enumerate(clients):
                    group.create_task(follow(at, client))
                for at, client in enumerate(clients):
                    await client.append("s", [user(f"msg_{at}")])
            assert seen == [list(range(1, CONNECTIONS + BEGINNING + 1))] * CONNECTIONS
            replies = [await client.append("s", [user("msg_once")], request_id="req_1") for client in clients]
            assert {reply.head.revision for reply in replies} == {CONNECTIONS + BEGINNING + 1}


async def test_a_process_that_is_killed_is_replaced_and_clients_go_on(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", "--port", "0") as (address, server):
        async with AsyncExitStack() as stack:
            clients = await connected(stack, address)
            await clients[0].append("s", [turn()], create=True)
            other, killed = sorted(below(server.pid))
            for again in range(4):  # the same one, however often it dies
                os.kill(killed, signal.SIGKILL)
                for at, client in enumerate(clients):  # those of the other one, and those that have to connect again
                    await client.append("s", [user(f"msg_{again}_{at}")])
                until(lambda gone=killed: len(below(server.pid) - {gone}) == 2)
                assert f"process {killed} ended with -9" in (tmp_path / "log").read_text()
                (killed,) = below(server.pid) - {other}
            found = [item.id async for item in clients[0].replay("s") if isinstance(item, v1.User)]
            assert found == [f"msg_{again}_{at}" for again in range(4) for at in range(CONNECTIONS)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_one_signal_drains_all(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path / "a.db", "--port", "0", "--grace", "20") as (address, server):
        workers = below(server.pid)
        async with AsyncExitStack() as stack:
            clients = await connected(stack, address)
            await clients[0].create_session("s")

            async def follow(client: turnwire.Client, ready: asyncio.Event) -> None:
                async for _ in client.tail("s", patience=0):
                    ready.set()

            followed = [asyncio.Event() for _ in clients]
            tails = [asyncio.create_task(follow(*each)) for each in zip(clients, followed, strict=True)]
            for each in followed:
                await each.wait()
            server.send_signal(number)
            ended = await asyncio.gather(*tails, return_exceptions=True)
            assert all(isinstance(each, errors.Unavailable) for each in ended)
        assert await asyncio.to_thread(server.wait, WAIT_S) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


async def test_a_second_signal_ends_one_that_heeds_none(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", "--port", "0", "--log-format", "none") as (_, server):
        stopped, other = below(server.pid)
        os.kill(stopped, signal.SIGSTOP)
        server.send_signal(signal.SIGTERM)
        until(lambda: not running(other))
        server.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait, WAIT_S) == 0
        assert not running(stopped)


def test_they_end_when_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", "--port", "0") as (_, server):
        workers = below(server.pid)
        assert len(workers) == 2
        server.kill()
    until(lambda: not any(running(pid) for pid in workers))


def running(pid: int) -> bool:
    """Whether a process is there and has not ended (its parent may leave it as a zombie)."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def refused(*args: str) -> str:
    """What ``turnwire serve`` says when it does not start."""
    done = subprocess.run([sys.executable, "-m", "turnwire", *args], capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr


def test_a_port_is_shared_with_nobody_else(tmp_path: Path) -> None:
    other = str(tmp_path / "b.db")
    with serving(tmp_path / "a.db", "--port", "0") as (address, _):
        port = address.rpartition(":")[2]
        for more in ([], ["--workers", "2"]):
            assert f"cannot listen on {address}: it is in use" in refused("--db", other, "serve", "--port", port, *more)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = refused("--db", other, "serve", "--port", port, "--workers", "2")
        assert f"cannot listen on 127.0.0.1:{port}: it is in use" in said


def test_of_two_that_start_at_once_on_one_port_one_is_refused(tmp_path: Path) -> None:
    """Else a client would reach the one's store or the other's, by chance."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    serve = ["serve", "--port", port, "--workers", "2", "--log-format", "none"]
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "turnwire", "--db", str(tmp_path / name), *serve],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a.db", "b.db")
    ]
    try:
        lines = [each.stdout.readline() for each in servers if each.stdout is not None]
        assert sorted(lines) == ["", f"listening on 127.0.0.1:{port}\n"]
        refused = servers[lines.index("")]
        assert refused.wait(WAIT_S) == 2
        assert refused.stderr is not None
        assert f"cannot listen on 127.0.0.1:{port}: it is in use" in refused.stderr.read()
    finally:
        for each in servers:
            each.kill()
            each.communicate()


def test_no_module_is_taken_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("raise SystemExit('of the working directory')")
    arguments = ["--db", str(tmp_path / "a.db"), "serve", "--port", "0", "--workers", "2", "--log-format", "none"]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "turnwire", *arguments],  # which is how the program turnwire starts
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("listening on ")
        server.terminate()
        assert server.wait(WAIT_S) == 0


def test_what_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    said = refused("--db", str(tmp_path / "a.db"), "serve", "--workers", "2", "--socket", str(tmp_path / "s"))
    assert "--workers share a port, and --socket has none" in said
    said = refused("--db", ":memory:", "serve", "--workers", "2")
    assert "--workers share a file, and a store in memory has none" in said
    (tmp_path / "text.db").write_text("no store " * 100)
    assert "the file is not a store of Turnwire" in refused(
        "--db", str(tmp_path / "text.db"), "serve", "--workers", "2"
    )


async def test_processes_that_cannot_start_are_not_started_for_ever(tmp_path: Path) -> None:
    workers = Workers(tmp_path / "a.db", 2, options=Options("127.0.0.1:0"), module="turnwire.no_such_module")
    told: list[Any] = []
    with pytest.raises(errors.InternalError, match="ended with 1 before it listened"):
        await workers.serve_until_signal(lambda: told.append(1))
    assert told == []
