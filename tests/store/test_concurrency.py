"""Many callers at once, on every store."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    append,
    assistant,
    delete,
    delta,
    get_session,
    opened,
    properties,
    read,
    refused,
    replay,
    text,
    turn,
    user,
)
from turnwire import errors, v1
from turnwire.engine import Caller, Engine


async def test_c76_twenty_tasks_create_one_session(engine: Engine) -> None:
    async def first(number: int) -> v1.AppendResponse:
        return await append(engine, "s", turn(), user(f"u{number}", text(f"p{number}", "hi")), create=True)

    responses = await asyncio.gather(*(first(number) for number in range(20)))
    assert sum(response.created for response in responses) == 1
    entries = await read(engine, "s")
    # The properties and the turn are there once; the other nineteen found them.
    assert [entry.revision for entry in entries] == list(range(1, 23))
    history = await replay(engine, "s")
    assert sorted(history.ids) == sorted(f"u{number}" for number in range(20))


async def test_c74_reading_before_writing_never_fails(engine: Engine) -> None:
    await opened(engine)

    async def read_then_write(number: int) -> None:
        for step in range(10):
            await get_session(engine, "s")
            await append(engine, "s", user(f"u{number}.{step}"))

    await asyncio.gather(*(read_then_write(number) for number in range(2)))
    assert (await get_session(engine, "s")).head.revision == 22


async def test_c77_of_many_writers_at_one_revision_one_wins(engine: Engine) -> None:
    await opened(engine)

    async def claim(number: int) -> bool:
        try:
            await append(engine, "s", user(f"u{number}"), expected=2)
        except errors.RevisionConflict:
            return False
        return True

    assert sum(await asyncio.gather(*(claim(number) for number in range(10)))) == 1
    assert len((await replay(engine, "s")).ids) == 1


async def test_c81_a_writer_that_is_behind_is_told_and_one_that_does_not_care_is_not(engine: Engine) -> None:
    await opened(engine, "s", user("u1"), user("u2"), user("u3"))
    await append(engine, "s", user("a"), expected=5)
    with refused(errors.RevisionConflict, "expected_revision", expected=5, actual=6):
        await append(engine, "s", user("b"), expected=5)
    await append(engine, "s", user("b"))
    assert (await replay(engine, "s")).ids == ["u1", "u2", "u3", "a", "b"]


async def test_c83_one_request_id_many_times_at_once_is_one_write(engine: Engine) -> None:
    await opened(engine)

    async def send() -> bytes:
        response = await append(engine, "s", user("", text("", "hello")), request_id="r1")
        return response.SerializeToString(deterministic=True)

    replies = set(await asyncio.gather(*(send() for _ in range(12))))
    assert len(replies) == 1
    assert (await get_session(engine, "s")).head.revision == 3


async def test_c83_other_content_under_a_request_id_is_refused(engine: Engine) -> None:
    await opened(engine)
    await append(engine, "s", user("u"), request_id="r1")
    with refused(errors.RequestIdReused, request_id="r1"):
        await append(engine, "s", user("v"), request_id="r1")
    # The id is scoped to the session.
    await opened(engine, "s2")
    await append(engine, "s2", user("v"), request_id="r1")
    assert (await get_session(engine, "s")).head.revision == 3


async def test_a_refused_call_leaves_the_others_of_its_commit_alone(engine: Engine) -> None:
    await opened(engine)
    calls = [
        append(engine, "s", user(f"u{number}"), user("x", turn="t" if number % 3 else "unknown"))
        for number in range(12)
    ]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    refusals = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Exception)]
    assert refusals == [0, 3, 6, 9]
    assert all(type(outcomes[number]) is errors.UnknownTurn for number in refusals)
    shown = set((await replay(engine, "s")).ids)
    assert shown == {f"u{number}" for number in range(12) if number % 3} | {"x"}


async def test_writes_of_one_task_keep_their_order_among_many(engine: Engine) -> None:
    await opened(engine, "s", *(assistant(f"a{number}", text(f"p{number}")) for number in range(6)))

    async def stream(number: int) -> None:
        for step in range(15):
            await append(engine, "s", delta(f"p{number}", 2 * step, f"{step:02}"))

    await asyncio.gather(*(stream(number) for number in range(6)))
    history = await replay(engine, "s")
    expected = "".join(f"{step:02}" for step in range(15))
    assert [history.part(f"p{number}").text.text for number in range(6)] == [expected] * 6


async def test_c28_late_writes_find_the_session_deleted(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p")))
    written = 0

    async def stream() -> None:
        nonlocal written
        for step in range(1000):
            await append(engine, "s", delta("p", 7 * step, "secret."))
            written += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(stream())
    while written < 5:
        await asyncio.sleep(0.001)
    assert await delete(engine, "s") == ["s"]
    with pytest.raises(errors.SessionDeleted) as caught:
        await task
    assert "secret" not in str(caught.value) + str(caught.value.metadata)
    for late in (
        append(engine, "s", user("u")),
        append(engine, "s", turn(), create=True),
        append(engine, "s", turn(), create=properties(), request_id="r"),
    ):
        with refused(errors.SessionDeleted, session_id="s"):
            await late
    with refused(errors.SessionDeleted, session_id="s"):
        await replay(engine, "s")


async def test_a_cancelled_caller_does_not_disturb_the_others(engine: Engine) -> None:
    await opened(engine)
    tasks = [asyncio.create_task(append(engine, "s", user(f"u{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, v1.AppendResponse) for outcome in outcomes[1::2])
    shown = set((await replay(engine, "s")).ids)
    assert {f"u{number}" for number in range(1, 20, 2)} <= shown
    verified = await engine.verify_session(Caller(), v1.VerifySessionRequest(session_id="s"))
    assert verified.sound
    assert verified.head.revision == 2 + len(shown)
