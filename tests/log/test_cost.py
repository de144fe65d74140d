"""Cost grows with what is new: counted in look-ups and rows, never in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.builders import (
    append,
    assistant,
    clear,
    delta,
    get_message,
    opened,
    put,
    remove,
    replay,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from turnwire import v1
from turnwire.engine import Engine
from turnwire.store.base import Change, EntryRow, SessionRow, Snapshot, Stretch, Version, View
from turnwire.store.memory import MemoryStore

T = TypeVar("T")


class CountingView:
    """A view that counts the look-ups, and the rows that they return, by the name of the method."""

    def __init__(self, view: Any, counts: Counter[str]) -> None:
        self._view = view
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._view, name)
        if not callable(attribute):
            return attribute

        def counted(*arguments: Any) -> Any:
            found = attribute(*arguments)
            self._counts[name] += len(found) if isinstance(found, list) else 1
            return found

        return counted


class CountingStore(MemoryStore):
    """A store that counts what appends look up and what reads touch."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_up: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.touched: Counter[str] = Counter()

    async def read(self, session: SessionRow, use: Callable[[Snapshot], T]) -> T:
        return await super().read(session, lambda snapshot: use(self._counted(snapshot)))

    async def entries(self, session: SessionRow, first: int, last: int, limit_bytes: int) -> list[EntryRow]:
        found = await super().entries(session, first, last, limit_bytes)
        self.touched["entries"] += len(found)
        return found

    async def write(self, tenant: str, session_id: str, step: Callable[[View], tuple[Change | None, T]]) -> T:
        def counted(view: View) -> tuple[Change | None, T]:
            wrapped: Any = CountingView(view, self.looked_up)
            change, result = step(wrapped)
            if change is not None:
                for name in ("entries", "ended", "live", "names", "puts", "spans"):
                    self.changed[name] += len(getattr(change, name))
            return change, result

        return await super().write(tenant, session_id, counted)

    def _counted(self, snapshot: Snapshot) -> Any:
        return CountingSnapshot(snapshot, self.touched)


class CountingSnapshot(CountingView):
    """The same for a reader; versions count as they are taken."""

    def versions(self, *arguments: Any) -> Iterator[Version]:
        for version in self._view.versions(*arguments):
            self._counts["versions"] += 1
            yield version

    def pieces(self, *arguments: Any) -> Iterator[Version | Stretch]:
        for piece in self._view.pieces(*arguments):
            self._counts["versions"] += len(piece.versions()) if isinstance(piece, Stretch) else 1
            yield piece


async def counts(engine: Engine, *entries: v1.EntryInput) -> tuple[Counter[str], Counter[str]]:
    """What one append looks up and changes."""
    store = engine.store
    assert isinstance(store, CountingStore)
    store.looked_up.clear()
    store.changed.clear()
    await append(engine, "s", *entries)
    return Counter(store.looked_up), Counter(store.changed)


@pytest.fixture
def engine() -> Engine:
    return Engine(CountingStore())


def everyday(at: int) -> list[list[v1.EntryInput]]:
    """One of every append, as number ``at``."""
    return [
        [turn(f"t{at}"), user(f"u{at}", text(f"p{at}", "hi"), turn=f"t{at}")],
        [assistant(f"a{at}", text(f"q{at}", ""), tool(f"r{at}", "c"), parent=f"u{at}", turn=f"t{at}")],
        [delta(f"q{at}", 0, "one")],
        [delta(f"q{at}", 3, "two")],
        [put(f"a{at}", tool(f"r{at}", "c", output="x"))],
        [put(f"a{at}", text(f"s{at}"), before=f"r{at}")],
        [summary(f"u{at}")],
        [user(f"v{at}", before=f"a{at}", turn=f"t{at}")],
        [remove(f"v{at}")],
        [revert(f"a{at}")],
        [clear()],
        [revert(f"a{at}", f"r{at}")],
        [assistant(f"a{at}", completed=True, turn=f"t{at}")],
    ]


async def test_an_append_at_entry_10000_costs_what_it_costs_at_entry_10(engine: Engine) -> None:
    await opened(engine, "s", *(user(f"x{at}") for at in range(8)))
    early = [await counts(engine, *entries) for entries in everyday(1)]
    for start in range(0, 9_960, 830):
        entries: list[v1.EntryInput] = []
        for at in range(start, start + 830, 2):
            entries += [user(f"m{at}", text(f"n{at}")), assistant(f"m{at + 1}", text(f"n{at + 1}"))]
        await append(engine, "s", *entries)
    assert (await engine.store.session("", "s")).head > 9_980
    late = [await counts(engine, *entries) for entries in everyday(2)]
    assert late == early


