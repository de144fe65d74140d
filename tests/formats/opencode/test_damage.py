"""Cut, damaged and foreign files: what can be read is, and the report names each loss (C85)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.samples import DATA, content, document, exact, noted, take, text, user
from turnwire.formats import Outcome, Report, history, sessions
from turnwire.formats.fields import milliseconds
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.opencode.export_file import parse

THREE_TURNS = content(DATA / "three-turns.json")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(THREE_TURNS) - 3))
def test_a_cut_file_gives_everything_before_the_cut(length: int) -> None:
    report = Report()
    record = parse(THREE_TURNS[:length], report)
    assert not report.complete
    whole = parse(THREE_TURNS, Report())
    assert whole is not None
    if record is None:
        assert length < 2000
        return
    read = [[part.node.value for part in message.parts] for message in record.messages]
    there = [[part.node.value for part in message.parts] for message in whole.messages]
    assert read[:-1] == there[: max(len(read) - 1, 0)]
    if read:
        assert read[-1] == there[len(read) - 1][: len(read[-1])]
    lost = sum(map(len, there)) - sum(map(len, read))
    assert lost > 0 or report.total(Outcome.REFUSED, "file") == 1


def test_a_cut_part_is_named_and_its_message_stays() -> None:
    cut = THREE_TURNS[: THREE_TURNS.index('"type": "reasoning"') + 60]
    report = Report()
    session = take(cut, report)
    messages = history(session).messages
    assert [len(message.parts) for message in messages] == [1, 1]
    assert [path for outcome, path, _ in noted(report) if outcome == "refused"] == ["/messages/1/parts/1", ""]


def test_damage_in_the_middle_costs_its_part_only() -> None:
    source = document(
        user("m1", text("p1", "one"), text("p2", "two"), text("p3", "three")), user("m2", text("p4"), at=1001)
    )
    report = Report()
    kept = history(take(source.replace('"two"', "two"), report))
    assert [[part.id for part in message.parts] for message in kept.messages] == [["p1", "p3"], ["p4"]]
    assert [note[:2] for note in noted(report)] == [("refused", "/messages/0/parts/1")]


def test_a_damaged_session_head_costs_no_message() -> None:
    report = Report()
    session = take(document(user("m1", text("p1"))).replace('"T"', "T"), report)
    assert session.session_id == "ses_1"
    assert not session.properties.HasField("title")
    assert milliseconds(session.properties.created) == b"1000"
    assert [message.id for message in history(session).messages] == ["m1"]
    assert [note[:2] for note in noted(report)][:2] == [("refused", "/info"), ("repaired", "/info")]


def test_a_damaged_head_costs_its_message_only() -> None:
    source = document(user("m1", text("p1")), user("m2", text("p2"), at=1001), user("m3", text("p3"), at=1002))
    report = Report()
    kept = history(take(source.replace('"created": 1001', '"created": 1001x'), report))
    assert [message.id for message in kept.messages] == ["m1", "m3"]
    assert [note[:2] for note in noted(report)] == [("refused", "/messages/1")]


def test_a_missing_comma_costs_what_follows_in_its_message() -> None:
    source = document(user("m1", text("p1"), text("p2")), user("m2", text("p3"), at=1001))
    report = Report()
    broken = source.replace("},\n        {", "}\n        {", 1)
    assert broken != source
    kept = history(take(broken, report))
    assert [[part.id for part in message.parts] for message in kept.messages] == [["p1"], ["p3"]]
    assert [note[:2] for note in noted(report)] == [("refused", "/messages/0/parts/1")]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("", ""),
        ("nothing", ""),
        ("[]", ""),
        ("{", ""),
        ('{"messages": 7}', ""),
        ('{"info": {}, "messages": []}', "/info"),
        ('{"info": {"id": ""}, "messages": [1, {"info": 1}, {}]}', "/messages/0"),
    ],
)
def test_what_holds_no_session_is_refused(source: str, path: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(source)
    report = Report()
    assert list(sessions(OPENCODE, file, report)) == []
    assert not report.complete
    assert report.notes[0].path == path
    assert report.notes[0].source == str(file)


def test_lists_that_are_none_are_refused_and_kept() -> None:
    source = json.loads(document(user("m1", text("p1")), user("m2", text("p2"), at=1001)))
    source["messages"][0]["parts"] = {}
    report = Report()
    session = take(json.dumps(source), report)
    assert noted(report) == [
        ("refused", "/messages/0/parts", "no list, so it has no parts that can be read; kept as it is")
    ]
    assert exact(OPENCODE.export(history(session))) == exact(json.dumps(source))
    source["messages"] = {}
    report = Report()
    session = take(json.dumps(source), report)
    assert noted(report) == [("refused", "/messages", "no list, so it has no messages that can be read; kept as it is")]
    assert exact(OPENCODE.export(history(session))) == exact(json.dumps(source))


def test_a_field_has_one_remark() -> None:
    wrong = user("m1", {"id": "p1", "type": "file", "url": 5}, at=1000, agent=7, model={"providerID": 1, "modelID": []})
    wrong["info"]["time"] = {"created": 10**25}
    report = Report()
    take(document(wrong, time={"created": "x"}), report)
    places = [path for _, path, _ in noted(report)]
    assert len(places) == len(set(places)) == 6
    assert ("repaired", "/messages/0/agent", 'not a text, "unknown" stands for it') in noted(report)
    reason = "not a time in milliseconds since the epoch, the time before it stands for it"
    assert ("repaired", "/messages/0/time/created", reason) in noted(report)


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_files_are_told_by_their_beginning(tmp_path: Path) -> None:
    assert OPENCODE.detect(write(tmp_path / "a", THREE_TURNS)) == "export"
    assert OPENCODE.detect(write(tmp_path / "b", "\ufeff" + THREE_TURNS)) == "export"
    assert OPENCODE.detect(write(tmp_path / "c", gzip.compress(THREE_TURNS.encode()))) == "export"
    assert OPENCODE.detect(write(tmp_path / "d", THREE_TURNS[:300])) == "export"
    assert OPENCODE.detect(write(tmp_path / "e", '{"type": "user"}\n')) is None
    assert OPENCODE.detect(write(tmp_path / "f", "SQLite format 3\0")) is None
    assert OPENCODE.detect(write(tmp_path / "g", b"\x1f\x8bnonsense")) is None
    assert OPENCODE.detect(tmp_path) is None
    assert OPENCODE.detect(tmp_path / "none") is None


def test_a_gzipped_file_reads_as_a_plain_one(tmp_path: Path) -> None:
    (session,) = sessions(OPENCODE, write(tmp_path / "c", gzip.compress(THREE_TURNS.encode())), Report())
    assert session.entries == take(THREE_TURNS).entries


def test_a_cut_gzipped_file_gives_its_beginning(tmp_path: Path) -> None:
    report = Report()
    data = gzip.compress(THREE_TURNS.encode())
    (session,) = sessions(OPENCODE, write(tmp_path / "c", data[: len(data) // 2]), report)
    assert session.session_id == "ses_dd402e65bffeFToCFt6N3IgihJ"
    assert report.notes[0].reason == "the compressed data is cut or damaged"


def test_a_gzipped_file_with_a_flipped_bit_or_more_behind_it_gives_what_came_before(tmp_path: Path) -> None:
    data = gzip.compress(THREE_TURNS.encode())
    wrong = bytearray(data)
    wrong[-6] ^= 4
    for packed in (bytes(wrong), data + b"more", data[:-3]):
        report = Report()
        (session,) = sessions(OPENCODE, write(tmp_path / "c", packed), report)
        assert session.entries == take(THREE_TURNS).entries
        assert [note.reason for note in report.notes] == ["the compressed data is cut or damaged"]
    wrong[len(data) // 2] ^= 4
    (session,) = sessions(OPENCODE, write(tmp_path / "c", bytes(wrong)), Report())
    assert session.session_id == "ses_dd402e65bffeFToCFt6N3IgihJ"


def test_a_gzipped_file_may_be_of_several_pieces(tmp_path: Path) -> None:
    half = len(THREE_TURNS) // 2
    data = gzip.compress(THREE_TURNS[:half].encode()) + gzip.compress(THREE_TURNS[half:].encode()) + bytes(5)
    report = Report()
    (session,) = sessions(OPENCODE, write(tmp_path / "c", data), report)
    assert session.entries == take(THREE_TURNS).entries
    assert report.notes == []


def test_what_stands_around_the_object_is_told() -> None:
    report = Report()
    take("Exporting session: ses_1\n" + THREE_TURNS + "\n{}", report)
    assert [note[0] for note in noted(report)] == ["repaired", "refused"]


def test_bytes_that_are_no_utf8_are_told(tmp_path: Path) -> None:
    report = Report()
    data = document(user("m1", text("p1", "caf#"))).encode().replace(b"#", b"\xe9")
    (session,) = sessions(OPENCODE, write(tmp_path / "x", data), report)
    assert history(session).messages[0].parts[0].text.text == "caf\ufffd"
    assert noted(report) == [
        ("repaired", "/messages/0/parts/0/text", "bytes that are no UTF-8 became U+FFFD, the original is kept")
    ]
