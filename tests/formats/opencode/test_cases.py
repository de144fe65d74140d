"""Cases from the field, as they reach Turnwire through the importer: from each form, through a store, and out again.

The numbers are those of the list of cases that the project keeps; each test says what happened elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import turnwire
from tests.formats.opencode.stores import add_message, database, tree
from tests.formats.samples import assistant, document, exact, text, tool, user
from turnwire import v1
from turnwire.embedded import Embedded
from turnwire.formats import Outcome, Report, stored
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.pipeline import bring

BASE = {"slug": "s", "projectID": "p", "time": {"created": 1000, "updated": 2000}}
FORMS = ("export", "database", "tree")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """The form in which a session is stored."""
    name: str = request.param
    return name


@pytest.fixture
async def store() -> AsyncIterator[Embedded]:
    """An empty store."""
    async with turnwire.open(":memory:") as opened:
        yield opened


def put(folder: Path, form: str, whole: str) -> Path:
    """Store a session in a form."""
    match form:
        case "export":
            (folder / "session.json").write_text(whole)
            return folder / "session.json"
        case "database":
            database(folder / "opencode.db", whole).close()
            return folder / "opencode.db"
        case _:
            return tree(folder / "storage", whole)


async def take(store: Embedded, path: Path) -> Report:
    """Import what is at a path."""
    report = Report()
    async for _ in bring(store, OPENCODE, OPENCODE.sources(path, report), report):
        pass
    return report


async def kept(store: Embedded, folder: Path, form: str, *messages: dict[str, Any], **info: Any) -> list[v1.Assistant]:
    """Import a session from a form; what it exports to must be what it was. Returns the answers."""
    whole = document(*messages, **BASE | info)
    report = await take(store, put(folder, form, whole))
    assert report.complete, [str(note) for note in report.notes]
    back = exact(OPENCODE.export(await stored.history(store, "ses_1")))
    if form == "database":
        for key in ("cost", "tokens"):
            back["info"].pop(key, None)
    assert back == exact(whole)
    history = await store.history("ses_1")
    return [message for message in history.messages if isinstance(message, v1.Assistant)]


async def test_c1_a_tool_that_was_running_when_the_program_was_killed(
    store: Embedded, tmp_path: Path, form: str
) -> None:
    part = tool("prt_2") | {"state": {"status": "running", "input": {"command": "sleep"}, "time": {"start": 5}}}
    (answer,) = await kept(
        store, tmp_path, form, user("msg_1", text("prt_1")), assistant("msg_2", part, parent="msg_1")
    )
    assert answer.parts[0].tool.state == v1.ToolState.TOOL_STATE_RUNNING


async def test_c9_states_that_nobody_listed(store: Embedded, tmp_path: Path, form: str) -> None:
    """A state of another version is not finished; a call without any is no call."""
    strange = tool("prt_2", status="approval-requested")
    bare = {"id": "prt_3", "type": "tool", "callID": "call_2", "tool": "bash"}
    (answer,) = await kept(
        store, tmp_path, form, user("msg_1", text("prt_1")), assistant("msg_2", strange, bare, parent="msg_1")
    )
    assert answer.parts[0].tool.state == v1.ToolState.TOOL_STATE_PENDING
    assert answer.parts[1].WhichOneof("kind") == "extension"


async def test_c14_a_call_id_in_later_turns_and_twice_in_one_message(
    store: Embedded, tmp_path: Path, form: str
) -> None:
    first, second = await kept(
        store,
        tmp_path,
        form,
        user("msg_1", text("prt_1")),
        assistant("msg_2", tool("prt_2", "call_0"), parent="msg_1"),
        user("msg_3", text("prt_3"), at=2000),
        assistant("msg_4", tool("prt_4", "call_0"), tool("prt_5", "call_0"), at=2001, parent="msg_3"),
    )
    assert first.parts[0].tool.call_id == second.parts[0].tool.call_id == "call_0"
    assert second.parts[1].WhichOneof("kind") == "extension"


async def test_c18_a_client_whose_clock_is_ahead(store: Embedded, tmp_path: Path, form: str) -> None:
    """The answer stands before its question in opencode's order, and is linked to it all the same."""
    (answer,) = await kept(
        store,
        tmp_path,
        form,
        assistant("msg_000", text("prt_2"), at=1000, parent="msg_zzz"),
        user("msg_zzz", text("prt_1"), at=600_000),
    )
    assert answer.parent_id == "msg_zzz"
    assert [message.id for message in (await store.history("ses_1")).messages] == ["msg_000", "msg_zzz"]


