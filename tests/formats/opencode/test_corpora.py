"""Every export in the corpora goes in with nothing dropped, and comes out as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.formats.samples import NO_CORPORA, content, corpus_params, exact, export_files
from turnwire import ids, rules, v1
from turnwire.formats import History, Report, SessionImport, history, sessions
from turnwire.formats.opencode import OPENCODE


def the_session(file: Path, report: Report | None = None) -> SessionImport:
    (session,) = sessions(OPENCODE, file, report or Report())
    return session


@pytest.mark.parametrize("file", corpus_params())
def test_an_export_comes_back_as_it_was(file: Path) -> None:
    report = Report()
    session = the_session(file, report)
    original = exact(content(file))
    imported = history(session)
    assert exact(OPENCODE.export(imported)) == original
    assert report.complete
    assert [message.id for message in imported.messages] == [one["info"]["id"] for one in original["messages"]]
    parts = [[part.id for part in message.parts] for message in imported.messages]
    assert parts == [[part["id"] for part in one["parts"]] for one in original["messages"]]


@pytest.mark.parametrize("file", corpus_params())
def test_its_entries_are_legal_and_refer_backwards(file: Path) -> None:
    session = the_session(file)
    assert ids.valid(session.session_id)
    assert rules.check(session.properties) == []
    assert_backward(session)


@pytest.mark.parametrize("file", corpus_params())
def test_the_same_file_gives_the_same_entries(file: Path) -> None:
    once, again = the_session(file), the_session(file)
    assert once.properties == again.properties
    assert once.entries == again.entries


def assert_backward(session: SessionImport) -> None:
    """Every entry obeys the rules, and refers only to what entries before it put."""
    turns: set[str] = set()
    messages: dict[str, str] = {}
    parts: set[str] = set()
    for entry in session.entries:
        assert rules.check(entry, stored=True) == []
        for name, found in (("turn_id", turns), ("parent_id", messages), ("message_id", messages)):
            for value in _values(entry, name):
                assert value in found
        for value in [*_values(entry, "tail_start_id"), *_values(entry, "before_id")]:
            assert value in messages
        kind = entry.WhichOneof("payload")
        if kind == "turn":
            assert entry.turn.id not in turns
            turns.add(entry.turn.id)
        elif kind in ("user", "assistant"):
            message = entry.user.user if kind == "user" else entry.assistant.assistant
            assert message.id not in messages
            messages[message.id] = kind
            parts |= _new({part.id for part in message.parts}, parts, len(message.parts))
            if kind == "assistant" and message.HasField("parent_id"):
                assert messages[message.parent_id] == "user"
        elif kind == "part":
            parts |= _new({entry.part.part.id}, parts, 1)


def _new(found: set[str], known: set[str], number: int) -> set[str]:
    assert len(found) == number
    assert not found & known
    return found


def _values(message: object, name: str) -> list[str]:
    found: list[str] = []
    for field, value in message.ListFields():
        if field.name == name:
            found.append(value)
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for one in value if field.is_repeated else [value]:
                found += _values(one, name)
    return found


@pytest.mark.skipif(not export_files(), reason=NO_CORPORA)
def test_what_the_corpora_hold() -> None:
    report = Report()
    messages: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for file in export_files():
        imported: History = history(the_session(file, report))
        for message in imported.messages:
            messages[type(message).__name__] += 1
            parts.update(part.WhichOneof("kind") for part in message.parts)
    assert len(export_files()) == 300
    assert messages == {"User": 424, "Assistant": 683}
    assert parts == {
        "text": 963,
        "reasoning": 103,
        "file": 37,
        "tool": 318,
        "subtask": 6,
        "step_start": 663,
        "step_finish": 619,
        "patch": 54,
        "compaction": 11,
    }
    # Lone surrogates in five texts, and a revert whose messages are only in the tables of the coming version.
    assert Counter((note.kind, note.pointer) for note in report.notes) == {
        ("part", "/text"): 5,
        ("session", "/revert/messageID"): 1,
    }


@pytest.mark.skipif(not export_files(), reason=NO_CORPORA)
def test_one_session_in_two_versions_gives_one_history() -> None:
    """1.2.27 migrated the tree of 1.1.65; what both export of a session becomes the same entries."""
    compared = 0
    by_name: dict[str, Path] = {}
    for file in export_files():
        if "opencode-1.1.65/cli-multiturn" in file.as_posix():
            by_name[file.name] = file
    for file in export_files():
        other = by_name.get(file.name) if "opencode-1.2.27" in file.as_posix() else None
        if other is not None:
            assert the_session(file).entries == the_session(other).entries
            compared += 1
    assert compared > 10


@pytest.mark.skipif(not export_files(), reason=NO_CORPORA)
def test_a_user_message_and_its_answers_share_a_turn() -> None:
    for file in export_files()[:50]:
        users: dict[str, str] = {}
        for message in history(the_session(file)).messages:
            if isinstance(message, v1.User):
                users[message.id] = message.turn_id
            elif message.HasField("parent_id"):
                assert message.turn_id == users[message.parent_id]
        assert len(set(users.values())) == len(users)
