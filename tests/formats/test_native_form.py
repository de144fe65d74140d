"""Turnwire's own form: out of a store and back to equal digests, as binary and as JSON lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import turnwire
from tests.cli.support import serving
from tests.formats.samples import assistant, document, take, text, tool, user
from turnwire import errors, v1
from turnwire.embedded import Embedded
from turnwire.formats import Outcome, Report
from turnwire.formats.load import load
from turnwire.formats.native import SessionLog, Writer, is_native, read, restore, write
from turnwire.log import wire

SESSION = "ses_1"


@pytest.fixture
async def store() -> AsyncIterator[Embedded]:
    """A store with a session that has an entry of every kind."""
    async with turnwire.open(":memory:") as opened:
        whole = document(
            user("msg_1", text("prt_1"), at=1000, tools={"b": True, "a": False}, summary={"title": "t", "diffs": []}),
            assistant("msg_2", text("prt_2"), tool("prt_3"), at=1001, parent="msg_1"),
            user("msg_3", text("prt_4"), at=1002),
        )
        await load(opened, take(whole), Report())
        session = await opened.open_session(SESSION)
        turn = await session.start_turn(agent="build", model="fake/m")
        await turn.add_user("and then?")
        async with turn.answer() as answer:
            for piece in ("one ", "two ", "three"):
                await answer.text(piece)
                await answer.flush()
        before = v1.User(id="msg_0", turn_id=turn.id, parts=[v1.PromptPart(id="prt_0", text=v1.TextPart(text="first"))])
        await opened.append(SESSION, [v1.UserPut(user=before, before_id="msg_1"), v1.Removal(part_id="prt_2")])
        part = v1.PromptPart(id="prt_5", text=v1.TextPart(text="between"))
        await opened.append(SESSION, [v1.PartPut(message_id="msg_2", part=part, before_id="prt_3")])
        context = v1.PromptContext(system=["be brief"])
        await opened.mutate_prompt(SESSION, turn.id, context=context)
        await opened.append(SESSION, [v1.Revert(message_id="msg_3")])
        yield opened


async def written(store: Embedded, *, after: int = 0, json_lines: bool = False, id: str = SESSION) -> bytes:
    pieces: list[bytes] = []
    await write(store, id, Writer(pieces.append, json_lines=json_lines), after=after)
    return b"".join(pieces)


def logs(tmp_path: Path, data: bytes, report: Report | None = None) -> list[SessionLog]:
    (tmp_path / "file").write_bytes(data)
    return list(read(tmp_path / "file", report or Report()))


async def the_same(store: Embedded, other: Embedded, id: str = SESSION) -> None:
    """Both have the session with equal heads and equal histories, and both logs verify."""
    ours, theirs = await store.get_session(id), await other.get_session(id)
    assert ours == theirs
    assert (await other.verify_session(id)).sound
    assert [entry async for entry in store.read_entries(id)] == [entry async for entry in other.read_entries(id)]
    for revision in range(1, ours.head.revision + 1):
        assert await store.history(id, revision=revision) == await other.history(id, revision=revision)


@pytest.mark.parametrize("json_lines", [False, True])
@pytest.mark.parametrize("packed", [False, True])
async def test_out_and_back_to_equal_digests(store: Embedded, tmp_path: Path, json_lines: bool, packed: bool) -> None:
    data = await written(store, json_lines=json_lines)
    (log,) = logs(tmp_path, gzip.compress(data) if packed else data)
    assert is_native(tmp_path / "file")
    async with turnwire.open(tmp_path / "other.db") as other:
        report = Report()
        assert await restore(other, log, report) is Outcome.IMPORTED
        assert report.total(Outcome.IMPORTED, "entry") == len(log.entries)
        await the_same(store, other)
        assert await restore(other, log, Report()) is Outcome.UNCHANGED
        await other.append(SESSION, [v1.RevertClear()])


async def test_a_later_export_goes_on(store: Embedded, tmp_path: Path) -> None:
    (first,) = logs(tmp_path, await written(store))
    at = first.session.head.revision
    await store.append(SESSION, [v1.RevertClear()])
    (second,) = logs(tmp_path, await written(store, after=at))
    assert len(second.entries) == 1
    (third,) = logs(tmp_path, await written(store, after=at + 1))
    assert third.entries == []
    async with turnwire.open(":memory:") as other:
        for log in (second, third):
            report = Report()
            assert await restore(other, log, report) is Outcome.REFUSED
        assert await restore(other, first, Report()) is Outcome.IMPORTED
        assert await restore(other, third, Report()) is Outcome.REFUSED
        assert await restore(other, second, Report()) is Outcome.UPDATED
        assert await restore(other, third, Report()) is Outcome.UNCHANGED
        assert await restore(other, first, Report()) is Outcome.UNCHANGED
        await the_same(store, other)
    with pytest.raises(errors.RevisionOutOfRange):
        await written(store, after=at + 2)


async def test_a_fork_comes_back_with_its_origin(store: Embedded, tmp_path: Path) -> None:
    fork = await store.fork_session(SESSION, 5, new_session_id="ses_fork")
    (log,) = logs(tmp_path, await written(store, id="ses_fork"))
    async with turnwire.open(":memory:") as other:
        assert await restore(other, log, Report()) is Outcome.IMPORTED
        await the_same(store, other, "ses_fork")
        assert (await other.get_session("ses_fork")).forked_from == fork.forked_from


async def test_another_log_of_that_id_is_refused(store: Embedded, tmp_path: Path) -> None:
    (log,) = logs(tmp_path, await written(store))
    async with turnwire.open(":memory:") as other:
        await other.create_session(SESSION)
        report = Report()
        assert await restore(other, log, report) is Outcome.REFUSED
        assert "REVISION_CONFLICT" in report.notes[0].reason
        assert (await other.get_session(SESSION)).head.revision == 1


async def test_changed_entries_are_refused(store: Embedded, tmp_path: Path) -> None:
    data = await written(store)
    (log,) = logs(tmp_path, data.replace(b"first", b"fUrst"))
    async with turnwire.open(":memory:") as other:
        report = Report()
        assert await restore(other, log, report) is Outcome.REFUSED
        assert "CORRUPT_DATA: an entry does not have its digest" in report.notes[0].reason
        with pytest.raises(errors.SessionNotFound):
            await other.get_session(SESSION)


async def test_a_payload_of_a_later_schema_is_kept(store: Embedded, tmp_path: Path) -> None:
    """What this build does not know counts in the digest, byte for byte."""
    from turnwire.log import digest

    shown = await store.get_session(SESSION)
    recorded_us = shown.head.recorded.ToMicroseconds()
    number, payload = 99, b"\x0a\x03new"
    chain = digest.link(shown.head.digest, shown.head.revision + 1, recorded_us, number, payload)
    envelope = v1.Entry(revision=shown.head.revision + 1, digest=chain, ignorable=True, recorded=shown.head.recorded)
    (log,) = logs(tmp_path, await written(store))
    log.entries.append(envelope.SerializeToString() + wire.field(number, payload))
    log.session.head.revision += 1
    async with turnwire.open(tmp_path / "other.db") as other:
        assert await restore(other, log, Report()) is Outcome.IMPORTED
        assert (await other.verify_session(SESSION)).sound
        (again,) = logs(tmp_path, await written(other))
        assert again.entries == log.entries


async def test_over_a_server_the_bytes_are_the_same(store: Embedded, tmp_path: Path) -> None:
    (log,) = logs(tmp_path, await written(store))
    async with turnwire.open(tmp_path / "other.db") as other:
        await restore(other, log, Report())
    with serving(tmp_path / "other.db") as (address, _):
        async with turnwire.Client.connect(address) as client:
            pieces: list[bytes] = []
            head = await write(client, SESSION, Writer(pieces.append))
    (again,) = logs(tmp_path, b"".join(pieces))
    assert (head.digest, again.entries) == (log.session.head.digest, log.entries)


@pytest.mark.parametrize("json_lines", [False, True])
async def test_a_cut_file_gives_what_came_before(store: Embedded, tmp_path: Path, json_lines: bool) -> None:
    await store.create_session("ses_2")
    data = await written(store, json_lines=json_lines) + await written(store, id="ses_2", json_lines=json_lines)
    report = Report()
    found = logs(tmp_path, data[:-5], report)
    assert [log.session.id for log in found] == [SESSION, "ses_2"]
    assert len(found[0].entries) == found[0].session.head.revision
    assert found[1].entries == []
    assert not report.complete


async def test_a_bad_line_costs_itself(store: Embedded, tmp_path: Path) -> None:
    await store.create_session("ses_2")
    lines = (await written(store, json_lines=True)).splitlines(keepends=True)
    lines[3] = lines[3][:40] + b"\n"
    report = Report()
    found = logs(tmp_path, b"".join([*lines, await written(store, id="ses_2", json_lines=True)]), report)
    assert [(note.path, note.reason) for note in report.notes] == [("/4", "no record: a line that is cut or damaged")]
    async with turnwire.open(":memory:") as other:
        assert [await restore(other, log, report) for log in found] == [Outcome.REFUSED, Outcome.IMPORTED]


async def test_the_file_is_one_protobuf_message(store: Embedded) -> None:
    """Fields 1 and 2, so that any protobuf library reads it."""
    from turnwire.log import raw

    data = await written(store)
    numbers = [field.number for field in raw.fields(data)]
    assert numbers == [1] + [2] * (len(numbers) - 1)


async def test_what_json_leaves_out_is_counted(store: Embedded) -> None:
    writer = Writer(lambda data: None, json_lines=True)
    entry = v1.Entry(revision=1).SerializeToString() + wire.field(99, b"x")
    writer.entry(entry)
    writer.entry(v1.Entry(revision=1).SerializeToString())
    assert writer.incomplete == 1


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    for name, content in (
        ("a", b""),
        ("b", b"{}"),
        ("c", b"\x0a\x01x"),
        ("d", b"SQLite format 3\x00"),
        ("e", b"\x1f\x8bxx"),
    ):
        (tmp_path / name).write_bytes(content)
        assert not is_native(tmp_path / name)
    (tmp_path / "f").write_text(json.dumps({"session": {}}))
    assert is_native(tmp_path / "f")