async def test_c20_equal_times(store: Embedded, tmp_path: Path, form: str) -> None:
    await kept(store, tmp_path, form, *(user(f"msg_{name}", text(f"prt_{name}"), at=7) for name in "abcdef"))
    assert [message.id[-1] for message in (await store.history("ses_1")).messages] == list("abcdef")


async def test_c26_a_parent_that_was_never_written(store: Embedded, tmp_path: Path, form: str) -> None:
    (answer,) = await kept(
        store, tmp_path, form, user("msg_1", text("prt_1")), assistant("msg_2", text("prt_2"), parent="msg_ghost")
    )
    assert not answer.HasField("parent_id")
    assert answer.turn_id == (await store.history("ses_1")).messages[0].turn_id


async def test_c44_compacted_outputs_are_stored_whole(store: Embedded, tmp_path: Path, form: str) -> None:
    part = tool("prt_2", output="long", time={"start": 1, "end": 2, "compacted": 3})
    (answer,) = await kept(
        store, tmp_path, form, user("msg_1", text("prt_1")), assistant("msg_2", part, parent="msg_1")
    )
    assert (answer.parts[0].tool.output, answer.parts[0].tool.HasField("compacted")) == ("long", True)


@pytest.mark.parametrize("place", ["text", "output", "title", "input", "key", "metadata", "error", "filename"])
async def test_c47_lone_surrogates(store: Embedded, tmp_path: Path, form: str, place: str) -> None:
    """Repaired in the field, kept as they were beside it, and left alone in documents, where they are legal."""
    bad = "abc\ud83d"
    parts: dict[str, dict[str, Any]] = {
        "text": text("prt_2", bad),
        "output": tool("prt_2", output=bad),
        "title": tool("prt_2", title=bad),
        "input": tool("prt_2", input={"a": bad}),
        "key": tool("prt_2", input={bad: 1}),
        "metadata": tool("prt_2", metadata={"a": [bad]}),
        "error": tool("prt_2", status="error", error=bad),
        "filename": {"id": "prt_2", "type": "file", "mime": "a/b", "url": "file:///x", "filename": bad},
    }
    question = user("msg_1", text("prt_1", "\U0001f600"))
    (answer,) = await kept(store, tmp_path, form, question, assistant("msg_2", parts[place], parent="msg_1"))
    if place == "text":
        assert answer.parts[0].text.text == "abc\ufffd"
    if place == "input":
        assert answer.parts[0].tool.input_json == '{"a":"abc\\ud83d"}'


async def test_c48_nul_and_what_looks_like_it(store: Embedded, tmp_path: Path, form: str) -> None:
    outputs = ["PK\x03\x04\x00", "\\u0000"]
    (answer,) = await kept(
        store,
        tmp_path,
        form,
        user("msg_1", text("prt_1")),
        assistant(
            "msg_2", *(tool(f"prt_2{at}", f"c{at}", output=one) for at, one in enumerate(outputs)), parent="msg_1"
        ),
    )
    assert [part.tool.output for part in answer.parts] == outputs


async def test_c49_nan_and_infinity(store: Embedded, tmp_path: Path, form: str) -> None:
    part = tool("prt_2", metadata={"x": float("nan")})
    (answer,) = await kept(
        store,
        tmp_path,
        form,
        user("msg_1", text("prt_1")),
        assistant("msg_2", part, parent="msg_1", cost=float("-inf")),
    )
    assert not answer.usage.HasField("cost")
    assert answer.parts[0].tool.metadata_json == ""


