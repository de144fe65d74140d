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
from turnwire.log import places, whole, wire
from turnwire.store.base import CALL, HEADER_SLOT, MESSAGE, PART, PROMPT, TURN, Node, Put, PutPart
from turnwire.store.sqlite_pack import (
    MADE,
    made_here,
    pack_id,
    pack_ids,
    pack_put,
    pack_run,
    unpack_id,
    unpack_run,
)

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


made = st.sampled_from([MESSAGE, PART]).map(lambda space: ids.new(_PREFIX[space]))


@given(space=st.sampled_from([MESSAGE, PART]), found=st.lists(st.one_of(any_ids(), made), max_size=4))
def test_many_ids_are_packed_as_each_one_is(space: int, found: list[str]) -> None:
    assert [*pack_ids(space, found)] == [pack_id(space, id) for id in found]


@given(message_id=st.one_of(any_ids(), made), part_ids=st.lists(st.one_of(any_ids(), made), max_size=3))
def test_ids_that_are_made_here_are_known(message_id: str, part_ids: list[str]) -> None:
    packed = [pack_id(MESSAGE, message_id), *(pack_id(PART, id) for id in part_ids)]
    assert made_here(message_id, part_ids) == all(form == MADE and len(stored) == 15 for form, stored in packed)


def test_ids_that_look_like_one_when_put_together() -> None:
    one = ids.new(ids.PART)
    assert not made_here(ids.new(ids.MESSAGE), [one + one[:4], one[4:]])
    assert [*pack_ids(PART, [one[:14], one[14:]])] == [pack_id(PART, one[:14]), pack_id(PART, one[14:])]


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


@given(
    st.lists(st.sampled_from([0, 1, 127, 128, 16383, 16384, 70_000]), max_size=70),
    st.integers(0, 80),
    st.sampled_from([(0, 3), (1, 3), (0, 128)]),
)
def test_a_message_as_it_was_put_is_packed_as_its_nodes_are(
    lengths: list[int], odd: int, change: tuple[int, int]
) -> None:
    of = header()
    more, kind = change
    nodes = [
        node._replace(offset=node.offset + more, kind=kind) if at == odd else node
        for at, node in enumerate(parts(of, lengths))
    ]
    put_parts = [
        PutPart(f"p{at}", node.kind, node.offset, node.length, node.sealed, "") for at, node in enumerate(nodes)
    ]
    message = Put("m", of.place, of.kind, of.revision, of.offset, of.length, of.sealed, of.turn, put_parts)
    assert whole.nodes(message) == [of, *nodes]
    assert pack_put(message) == pack_run(of, nodes)


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
