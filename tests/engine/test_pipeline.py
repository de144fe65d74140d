"""The pipeline behind AppendStream: order, concurrency, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from turnwire import errors, v1
from turnwire.engine.pipeline import Given, Pipeline


class Appender:
    """Appends that last until they are let go; notes when each began and ended."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []  # which were given together
        self.running: list[str] = []
        self.most = 0
        self.gates: dict[str, asyncio.Event] = {}
        self.ended: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, given: Sequence[Given]) -> list[v1.AppendResponse | Exception]:
        self.groups.append([request.request_id for request, _ in given])
        return [await self._one(name) for name in self.groups[-1]]

    async def _one(self, name: str) -> v1.AppendResponse | Exception:
        self.running.append(name)
        self.most = max(self.most, len(self.running))
        try:
            await self.gates.setdefault(name, asyncio.Event()).wait()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            self.running.remove(name)
        self.ended.append(name)
        if name.startswith("bad"):
            return errors.UnknownTurn("no", turn_id=name)
        return v1.AppendResponse(head=v1.Head(revision=len(self.ended)))

    def let_go(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()


def request(session_id: str, name: str) -> v1.AppendRequest:
    return v1.AppendRequest(session_id=session_id, request_id=name)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_sessions_are_appended_together_and_each_in_order() -> None:
    append = Appender()
    pipeline = Pipeline(append, size=1000)
    for session, name in (("s1", "a1"), ("s1", "a2"), ("s2", "b1"), ("s1", "a3"), ("s3", "c1")):
        await pipeline.put(request(session, name), None, 1)
    pipeline.end()
    await settled()
    assert sorted(append.running) == ["a1", "b1", "c1"]
    append.let_go("b1", "c1")
    await settled()
    assert append.ended == ["b1", "c1"]
    append.let_go("a1", "a2", "a3")
    outcomes = [outcome async for ready in pipeline.outcomes() for outcome in ready]
    assert append.ended == ["b1", "c1", "a1", "a2", "a3"]
    assert [each.head.revision for each in outcomes if isinstance(each, v1.AppendResponse)] == [3, 4, 1, 5, 2]


async def test_a_refused_one_ends_nothing() -> None:
    append = Appender()
    pipeline = Pipeline(append, size=1000)
    append.let_go("bad", "a", "b")
    await pipeline.put(request("s1", "a"), None, 1)
    await pipeline.put(request("s1", "bad"), None, 1)
    await pipeline.refuse(errors.PartTooLarge("large"), 1)
    await pipeline.put(request("s1", "b"), None, 1)
    pipeline.end()
    outcomes = [type(outcome) async for ready in pipeline.outcomes() for outcome in ready]
    assert outcomes == [v1.AppendResponse, errors.UnknownTurn, errors.PartTooLarge, v1.AppendResponse]


async def test_outcomes_that_are_there_come_together() -> None:
    append = Appender()
    pipeline = Pipeline(append, size=1000)
    for name in ("a", "b", "c", "d"):
        await pipeline.put(request(f"s{name}", name), None, 1)
    pipeline.end()
    append.let_go("a", "b", "d")
    await settled()
    outcomes = pipeline.outcomes()
    assert len(await anext(outcomes)) == 2
    append.let_go("c")
    assert [len(ready) async for ready in outcomes] == [2]


async def test_a_fault_comes_behind_the_outcomes_before_it() -> None:
    async def faulty(given: Sequence[Given]) -> list[v1.AppendResponse | Exception]:
        ((asked, _),) = given
        return [v1.AppendResponse() if asked.request_id == "a" else ZeroDivisionError()]

    pipeline = Pipeline(faulty, size=1000)
    for name in ("a", "b"):
        await pipeline.put(request(f"s{name}", name), None, 1)
    await settled()
    outcomes = pipeline.outcomes()
    assert len(await anext(outcomes)) == 1
    with pytest.raises(ZeroDivisionError):
        await anext(outcomes)


async def test_what_comes_meanwhile_is_appended_together() -> None:
    append = Appender()
    pipeline = Pipeline(append, size=10_000_000, requests=200)
    mib = 1024 * 1024
    for name, size in (
        ("a", 1),
        ("b", 1),
        ("c", mib - 1),
        ("d", 2 * mib),
        ("e", 1),
        *((f"n{n}", 1) for n in range(70)),
    ):
        append.let_go(*([name] if name != "a" else []))
        await pipeline.put(request("s1", name), None, size)
        await settled()
    pipeline.end()
    append.let_go("a")
    assert len([outcome async for ready in pipeline.outcomes() for outcome in ready]) == 75
    assert append.groups[:3] == [["a"], ["b", "c"], ["d"]]
    assert [len(group) for group in append.groups[3:]] == [64, 7]


async def test_what_fails_for_all_is_the_outcome_of_each() -> None:
    async def full(given: Sequence[Given]) -> list[v1.AppendResponse | Exception]:
        raise errors.StoreFull("no room")

    pipeline = Pipeline(full, size=1000)
    for name in ("a", "b"):
        await pipeline.put(request("s1", name), None, 1)
    pipeline.end()
    assert [type(outcome) async for ready in pipeline.outcomes() for outcome in ready] == [errors.StoreFull] * 2


@pytest.mark.parametrize(("size", "each", "together"), [(1000, 1, 4), (10, 4, 2), (10, 99, 1)])
async def test_what_is_under_way_is_bounded(size: int, each: int, together: int) -> None:
    """By number (4 here) and by bytes; one always fits."""
    append = Appender()
    pipeline = Pipeline(append, size=size, requests=4)
    put = 0

    async def produce() -> None:
        nonlocal put
        for number in range(20):
            await pipeline.put(request(f"s{number}", f"a{number}"), None, each)
            put += 1
        pipeline.end()

    producing = asyncio.create_task(produce())
    await settled()
    assert put == together
    append.let_go(*(f"a{n}" for n in range(20)))
    await settled()
    assert put == together, "an outcome that nobody took still holds its room"
    assert len([outcome async for ready in pipeline.outcomes() for outcome in ready]) == 20
    await producing
    assert append.most == together


async def test_stop_cancels_what_waits() -> None:
    append = Appender()
    pipeline = Pipeline(append, size=1000)
    for name in ("a", "b", "c"):
        await pipeline.put(request("s1", name), None, 1)
    await settled()
    await pipeline.stop()
    assert append.cancelled == ["a"]
    assert append.running == []
    await pipeline.stop()