async def test_c50_negative_tokens_and_cost(store: Embedded, tmp_path: Path, form: str) -> None:
    counts = {"input": -423, "output": 5, "reasoning": 0, "cache": {"read": 84160, "write": 0}}
    finish = {"id": "prt_2", "type": "step-finish", "reason": "stop", "cost": -0.01, "tokens": counts}
    (answer,) = await kept(
        store, tmp_path, form, user("msg_1", text("prt_1")), assistant("msg_2", finish, parent="msg_1", tokens=counts)
    )
    usage = answer.parts[0].step_finish.usage
    assert (usage.tokens.input, usage.tokens.cache.read, usage.HasField("cost")) == (0, 84160, False)
    assert (answer.usage.tokens.input, answer.usage.tokens.output) == (0, 5)


async def test_c51_c52_numbers_of_documents(store: Embedded, tmp_path: Path, form: str) -> None:
    given = {"limit": 1, "ratio": 1.0, "id": 653247040368672768}
    (answer,) = await kept(
        store,
        tmp_path,
        form,
        user("msg_1", text("prt_1")),
        assistant("msg_2", tool("prt_2", input=given), parent="msg_1"),
    )
    assert answer.parts[0].tool.input_json == '{"limit":1,"ratio":1.0,"id":653247040368672768}'


@pytest.mark.parametrize("levels", [34, 51, 120, 200])
async def test_c58_deep_inputs(store: Embedded, tmp_path: Path, form: str, levels: int) -> None:
    given: Any = 1
    for _ in range(levels):
        given = {"a": given}
    (answer,) = await kept(
        store,
        tmp_path,
        form,
        user("msg_1", text("prt_1")),
        assistant("msg_2", tool("prt_2", input=given), parent="msg_1"),
    )
    assert bool(answer.parts[0].tool.input_json) == (levels <= 128)


async def test_c64_media_types_as_they_were_sent(store: Embedded, tmp_path: Path, form: str) -> None:
    files = [
        {"id": f"prt_{at}", "type": "file", "mime": mime, "url": "data:,x"}
        for at, mime in enumerate(("image/jpg", "image/bmp", ""))
    ]
    await kept(store, tmp_path, form, user("msg_1", *files))
    (message,) = (await store.history("ses_1")).messages
    assert [part.file.mime for part in message.parts] == ["image/jpg", "image/bmp", ""]


