"""What is stored, byte for byte: the splices, the digests over them, fields that this build does not know."""

from __future__ import annotations

import struct
from hashlib import sha256

from google.protobuf.unknown_fields import UnknownFieldSet

from tests.builders import (
    CALLER,
    COMPLETED,
    append,
    assistant,
    delta,
    fork,
    get_session,
    opened,
    parsed,
    properties,
    put,
    read,
    refused,
    remove,
    replay,
    summary,
    text,
    tool,
    turn,
    user,
)
from turnwire import errors, rules, v1
from turnwire.engine import Engine
from turnwire.store.base import Change, EntryRow, Store, View

#: Field 1000, a varint; field 2000, length-delimited.
UNKNOWN = b"\xc0\x3e\x2a" + b"\x82\x7d\x03abc"


def link(before: bytes, revision: int, recorded_ns: int, field: int, payload: bytes) -> bytes:
    """One link of the chain, by the formula of the schema's comment."""
    summed = before + struct.pack(">Q", revision) + struct.pack(">Q", recorded_ns) + struct.pack(">I", field)
    return sha256(summed + sha256(payload).digest()).digest()


async def check_chain(engine: Engine, session_id: str) -> None:
    chain = sha256(b"turnwire/1" + session_id.encode()).digest()
    session = await engine.store.session("", session_id)
    rows = await engine.store.entries(session, 1, session.head, 1 << 30)
    entries = await read(engine, session_id)
    assert [row.revision for row in rows] == list(range(1, session.head + 1))
    for row, entry in zip(rows, entries, strict=True):
        chain = link(chain, row.revision, entry.recorded.ToNanoseconds(), row.field, row.payload)
        assert row.digest == entry.digest == chain
    assert session.digest == chain


async def everything(engine: Engine, session_id: str) -> None:
    await opened(
        engine,
        session_id,
        user("u", text("p", "hi"), text("p2")),
        assistant("a", text("q", ""), parent="u"),
        delta("q", 0, "so"),
        put("a", tool("r", state=COMPLETED, output="x")),
        summary("u"),
        v1.EntryInput(context=v1.PromptContext(system=["be brief"])),
        remove("u"),
        v1.EntryInput(session=properties(title="new")),
    )


async def test_the_chain_follows_the_formula(engine: Engine) -> None:
    await everything(engine, "s")
    await check_chain(engine, "s")
    head = (await get_session(engine, "s")).head
    assert head == (await replay(engine, "s")).head
    assert head.digest == (await read(engine, "s"))[-1].digest


async def test_a_fork_has_a_chain_of_its_own(engine: Engine) -> None:
    await everything(engine, "s")
    await fork(engine, "s", "f", 6)
    await check_chain(engine, "f")
    digests = {entry.digest for entry in await read(engine, "s")}
    assert not digests & {entry.digest for entry in await read(engine, "f")}


async def test_the_reply_carries_the_digest(engine: Engine) -> None:
    response = await opened(engine, "s", user("u"))
    assert response.head.digest == (await read(engine, "s"))[-1].digest
    assert len(response.head.digest) == 32


async def test_verify_recomputes_it(engine: Engine) -> None:
    await everything(engine, "s")
    response = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="s"))
    assert response.sound
    assert response.entries == response.head.revision == 10
    assert not response.findings


async def test_a_message_is_stored_as_its_header_and_its_parts(engine: Engine) -> None:
    parts = [text("p1", "one"), text("p2", "two" * 100)]
    message = user("u", *parts).user.user
    await opened(engine, "s", v1.EntryInput(user=v1.UserPut(user=message)))
    header = v1.User()
    header.CopyFrom(message)
    del header.parts[:]
    spliced = header.SerializeToString(deterministic=True)
    for part in parts:
        stored = part.SerializeToString(deterministic=True)
        spliced += b"\x7a" + _varint(len(stored)) + stored
    session = await engine.store.session("", "s")
    row = await engine.store.entry(session, 3)
    assert row.payload == b"\x0a" + _varint(len(spliced)) + spliced
    assert row.field == 12
    assert v1.UserPut.FromString(row.payload).user == message
    responses = [response async for response in engine.replay(CALLER, v1.ReplayRequest(session_id="s"))]
    assert spliced in responses[0]


