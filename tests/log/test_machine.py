"""Any run of appends, legal or not, against the plain fold and the rules written out once more.

A machine appends to a session, and to a fork of it at the same time. After every append the history at each new
revision is what `fold` makes of the entries, and stays that; an append of one entry is refused exactly where the rules
of this module say so, with that reason.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.builders import (
    COMPLETED,
    PENDING,
    append,
    assistant,
    clear,
    delta,
    fork,
    get_message,
    made,
    opened,
    put,
    read,
    remove,
    remove_part,
    replay,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from tests.conftest import open_store
from turnwire import errors, ids, v1
from turnwire.engine import Engine
from turnwire.log.fold import Folded, FoldedMessage, FoldedPart, fold
from turnwire.store import sqlite_block

MESSAGES = ["m0", "m1", *(made(ids.MESSAGE, at) for at in range(3))]
PARTS = ["p0", "p1", "p2", *(made(ids.PART, at) for at in range(5))]
TURNS = ["t", "t1", "t2"]


def texts() -> st.SearchStrategy[v1.PromptPart]:
    contents = st.sampled_from(["", "a", "é😀"])
    return st.builds(text, st.sampled_from(PARTS), contents, ended=st.booleans())


def tools() -> st.SearchStrategy[v1.PromptPart]:
    calls = st.sampled_from(["c0", "c1"])
    return st.builds(
        tool, st.sampled_from(PARTS), calls, state=st.sampled_from([PENDING, COMPLETED]), raw_input=st.just("{")
    )


def entries() -> st.SearchStrategy[v1.EntryInput]:
    messages, parts, turns = (st.sampled_from(each) for each in (MESSAGES, PARTS, TURNS))
    maybe_message, maybe_part = (st.none() | st.none() | st.none() | each for each in (messages, parts))
    several = st.lists(texts() | tools(), max_size=3, unique_by=(lambda part: part.id, _call))
    users = st.lists(texts(), max_size=2, unique_by=lambda part: part.id)
    puts_of_users = st.builds(
        lambda id, parts, turn, before: user(id, *parts, turn=turn, before=before),
        messages,
        users,
        turns,
        maybe_message,
    )
    puts_of_assistants = st.builds(
        lambda id, parts, turn, parent, before, completed: assistant(
            id, *parts, turn=turn, parent=parent, before=before, completed=completed
        ),
        messages,
        several,
        turns,
        maybe_message,
        maybe_message,
        st.booleans(),
    )
    return st.one_of(
        puts_of_users,
        puts_of_assistants,
        st.builds(put, messages, texts() | tools(), before=maybe_part),
        st.builds(put, messages, texts() | tools()),
        st.builds(delta, parts, st.sampled_from([0, 1, 2, 6, 7]), st.sampled_from(["x", "yz"])),
        st.builds(delta, parts, st.sampled_from([0, 1, 2]), raw_input=st.sampled_from(["x", "yz"])),
        st.builds(turn, turns, agent=st.sampled_from(["build", "build", "plan"])),
        st.builds(summary, messages),
        st.builds(remove, messages),
        st.builds(remove_part, parts),
        st.builds(revert, messages, maybe_part),
        st.builds(clear),
    )


def _call(part: v1.PromptPart) -> str:
    return part.tool.call_id or part.id


class Rules:
    """The rules of admission for one entry, after a log of entries; kept apart from the code that they check."""

    def __init__(self, log: list[v1.Entry]) -> None:
        self.state = fold(log)
        self.named: set[str] = set()  # messages that ever were
        self.parts: set[str] = set()
        self.gone: set[str] = set()  # parts that were removed by themselves
        before = Folded()
        for at, entry in enumerate(log):
            for part in _parts(entry):
                self.parts.add(part.id)
            if entry.HasField("user"):
                self.named.add(entry.user.user.id)
            if entry.HasField("assistant"):
                self.named.add(entry.assistant.assistant.id)
            if entry.removal.part_id:
                self.gone.add(entry.removal.part_id)
            if before.revert is not None and (entry.HasField("user") or entry.HasField("assistant")):
                self.gone |= {part.id for message in before.messages() for part in message.places if part.hidden}
            if before.revert is not None or entry.HasField("revert"):
                before = fold(log[: at + 1])

    def refusal(self, entry: v1.EntryInput) -> type[errors.TurnwireError] | None:
        """Why the entry is refused; None: it is not."""
        match entry.WhichOneof("payload"):
            case "turn":
                there = self.state.turns.get(entry.turn.id)
                return errors.TurnConflict if there is not None and there != entry.turn else None
            case "user":
                return self._message(entry.user.user, entry.user.before_id)
            case "assistant":
                return self._message(entry.assistant.assistant, entry.assistant.before_id)
            case "part":
                return self._part_put(entry.part)
            case "delta":
                return self._delta(entry.delta)
            case "summary":
                return self._gone(entry.summary.message_id)
            case "removal":
                if entry.removal.message_id:
                    return self._gone(entry.removal.message_id)
                return self._gone_part(entry.removal.part_id)
            case "revert":
                return self._revert(entry.revert)
            case _:
                return None if self.state.revert is not None else errors.NoOpenRevert

    def _message(self, message: v1.User | v1.Assistant, before_id: str) -> type[errors.TurnwireError] | None:
        if message.id in (before_id, message.parent_id if isinstance(message, v1.Assistant) else ""):
            return errors.RuleViolation
        hidden = self.state.revert is not None
        there = self.state.places.get(message.id)
        there = None if there is not None and hidden and there.hidden else there
        if there is not None and type(there.header) is not type(message):
            return errors.IdInUse
        if before_id and there is not None:
            return errors.PlaceIsFixed
        if before_id:
            refusal = self._gone(before_id, finished=True)
            if refusal is errors.MessageRemoved:
                return refusal
        parts = {part.id: part for part in there.places if not part.hidden} if there is not None else {}
        gone = set(self.gone)
        if there is not None and hidden:
            gone |= {part.id for part in there.places if part.hidden}
        for other in self.state.messages() if hidden else ():
            if other is not there:
                gone |= {part.id for part in other.places if part.hidden}
        for part in message.parts:
            owner = self._owner(part.id)
            if owner is not None and owner is not there:
                return errors.IdInUse
            if part.id in gone:
                return errors.PartRemoved
        calls = {each.id: each.put.tool.call_id for each in parts.values()}
        calls.update({part.id: part.tool.call_id for part in message.parts})
        taken = [call for call in calls.values() if call]
        if len(taken) != len(set(taken)):
            return errors.DuplicateCallId
        if message.turn_id not in self.state.turns:
            return errors.UnknownTurn
        for id in (before_id, message.parent_id if isinstance(message, v1.Assistant) else ""):
            if id and id not in self.named | {message.id}:
                return errors.UnknownMessage
        parent = self.state.places.get(message.parent_id) if isinstance(message, v1.Assistant) else None
        if parent is not None and not parent.hidden and not isinstance(parent.header, v1.User):
            return errors.RuleViolation
        return None

    def _owner(self, part_id: str) -> FoldedMessage | None:
        """The message that has a part, once an open revert is final."""
        for message in self.state.places:
            part = message.places.get(part_id)
            if part is not None and not message.hidden and not part.hidden:
                return message
        return None

    def _part_put(self, entry: v1.PartPut) -> type[errors.TurnwireError] | None:
        if entry.before_id == entry.part.id:
            return errors.RuleViolation
        refusal = self._gone(entry.message_id)
        if refusal is not None:
            return refusal
        message = self.state.places.get(entry.message_id)
        assert message is not None
        part = entry.part
        if part.HasField("tool") and isinstance(message.header, v1.User):
            return errors.RuleViolation
        owner, there = self._find(part.id)
        if owner is not None and owner is not message:
            return errors.IdInUse
        if there is None and part.id in self.gone:
            return errors.PartRemoved
        if there is not None and entry.before_id:
            return errors.PlaceIsFixed
        if entry.before_id:
            refusal = self._gone_part(entry.before_id)
            if refusal is errors.PartRemoved:
                return refusal
            other, _ = self._find(entry.before_id)
            if other is not None and other is not message:
                return errors.UnknownPart
        calls = [each.put.tool.call_id for each in message.places if each.id != part.id]
        if part.tool.call_id and part.tool.call_id in calls:
            return errors.DuplicateCallId
        if entry.before_id and entry.before_id not in self.parts | {part.id}:
            return errors.UnknownPart
        return None

    def _delta(self, entry: v1.PartDelta) -> type[errors.TurnwireError] | None:
        if entry.part_id not in self.parts:
            return errors.UnknownPart
        owner, part = self._find(entry.part_id)
        if owner is None or part is None:
            return errors.PartRemoved if entry.part_id in self.gone else errors.MessageRemoved
        target = entry.WhichOneof("target")
        if (target == "text") != part.put.HasField("text"):
            return errors.InvalidDelta
        said = getattr(entry, target or "")
        for there in part.deltas:
            if there.WhichOneof("target") == target and there.offset == entry.offset:
                same = getattr(there, target or "") == said
                if same:
                    return None
        built = part.built()
        length = len((built.text.text if target == "text" else built.tool.raw_input).encode())
        ended = part.put.text.time.HasField("end") or part.put.tool.state == COMPLETED
        if ended or (isinstance(owner.header, v1.Assistant) and owner.header.time.HasField("completed")):
            return errors.PartSealed
        return errors.DeltaOffsetMismatch if entry.offset != length else None

    def _revert(self, entry: v1.Revert) -> type[errors.TurnwireError] | None:
        if self.state.revert is not None:
            return errors.RevertAlreadyOpen
        refusal = self._gone(entry.message_id)
        if refusal is not None or not entry.part_id:
            return refusal
        refusal = self._gone_part(entry.part_id)
        if refusal is not None:
            return refusal
        owner, _ = self._find(entry.part_id)
        return None if owner is not None and owner.id == entry.message_id else errors.UnknownPart

    def _find(self, part_id: str) -> tuple[FoldedMessage | None, FoldedPart | None]:
        for message in self.state.places:
            part = message.places.get(part_id)
            if part is not None:
                return message, part
        return None, None

    def _gone(self, id: str, *, finished: bool = False) -> type[errors.TurnwireError] | None:
        if id not in self.named:
            return errors.UnknownMessage
        there = self.state.places.get(id)
        if there is None or (finished and there.hidden):
            return errors.MessageRemoved
        return None

    def _gone_part(self, id: str) -> type[errors.TurnwireError] | None:
        if id not in self.parts:
            return errors.UnknownPart
        return errors.PartRemoved if self._find(id)[1] is None else None


def _parts(entry: v1.Entry) -> list[v1.PromptPart]:
    if entry.HasField("part"):
        return [entry.part.part]
    return [*entry.user.user.parts, *entry.assistant.assistant.parts]


class Machine(RuleBasedStateMachine):
    """A session ``s`` and, once it was forked, a fork that gets the same appends."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.store = self.run(open_store(self.kind, Path(self.directory.name)))
        self.engine = Engine(self.store)
        self.log: list[v1.Entry] = []
        self.shown: list[list[v1.HistoryFrame]] = [[]]  # by revision, without the head
        self.twin = ""

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()
        self.directory.cleanup()

    @initialize()
    def open(self) -> None:
        start = [
            user(MESSAGES[0], text(PARTS[0], "a")),
            assistant(MESSAGES[1], text(PARTS[1]), tool(PARTS[2], "c0"), text(PARTS[3], "b"), parent=MESSAGES[0]),
            turn("t1"),
            user(MESSAGES[2], text(PARTS[4], "c"), turn="t1"),
            assistant(MESSAGES[3], text(PARTS[5]), tool(PARTS[6], "c0", raw_input=""), turn="t1"),
        ]
        self.run(opened(self.engine, "s", *start))
        self.look()

    @rule(entry=entries())
    def append_one(self, entry: v1.EntryInput) -> None:
        expected = Rules(self.log).refusal(entry)
        outcome = self.append(entry)
        assert outcome is expected, f"{outcome} for {entry} instead of {expected}"

    @rule(several=st.lists(entries(), min_size=2, max_size=4))
    def append_several(self, several: list[v1.EntryInput]) -> None:
        self.append(*several)

    @rule(data=st.data(), said=st.sampled_from(["x", "yz", "é"]))
    def stream(self, data: st.DataObject, said: str) -> None:
        """Deltas that fit, three in a row, with a put of the part between them or not."""
        state = Rules(self.log)
        entries = []
        for message in state.state.places:
            for part in message.places:
                built = part.built()
                if built.HasField("text"):
                    entries.append(delta(part.id, len(built.text.text.encode()), said))
                else:
                    entries.append(delta(part.id, len(built.tool.raw_input.encode()), raw_input=said))
        fitting = [entry for entry in entries if state.refusal(entry) is None]
        if not fitting:
            return
        first = data.draw(st.sampled_from(fitting))
        again = v1.EntryInput()
        again.CopyFrom(first)
        again.delta.offset += len(said.encode())
        assert self.append(first) is None
        assert self.append(again, first) is None

    @rule(data=st.data(), replacing=st.booleans())
    def put_what_is_there(self, data: st.DataObject, replacing: bool) -> None:
        """A put of a message that is there, of its own role, with parts of its own."""
        shown = [each for each in fold(self.log).places if not each.hidden]
        if not shown:
            return
        there = data.draw(st.sampled_from(shown))
        ids = [part.id for part in there.parts] if replacing else []
        parts = [text(id, data.draw(st.sampled_from(["", "new"]))) for id in ids]
        turn_id = data.draw(st.sampled_from(["t", "t1"]))
        make = user if isinstance(there.header, v1.User) else assistant
        assert self.append(make(there.id, *parts, turn=turn_id)) is None

    def append(self, *given: v1.EntryInput) -> type[errors.TurnwireError] | None:
        """Append to both sessions; returns why it was refused, if it was."""
        response = self.attempt("s", *given)
        if self.twin:
            same = self.attempt(self.twin, *given)
            assert type(same) is type(response)
            if isinstance(response, v1.AppendResponse):
                assert same.results == response.results
            else:
                assert same.metadata == response.metadata
        if isinstance(response, v1.AppendResponse):
            self.look()
            return None
        assert response.path.startswith("entries[")
        assert self.run(self.engine.store.session("", "s")).head == len(self.log)
        return type(response)

    def attempt(self, session_id: str, *given: v1.EntryInput) -> Any:
        try:
            return self.run(append(self.engine, session_id, *given))
        except errors.TurnwireError as error:
            return error

    def look(self) -> None:
        """Compare the history at each new revision with the fold."""
        self.log += self.run(read(self.engine, "s", len(self.log) + 1)) if self.new() else []
        for revision in range(len(self.shown), len(self.log) + 1):
            history = self.run(replay(self.engine, "s", revision, summaries=True))
            expected = fold(self.log, revision)
            assert history.messages == [message.built() for message in expected.messages()]
            shown = [each for each in expected.messages() if each.summary is not None]
            assert history.summaries == {each.id: each.summary for each in shown}
            order = dict.fromkeys(message.turn_id for message in history.messages)
            assert history.turns == [expected.turns[id] for id in order if id in expected.turns]
            self.shown.append(history.frames[:-1])
            self.windows(expected, revision)

    def new(self) -> bool:
        head: int = self.run(self.engine.store.session("", "s")).head
        return head > len(self.log)

    def windows(self, expected: Folded, revision: int) -> None:
        shown = [(message.id, message.header.turn_id) for message in expected.messages()]
        firsts = list({turn_id: at for at, (_, turn_id) in reversed(list(enumerate(shown)))}.values())
        for count, first in enumerate(sorted(firsts, reverse=True), start=1):
            window = self.run(replay(self.engine, "s", revision, last_turns=count))
            assert window.ids == [id for id, _ in shown[first:]]

    @rule(data=st.data())
    def an_old_revision_is_stable(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(1, len(self.log)))
        for session in filter(None, ("s", self.twin)):
            assert self.run(replay(self.engine, session, revision, summaries=True)).frames[:-1] == self.shown[revision]

    @rule(id=st.sampled_from(MESSAGES), data=st.data())
    def a_message_is_a_replay_of_it_alone(self, id: str, data: st.DataObject) -> None:
        revision = data.draw(st.integers(1, len(self.log)))
        found = next((each for each in fold(self.log, revision).messages() if each.id == id), None)
        if found is None:
            with pytest.raises(errors.MessageNotFound):
                self.run(get_message(self.engine, "s", id, revision))
        else:
            assert self.run(get_message(self.engine, "s", id, revision)).messages == [found.built()]

    @rule(data=st.data())
    def a_fork_equals_its_parent(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(1, len(self.log)))
        child = self.run(fork(self.engine, "s", "", revision)).id
        assert self.run(replay(self.engine, child, summaries=True)).frames[:-1] == self.shown[revision]
        at = data.draw(st.integers(1, revision))
        assert self.run(replay(self.engine, child, at, summaries=True)).frames[:-1] == self.shown[at]

    @precondition(lambda self: not self.twin)
    @rule()
    def fork_and_go_on(self) -> None:
        self.twin = self.run(fork(self.engine, "s", "twin")).id


class SqliteMachine(Machine):
    kind = "sqlite"


_SETTINGS = settings(deadline=None, stateful_step_count=30, suppress_health_check=list(HealthCheck), derandomize=True)


def test_any_run_of_appends_in_memory() -> None:
    run_state_machine_as_test(Machine, settings=settings(_SETTINGS, max_examples=50))


def test_any_run_of_appends_in_sqlite() -> None:
    run_state_machine_as_test(SqliteMachine, settings=settings(_SETTINGS, max_examples=10))


def test_any_run_of_appends_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every entry were one of many."""
    monkeypatch.setattr(sqlite_block, "FEWEST", 1)
    run_state_machine_as_test(SqliteMachine, settings=settings(_SETTINGS, max_examples=10))
