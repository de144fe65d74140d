"""Blocks: entries that share a row are read as if each had its own, and stretches give way when they must."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import (
    CALLER,
    append,
    assistant,
    delta,
    fork,
    get_message,
    opened,
    parsed,
    properties,
    put,
    read,
    refused,
    remove,
    remove_part,
    replay,
    summary,
    text,
    turn,
    user,
)
from tests.store.test_reads import Choices, Stores, check_forks, check_reads, choices
from turnwire import errors, v1
from turnwire.engine import Engine
from turnwire.log import frames
from turnwire.store import sqlite_block, sqlite_tail, sqlite_view
from turnwire.store.memory import MemoryStore
from turnwire.store.sqlite import SqliteStore

MESSAGES, PARTS = 30, 4


def parts_of(at: int) -> list[str]:
    return [f"p{at}.{part}" for part in range(PARTS)]


def put_part_by_part(first: int, count: int) -> list[v1.EntryInput]:
    """Messages, each as a header and then its parts."""
    found: list[v1.EntryInput] = []
    for at in range(first, first + count):
        found.append(assistant(f"a{at}"))
        found += (put(f"a{at}", text(id, f"text of {id} ")) for id in parts_of(at))
    return found


def rows(path: Path) -> tuple[list[int], list[int]]:
    """Of the entries the numbers that share a row (1: alone); of the index the number of its rows, and of stretches."""
    db = sqlite3.connect(path)
    shared = [back + 1 if mark == 0 else 1 for mark, back in db.execute("SELECT mark, back FROM entry ORDER BY pos")]
    index = db.execute("SELECT count(*), count(*) FILTER (WHERE mark = -1) FROM node").fetchone()
    db.close()
    return shared, list(index)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.db"


@pytest.fixture
def sqlite(path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    # However busy the machine is: what the tests count is there once the index is.
    monkeypatch.setattr("turnwire.store.sqlite._INDEXING_S", 60)
    return Engine(SqliteStore.open(path))


async def test_small_entries_share_a_row_and_their_versions_another(sqlite: Engine, path: Path) -> None:
    await opened(sqlite)
    await append(sqlite, "s", *put_part_by_part(0, MESSAGES))
    shared, index = rows(path)
    assert shared == [1, 1, MESSAGES * (1 + PARTS)]  # the properties and the turn were put before
    assert index == [1, 1]
    history = await replay(sqlite, "s")
    assert history.shape == {f"a{at}": parts_of(at) for at in range(MESSAGES)}
    assert history.part("p7.2").text.text == "text of p7.2 "
    assert [entry.revision for entry in await read(sqlite, "s")] == [*range(1, 3 + MESSAGES * (1 + PARTS))]
    await sqlite.close()


async def test_a_block_fills_a_page_at_most(sqlite: Engine, path: Path) -> None:
    await opened(sqlite)
    sizes = [1, 100, 900, 2000, 5]
    await append(sqlite, "s", *(user(f"u{at}", text(f"p{at}", "x" * sizes[at // 40 % 5])) for at in range(800)))
    shared, _ = rows(path)
    assert sum(shared) == 802
    assert max(shared) > 100
    assert shared.count(1) >= 160  # what is not small has a row of its own
    db = sqlite3.connect(path)
    ((longest,),) = db.execute("SELECT max(length(payload)) FROM entry WHERE mark = 0")
    assert longest < 16_300
    try:
        overflow = db.execute("SELECT count(*) FROM dbstat WHERE name = 'entry' AND pagetype = 'overflow'").fetchone()
        assert overflow == (0,)
    except sqlite3.OperationalError:  # this SQLite was built without dbstat
        pass
    db.close()
    await sqlite.close()


async def test_a_message_that_changes_leaves_its_stretch(sqlite: Engine, path: Path) -> None:
    await opened(sqlite)
    await append(sqlite, "s", *put_part_by_part(0, MESSAGES))
    before = (await replay(sqlite, "s", revision := 2 + MESSAGES * (1 + PARTS))).frames
    await append(sqlite, "s", put("a7", text("p7.2", "changed")), assistant("a9", completed=True))
    history = await replay(sqlite, "s")
    assert history.part("p7.2").text.text == "changed"
    assert [each.id for each in history.messages if each.time.HasField("completed")] == ["a9"]
    # Three stretches, and the two messages between them.
    assert rows(path)[1] == [3 + 2 * (1 + PARTS), 3]
    await append(sqlite, "s", assistant("new", before="a20"), put("a25", text("more"), before="p25.1"), remove("a3"))
    assert [id for id in (await replay(sqlite, "s")).ids if id in ("a19", "new", "a20")] == ["a19", "new", "a20"]
    await append(sqlite, "s", delta("p11.3", len("text of p11.3 "), "and on"), summary("a12", "in short"))
    history = await replay(sqlite, "s", summaries=True)
    assert history.part("p11.3").text.text == "text of p11.3 and on"
    assert history.shape["a25"] == ["p25.0", "more", "p25.1", "p25.2", "p25.3"]
    assert "a3" not in history.ids
    assert (await replay(sqlite, "s", revision)).frames[:-1] == before[:-1]
    assert (await sqlite.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))).sound
    await sqlite.close()


async def test_a_message_that_goes_on_stays_in_its_stretch(sqlite: Engine, path: Path) -> None:
    """Parts behind the last version of a block begin the next stretch, and cut nothing."""
    await opened(sqlite)
    entries = put_part_by_part(0, MESSAGES)
    for start in range(0, len(entries), 12):
        await append(sqlite, "s", *entries[start : start + 12])
        assert (await replay(sqlite, "s")).ids
    shared, index = rows(path)
    assert [each for each in shared if each > 1] == [12] * 12
    assert index == [12 + 6, 12]  # the last six are too few
    assert (await replay(sqlite, "s")).shape == {f"a{at}": parts_of(at) for at in range(MESSAGES)}
    await sqlite.close()


async def test_a_fork_in_the_middle_of_a_block(sqlite: Engine, path: Path) -> None:
    await opened(sqlite)
    await append(sqlite, "s", *put_part_by_part(0, MESSAGES))
    await append(sqlite, "s", *put_part_by_part(MESSAGES, MESSAGES))
    for revision in (5, 2 + MESSAGES * (1 + PARTS), 200, 302):
        child = (await fork(sqlite, "s", "", revision)).id
        expected, found = await replay(sqlite, "s", revision), await replay(sqlite, child)
        assert found.frames[:-1] == expected.frames[:-1]
        await append(sqlite, child, put(expected.ids[-1], text("more")), *put_part_by_part(100, 3))
        assert (await replay(sqlite, child)).ids == [*expected.ids, "a100", "a101", "a102"]
        assert (await sqlite.verify_session(CALLER, v1.VerifySessionRequest(session_id=child))).sound
    await sqlite.close()


# Damage


async def damaged(path: Path, statement: str) -> Engine:
    """Two sessions of a block each, and one more of the first, whose first is then damaged behind the store's back."""
    engine = Engine(SqliteStore.open(path))
    for id in ("bad", "good"):
        await opened(engine, id)
        for first in (0, 10):
            await append(engine, id, *put_part_by_part(first, 10))
            await replay(engine, id)
    await engine.close()
    db = sqlite3.connect(path)
    ((key,),) = db.execute("SELECT key FROM session WHERE id = 'bad'")
    db.execute(statement, {"pos": (key << 32) + 3})
    db.commit()
    db.close()
    return Engine(SqliteStore.open(path))


