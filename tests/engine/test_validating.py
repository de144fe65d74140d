"""ValidateSession and ValidateMessages over a store: findings, selection, progress, and damage of the store's file."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.builders import CALLER, COMPLETED, append, assistant, delta, opened, put, refused, text, tool, user
from turnwire import errors, v1
from turnwire.engine import Engine, Limits
from turnwire.store.sqlite import SqliteStore
from turnwire.validation import references


async def validated(engine: Engine, id: str = "s", **request: Any) -> list[v1.ValidateSessionResponse]:
    stream: Any = engine.validate_session(CALLER, v1.ValidateSessionRequest(session_id=id, **request))
    async with aclosing(stream) as responses:
        return [v1.ValidateSessionResponse.FromString(each) async for each in responses]


def rules_of(responses: Iterable[v1.ValidateSessionResponse]) -> list[tuple[int, str]]:
    return [(finding.revision, finding.rule) for each in responses for finding in each.findings]


async def left_a_final_state(engine: Engine) -> None:
    """Revision 3 to 5: a call that completes and runs again, which a server takes."""
    await opened(engine, "s", assistant("a", tool("p", state=COMPLETED, output="ok")), put("a", tool("p")))


async def test_a_sound_session(engine: Engine) -> None:
    await opened(engine, "s", user("u", text("p")), delta("p", 0, "x"))
    responses = await validated(engine)
    assert rules_of(responses) == []
    assert responses[-1].revision == 4
    head = (await engine.get_session(CALLER, v1.GetSessionRequest(session_id="s"))).session.head
    assert responses[-1].summary == v1.ValidationSummary(checked=4, head=head)
    assert [each.HasField("summary") for each in responses] == [False] * (len(responses) - 1) + [True]


async def test_how_far_it_is_comes_again_and_again(engine: Engine) -> None:
    """A response for each stretch of the log, so that a bar moves; however large one entry is."""
    await opened(engine, "s", *(user(f"u{at}", text(f"p{at}", "x" * 1000)) for at in range(400)))
    await append(engine, "s", user("large", text("large", "x" * 200_000)))
    revisions = [each.revision for each in await validated(engine)]
    assert revisions[-1] == 403
    steps = [after - before for before, after in zip([0, *revisions], revisions, strict=False)]
    assert max(steps) <= 100


async def test_findings_and_what_is_selected(engine: Engine) -> None:
    await left_a_final_state(engine)
    responses = await validated(engine)
    assert rules_of(responses) == [(4, "session.tool.left")]
    assert (responses[-1].summary.errors, responses[-1].summary.warnings) == (0, 1)
    assert rules_of(await validated(engine, select=["session.tool"])) == [(4, "session.tool.left")]
    assert rules_of(await validated(engine, select=["string", "storage.bytes"])) == []
    assert rules_of(await validated(engine, ignore=["session"])) == []
    assert rules_of(await validated(engine, select=["schema", "storage"])) == []
    assert rules_of(await validated(engine, ignore=["schema", "storage"])) == [(4, "session.tool.left")]
    assert rules_of(await validated(engine, select=["enum.defined_only"])) == []
    for name in ("select", "ignore"):
        for wrong in ("session.too", "nothing", ""):
            with refused(errors.UnknownFilter, path=f"{name}[0]"):
                await validated(engine, **{name: [wrong]})


async def test_a_session_that_is_not_there(engine: Engine) -> None:
    with refused(errors.SessionNotFound):
        await validated(engine)


async def messages(engine: Engine, *requests: v1.ValidateMessagesRequest) -> list[v1.ValidateMessagesResponse]:
    async def given() -> AsyncIterator[v1.ValidateMessagesRequest]:
        for request in requests:
            yield request

    stream: Any = engine.validate_messages(CALLER, given())
    async with aclosing(stream) as responses:
        return [v1.ValidateMessagesResponse.FromString(each) async for each in responses]


async def test_messages_in_any_form(engine: Engine) -> None:
    good = user("u", text("p")).user.user
    request = v1.ValidateMessagesRequest
    answers = await messages(
        engine,
        request(type="turnwire.v1.User", binary=good.SerializeToString()),
        request(type="User", json='{"id": "u", "turnId": "t t", "time": {"created": "2026-01-31T14:05:09Z"}}'),
        request(type="User", binary=b"\xff"),
        request(type="User", json="{"),
        request(type="User", json='{"id": 5.5}'),
        request(type="User", json='{"colour": "red"}'),
        request(type="Usher", json="{}"),
        request(type="PromptPart", binary=tool("p").SerializeToString(), role=v1.Role.ROLE_USER),
        request(type="User", binary=good.SerializeToString(), stored=False),
    )
    assert [answer.index for answer in answers] == list(range(9))
    found = [[(finding.rule, finding.path) for finding in answer.findings] for answer in answers]
    assert found == [
        [],
        [("string.pattern", "turn_id")],
        [("storage.bytes", "")],
        [("storage.json", "")],
        [("storage.json", "")],
        [("storage.unknown_field", ""), ("string.pattern", "id"), ("string.pattern", "turn_id"), ("required", "time")],
        [("storage.type", "")],
        [("turnwire.held_by", "tool")],
        [("turnwire.stored_only", "parts[0].id")],
    ]
    assert answers[1].findings[0].value == '"t t"'


async def test_json_is_read_strictly_but_for_what_a_later_schema_has(engine: Engine) -> None:
    given = {
        '{"role": "ROLE_WIZARD", "parts": [{"text": {"text": "a"}}]}': [("storage.unknown_enum", "role")],
        '{"role": 17, "parts": [{"text": {"text": "a"}}]}': [("storage.unknown_enum", "role")],
        '{"role": 1, "role": 1, "parts": [{"text": {"text": "a"}}]}': [("storage.json", "")],
        "[]": [("storage.json", "")],
        '"role"': [("storage.json", "")],
        '["role"]': [("storage.json", "")],
    }
    answers = await messages(engine, *(v1.ValidateMessagesRequest(type="PromptMessage", json=each) for each in given))
    found = [[(finding.rule, finding.path) for finding in answer.findings] for answer in answers]
    assert found == list(given.values())


async def test_a_request_that_breaks_a_rule_ends_the_stream(engine: Engine) -> None:
    with refused(errors.UnknownToThisServer, path="message"):
        await messages(engine, v1.ValidateMessagesRequest(type="User"))


# Damage


async def damaged(path: Path, *statements: str, entries: int = 200, size: int = 1100) -> Engine:
    """Two sessions, of which ``bad`` is then changed behind the store's back."""
    engine = Engine(SqliteStore.open(path))
    for id in ("bad", "good"):
        await opened(engine, id, *(user(f"u{at}", text(f"p{at}", f"text {at} " + "x" * size)) for at in range(entries)))
    await engine.close()
    db = sqlite3.connect(path)
    ((key,),) = db.execute("SELECT key FROM session WHERE id = 'bad'")
    for statement in statements:
        db.execute(statement.replace(":at", str(key << 32)))
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return Engine(SqliteStore.open(path))