async def test_replay_gives_the_bytes_of_the_latest_puts(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p1", "one"), text("p2", "two")))
    await append(engine, "s", put("u", text("p1", "eins")), user("u", text("p3", "three")))
    message = user("u", text("p1", "eins"), text("p2", "two"), text("p3", "three")).user.user
    responses = [response async for response in engine.replay(CALLER, v1.ReplayRequest(session_id="s"))]
    assert message.SerializeToString(deterministic=True) in responses[0]


def test_parts_are_the_last_field_of_a_message() -> None:
    """By which they are found in a serialized put without parsing it."""
    for message in (v1.User, v1.Assistant):
        assert max(field.number for field in message.DESCRIPTOR.fields) == message.PARTS_FIELD_NUMBER


async def test_fields_that_this_build_does_not_know_survive(engine: Engine) -> None:
    """In the turn, the wrapper, the header, the part and inside the part: through store, replay, fork and delta."""
    made_turn = v1.Turn.FromString(turn("t").turn.SerializeToString() + UNKNOWN)
    part = v1.PromptPart.FromString(text("p", "x").SerializeToString() + UNKNOWN)
    part.text.MergeFromString(UNKNOWN)
    message = v1.User.FromString(user("u").user.user.SerializeToString() + UNKNOWN)
    message.parts.append(part)
    wrapper = v1.UserPut.FromString(v1.UserPut(user=message).SerializeToString() + UNKNOWN)
    open_part = v1.PromptPart.FromString(text("q", "x").SerializeToString() + UNKNOWN)
    await append(
        engine,
        "s",
        v1.EntryInput(turn=made_turn),
        v1.EntryInput(user=wrapper),
        put("u", open_part),
        delta("q", 1, "y"),
        create=True,
    )
    await fork(engine, "s", "f")
    for session_id in ("s", "f"):
        entries = await read(engine, session_id)
        assert entries[1].turn.SerializeToString().endswith(UNKNOWN)
        assert len(UnknownFieldSet(entries[2].user)) == 2
        request = v1.ReplayRequest(session_id=session_id)
        response, _ = await parsed(v1.ReplayResponse, engine.replay(CALLER, request))
        raw = b"".join([each async for each in engine.replay(CALLER, request)])
        stored = part.SerializeToString(deterministic=True)
        header = v1.User.FromString(user("u").user.user.SerializeToString() + UNKNOWN).SerializeToString()
        assert header + b"\x7a" + _varint(len(stored)) + stored in raw
        turn_frame, user_frame = response.frames[0].turn, response.frames[1].user
        assert len(UnknownFieldSet(turn_frame)) == 2
        assert len(UnknownFieldSet(user_frame)) == 2
        assert len(UnknownFieldSet(user_frame.parts[0].text)) == 2
        assert user_frame.parts[1].text.text == "xy"
        assert len(UnknownFieldSet(user_frame.parts[1])) == 2


class TestUnknown:
    """What a later schema would send is refused, and what it has stored is kept."""

    async def test_a_payload(self, engine: Engine) -> None:
        await opened(engine, "s")
        later = v1.EntryInput.FromString(b"\xfa\x01\x03abc")  # field 31
        with refused(errors.UnknownToThisServer, "entries[1].payload"):
            await append(engine, "s", user("u"), later)
        with refused(errors.UnknownToThisServer, "entries[0].payload"):
            await append(engine, "s", v1.EntryInput())

    async def test_a_kind_of_part(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        later = v1.PromptPart.FromString(b"\x0a\x01p\x82\x01\x00")  # field 16
        with refused(errors.UnknownToThisServer, "entries[0].part.part.kind"):
            await append(engine, "s", put("u", later))
        with refused(errors.UnknownToThisServer, "entries[0].user.user.parts[1].kind"):
            await append(engine, "s", user("u", text("x"), later))

    async def test_a_kind_of_part_that_a_later_build_has_put(self, engine: Engine) -> None:
        await opened(engine, "s", user("u"))
        entries = await read(engine, "s")
        last = entries[-1]
        later = v1.PromptPart.FromString(b"\x0a\x01p\x82\x01\x00")  # field 16
        entry = v1.Entry(revision=len(entries) + 1, recorded=last.recorded)
        entry.part.CopyFrom(v1.PartPut(message_id="u", part=later))
        recorded_ns = last.recorded.ToNanoseconds()
        field = v1.Entry.PART_FIELD_NUMBER
        entry.digest = link(last.digest, entry.revision, recorded_ns, field, entry.part.SerializeToString())
        await engine.restore(CALLER, "s", [entry.SerializeToString()])
        assert (await replay(engine, "s")).shape == {"u": ["p"]}

    async def test_C9_a_number_of_an_enum(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a"))
        later = tool("p")
        later.tool.ClearField("state")
        with refused(errors.RuleViolation, "entries[0].part.part.tool.state"):
            await append(engine, "s", put("a", later))
        later.tool.MergeFromString(b"\x18\x09")  # state 9
        with refused(errors.UnknownToThisServer, "entries[0].part.part.tool.state"):
            await append(engine, "s", put("a", later))

    async def test_stored_payloads_of_a_later_schema_are_read_raw(self, store: Store) -> None:
        engine = Engine(store)
        await opened(engine, "s", user("u"))
        await write_later(store, ignorable=True)
        entry = (await read(engine, "s"))[3]
        assert entry.ignorable
        assert entry.WhichOneof("payload") is None
        assert entry.SerializeToString().endswith(b"\xfa\x01\x03abc")
        assert (await replay(engine, "s")).ids == ["u"]
        await check_chain(engine, "s")
        await fork(engine, "s", "f")
        assert (await read(engine, "f"))[3].SerializeToString().endswith(b"\xfa\x01\x03abc")

    async def test_one_that_may_not_be_skipped_fails_the_fold(self, store: Store) -> None:
        engine = Engine(store)
        await opened(engine, "s", user("u"))
        await write_later(store, ignorable=False)
        assert len(await read(engine, "s")) == 4
        assert (await replay(engine, "s", 3)).ids == ["u"]
        with refused(errors.UnknownPayload, revision=4):
            await replay(engine, "s")


async def write_later(store: Store, *, ignorable: bool) -> None:
    """Write entry 4 of session ``s`` as a later build would."""

    def later(view: View) -> tuple[Change, None]:
        session = view.session
        assert session is not None
        chain = link(session.digest, 4, session.recorded_us * 1000, 31, b"abc")
        row = EntryRow(4, session.recorded_us, 31, b"abc", 0, ignorable, chain)
        return Change(session._replace(head=4, digest=chain), [row]), None

    await store.write("", "s", later)


class TestTexts:
    async def test_C48_NUL_and_its_escape_stay_apart(self, engine: Engine) -> None:
        output = "PK\x03\x04\x00"
        await opened(
            engine,
            "s",
            assistant("a", tool("p", state=COMPLETED, output=output), text("q", r"\u0000"), text("r", "\x00")),
        )
        await append(engine, "s", v1.EntryInput(session=properties(title="a\x00b", directory="/\x00")))
        history = await replay(engine, "s")
        assert history.part("p").tool.output == output
        assert history.part("q").text.text == r"\u0000"
        assert history.part("r").text.text == "\x00"
        assert (await get_session(engine, "s")).properties.title == "a\x00b"

    async def test_C51_C52_JSON_stays_as_it_was_written(self, engine: Engine) -> None:
        document = '{"limit": 1, "ratio": 1.0, "id": 653247040368672768, "z":0,"a":[ ],"k":"\\ud83d"}'
        await opened(engine, "s", assistant("a", tool("p", state=COMPLETED, input_json=document)))
        await fork(engine, "s", "f")
        for session_id in ("s", "f"):
            assert (await replay(engine, session_id)).part("p").tool.input_json == document

    async def test_C49_NaN_is_refused_with_its_path(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a"))
        for cost in (float("nan"), float("-inf"), -0.01):
            entry = assistant("a")
            entry.assistant.assistant.usage.cost = cost
            with refused(errors.RuleViolation, "entries[0].assistant.assistant.usage.cost"):
                await append(engine, "s", entry)
        bad = tool("p")
        bad.tool.metadata_json = '{"x": NaN}'
        with refused(errors.RuleViolation, "entries[0].part.part.tool.metadata_json"):
            await append(engine, "s", put("a", bad))

    async def test_C50_negative_counts_are_refused(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a"))
        part = v1.PromptPart(id="p", step_finish=v1.StepFinishPart(reason="stop"))
        part.step_finish.usage.tokens.input = -423
        with refused(errors.RuleViolation, "entries[0].part.part.step_finish.usage.tokens.input"):
            await append(engine, "s", put("a", part))

    async def test_C58_depth_is_kept_up_to_the_limit(self, engine: Engine) -> None:
        await opened(engine, "s", assistant("a"))
        for depth in (34, 51, 120, 128):
            document = "[" * depth + "]" * depth
            await append(engine, "s", put("a", tool(f"p{depth}", f"c{depth}", input_json=document)))
            assert (await replay(engine, "s")).part(f"p{depth}").tool.input_json == document
        for depth in (129, 200, 100_000):
            with refused(errors.RuleViolation, "entries[0].part.part.tool.input_json", rule=rules.JSON_DEPTH):
                await append(engine, "s", put("a", tool("deep", "deep", input_json="[" * depth + "]" * depth)))

    async def test_C62_order_and_borders_of_signed_parts_stay(self, engine: Engine) -> None:
        parts = [
            v1.PromptPart(id="r1", reasoning=v1.ReasoningPart(text="a")),
            tool("c1", "c1", state=COMPLETED),
            v1.PromptPart(id="r2", reasoning=v1.ReasoningPart(text="b")),
            tool("c2", "c2", state=COMPLETED),
            text("x", "end"),
        ]
        for part in (parts[0], parts[2]):
            part.reasoning.provider.metadata_json = '{"signature": "S1"}'
            part.reasoning.provider.signed = True
        await opened(engine, "s", assistant("a", *parts))
        await fork(engine, "s", "f")
        for session_id in ("s", "f"):
            assert list((await replay(engine, session_id)).messages[0].parts) == parts


def _varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])