async def check_damage(engine: Engine) -> None:
    """What is outside the block can be read, and the other session."""
    found = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="bad"))
    assert not found.sound
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="good"))).sound
    rest = await replay(engine, "bad", range=v1.MessageRange(from_id="a10"))
    assert rest.ids == [f"a{at}" for at in range(10, 20)]
    assert [entry.revision for entry in await read(engine, "bad", 53)] == [*range(53, 103)]
    await append(engine, "bad", user("u"))
    await append(engine, "good", user("u"))
    await engine.close()


async def test_a_block_is_missing(path: Path) -> None:
    engine = await damaged(path, "DELETE FROM entry WHERE pos = :pos")
    for call in (replay(engine, "bad"), read(engine, "bad")):
        with refused(errors.CorruptData, revision=3):
            await call
    await check_damage(engine)


@pytest.mark.parametrize("kept", [0, 3, 40, 900])
async def test_a_block_is_cut_off(path: Path, kept: int) -> None:
    engine = await damaged(path, f"UPDATE entry SET payload = substr(payload, 1, {kept}) WHERE pos = :pos")
    with refused(errors.CorruptData, revision=3):
        await replay(engine, "bad")
    await check_damage(engine)


async def test_a_flipped_byte_in_a_block(path: Path) -> None:
    flip = "UPDATE entry SET payload = CAST(replace(payload, 'p4.1 ', 'p4.X ') AS BLOB) WHERE pos = :pos"
    engine = await damaged(path, flip)
    found = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="bad"))
    assert [finding.revision for finding in found.findings] == [52]  # the last of the block has its digest
    await check_damage(engine)