@pytest.mark.parametrize(("revision", "told"), [(6, 64), (64, 64), (65, 128), (202, 202)])
async def test_a_flipped_byte_shows_at_the_next_digest_that_is_kept(tmp_path: Path, revision: int, told: int) -> None:
    flip = f"UPDATE entry SET payload = CAST(replace(payload, 'text', 'teXt') AS BLOB) WHERE pos = :at + {revision}"
    engine = await damaged(tmp_path / "t.db", flip)
    assert rules_of(await validated(engine, "bad")) == [(told, "session.digest")]
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


@pytest.mark.parametrize("revision", [64, 128])
async def test_a_digest_that_is_kept_wrong_is_one_finding(tmp_path: Path, revision: int) -> None:
    change = f"UPDATE entry SET digest = randomblob(32) WHERE pos = :at + {revision}"
    engine = await damaged(tmp_path / "t.db", change)
    assert rules_of(await validated(engine, "bad")) == [(revision, "session.digest")]
    await engine.close()


@pytest.mark.parametrize("by", [-(10**12), 10**12])
async def test_a_time_that_was_changed_is_one_finding(tmp_path: Path, by: int) -> None:
    engine = await damaged(tmp_path / "t.db", f"UPDATE entry SET recorded = recorded + {by} WHERE pos = :at + 50")
    assert rules_of(await validated(engine, "bad")) == [(64, "session.digest")]
    await engine.close()


