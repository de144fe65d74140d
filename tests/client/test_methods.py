"""Every public method, over every transport, with the same outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

import turnwire
from tests.client.flow import MODEL, assistant, text, turn, user
from turnwire import errors, v1
from turnwire.calls import KEEP, Service

T = TypeVar("T")


async def opened(tw: Service, session_id: str = "ses_1") -> v1.AppendResponse:
    """A session with one turn, a question and an answer: revisions 1 to 4."""
    return await tw.append(
        session_id, [turn(), user("msg_u1", "a", "b"), assistant("msg_a1", "c", parent_id="msg_u1")], create=True
    )


async def test_server_info(tw: Service) -> None:
    info = await tw.server_info()
    assert info.version == turnwire.__version__
    assert list(info.protocols) == ["turnwire.v1"]
    assert set(info.profiles) == {"default", "opencode"}
    assert info.limits.append_entries == 1000
    assert info.limits.part_bytes in (3 << 20, 64 << 20)
    assert "tail" in info.features


async def test_create_and_get_session(tw: Service) -> None:
    made = await tw.create_session(
        "ses_1",
        title="A talk",
        directory="/tmp/x",
        labels={"k": "v"},
        properties=v1.SessionProperties(origin=v1.Origin(program="opencode")),
    )
    assert made.id == "ses_1"
    assert made.head.revision == 1
    assert made.properties.title == "A talk"
    assert made.properties.directory == "/tmp/x"
    assert made.properties.labels == {"k": "v"}
    assert made.properties.origin.program == "opencode"
    assert await tw.get_session("ses_1") == made
    assert (await tw.create_session()).id.startswith("ses_")


async def test_create_session_refusals(tw: Service) -> None:
    await tw.create_session("ses_1")
    with pytest.raises(errors.SessionAlreadyExists) as taken:
        await tw.create_session("ses_1")
    assert taken.value.metadata["session_id"] == "ses_1"
    with pytest.raises(errors.RuleViolation) as broken:
        await tw.create_session("no id", title="x" * 5000)
    assert {each.path for each in broken.value.violations} == {"session_id"}
    assert broken.value.violations[0].rule == "string.pattern"
    await tw.delete_session("ses_1")
    with pytest.raises(errors.SessionDeleted):
        await tw.create_session("ses_1")


async def test_unknown_session(tw: Service) -> None:
    with pytest.raises(errors.SessionNotFound) as gone:
        await tw.get_session("ses_none")
    assert gone.value.metadata == {"session_id": "ses_none"}
    assert gone.value.status == "NOT_FOUND"
    for call in (tw.history("ses_none"), tw.verify_session("ses_none"), tw.fork_session("ses_none")):
        with pytest.raises(errors.SessionNotFound):
            await call


async def test_list_sessions(tw: Service) -> None:
    for number in range(5):
        labels = {"kind": "odd" if number % 2 else "even"}
        await tw.create_session(f"ses_{number}", labels=labels, directory=f"/d{number}")
        await asyncio.sleep(0.002)
    assert [each.id async for each in tw.list_sessions(page_size=2)] == [f"ses_{n}" for n in (4, 3, 2, 1, 0)]
    assert [each.id async for each in tw.list_sessions(labels={"kind": "odd"})] == ["ses_3", "ses_1"]
    assert [each.id async for each in tw.list_sessions(directory="/d2")] == ["ses_2"]
    assert [each.id async for each in tw.list_sessions(archived=True)] == []
    later = datetime.now(UTC) + timedelta(hours=1)
    assert [each.id async for each in tw.list_sessions(recorded_from=later)] == []
    assert len([each async for each in tw.list_sessions(recorded_before=later)]) == 5
    page = await tw.list_sessions_page(page_size=3)
    assert [each.id for each in page.sessions] == ["ses_4", "ses_3", "ses_2"]
    rest = await tw.list_sessions_page(page_size=3, page_token=page.next_page_token)
    assert [each.id for each in rest.sessions] == ["ses_1", "ses_0"]
    assert rest.next_page_token == ""
    with pytest.raises(errors.InvalidPageToken):
        await tw.list_sessions_page(page_token="no token")


async def test_update_session(tw: Service) -> None:
    await tw.create_session("ses_1", title="old", directory="/d", labels={"a": "1"})
    changed = await tw.update_session("ses_1", title="new", archived=datetime(2026, 1, 2, tzinfo=UTC))
    assert changed.head.revision == 2
    assert changed.properties.title == "new"
    assert changed.properties.directory == "/d"
    assert changed.properties.labels == {"a": "1"}
    assert changed.properties.archived.seconds == datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    cleared = await tw.update_session("ses_1", directory=None, labels={}, archived=None, title=KEEP)
    assert not cleared.properties.HasField("directory")
    assert not cleared.properties.HasField("archived")
    assert cleared.properties.labels == {}
    assert cleared.properties.title == "new"
    named = await tw.update_session(
        "ses_1", properties=v1.SessionProperties(share_url="https://x", title="unused"), fields=["share_url"]
    )
    assert named.properties.share_url == "https://x"
    assert named.properties.title == "new"
    with pytest.raises(errors.InvalidFieldMask):
        await tw.update_session("ses_1")
    with pytest.raises(errors.InvalidFieldMask):
        await tw.update_session("ses_1", fields=["forked_from"])
    with pytest.raises(errors.RevisionConflict) as conflict:
        await tw.update_session("ses_1", title="x", expected_revision=2)
    assert conflict.value.detail == v1.RevisionConflict(expected=2, actual=4)


async def test_delete_session(tw: Service) -> None:
    await tw.create_session("ses_1")
    await tw.create_session("ses_2", parent=v1.ParentLink(session_id="ses_1"))
    assert sorted(await tw.delete_session("ses_1", include_children=True)) == ["ses_1", "ses_2"]
    for id in ("ses_1", "ses_2"):
        with pytest.raises(errors.SessionDeleted):
            await tw.get_session(id)
    with pytest.raises(errors.SessionDeleted):
        await tw.append("ses_1", [turn()], create=True)


async def test_fork_session(tw: Service) -> None:
    await opened(tw)
    fork = await tw.fork_session("ses_1", 3, new_session_id="ses_2", title="a fork")
    assert fork.id == "ses_2"
    assert fork.head.revision == 3
    assert fork.forked_from.session_id == "ses_1"
    assert fork.properties.title == "a fork"
    there = await tw.history("ses_1", revision=3)
    here = await tw.history("ses_2")
    assert here.messages == there.messages
    assert here.head.digest != there.head.digest
    with pytest.raises(errors.RevisionOutOfRange) as beyond:
        await tw.fork_session("ses_1", 99)
    assert beyond.value.detail == v1.RevisionConflict(expected=99, actual=4)


async def test_append_and_replay(tw: Service) -> None:
    reply = await opened(tw)
    assert reply.created
    assert [each.revision for each in reply.results] == [2, 3, 4]
    assert [each.id for each in reply.results] == ["trn_1", "msg_u1", "msg_a1"]
    assert len(reply.results[1].part_ids) == 2
    assert reply.head.revision == 4

    items = [item async for item in tw.replay("ses_1")]
    assert [type(item) for item in items] == [v1.Turn, v1.User, v1.Assistant, v1.Head]
    history = await tw.history("ses_1")
    assert list(history.turns) == ["trn_1"]
    assert [each.id for each in history.messages] == ["msg_u1", "msg_a1"]
    assert [part.text.text for part in history.messages[0].parts] == ["a", "b"]
    assert history.head == reply.head
    assert history.revision == 4

    earlier = await tw.history("ses_1", revision=3)
    assert [each.id for each in earlier.messages] == ["msg_u1"]
    part = await tw.history("ses_1", from_message_id="msg_a1")
    assert [each.id for each in part.messages] == ["msg_a1"]
    with pytest.raises(errors.MessageNotFound):
        await tw.history("ses_1", to_message_id="msg_none")
    with pytest.raises(ValueError, match="not both"):
        await tw.history("ses_1", last_turns=1, from_message_id="msg_a1")


async def test_appending_leaves_the_callers_messages_alone(tw: Service) -> None:
    message = v1.User(turn_id="trn_1", parts=[text("a")])
    before = message.SerializeToString()
    await tw.append("ses_1", [turn(), message], create=v1.SessionProperties(title="x"))
    assert message.SerializeToString() == before


async def test_append_refusals_have_paths(tw: Service) -> None:
    await tw.create_session("ses_1")
    with pytest.raises(errors.UnknownTurn) as unknown:
        await tw.append("ses_1", [user("msg_1", "a")])
    assert unknown.value.path == "entries[0].user.user.turn_id"
    assert str(unknown.value) == f"{unknown.value.path}: {unknown.value.text}"
    bad = v1.Assistant(
        id="msg_1",
        turn_id="trn_1",
        run=v1.Run(agent="a", model=v1.ModelRef(provider_id="p", model_id="m")),
        usage=v1.Usage(cost=-1, tokens=v1.Tokens(input=-2)),
        parts=[
            v1.PromptPart(
                tool=v1.ToolPart(call_id="c", name="n", state=v1.ToolState.TOOL_STATE_PENDING, input_json="{")
            )
        ],
    )
    with pytest.raises(errors.RuleViolation) as broken:
        await tw.append("ses_1", [turn(), bad])
    assert {each.path for each in broken.value.violations} == {
        "entries[1].assistant.assistant.usage.cost",
        "entries[1].assistant.assistant.usage.tokens.input",
        "entries[1].assistant.assistant.parts[0].tool.input_json",
    }
    assert broken.value.metadata["violations"] == "3"
    with pytest.raises(errors.UnknownToThisServer):
        await tw.append("ses_1", [v1.EntryInput()])
    with pytest.raises(errors.RevisionConflict) as conflict:
        await tw.append("ses_1", [turn()], expected_revision=7)
    assert conflict.value.detail == v1.RevisionConflict(expected=7, actual=1)
    with pytest.raises(errors.RequestTooLarge) as many:
        await tw.append("ses_1", [turn()] * 1001)
    assert many.value.detail == v1.SizeLimit(size=1001, limit=1000, unit="entries")
    with pytest.raises(TypeError):
        await tw.append("ses_1", [text("a")])  # type: ignore[list-item]  # the error is what is tested


async def test_request_ids(tw: Service) -> None:
    first = await tw.append("ses_1", [turn(), user("msg_1", "a")], create=True, request_id="r-1")
    again = await tw.append("ses_1", [turn(), user("msg_1", "a")], create=True, request_id="r-1")
    assert again == first
    with pytest.raises(errors.RequestIdReused):
        await tw.append("ses_1", [turn(), user("msg_1", "b")], create=True, request_id="r-1")
    fork = await tw.fork_session("ses_1", request_id="r-2")
    assert (await tw.fork_session("ses_1", request_id="r-2")).id == fork.id
    await tw.update_session("ses_1", title="x", request_id="r-3")
    assert (await tw.update_session("ses_1", title="x", request_id="r-3")).head.revision == 4
    made = await tw.create_session("ses_9", title="x", request_id="r-4")
    assert await tw.create_session("ses_9", title="x", request_id="r-4") == made


async def test_append_stream(tw: Service) -> None:
    for number in range(3):
        await tw.append(f"ses_{number}", [turn()], create=True)

    async def requests() -> AsyncIterator[v1.AppendRequest]:
        for number in range(30):
            yield turnwire.append_request(f"ses_{number % 3}", [user(f"msg_{number}", "x")])
        yield turnwire.append_request("ses_none", [turn()])
        yield turnwire.append_request("ses_0", [user("msg_last", "x")])

    outcomes = [outcome async for outcome in tw.append_stream(requests())]
    assert len(outcomes) == 32
    assert isinstance(outcomes[30], errors.SessionNotFound)
    heads = [each.head.revision if isinstance(each, v1.AppendResponse) else 0 for each in outcomes]
    assert heads[:6] == [3, 3, 3, 4, 4, 4]
    assert heads[29] == 12
    assert heads[31] == 13
    history = await tw.history("ses_0")
    assert [each.id for each in history.messages] == [f"msg_{n}" for n in range(0, 30, 3)] + ["msg_last"]
    plain = [outcome async for outcome in tw.append_stream([turnwire.append_request("ses_1", [user("msg_p", "x")])])]
    assert isinstance(plain[0], v1.AppendResponse)


async def into(items: list[T], found: AsyncIterator[T]) -> None:
    """Put what is found into a list, one by one, so that what comes before an error is there."""
    async for each in found:
        items.append(each)


async def test_what_an_iterator_of_requests_raises_reaches_the_caller(tw: Service) -> None:
    """Behind the outcomes of what it gave before, and never as if the caller had been cancelled."""

    async def requests() -> AsyncIterator[v1.AppendRequest]:
        yield turnwire.append_request("ses_1", [turn()], create=True)
        yield turnwire.append_request("ses_1", [user("msg_1", "x")])
        raise KeyError("of the caller")

    outcomes: list[v1.AppendResponse | errors.TurnwireError] = []
    with pytest.raises(KeyError, match="of the caller"):
        await into(outcomes, tw.append_stream(requests()))
    assert [each.head.revision for each in outcomes if isinstance(each, v1.AppendResponse)] == [2, 3]

    async def messages() -> AsyncIterator[v1.ModelRef]:
        yield MODEL
        raise KeyError("of the caller")

    findings: list[list[v1.Finding]] = []
    with pytest.raises(KeyError, match="of the caller"):
        await into(findings, tw.validate_messages(messages()))
    assert findings == [[]]


async def test_get_message(tw: Service) -> None:
    await opened(tw)
    await tw.append("ses_1", [v1.MessageSummary(message_id="msg_u1", title="t")])
    found = await tw.get_message("ses_1", "msg_u1", include_summary=True)
    assert [part.text.text for part in found.message.parts] == ["a", "b"]
    assert found.turn is not None
    assert found.turn.id == "trn_1"
    assert found.summary is not None
    assert found.summary.title == "t"
    assert found.head.revision == 5
    assert (await tw.get_message("ses_1", "msg_u1")).summary is None
    assert (await tw.history("ses_1", include_summaries=True)).summaries["msg_u1"].title == "t"
    with pytest.raises(errors.MessageNotFound):
        await tw.get_message("ses_1", "msg_none")


async def test_read_entries(tw: Service) -> None:
    await opened(tw)
    entries = [entry async for entry in tw.read_entries("ses_1")]
    assert [entry.revision for entry in entries] == [1, 2, 3, 4]
    assert [entry.WhichOneof("payload") for entry in entries] == ["session", "turn", "user", "assistant"]
    assert [entry.revision async for entry in tw.read_entries("ses_1", 2, 3)] == [2, 3]
    with pytest.raises(errors.RevisionOutOfRange):
        [entry async for entry in tw.read_entries("ses_1", 2, 9)]


async def test_tail(tw: Service) -> None:
    await opened(tw)
    heads: list[v1.Head] = []
    there = [entry.revision async for entry in tw.tail("ses_1", follow=False, on_caught_up=heads.append)]
    assert there == [1, 2, 3, 4]
    assert [head.revision for head in heads] == [4]
    assert [entry.revision async for entry in tw.tail("ses_1", 3, follow=False)] == [4]

    seen: list[int] = []

    async def follow() -> None:
        async for entry in tw.tail("ses_1", 4):
            seen.append(entry.revision)

    following = asyncio.create_task(follow())
    for number in range(3):
        await asyncio.sleep(0.02)
        await tw.append("ses_1", [user(f"msg_{number}", "x")])
    async with asyncio.timeout(5):
        while len(seen) < 3:
            await asyncio.sleep(0.01)
        assert seen == [5, 6, 7]
        await tw.delete_session("ses_1")
        with pytest.raises(errors.SessionDeleted):
            await following
    await tw.append("ses_2", [turn()], create=True)
    with pytest.raises(errors.RevisionOutOfRange):
        [entry async for entry in tw.tail("ses_2", 99)]


async def test_prompts(tw: Service) -> None:
    await opened(tw)
    before = await tw.history("ses_1")
    pushed = v1.Mutation(append=v1.Append(message=v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[text("go on")])))
    dry = await tw.mutate_prompt("ses_1", "trn_1", [pushed], dry_run=True)
    assert dry.id == ""
    assert [item.message_id for item in dry.items] == ["msg_u1", "msg_a1", ""]
    assert dry.items[2].mutation.index == 0
    assert (await tw.get_session("ses_1")).head.revision == 4

    context = v1.PromptContext(system=["be kind"])
    prompt = await tw.mutate_prompt("ses_1", "trn_1", [pushed], context=context)
    assert prompt.digest == dry.digest
    assert prompt.head.revision == 6
    assert [message.role for message in prompt.messages] == [
        v1.Role.ROLE_USER,
        v1.Role.ROLE_ASSISTANT,
        v1.Role.ROLE_USER,
    ]
    again = await tw.get_prompt("ses_1", prompt.id)
    assert again.items == prompt.items
    assert again.digest_holds
    assert again.context is not None
    assert list(again.context.system) == ["be kind"]
    chained = await tw.mutate_prompt("ses_1", "trn_1", base_prompt_id=prompt.id)
    assert chained.digest == prompt.digest
    assert chained.items[2].mutation.prompt_id == prompt.id
    early = await tw.mutate_prompt("ses_1", "trn_1", base_revision=3, dry_run=True)
    assert [item.message_id for item in early.items] == ["msg_u1"]

    assert [record.id async for record in tw.list_prompts("ses_1", page_size=1)] == [prompt.id, chained.id]
    assert [record.id async for record in tw.list_prompts("ses_1", turn_id="trn_none")] == []
    assert len((await tw.list_prompts_page("ses_1")).prompts) == 2
    assert (await tw.history("ses_1")).messages == before.messages

    with pytest.raises(errors.PromptNotFound):
        await tw.get_prompt("ses_1", "prm_none")
    with pytest.raises(errors.TurnNotFound):
        await tw.mutate_prompt("ses_1", "trn_none")
    unknown = v1.Mutation(remove=v1.Remove(message_id="msg_none"))
    with pytest.raises(errors.AnchorUnknown) as anchor:
        await tw.mutate_prompt("ses_1", "trn_1", [pushed, unknown])
    assert anchor.value.path == "mutations[1].remove.message_id"
    with pytest.raises(ValueError, match="one base"):
        await tw.mutate_prompt("ses_1", "trn_1", base_revision=3, base_prompt_id="prm_1")


async def test_the_editor_and_the_service_come_to_the_same_prompt(tw: Service) -> None:
    await opened(tw)
    editor = turnwire.PromptEditor.of((await tw.history("ses_1")).for_prompt(), "trn_1")
    editor.append("user", "Summarize the tool output above and continue.")
    editor.append_to("user", "now")
    prompt = await tw.mutate_prompt("ses_1", "trn_1", editor.mutations)
    assert prompt.digest == editor.digest()
    assert prompt.messages == editor.messages


async def test_verify_session(tw: Service) -> None:
    reply = await opened(tw)
    found = await tw.verify_session("ses_1")
    assert found.sound
    assert found.entries == 4
    assert found.head == reply.head


async def test_large_messages_are_whole_again(tw: Service) -> None:
    """A message of many parts comes in several responses and is one message again."""
    await tw.append("ses_1", [turn()], create=True)
    big = v1.User(id="msg_1", turn_id="trn_1", parts=[text("x" * 10_000 + str(n)) for n in range(400)])
    await tw.append("ses_1", [big])
    message = (await tw.get_message("ses_1", "msg_1")).message
    assert [part.text.text[10_000:] for part in message.parts] == [str(n) for n in range(400)]
    prompt = await tw.mutate_prompt("ses_1", "trn_1", dry_run=True)
    assert [part.text.text[10_000:] for part in prompt.items[0].message.parts] == [str(n) for n in range(400)]


async def test_leaving_an_iterator_early(tw: Service) -> None:
    await opened(tw)
    async with aclosing(tw.tail("ses_1")) as entries:
        async for entry in entries:
            assert entry.revision == 1
            break
    assert (await tw.get_session("ses_1")).head.revision == 4


async def test_time_limit(tw: Service) -> None:
    await opened(tw)
    assert (await tw.within(5).get_session("ses_1")).id == "ses_1"
    with pytest.raises(errors.DeadlineExceeded):
        [entry async for entry in tw.within(0.1).tail("ses_1")]


async def test_what_is_closed(tw: Service) -> None:
    await tw.server_info()
    await tw.within(1).close()
    await tw.close()
    with pytest.raises(RuntimeError, match="closed"):
        await tw.server_info()
    with pytest.raises(RuntimeError, match="closed"):
        await tw.history("ses_1")
