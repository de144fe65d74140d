"""Places: keys whose byte order is an order into which anything can be put."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwire.log import places
from turnwire.store.base import HEADER_SLOT, SUMMARY_SLOT


def insert(keys: list[bytes], at: int) -> bytes:
    """Make a key for a new thing at an index, as an append does, and put it there."""
    if at == len(keys):
        key = places.after(keys[-1] if keys else None)
    else:
        key = places.between(keys[at - 1] if at else None, keys[at])
    keys.insert(at, key)
    return key


@given(st.lists(st.integers(0, 10**6), max_size=200))
@settings(max_examples=200, deadline=None)
def test_keys_follow_the_order_of_insertion_anywhere(choices: list[int]) -> None:
    keys: list[bytes] = []
    for choice in choices:
        insert(keys, choice % (len(keys) + 1))
    assert keys == sorted(set(keys))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=200))
@settings(max_examples=200, deadline=None)
def test_keys_stay_in_order_when_others_go(steps: list[tuple[int, bool]]) -> None:
    """Neighbours may have gone; the bounds are then those that are left."""
    keys: list[bytes] = []
    for choice, removes in steps:
        if removes and keys:
            del keys[choice % len(keys)]
        else:
            insert(keys, choice % (len(keys) + 1))
    assert keys == sorted(set(keys))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_a_key_lies_between_the_slots_of_header_and_summary(choices: list[int]) -> None:
    keys: list[bytes] = []
    for choice in choices:
        assert HEADER_SLOT < insert(keys, choice % (len(keys) + 1)) < SUMMARY_SLOT


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=100))
@settings(max_examples=100, deadline=None)
def test_a_bound_that_has_gone_is_as_good(choices: list[int]) -> None:
    """A key after a greater one that was there is still after everything."""
    keys: list[bytes] = []
    for choice in choices:
        insert(keys, choice % (len(keys) + 1))
    key = places.after(keys[-1])
    assert key > keys[-1]
    assert places.between(keys[-1], key) > keys[-1]


@pytest.mark.parametrize(("count", "size"), [(64, 1), (256, 2), (65_536, 3), (100_000, 4)])
def test_keys_at_the_end_stay_short(count: int, size: int) -> None:
    key = None
    for _ in range(count):
        key = places.after(key)
    assert key is not None
    assert len(key) == size


@pytest.mark.parametrize(("count", "size"), [(64, 1), (255, 2), (65_535, 3)])
def test_keys_at_the_front_stay_short(count: int, size: int) -> None:
    keys = [places.after(None)]
    for _ in range(count):
        keys.append(places.before(keys[-1]))
    assert len(keys[-1]) == size
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize("fixed", ["low", "high"])
def test_keys_one_after_another_at_one_point_stay_short(fixed: str) -> None:
    low, high = places.after(None), places.after(places.after(None))
    last = None
    for _ in range(10_000):
        key = places.between(low, high)
        assert low < key < high
        if fixed == "low":
            high = key
        else:
            low = key
        last = key
    assert last is not None
    assert len(last) <= 4


def test_halving_costs_a_byte_a_step_at_most() -> None:
    """The worst there is: each new one between the last two."""
    low, high = places.after(None), places.after(places.after(None))
    for step in range(1, 200):
        key = places.between(low, high)
        assert low < key < high
        assert len(key) <= step + 1
        low, high = (key, high) if step % 2 else (low, key)


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_numbers_keep_their_order(one: int, other: int) -> None:
    keys = places._encode(one), places._encode(other)
    assert (one < other) == (keys[0] < keys[1])
    assert places._decode(keys[0] + keys[1]) == [one, other]