async def test_a_torn_payload(tmp_path: Path) -> None:
    tear = "UPDATE entry SET payload = substr(payload, 1, length(payload) - 3) WHERE pos = :at + 64"
    engine = await damaged(tmp_path / "t.db", tear)
    assert rules_of(await validated(engine, "bad")) == [(64, "storage.bytes"), (64, "session.digest")]
    await engine.close()


@pytest.mark.parametrize("revision", [3, 100, 202])
async def test_an_entry_is_missing(tmp_path: Path, revision: int) -> None:
    engine = await damaged(tmp_path / "t.db", f"DELETE FROM entry WHERE pos = :at + {revision}")
    found = rules_of(await validated(engine, "bad"))
    assert [rule for _, rule in found] == ["session.revision"]
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


_BLOCK = "pos = (SELECT min(pos) FROM entry WHERE mark = 0 AND pos > :at + 40)"


@pytest.mark.parametrize(
    ("statement", "told", "checked"),
    [
        (f"UPDATE entry SET payload = CAST(replace(payload, 'text 50 ', 'teXt 50 ') AS BLOB) WHERE {_BLOCK}",
         [(88, "session.digest")], 202),
        (f"UPDATE entry SET payload = substr(payload, 1, length(payload) - 3) WHERE {_BLOCK}",
         [(88, "storage.bytes"), (88, "session.digest")], 202),
        (f"UPDATE entry SET payload = x'' WHERE {_BLOCK}", [(46, "session.revision")], 159),
        (f"DELETE FROM entry WHERE {_BLOCK}", [(89, "session.revision")], 159),
    ],
    ids=["flipped", "torn", "emptied", "missing"],
)  # fmt: skip
async def test_a_row_that_many_entries_share(
    tmp_path: Path, statement: str, told: list[tuple[int, str]], checked: int
) -> None:
    """It has the entries 46 to 88; the others are checked all the same."""
    engine = await damaged(tmp_path / "t.db", statement, size=300)
    responses = await validated(engine, "bad")
    assert rules_of(responses) == told
    assert responses[-1].summary.checked == checked
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


async def test_a_page_that_sqlite_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    engine = await damaged(path)
    await engine.close()
    _overwrite(path, b"text 100 x")
    engine = Engine(SqliteStore.open(path))
    responses = await validated(engine, "bad")
    found = [finding for each in responses for finding in each.findings]
    assert {finding.rule for finding in found} == {"storage.unreadable"}
    assert found[0].value.startswith("revisions ")
    first, last = (int(each) for each in found[0].value.removeprefix("revisions ").split(" to "))
    assert first <= 103 <= last < 202
    assert responses[-1].summary.checked > 150
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


def _overwrite(path: Path, content: bytes) -> None:
    """Overwrite the beginning of the first page of the file that holds some bytes."""
    data = bytearray(path.read_bytes())
    size = 16 * 1024
    page = data.index(content) // size * size
    data[page : page + 64] = b"\xee" * 64
    path.write_bytes(data)


async def test_a_damaged_digest_of_the_head(tmp_path: Path) -> None:
    engine = await damaged(tmp_path / "t.db", "UPDATE session SET digest = zeroblob(32) WHERE id = 'bad'")
    found = rules_of(await validated(engine, "bad"))
    assert [rule for _, rule in found] == ["session.digest"]
    await engine.close()


