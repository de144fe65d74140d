"""The digest: its definition, spelled out, and what does and does not enter."""

from __future__ import annotations

import hashlib
import struct

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from tests.prompt.build import assistant, dialogue, history, item, text, tool, user
from turnwire import v1
from turnwire.prompt import Item, Part, assemble, assistant_message, digest, user_message
from turnwire.prompt.parts import without_id


def spelled_out(items: list[v1.PromptItem]) -> bytes:
    data = b""
    for each in items:
        data += struct.pack(">BI", each.message.role, len(each.message.parts))
        for part in each.message.parts:
            bare = v1.PromptPart()
            bare.CopyFrom(part)
            bare.ClearField("id")
            data += hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()
    return hashlib.sha256(data).digest()


def test_the_digest_of_an_empty_prompt() -> None:
    assert digest([]) == hashlib.sha256(b"").digest()


def test_the_digest_of_one_message_by_hand() -> None:
    # PromptPart.text (field 3) holds TextPart.text (field 1) "hi".
    part = b"\x1a\x04\x0a\x02hi"
    data = b"\x01" + b"\x00\x00\x00\x01" + hashlib.sha256(part).digest()
    assert digest([item(user_message("hi"))]) == hashlib.sha256(data).digest()


def test_the_digest_is_as_the_schema_spells_it_out() -> None:
    past = history(user("U1", "a", text("p", "b")), assistant("A1", tool("t", "c1"), "c"))
    items = assemble(past, "T1").items
    assert digest(items) == spelled_out([each.to_proto() for each in items])


def test_prompt_items_and_items_have_one_digest() -> None:
    items = assemble(dialogue(), "T1").items
    assert digest(each.to_proto() for each in items) == digest(items)


def test_the_items_are_not_changed() -> None:
    made = [each.to_proto() for each in assemble(dialogue(), "T1").items]
    before = [each.SerializeToString(deterministic=True) for each in made]
    digest(made)
    assert [each.SerializeToString(deterministic=True) for each in made] == before


def test_ids_origins_and_facts_do_not_enter() -> None:
    one = history(user("U1", text("p1", "a")), assistant("A1", text("p2", "b")))
    other = history(user("X", text("y", "a")), assistant("Z", text("w" * 128, "b"), finish="length"))
    hook = [item(user_message("a")), item(assistant_message("b"))]
    assert digest(assemble(one, "T1").items) == digest(assemble(other, "T1").items) == digest(hook)


def test_role_order_content_and_the_borders_of_messages_enter() -> None:
    variants = [
        [item(user_message("a", "b"))],
        [item(user_message("b", "a"))],
        [item(assistant_message("a", "b"))],
        [item(user_message("a")), item(user_message("b"))],
        [item(user_message("ab"))],
        [item(user_message("a", "b", ""))],
    ]
    assert len({digest(items) for items in variants}) == len(variants)


def test_stored_bytes_count_as_they_are() -> None:
    # The fields of the part in an order in which no build of today writes them.
    data = b"\x1a\x03\x0a\x01x" + b"\x0a\x02p1" + b"\x12\x02{}"
    held = Part.stored("p1", data)
    assert held.message == v1.PromptPart(id="p1", extra_json="{}", text=v1.TextPart(text="x"))
    assert held.data == data
    assert held.sha256 == hashlib.sha256(b"\x1a\x03\x0a\x01x\x12\x02{}").digest()


def test_the_id_of_a_stored_part_is_read_off_its_bytes() -> None:
    for id in ("p1", "p" * 128, ""):
        part = v1.PromptPart(id=id, text=v1.TextPart(text="x"))
        held = Part.stored(None, part.SerializeToString(deterministic=True))
        assert held.id == id
        assert held.message == part
        assert held.sha256 == Part(part).sha256


def test_unknown_fields_count() -> None:
    known = v1.PromptPart(text=v1.TextPart(text="x"))
    extended = v1.PromptPart.FromString(known.SerializeToString() + b"\xa2\x06\x01z")
    assert digest([Item(role=v1.Role.ROLE_USER, parts=(Part(known),))]) != digest(
        [Item(role=v1.Role.ROLE_USER, parts=(Part(extended),))]
    )