async def test_a_row_of_the_index_is_damaged(path: Path) -> None:
    cut = "UPDATE node SET run = substr(run, 1, {}) WHERE mark = -1 AND session = :pos >> 32"
    for kept in (0, 5, 100):
        at = path.with_name(f"{kept}.db")
        engine = await damaged(at, cut.format(kept))
        with refused(errors.CorruptData):
            await replay(engine, "bad", range=v1.MessageRange(from_id="a3", to_id="a4"))
        assert len(await read(engine, "bad")) == 102
        assert (await replay(engine, "good")).ids == [f"a{at}" for at in range(20)]
        await engine.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE node SET mark = mark + 6 WHERE slot = x'' AND mark > 0",
        "UPDATE node SET mark = 62 WHERE mark = -1",
        "UPDATE node SET run = x'06ff' WHERE slot = x'' AND mark > 0",
        "UPDATE node SET run = zeroblob(400) WHERE slot = x'' AND mark > 0",
        "DELETE FROM node WHERE slot = x''",
    ],
    ids=["a header of no kind", "a stretch that is none", "a run that breaks off", "a run too long", "no header"],
)
async def test_a_row_of_the_index_that_makes_no_message(path: Path, statement: str) -> None:
    """It is no fault of the program, and nothing that belongs to no message is sent or left out."""
    engine = Engine(SqliteStore.open(path))
    await opened(engine)
    await append(engine, "s", assistant("a", text("p", "x" * 2000)), put("a", text("q", "x" * 2000)))
    await append(engine, "s", *put_part_by_part(0, 10))
    await engine.close()
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()
    engine = Engine(SqliteStore.open(path))
    with refused(errors.CorruptData):
        await replay(engine, "s")
    with refused(errors.CorruptData):
        request = v1.MutatePromptRequest(session_id="s", turn_id="t", dry_run=True)
        await parsed(v1.MutatePromptResponse, engine.mutate_prompt(CALLER, request))
    assert (await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))).sound, "the log is"
    await engine.close()


@pytest.mark.parametrize("wrong", ["start = -5", "length = -1", "length = 1000000", f"start = {2**40}"])
async def test_a_stretch_that_lies_outside_its_block(path: Path, wrong: str) -> None:
    engine = await damaged(path, f"UPDATE node SET {wrong} WHERE mark = -1 AND session = :pos >> 32 AND revision = 3")
    with refused(errors.CorruptData, revision=3):
        await replay(engine, "bad")
    assert (await replay(engine, "bad", range=v1.MessageRange(from_id="a10"))).ids == [f"a{at}" for at in range(10, 20)]
    await engine.close()


# Random logs