async def test_the_thousandth_delta_and_part_cost_what_the_first_costs(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", text("p", ""), tool("r", "c0")))
    costs = []
    for at in range(1000):
        looked_up, changed = await counts(engine, delta("p", 2 * at, "xy"))
        costs.append((looked_up, changed))
    assert costs[1] == costs[-1]
    first = await counts(engine, put("a", tool("q0", "c1")))
    for at in range(1, 1000):
        await append(engine, "s", put("a", tool(f"q{at}", f"c{at + 1}")))
    assert await counts(engine, put("a", tool("last", "last"))) == first
    updates = [await counts(engine, put("a", tool("r", "c0", output=str(at)))) for at in range(1000)]
    assert updates[0] == updates[-1]


async def test_an_append_of_many_costs_the_sum(engine: Engine) -> None:
    """Ten times as many parts in a put are ten times the look-ups, and no more."""
    await opened(engine, "s")
    small, _ = await counts(engine, user("u1", *(text(f"p{at}") for at in range(100))))
    large, _ = await counts(engine, user("u2", *(text(f"q{at}") for at in range(1000))))
    assert sum(large.values()) <= 10 * sum(small.values())


async def test_ten_thousand_parts_in_one_put(engine: Engine) -> None:
    """The most that a message may have; a put that looked at all the others for each would not end."""
    await opened(engine, "s", user("u", *(text(f"p{at}") for at in range(10_000))))
    assert len((await get_message(engine, "s", "u")).messages[0].parts) == 10_000


async def long_session(engine: Engine) -> None:
    await opened(engine, "s")
    for start in range(0, 2000, 200):
        entries: list[v1.EntryInput] = []
        for at in range(start, start + 200, 2):
            entries.append(turn(f"t{at}"))
            entries.append(user(f"m{at}", text(f"p{at}"), turn=f"t{at}"))
            entries.append(assistant(f"m{at + 1}", text(f"p{at + 1}"), turn=f"t{at}"))
        await append(engine, "s", *entries)


async def test_the_last_turn_touches_only_what_it_returns(engine: Engine) -> None:
    await long_session(engine)
    store = engine.store
    assert isinstance(store, CountingStore)
    store.touched.clear()
    history = await replay(engine, "s", last_turns=1)
    assert history.ids == ["m1998", "m1999"]
    assert store.touched["versions"] == 4
    assert store.touched["headers_back"] <= 64
    assert store.touched["entry"] <= 3
    assert store.touched["entries"] == 0
    store.touched.clear()
    await replay(engine, "s", last_turns=20)
    assert store.touched["versions"] == 80
    assert store.touched["headers_back"] <= 64


async def test_a_message_and_a_range_touch_only_what_they_return(engine: Engine) -> None:
    await long_session(engine)
    store = engine.store
    assert isinstance(store, CountingStore)
    store.touched.clear()
    await get_message(engine, "s", "m1000")
    assert store.touched["versions"] == 3  # its header once more, to find it
    store.touched.clear()
    await replay(engine, "s", range=v1.MessageRange(from_id="m1000", to_id="m1009"))
    assert store.touched["versions"] == 22


async def test_a_part_with_a_thousand_versions_is_read_once(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", tool("p", "c"), text("q", "")))
    for at in range(1000):
        await append(engine, "s", put("a", tool("p", "c", output=str(at))), delta("q", at, "x"))
    store = engine.store
    assert isinstance(store, CountingStore)
    store.touched.clear()
    history = await replay(engine, "s")
    assert history.part("p").tool.output == "999"
    assert history.part("q").text.text == "x" * 1000
    assert store.touched["versions"] == 3
    assert store.touched["entry"] == 1001  # the turn and the deltas


async def test_C66_what_is_stored_is_linear_in_what_was_sent(engine: Engine) -> None:
    """A text of 1 MB in a thousand deltas."""
    chunk = "x" * 1000
    await opened(engine, "s", assistant("a", text("p", "")))
    for at in range(1000):
        await append(engine, "s", delta("p", 1000 * at, chunk))
    session = await engine.store.session("", "s")
    stored = await engine.store.entries(session, 1, session.head, 1 << 30)
    assert sum(len(row.payload) for row in stored) < 1_012_000
    assert (await replay(engine, "s")).part("p").text.text == chunk * 1000