# --- taking the id out of bytes

VARINTS = st.integers(0, 2**64 - 1)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


@st.composite
def unknown_fields(draw: st.DrawFn) -> bytes:
    """Fields that the schema does not have, of all wire types, a group among them."""
    out = b""
    for _ in range(draw(st.integers(0, 4))):
        number = draw(st.integers(100, 2**29 - 1))
        match draw(st.sampled_from([0, 1, 2, 3, 5])):
            case 0:
                out += varint(number << 3) + varint(draw(VARINTS))
            case 1:
                out += varint(number << 3 | 1) + draw(st.binary(min_size=8, max_size=8))
            case 2:
                blob = draw(st.binary(max_size=200))
                out += varint(number << 3 | 2) + varint(len(blob)) + blob
            case 3:
                # A group that holds what would be an id, were it not inside.
                out += varint(number << 3 | 3) + b"\x0a\x01z" + varint(number << 3 | 4)
            case _:
                out += varint(number << 3 | 5) + draw(st.binary(min_size=4, max_size=4))
    return out


ID_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"


@st.composite
def parts(draw: st.DrawFn) -> v1.PromptPart:
    part = v1.PromptPart(id=draw(st.text(ID_CHARACTERS, max_size=128)))
    part.extra_json = draw(st.sampled_from(["", "{}", '{"a":1}']))
    content = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
    match draw(st.integers(0, 3)):
        case 0:
            part.text.text = content
        case 1:
            part.reasoning.text = content
        case 2:
            part.tool.call_id, part.tool.output = "c", content
        case _:
            part.step_start.SetInParent()
    return v1.PromptPart.FromString(part.SerializeToString() + draw(unknown_fields()))


@given(parts())
def test_taking_the_id_out_of_bytes_is_clearing_it(part: v1.PromptPart) -> None:
    bare = v1.PromptPart()
    bare.CopyFrom(part)
    bare.ClearField("id")
    assert without_id(part.SerializeToString(deterministic=True)) == bare.SerializeToString(deterministic=True)


@given(parts(), st.text(ID_CHARACTERS, min_size=1, max_size=128))
def test_the_digest_does_not_depend_on_ids(part: v1.PromptPart, other: str) -> None:
    renamed = v1.PromptPart()
    renamed.CopyFrom(part)
    renamed.id = other
    assert Part(part).sha256 == Part(renamed).sha256
    assert Part.stored(other, renamed.SerializeToString()).sha256 == Part(part).sha256


ID, TEXT = b"\x0a\x02p1", b"\x1a\x03\x0a\x01x"


@pytest.mark.parametrize(
    "other",
    [b"\xa0\x06\xff\x01", b"\xa1\x0612345678", b"\xa2\x06\x0212", b"\xa5\x061234", b"\x08\x05"],
    ids=["varint", "fixed64", "bytes", "fixed32", "field 1 of another type"],
)
def test_what_is_not_the_id_keeps_its_bytes_and_its_place(other: bytes) -> None:
    assert without_id(other + ID + TEXT) == other + TEXT
    assert without_id(TEXT + ID + other) == TEXT + other
    # A field that occurs twice counts by its last value; all of them are its bytes.
    assert without_id(ID + other + ID + TEXT + ID) == other + TEXT


@pytest.mark.parametrize("data", [TEXT[:-1], ID + b"\x1a", b"\xa1\x061234567", b"\x8a", b"\x0f"])
def test_damaged_bytes_have_no_digest(data: bytes) -> None:
    with pytest.raises(DecodeError):
        _ = Part.stored("p1", data).sha256


@given(st.binary(max_size=40))
def test_any_bytes_are_cut_or_refused_as_a_parser_would(data: bytes) -> None:
    try:
        part = v1.PromptPart.FromString(data)
    except DecodeError:
        return
    part.ClearField("id")
    assert v1.PromptPart.FromString(without_id(data)) == part