async def responses(engine: Engine, revision: int) -> list[bytes]:
    """The responses of a replay as they are, but for the head."""
    request = v1.ReplayRequest(session_id="s", revision=revision, include_summaries=True)
    found = [response async for response in engine.replay(CALLER, request)]
    return found[:-1]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    writes=st.lists(st.tuples(st.lists(choices, min_size=1, max_size=12), st.booleans()), min_size=2, max_size=12),
    most=st.sampled_from([1, 5, 20, 64]),
    fewest=st.sampled_from([1, 2, 5]),
    page=st.sampled_from([300, 2000, 16_200]),
    small=st.sampled_from([60, 90, 1000]),
    frame=st.sampled_from([150, 1000, 1_000_000]),
    at=st.integers(1, 100),
    later=st.lists(choices, max_size=6),
)
def test_every_read_over_blocks_is_the_fold(
    writes: list[tuple[list[Choices], bool]],
    most: int,
    fewest: int,
    page: int,
    small: int,
    frame: int,
    at: int,
    later: list[Choices],
) -> None:
    """A store that indexes now and then, with blocks of any size, against the one in memory."""

    async def run() -> None:
        with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite_tail, "MOST_ENTRIES", most)
            patch.setattr(sqlite_block, "FEWEST", fewest)
            patch.setattr(sqlite_block, "MOST_BYTES", page)
            for module in (sqlite_block, sqlite_tail, sqlite_view):
                patch.setattr(module, "SMALL_BYTES", small)
            patch.setattr(frames, "_FULL", frame)
            stores = Stores([Engine(MemoryStore()), Engine(SqliteStore.open(Path(directory, "t.db")))])
            memory, blocks = stores.engines
            for engine in stores.engines:
                engine.now_us = lambda: 1_700_000_000_000_000  # type: ignore[method-assign]  # one clock for all
                await append(engine, "s", *map(turn, ["t", "t1", "t2"]), create=properties())
            for serial, (chosen, reads) in enumerate(writes):
                await stores.choose("s", chosen, serial)
                if reads:
                    await replay(blocks, "s")
            await check_reads(stores)
            head = (await memory.store.session("", "s")).head
            for revision in range(1, head + 1):
                found = await responses(blocks, revision)
                if frame == 1_000_000:  # else they may end elsewhere
                    assert found == await responses(memory, revision)
                assert all(found)
                assert max(map(len, found), default=0) < frame + max(page, 1000)
            await check_forks(stores, min(at, head), later)
            for engine in stores.engines:
                await engine.close()

    asyncio.run(run())


@pytest.mark.parametrize("whole", [True, False], ids=["put whole", "put in two"])
async def test_a_large_message_stays_between_small_ones(sqlite: Engine, path: Path, whole: bool) -> None:
    """It came before them in the log, and lies between them in the history, in no block."""
    large = text("big", "x" * 2000)
    begun = [user("m", large)] if whole else [user("m"), put("m", large)]
    small: list[v1.EntryInput] = []
    for at in range(12):
        small += [user(f"u{at}", text(f"u{at}.p", "before"), before="m"), user(f"v{at}", text(f"v{at}.p", "behind"))]
    await opened(sqlite)
    for entry in [*begun, *small]:
        await append(sqlite, "s", entry)
    expected = [*(f"u{at}" for at in range(12)), "m", *(f"v{at}" for at in range(12))]
    assert (await replay(sqlite, "s")).ids == expected
    shared, _ = rows(path)
    assert max(shared) >= 8, "small ones go together"
    await sqlite.close()


async def test_a_large_message_comes_between_stretches(sqlite: Engine) -> None:
    await opened(sqlite)
    await append(sqlite, "s", *put_part_by_part(0, MESSAGES))
    await append(sqlite, "s", assistant("m", text("big", "x" * 2000), before="a7"))
    expected = [*(f"a{at}" for at in range(7)), "m", *(f"a{at}" for at in range(7, MESSAGES))]
    assert (await replay(sqlite, "s")).ids == expected
    assert (await replay(sqlite, "s", 2 + MESSAGES * (1 + PARTS))).ids == [f"a{at}" for at in range(MESSAGES)]
    await sqlite.close()


async def test_parts_that_were_between_the_pieces_of_a_put_are_there_at_an_older_revision(sqlite: Engine) -> None:
    """A header that came again with a new part stands right before it in its entry, and older parts lay between.

    Messages of another turn are in no stretch with it, so that this one is taken whole at the revision of the put.
    """
    await opened(sqlite)
    await append(sqlite, "s", turn("t2"))
    await append(sqlite, "s", assistant("a", text("p0"), text("p1"), turn="t2"))
    put_again = await append(sqlite, "s", assistant("a", text("q"), turn="t2"))
    for entry in (remove_part("p0"), remove_part("p1"), *(user(f"u{at}", text(f"u{at}.p")) for at in range(12))):
        await append(sqlite, "s", entry)
    assert (await replay(sqlite, "s")).shape["a"] == ["q"]
    revision = put_again.head.revision
    assert (await replay(sqlite, "s", revision)).shape == {"a": ["p0", "p1", "q"]}
    assert (await replay(sqlite, "s", revision + 1)).shape == {"a": ["p1", "q"]}
    await sqlite.close()