async def test_c85_a_cut_file_hides_nothing_before_it(store: Embedded, tmp_path: Path) -> None:
    whole = document(*(user(f"msg_{at}", text(f"prt_{at}"), at=at) for at in range(1, 9)), **BASE)
    (tmp_path / "cut.json").write_text(whole[: len(whole) * 2 // 3])
    report = await take(store, tmp_path / "cut.json")
    assert len((await store.history("ses_1")).messages) == 5
    assert not report.complete


async def test_c88_old_shapes(store: Embedded, tmp_path: Path, form: str) -> None:
    """A variant beside the model, diffs with both texts and no patch, a failed tool without anything else."""
    diff = {"file": "a", "before": "x", "after": "y", "additions": 1, "deletions": 1}
    failed = {"id": "prt_2", "type": "tool", "callID": "c", "tool": "bash", "state": {"status": "error", "input": {}}}
    question = user("msg_1", text("prt_1"), variant="high", summary={"diffs": [diff]})
    (answer,) = await kept(store, tmp_path, form, question, assistant("msg_2", failed, parent="msg_1"))
    history = await store.history("ses_1", include_summaries=True)
    assert history.turns[answer.turn_id].request.variant == "high"
    (kept_diff,) = history.summaries["msg_1"].diffs
    assert (kept_diff.before, kept_diff.after, kept_diff.HasField("patch")) == ("x", "y", False)
    assert answer.parts[0].tool.state == v1.ToolState.TOOL_STATE_ERROR


async def test_c88_a_location_in_place_of_a_directory(store: Embedded, tmp_path: Path) -> None:
    whole = json.loads(document(user("msg_1", text("prt_1")), **BASE))
    whole["info"]["location"] = {"directory": whole["info"].pop("directory")}
    (tmp_path / "a.json").write_text(json.dumps(whole))
    await take(store, tmp_path / "a.json")
    assert (await store.get_session("ses_1")).properties.directory == "/tmp/x"
    assert json.loads(OPENCODE.export(await stored.history(store, "ses_1"))) == whole


async def test_c91_what_was_written_can_be_read_by_everything(store: Embedded, tmp_path: Path, form: str) -> None:
    """A format without a retry count goes through append, list, fork and export."""
    schema = {"type": "json_schema", "schema": {"type": "object", "properties": {"b": {}, "a": {}}}}
    await kept(store, tmp_path, form, user("msg_1", text("prt_1"), format=schema))
    assert [session.id async for session in store.list_sessions()] == ["ses_1"]
    await store.fork_session("ses_1", new_session_id="ses_2")
    tree_ = json.loads(OPENCODE.export(await stored.history(store, "ses_2")))
    assert tree_["messages"][0]["info"]["format"] == schema


async def test_c92_fields_that_nobody_knows_survive(store: Embedded, tmp_path: Path, form: str) -> None:
    await kept(
        store,
        tmp_path,
        form,
        user("msg_1", text("prt_1", later={"a": [1]}), later="x"),
        assistant("msg_2", {"id": "prt_2", "type": "widget", "shape": "round"}, parent="msg_1", later=None),
    )


async def test_c93_again_with_more_with_less_and_with_damage(store: Embedded, tmp_path: Path) -> None:
    """Once, with a session more, broken off in the middle, and with a row that went bad."""
    path = tmp_path / "opencode.db"
    first, second = (document(user("msg_1", text("prt_1"), at=1), **BASE).replace('_1"', f'_{n}"') for n in "12")
    db = database(path, first)
    assert (await take(store, path)).total(Outcome.IMPORTED, "session") == 1
    db.close()
    db = database(tmp_path / "more.db", first, second)
    db.close()
    (tmp_path / "more.db").rename(path)
    report = await take(store, path)
    assert (report.total(Outcome.UNCHANGED, "session"), report.total(Outcome.IMPORTED, "session")) == (1, 1)
    (source,) = OPENCODE.sources(path, Report())
    running = bring(store, OPENCODE, [source], Report())
    await anext(running)
    await running.aclose()
    db = _opened(path)
    add_message(db, "ses_2", user("msg_3", text("prt_3"), at=5))
    db.execute("UPDATE part SET data = 'gone bad' WHERE id = 'prt_1'")
    db.close()
    report = await take(store, path)
    assert [(note.outcome, note.path) for note in report.notes] == [(Outcome.REFUSED, "/part/prt_1")]
    assert (report.total(Outcome.UNCHANGED, "session"), report.total(Outcome.UPDATED, "session")) == (1, 1)
    assert [len(message.parts) for message in (await store.history("ses_1")).messages] == [1]
    assert [message.id for message in (await store.history("ses_2")).messages] == ["msg_2", "msg_3"]


def _opened(path: Path) -> Any:
    import sqlite3

    return sqlite3.connect(path, isolation_level=None)


async def test_c94_an_importer_removes_only_what_it_knows(store: Embedded, tmp_path: Path) -> None:
    """What was added here, and what another source brought, outlives any import."""
    two = [user("msg_1", text("prt_1"), at=1), user("msg_2", text("prt_2"), at=2)]
    await take(store, put(tmp_path, "export", document(*two, **BASE)))
    session = await store.open_session("ses_1")
    await (await session.start_turn(agent="build", model="p/m")).add_user("mine", message_id="msg_mine")
    await take(store, put(tmp_path, "database", document(two[1], **BASE)))
    await take(store, put(tmp_path, "export", document(two[1], **BASE)))
    assert [message.id for message in (await store.history("ses_1")).messages] == ["msg_2", "msg_mine"]


async def test_a_missing_parent_a_part_alone_and_ids_twice(store: Embedded, tmp_path: Path) -> None:
    """Each costs itself at most."""
    part = {"id": "prt_1", "type": "text", "text": "again", "sessionID": "ses_1", "messageID": "msg_2"}
    whole = document(
        user("msg_1", text("prt_1")),
        user("msg_1", text("prt_2")),
        {"parts": [part]},
        user("msg_2", part, at=2000),
        **BASE,
    )
    report = await take(store, put(tmp_path, "export", whole))
    assert [(note.kind, note.path) for note in report.notes if note.outcome is Outcome.REFUSED] == [
        ("message", "/messages/2")
    ]
    messages = (await store.history("ses_1")).messages
    assert [[part.text.text for part in message.parts] for message in messages] == [["hello"], ["hello"], ["again"]]
