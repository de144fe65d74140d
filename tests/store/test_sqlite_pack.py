"""Packed rows: ids and runs of parts come back as they were, and runs give way to single rows when they must."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    append,
    assistant,
    clear,
    delta,
    fork,
    opened,
    put,
    remove,
    replay,
    revert,
    summary,
    text,
    user,
)
from tests.strategies import ids as any_ids
from turnwire import ids
from turnwire.engine import Engine
from turnwire.log import places, wire
from turnwire.store.base import CALL, HEADER_SLOT, MESSAGE, PART, PROMPT, TURN, Node
from turnwire.store.sqlite_pack import MADE, pack_id, pack_run, unpack_id, unpack_run

_PREFIX = {TURN: ids.TURN, MESSAGE: ids.MESSAGE, PART: ids.PART, PROMPT: ids.PROMPT}
spaces = st.sampled_from([TURN, MESSAGE, PART, PROMPT, CALL])


@given(space=spaces, id=any_ids(), prefixed=st.booleans())
def test_an_id_comes_back(space: int, id: str, prefixed: bool) -> None:
    if prefixed:
        id = _PREFIX.get(space, "") + id
    form, stored = pack_id(space, id)
    assert unpack_id(space, form, stored) == id
    assert len(stored) <= len(id)


@given(space=spaces, found=st.lists(any_ids(), min_size=2, max_size=2, unique=True))
def test_different_ids_stay_different(space: int, found: list[str]) -> None:
    assert pack_id(space, found[0]) != pack_id(space, found[1])
    # Ids that are longer by what a shorter one is padded with.
    assert pack_id(space, found[0]) != pack_id(space, found[0] + "0")


def test_made_ids_take_fifteen_bytes_and_keep_their_order() -> None:
    made = sorted(ids.new(ids.PART) for _ in range(200))
    packed = [pack_id(PART, id) for id in made]
    assert {form for form, _ in packed} == {MADE}
    assert {len(stored) for _, stored in packed} == {15}
    assert [stored for _, stored in packed] == sorted(stored for _, stored in packed)  # type: ignore[type-var]


def header(length: int = 30) -> Node:
    return Node(b"\x85", HEADER_SLOT, 13, 7, 7, 0, 3, length, False, 2, 0)


def parts(of: Node, lengths: list[int]) -> list[Node]:
    """The parts of a first put, where the parts of a payload are."""
    found: list[Node] = []
    slot: bytes | None = None
    at = of.offset + of.length
    for length in lengths:
        slot = places.after(slot)
        at += len(wire.part(bytes(length))) - length
        found.append(Node(of.place, slot, 3, of.revision, of.revision, 0, at, length, length % 2 == 0, 0, 0))
        at += length
    return found


@given(st.lists(st.sampled_from([0, 1, 127, 128, 16383, 16384, 70_000]), max_size=70))
def test_a_run_comes_back(lengths: list[int]) -> None:
    of = header()
    put_parts = parts(of, lengths)
    run, count = pack_run(of, put_parts)
    # As many as there are slots of one byte.
    assert count == min(len(lengths), 64)
    assert (unpack_run(of, run) if run is not None else []) == put_parts[:count]


def test_a_run_ends_at_the_first_part_that_is_not_as_the_put_left_it() -> None:
    of = header()
    whole = parts(of, [5, 6, 7, 8])
    for changed in (
        whole[2]._replace(delta=9),
        whole[2]._replace(revision=8),
        whole[2]._replace(born=6),
        whole[2]._replace(slot=b"\x82\x80"),
        whole[2]._replace(offset=whole[2].offset + 1),
        whole[2]._replace(kind=128),
    ):
        run, count = pack_run(of, [*whole[:2], changed, whole[3]])
        assert count == 2
        assert run is not None
        assert unpack_run(of, run) == whole[:2]


def test_without_parts_there_is_no_run() -> None:
    assert pack_run(header(), []) == (None, 0)


# Through the engine, on every store


async def test_a_part_put_between_the_parts_of_a_first_put(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", *(text(id) for id in "bdf")), user("u", text("z")))
    await append(engine, "s", put("a", text("c"), before="d"), put("a", text("e"), before="f"), put("a", text("g")))
    assert (await replay(engine, "s")).shape == {"a": [*"bcdefg"], "u": ["z"]}
    assert (await replay(engine, "s", 4)).shape == {"a": [*"bdf"], "u": ["z"]}


async def test_a_revert_that_starts_between_them(engine: Engine) -> None:
    await opened(engine, "s", assistant("a", *(text(id) for id in "bdf")), user("u", text("z")))
    await append(engine, "s", put("a", text("c"), before="d"), put("a", text("e"), before="f"))
    await append(engine, "s", revert("a", "d"))  # revision 7
    assert (await replay(engine, "s")).shape == {"a": [*"bc"]}
    await append(engine, "s", user("v"))  # makes it final
    assert (await replay(engine, "s")).shape == {"a": [*"bc"], "v": []}
    assert (await replay(engine, "s", 6)).shape == {"a": [*"bcdef"], "u": ["z"]}
    # In a fork from before that, it is still open.
    await fork(engine, "s", "f", 7)
    assert (await replay(engine, "f")).shape == {"a": [*"bc"]}
    await append(engine, "f", clear())
    assert (await replay(engine, "f")).shape == {"a": [*"bcdef"], "u": ["z"]}
    assert (await replay(engine, "s")).shape == {"a": [*"bc"], "v": []}


async def test_each_part_of_a_first_put_can_change_alone(engine: Engine) -> None:
    names = ["p0", "p1", "p2", "p3"]
    for changed, (at, _) in itertools.product(names, enumerate("abc")):
        session = f"{changed}.{at}"
        await opened(engine, session, assistant("a", *(text(name, name) for name in names)))
        change = (delta(changed, 2, "!"), put("a", text(changed, "new")), assistant("a"))[at]
        await append(engine, session, change)
        expected = {name: name for name in names}
        expected[changed] = (f"{changed}!", "new", changed)[at]
        for revision, contents in ((3, {name: name for name in names}), (4, expected)):
            (message,) = (await replay(engine, session, revision)).messages
            assert {part.id: part.text.text for part in message.parts} == contents


async def test_a_removed_message_and_one_in_its_place(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p"), text("q")), summary("u"))
    # In one request, so that the place is taken again before anything was written.
    await append(engine, "s", remove("u"), user("u", text("r")), put("u", text("s")))
    assert (await replay(engine, "s")).shape == {"u": ["r", "s"]}
    assert (await replay(engine, "s", summaries=True)).summaries == {}
    assert (await replay(engine, "s", 4)).shape == {"u": ["p", "q"]}


async def test_a_message_of_more_parts_than_a_run_holds(engine: Engine) -> None:
    names = [f"p{at:03}" for at in range(200)]
    await opened(engine, "s", assistant("a", *(text(name, "x" * 700) for name in names)))
    assert (await replay(engine, "s")).shape == {"a": names}
    await append(engine, "s", put("a", text("q"), before="p064"), put("a", text("p063", "new")))
    assert (await replay(engine, "s")).shape == {"a": [*names[:64], "q", *names[64:]]}