async def test_small_parts_between_those_that_are_packed_behind_a_header(sqlite: Engine) -> None:
    """The block has parts that lie before one of a large put: that one is still found, read and changed."""
    await opened(sqlite)
    put_whole = await append(sqlite, "s", user("m", text("p", "x" * 2000)))
    await append(sqlite, "s", *(put("m", text(f"q{at}", "q"), before="p") for at in range(9)))
    await append(sqlite, "s", *(user(f"u{at}", text(f"u{at}.p", "small")) for at in range(9)))
    parts = [*(f"q{at}" for at in range(9)), "p"]
    assert (await get_message(sqlite, "s", "m")).shape == {"m": parts}
    assert (await replay(sqlite, "s", range=v1.MessageRange(to_id="m"))).shape == {"m": parts}
    for index in range(10):
        revision = put_whole.head.revision + index
        assert (await replay(sqlite, "s", revision)).shape == {"m": [*parts[:index], "p"]}
    await append(sqlite, "s", delta("p", 2000, "more"), put("m", text("last")))
    assert (await get_message(sqlite, "s", "m")).shape == {"m": [*parts, "last"]}
    await append(sqlite, "s", remove_part("p"))
    assert (await get_message(sqlite, "s", "m")).shape == {"m": [*parts[:-1], "last"]}
    await sqlite.close()


async def test_a_page_that_ends_between_those_that_are_packed_behind_a_header(sqlite: Engine) -> None:
    nearly = text("p", "x" * (frames.FRAME_BYTES - 600))
    small = [user(f"u{at}", text(f"u{at}.p", "small")) for at in range(9)]
    await opened(sqlite, "s", user("m", nearly, text("r")), put("m", text("q", "q" * 900), before="r"), *small)
    history = await replay(sqlite, "s")
    assert history.shape["m"] == ["p", "q", "r"]
    assert history.kinds[:3] == ["turn", "user", "parts"]
    await sqlite.close()


async def test_parts_that_come_later_between_those_that_are_packed_behind_the_last_header(sqlite: Engine) -> None:
    await opened(sqlite, "s", user("m", text("p", "x" * 2000)))
    assert (await replay(sqlite, "s")).shape == {"m": ["p"]}
    await append(sqlite, "s", put("m", text("q"), before="p"))
    assert (await replay(sqlite, "s")).shape == {"m": ["q", "p"]}
    small = [user(f"u{at}", text(f"u{at}.p", "small")) for at in range(9)]
    await append(sqlite, "s", put("m", text("r"), before="p"), *small)
    others = {f"u{at}": [f"u{at}.p"] for at in range(9)}
    assert (await replay(sqlite, "s")).shape == {"m": ["q", "r", "p"], **others}
    await sqlite.close()


async def test_puts_into_one_message_unpack_no_stretch_each(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: a stretch of hundreds of parts was unpacked twice for each part that was put behind it."""
    unpacked = 0

    def counting(of: sqlite_block.Stretched) -> list[sqlite_block.Item]:
        nonlocal unpacked
        unpacked += 1
        return sqlite_block.versions(of)

    await opened(sqlite, "s", user("u"))
    await append(sqlite, "s", *(put("u", text(f"p{at}", "x")) for at in range(900)))
    monkeypatch.setattr("turnwire.store.sqlite_rows.versions", counting)
    await append(sqlite, "s", *(put("u", text(f"q{at}", "x")) for at in range(900)))
    assert unpacked <= 60
    assert (await replay(sqlite, "s")).shape == {
        "u": [*(f"p{at}" for at in range(900)), *(f"q{at}" for at in range(900))]
    }
    await sqlite.close()
