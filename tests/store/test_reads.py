"""Random logs: what a store reads at every revision is what the fold of the entries gives, and forks are equal.

The log is written to every kind of store at once, through the engine, so that the stores are also held against one
another in what they refuse.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import (
    append,
    assistant,
    clear,
    delta,
    fork,
    made,
    properties,
    put,
    read,
    remove,
    remove_part,
    replay,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from tests.conftest import open_store
from turnwire import errors, ids, v1
from turnwire.engine import Caller, Engine
from turnwire.log.fold import Folded, FoldedMessage, fold
from turnwire.store.base import HEADER_SLOT, Snapshot, Store, Version

KINDS = ("memory", "sqlite")
_TURNS = ["t", "t1", "t2"]
_TEXTS = ["", "a", "\0", "😀", "long " * 9]


def _new(prefix: str, serial: int, index: int = 0) -> str:
    """An id that ascends as those do that are made within a few milliseconds; one in five is of another form."""
    if serial % 5 == 4:
        return f"{prefix[0]}{serial}.{index}"
    return made(prefix, (serial ^ 3) * 10 + index)


@dataclass(frozen=True)
class Choices:
    """An entry that is still to be made: what it does, and numbers that pick from what there is then."""

    what: int
    numbers: tuple[int, ...]

    def entry(self, state: Folded, serial: int) -> v1.EntryInput:
        """Make the entry for a session in this state; it mostly fits, but need not."""
        a, b, c, d = self.numbers
        messages = list(state.places) or [None]
        message = messages[a % len(messages)]
        id = message.id if message is not None else "none"
        held = [part for each in state.places for part in each.places]
        part_id = held[b % len(held)].id if held else "none"
        before = None if c % 3 else messages[c % len(messages)]
        new = [self._part(_new(ids.PART, serial, index), index) for index in range(b % 4)]
        new_id = _new(ids.MESSAGE, serial)
        match self.what:
            case 0 | 1:
                texts = [part for part in new if part.HasField("text")]
                return user(new_id, *texts, turn=_TURNS[d % 3], before=before.id if before else None)
            case 2 | 3:
                return assistant(new_id, *new, turn=_TURNS[d % 3], before=before.id if before else None)
            case 4:  # a header again, with or without parts that are there and parts that are not
                mine = [part.id for part in message.places] if message else []
                again = [self._part(each, 0) for each in mine[: d % 3]]
                make = user if isinstance(message and message.header, v1.User) else assistant
                return make(id, *again, *new[: c % 2], turn=_TURNS[d % 3])
            case 5:
                mine = [part.id for part in message.places] if message else []
                before_part = mine[c % len(mine)] if mine and d % 2 else None
                return put(id, self._part(_new(ids.PART, serial, 9), d), before=before_part)
            case 6:
                owner = next((each.id for each in state.places for part in each.places if part.id == part_id), id)
                return put(owner, self._part(part_id, d))
            case 7 | 8:
                open_parts = [
                    part for part in held if part.built().HasField("text") and not part.put.text.time.HasField("end")
                ]
                part = open_parts[b % len(open_parts)] if open_parts else None
                length = len(part.built().text.text.encode()) if part else 0
                return delta(part.id if part else "none", length + (c % 9 == 0), _TEXTS[1 + d % 4])
            case 9:
                return remove(id) if c % 3 == 0 else remove_part(part_id)
            case 10:
                return clear() if state.revert else revert(id, part_id if c % 2 and part_id in _ids(message) else None)
            case _:
                return summary(id, _TEXTS[d % 5])

    def _part(self, id: str, salt: int) -> v1.PromptPart:
        pick = self.numbers[3] + salt
        if pick % 5 == 0:
            return tool(id, f"c{id}", output=_TEXTS[pick % 5])
        return text(id, _TEXTS[pick % 5], ended=pick % 7 == 0)


def _ids(message: FoldedMessage | None) -> list[str]:
    return [part.id for part in message.places] if message else []


choices = st.builds(Choices, st.integers(0, 11), st.tuples(*[st.integers(0, 99)] * 4))


@dataclass
class Stores:
    """One engine over each kind of store, written to alike."""

    engines: list[Engine] = field(default_factory=list)

    async def append(self, session_id: str, entries: list[v1.EntryInput]) -> None:
        """Append to all, and see that they agree in the outcome."""
        outcomes: list[str] = []
        for engine in self.engines:
            try:
                response = await append(engine, session_id, *entries)
            except errors.TurnwireError as error:
                outcomes.append(f"{error.reason_name} {error.path}")
            else:
                outcomes.append(str(response))
        assert len(set(outcomes)) == 1, outcomes

    async def choose(self, session_id: str, chosen: list[Choices], serial: int) -> None:
        """Append what fits the session now."""
        state = fold(await read(self.engines[0], session_id))
        entries = [each.entry(state, serial * 10 + index) for index, each in enumerate(chosen)]
        await self.append(session_id, entries)


def shown(state: Folded) -> list[tuple[bytes, bytes]]:
    """Messages and summaries of a fold as bytes."""
    return [
        (
            message.built().SerializeToString(deterministic=True),
            message.summary.SerializeToString(deterministic=True) if message.summary else b"",
        )
        for message in state.messages()
    ]


async def replayed(engine: Engine, session_id: str, revision: int) -> list[tuple[bytes, bytes]]:
    history = await replay(engine, session_id, revision, summaries=True)
    return [
        (
            message.SerializeToString(deterministic=True),
            history.summaries[message.id].SerializeToString(deterministic=True)
            if message.id in history.summaries
            else b"",
        )
        for message in history.messages
    ]


async def all_versions(store: Store, session_id: str, revision: int, *, limit: int = 1000) -> list[Version]:
    """All versions valid at a revision, so many to a snapshot."""
    session = await store.session("", session_id)
    found: list[Version] = []
    first = (b"", HEADER_SLOT)
    while page := await store.read(session, partial(some, revision=revision, first=first, limit=limit)):
        assert len(page) <= limit
        found += page
        first = (page[-1][0], page[-1][1] + b"\0")
    return found


def some(snapshot: Snapshot, revision: int, first: tuple[bytes, bytes], limit: int) -> list[Version]:
    return list(islice(snapshot.versions(revision, first, None), limit))


def as_at(versions: list[Version]) -> list[tuple[Any, ...]]:
    """The versions without their last deltas: a store may know later ones, and what is built of them is the same."""
    return [(*version[:5], version[6]) for version in versions]


async def check_reads(stores: Stores) -> None:
    reference = stores.engines[0]
    entries = await read(reference, "s")
    head = entries[-1].revision
    for engine in stores.engines[1:]:
        assert [entry.SerializeToString() for entry in await read(engine, "s")] == [
            entry.SerializeToString() for entry in entries
        ]
    for revision in range(1, head + 1):
        expected = shown(fold(entries, revision))
        whole = as_at(await all_versions(reference.store, "s", revision))
        for engine in stores.engines:
            assert await replayed(engine, "s", revision) == expected
            for limit in (1000, 1, 2, 3):
                paged = await all_versions(engine.store, "s", revision, limit=limit)
                assert as_at(paged) == whole
            await check_bounds(engine.store, revision, whole)


async def check_bounds(store: Store, revision: int, whole: list[tuple[Any, ...]]) -> None:
    """Every range of versions, and the headers backwards."""
    session = await store.session("", "s")
    places = [version[:2] for version in whole]

    def ask(snapshot: Snapshot) -> None:
        for at in range(0, len(places), 3):
            for end in {len(places) - 1, at + 1, at + 4} & set(range(len(places))):
                found = [version[:2] for version in snapshot.versions(revision, places[at], places[end])]
                assert found == places[at:end]
        headers = [version for version in whole if version[1] == HEADER_SLOT][::-1]
        assert [node.place for node in snapshot.headers_back(revision, None, 100)] == [row[0] for row in headers]
        if len(headers) > 1:
            (second,) = snapshot.headers_back(revision, headers[0][0], 1)
            assert (second.place, second.born) == (headers[1][0], headers[1][3])

    await store.read(session, ask)


async def check_forks(stores: Stores, revision: int, later: list[Choices]) -> None:
    """A fork is its parent at that revision, in every row, and goes on as the parent would have."""
    for engine in stores.engines:
        await fork(engine, "s", "f", revision)
        assert [without_digest(entry) for entry in (await read(engine, "f"))[1:]] == [
            without_digest(entry) for entry in (await read(engine, "s", last=revision))[1:]
        ]
        for at in range(1, revision + 1):
            assert await replayed(engine, "f", at) == await replayed(engine, "s", at)
        verified = await engine.verify_session(Caller(), v1.VerifySessionRequest(session_id="f"))
        assert (verified.sound, verified.head.revision) == (True, revision)
    for serial, each in enumerate(later):
        await stores.choose("f", [each], 1000 + serial)
    entries = await read(stores.engines[0], "f")
    for engine in stores.engines:
        assert await replayed(engine, "f", entries[-1].revision) == shown(fold(entries))


def without_digest(entry: v1.Entry) -> bytes:
    """An entry without its digest, which is of its session."""
    copy = v1.Entry.FromString(entry.SerializeToString())
    copy.digest = b""
    return copy.SerializeToString()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    writes=st.lists(st.lists(choices, min_size=1, max_size=3), min_size=4, max_size=25),
    at=st.integers(1, 60),
    later=st.lists(choices, max_size=6),
)
def test_every_read_is_the_fold(writes: list[list[Choices]], at: int, later: list[Choices]) -> None:
    async def run() -> None:
        with TemporaryDirectory() as directory:
            stores = Stores([Engine(await open_store(kind, Path(directory))) for kind in KINDS])
            for engine in stores.engines:
                engine.now_us = lambda: 1_700_000_000_000_000  # type: ignore[method-assign]  # one clock for all
                await append(engine, "s", *map(turn, _TURNS), create=properties())
            for serial, chosen in enumerate(writes):
                await stores.choose("s", chosen, serial)
            await check_reads(stores)
            head = (await stores.engines[0].store.session("", "s")).head
            await check_forks(stores, min(at, head), later)
            for engine in stores.engines:
                await engine.close()

    asyncio.run(run())


async def test_a_message_longer_than_a_page_of_nodes(engine: Engine) -> None:
    """Pages begin and end in the middle of a message, and of an entry that is fetched apart."""
    names = [f"p{at:02}" for at in range(60)]
    await append(engine, "s", turn(), assistant("a", *(text(name, "x" * 3000) for name in names)), create=True)
    await append(engine, "s", put("a", text("q", "new"), before="p30"))
    whole = await all_versions(engine.store, "s", 4)
    assert len(whole) == 62
    for limit in (1, 7, 61):
        assert await all_versions(engine.store, "s", 4, limit=limit) == whole
    parts = [v1.PromptPart.FromString(version[-1]) for version in whole if version[1] != HEADER_SLOT]
    assert [part.id for part in parts] == [*names[:30], "q", *names[30:]]
