"""The blocking face: the same flow without async."""

from __future__ import annotations

import inspect
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import turnwire
from tests.client.flow import MODEL, turn, user
from turnwire import blocking, errors, v1
from turnwire.calls import Service

if TYPE_CHECKING:
    from turnwire.blocking import Service as Blocking

SERVE = """
import asyncio, sys
from turnwire.engine import Engine
from turnwire.server import Options, Server
from turnwire.store.memory import MemoryStore

async def main():
    async with Server(Engine(MemoryStore()), Options(address="127.0.0.1:0")) as server:
        print(server.address, flush=True)
        await server.serve_until_signal()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture(params=["embedded", "grpc"])
def tw(request: pytest.FixtureRequest, tmp_path: Path, address: str) -> Iterator[Blocking]:
    if request.param == "embedded":
        with blocking.open(tmp_path / "turnwire.db") as opened:
            yield opened
    else:
        with blocking.connect(address) as connected:
            yield connected


def test_the_ordinary_flow(tw: Blocking) -> None:
    session = tw.open_session(title="A talk")
    turn = session.start_turn("build", model=MODEL)
    question = turn.add_user("hello")
    draft = turn.prompt()
    draft.push("go on")
    prompt = draft.record()
    assert prompt.digest == draft.editor.digest()
    with turn.answer() as answer:
        answer.text("it is ")
        answer.text("so")
        call = answer.tool("bash", input={"cmd": "ls"})
        call.running()
        call.completed("a")
    history = session.history()
    assert [each.id for each in history.messages] == [question.id, answer.id]
    assert history.messages[1].parts[0].text.text == "it is so"
    assert session.revision == history.revision
    assert session.service.get_session(session.id).properties.title == "A talk"
    with pytest.raises(ZeroDivisionError), turn.answer() as failing:
        raise ZeroDivisionError
    message = tw.get_message(session.id, failing.id).message
    assert isinstance(message, v1.Assistant)
    assert message.result.failure.unknown.name == "ZeroDivisionError"


def test_iterators(tw: Blocking) -> None:
    session = tw.create_session()
    tw.append(session.id, [turn(), *(user(f"msg_{n}", "x") for n in range(10))])
    assert [type(item) for item in tw.replay(session.id)] == [v1.Turn, *[v1.User] * 10, v1.Head]
    assert [entry.revision for entry in tw.read_entries(session.id, 3, 5)] == [3, 4, 5]
    assert [entry.revision for entry in tw.tail(session.id, 9, follow=False)] == [10, 11, 12]
    assert session.id in [each.id for each in tw.list_sessions(page_size=1)]
    tail = tw.tail(session.id)
    assert next(tail).revision == 1
    tail.close()


def test_a_live_tail_in_another_thread(tw: Blocking) -> None:
    session = tw.create_session()
    tw.append(session.id, [turn()])
    seen: list[int] = []

    def follow() -> None:
        seen.extend(entry.revision for _, entry in zip(range(5), tw.tail(session.id), strict=False))

    follower = threading.Thread(target=follow)
    follower.start()
    for number in range(3):
        time.sleep(0.02)
        tw.append(session.id, [user(f"msg_{number}", "x")])
    follower.join(5)
    assert seen == [1, 2, 3, 4, 5]


def test_append_stream_takes_an_iterator_that_calls_back(tw: Blocking) -> None:
    session = tw.create_session()

    def requests() -> Iterator[v1.AppendRequest]:
        yield turnwire.append_request(session.id, [turn()])
        assert tw.get_session(session.id).id == session.id
        yield turnwire.append_request(session.id, [user("msg_1", "x")])
        yield turnwire.append_request("ses_none", [turn()])

    outcomes = list(tw.append_stream(requests()))
    assert [type(each) for each in outcomes] == [v1.AppendResponse, v1.AppendResponse, errors.SessionNotFound]


def test_requests_that_never_come_hold_up_no_closing(tmp_path: Path) -> None:
    """A queue is read in a thread, which nobody can end; it ends with the next request, or with the program."""
    given: queue.SimpleQueue[v1.AppendRequest] = queue.SimpleQueue()
    given.put(turnwire.append_request("ses_1", [turn()], create=True))

    def run() -> None:
        with blocking.open(tmp_path / "turnwire.db") as tw:
            outcomes = tw.append_stream(iter(given.get, None))
            assert isinstance(next(outcomes), v1.AppendResponse)
            outcomes.close()

    running = threading.Thread(target=run, daemon=True)
    running.start()
    running.join(10)
    assert not running.is_alive()
    given.put(turnwire.append_request("ses_1", [user("msg_1", "x")]))
    with blocking.open(tmp_path / "turnwire.db") as tw:
        assert tw.get_session("ses_1").head.revision == 2


def test_many_threads(tw: Blocking) -> None:
    session = tw.create_session()
    tw.append(session.id, [turn()])
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: tw.append(session.id, [user(f"msg_{n}", "x")]), range(40)))
    assert tw.get_session(session.id).head.revision == 42


def test_errors_and_limits(tw: Blocking) -> None:
    with pytest.raises(errors.SessionNotFound):
        tw.get_session("ses_none")
    session = tw.create_session()
    with pytest.raises(errors.DeadlineExceeded):
        list(tw.within(0.1).tail(session.id))


def test_a_callback_cannot_block_its_own_thread(tw: Blocking) -> None:
    session = tw.create_session()
    caught: list[str] = []

    def on_caught_up(head: v1.Head) -> None:
        try:
            tw.get_session(session.id)
        except RuntimeError as error:
            caught.append(str(error))

    list(tw.tail(session.id, follow=False, on_caught_up=on_caught_up))
    assert caught == ["a callback cannot call a blocking method"]


def test_closing(tmp_path: Path) -> None:
    threads = threading.active_count()
    tw = blocking.open(tmp_path / "turnwire.db")
    tail = tw.tail(tw.create_session().id)
    next(tail)
    ended: list[str] = []

    def follow() -> None:
        try:
            next(tail)
        except RuntimeError as error:
            ended.append(str(error))

    follower = threading.Thread(target=follow)
    follower.start()
    time.sleep(0.05)
    tw.close()
    tw.close()
    follower.join(5)
    tail.close()
    assert ended == ["it was closed"]
    assert threading.active_count() == threads
    with pytest.raises(RuntimeError, match="closed"):
        tw.server_info()


def test_what_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    threads = threading.active_count()
    (tmp_path / "other").write_bytes(b"no database" * 100)
    with pytest.raises(errors.StoreForeign):
        blocking.open(tmp_path / "other")
    assert threading.active_count() == threads


def test_every_method_is_there() -> None:
    for name, member in inspect.getmembers(Service, inspect.isfunction):
        if not name.startswith("_"):
            made = getattr(blocking.Service, name)
            if name != "close":  # which ends the thread too
                assert made.__doc__ == member.__doc__
                assert inspect.signature(made) == inspect.signature(member)
            assert not inspect.iscoroutinefunction(made)


def test_the_stub_is_up_to_date() -> None:
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "tools/blocking_stub.py", "--check"], cwd=root, check=False)
    assert found.returncode == 0, "run tools/blocking_stub.py"