async def test_what_cannot_say_how_far_it_goes_is_an_error(tmp_path: Path) -> None:
    change = f"UPDATE session SET recorded_us = {2**62}, ahead = 0 WHERE id = 'bad'"
    engine = await damaged(tmp_path / "t.db", change, entries=3)
    with refused(errors.CorruptData, session_id="bad"):
        await validated(engine, "bad")
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


async def test_an_enum_and_a_field_of_a_later_schema_are_notes(engine: Engine) -> None:
    later = user("u", text("p"))
    later.user.user.MergeFromString(b"\xa2\x06\x01x")  # field 100
    await opened(engine, "s", later)
    responses = await validated(engine)
    assert rules_of(responses) == [(3, "storage.unknown_field")]
    (finding,) = responses[0].findings
    assert finding.path == "user.user"
    assert finding.text == "field 100 of User comes from a schema of turnwire.v1 later than that of version 0.1.0"
    assert responses[-1].summary.notes == 1


def test_limits_are_those_of_an_append() -> None:
    assert Limits().append_entries == references.APPEND_ENTRIES


@pytest.mark.parametrize("head", [203, 400, 9_000_000_000_000_000, 2**63 - 1])
async def test_a_head_that_is_too_great_is_one_finding(tmp_path: Path, head: int) -> None:
    """However great it is, and although the entries of other sessions lie behind those of this one."""
    engine = await damaged(tmp_path / "t.db", f"UPDATE session SET head = {head} WHERE id = 'bad'")
    (finding,) = [finding for each in await validated(engine, "bad") for finding in each.findings]
    told = f"revisions 203 to {head} are missing" if head > 203 else "revision 203 is missing"
    assert (finding.rule, finding.revision, finding.text) == ("session.revision", 203, told)
    verified = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="bad"))
    assert [(found.rule, found.revision) for found in verified.findings] == [("session.revision", 203)]
    assert verified.entries == 202
    with refused(errors.CorruptData):
        request = v1.ReadEntriesRequest(session_id="bad", from_revision=203)
        async for _ in engine.read_entries(CALLER, request):
            pass
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63) + 1, 2**62])
async def test_times_that_no_digest_can_hold_are_one_finding(tmp_path: Path, time: int) -> None:
    engine = await damaged(tmp_path / "t.db", f"UPDATE session SET first_us = {time} WHERE id = 'bad'")
    assert rules_of(await validated(engine, "bad")) == [(1, "storage.form")]
    verified = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="bad"))
    assert [found.rule for found in verified.findings] == ["storage.unreadable"]
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


@pytest.mark.parametrize("mark", [2**60, 2**31, -2, 1])
async def test_a_number_of_a_payload_that_no_field_can_have(tmp_path: Path, mark: int) -> None:
    engine = await damaged(tmp_path / "t.db", f"UPDATE entry SET mark = {mark} WHERE pos = :at + 100")
    assert rules_of(await validated(engine, "bad")) == [(100, "storage.form")]
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()


@pytest.mark.parametrize(("entries", "size"), [(3, 10), (80, 10), (200, 1100), (900, 10)])
@pytest.mark.parametrize("by", [-1, 10**12])
async def test_another_time_to_count_from_is_one_finding(tmp_path: Path, by: int, entries: int, size: int) -> None:
    """All times of recording are kept as distances from that of the first entry, so that no digest holds."""
    change = f"UPDATE session SET first_us = first_us + {by} WHERE id = 'bad'"
    engine = await damaged(tmp_path / "t.db", change, entries=entries, size=size)
    found = [finding for each in await validated(engine, "bad") for finding in each.findings]
    assert [finding.rule for finding in found] == ["session.digest"]
    if size > 1000:  # else all lie in rows that share one digest
        assert found[0].text.endswith(f"is off by {-by / 1e6:,.6f} seconds")
    verified = await engine.verify_session(CALLER, v1.VerifySessionRequest(session_id="bad"))
    assert [(each.rule, each.revision, each.text) for each in verified.findings] == [
        (each.rule, each.revision, each.text) for each in found
    ]
    assert not any(each.value or each.expected for each in verified.findings)
    assert rules_of(await validated(engine, "good")) == []
    await engine.close()
