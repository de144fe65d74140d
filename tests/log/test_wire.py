"""The pieces of the wire format: equal to what protobuf itself writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwire import v1
from turnwire.log import wire


def _written(number: int) -> bytes:
    """A number as protobuf writes it, behind the tag of a field."""
    return v1.PartDelta(offset=number).SerializeToString()[1:] if number else b"\x00"


@given(st.integers(0, 2**63 - 1))
def test_varints(number: int) -> None:
    assert wire.varint(number) == _written(number)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2**32, 2**63 - 1])
def test_varints_at_their_borders(number: int) -> None:
    assert wire.varint(number) == _written(number)


@given(st.binary(max_size=300))
def test_a_field(value: bytes) -> None:
    entry = v1.Entry.FromString(wire.field(3, value))
    assert entry.digest == value
    assert wire.field(3, value) == v1.Entry(digest=value).SerializeToString() or not value


@given(st.text(max_size=200))
def test_parts_splice_into_every_holder(text: str) -> None:
    part = v1.PromptPart(id="p", text=v1.TextPart(text=text))
    stored = part.SerializeToString()
    for holder, header in (
        (v1.User, v1.User(id="m", turn_id="t")),
        (v1.Assistant, v1.Assistant(id="m", turn_id="t")),
        (v1.PromptMessage, v1.PromptMessage(role=v1.Role.ROLE_USER)),
        (v1.MoreParts, v1.MoreParts(message_id="m")),
    ):
        whole = type(header)()
        whole.CopyFrom(header)  # type: ignore[arg-type]  # each of its own type
        whole.parts.extend([part, part])
        spliced = header.SerializeToString() + wire.part(stored) + wire.part(stored)
        assert spliced == whole.SerializeToString()
        assert holder.FromString(spliced) == whole


@pytest.mark.parametrize("id", ["p", "x" * 127, "x" * 128, ""])
def test_the_id_of_a_stored_part(id: str) -> None:
    part = v1.PromptPart(id=id, text=v1.TextPart(text="y"))
    assert wire.part_id(part.SerializeToString()) == id
