"""The storage layer: bytes, files, and what is a later schema's; and that no rule is without its test."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson

from tests.builders import text, user
from tests.formats.opencode.stores import database
from tests.formats.samples import DATA
from tests.validation.logs import found_in, rules_of
from tests.validation.schema_cases import IDS
from tests.validation.session_cases import ENVELOPES, LOGS
from tests.validation.storage_cases import (
    ELSEWHERE,
    FILES,
    check,
    delimited,
    entry_bytes,
    entry_in_json,
    later_payload,
    log,
    native,
    native_that_ends_in,
    whole,
)
from turnwire import v1
from turnwire.formats import Report
from turnwire.formats.native import read
from turnwire.log import wire
from turnwire.validation import Selection, files, rules
from turnwire.validation.imports import Import
from turnwire.validation.unknown import origin


@pytest.mark.parametrize(("rule", "index"), [(rule, index) for rule in FILES for index in range(len(FILES[rule]))])
def test_what_breaks_one_rule(rule: str, index: int, tmp_path: Path) -> None:
    findings = FILES[rule][index](tmp_path / "file")
    assert set(rules_of(findings)) == {rule}
    for finding in findings:
        assert finding.severity == rules()[rule].severity
        assert finding.layer == v1.RuleLayer.RULE_LAYER_STORAGE


def test_every_rule_has_a_test() -> None:
    tested = [*IDS, *LOGS, *ENVELOPES, *FILES, *ELSEWHERE]
    assert sorted(tested) == sorted(rules())


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_sound_files_in_every_form(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    path = tmp_path / "file"
    entries = whole()
    message = user("u", text("p", "x")).user.user
    lines = "\n".join(json.dumps(json.loads(MessageToJson(message))) for _ in range(3))
    for content in (
        log(*entries),
        native(*entries),
        native(*entries) + native(*entries),
        delimited(*[message.SerializeToString()] * 3),
        message.SerializeToString(),
        MessageToJson(message).encode(),
        lines.encode(),
        b"[" + MessageToJson(message).encode() + b"]",
    ):
        assert check(path, pack(content)) == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
@pytest.mark.parametrize("form", [log, native])
@pytest.mark.parametrize("length", [100, 200 * 2**20, 256 * 2**20 + 1, 2**31, 2**35 - 1])
def test_a_damaged_length_takes_no_memory(
    length: int, form: Callable[..., bytes], pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """However much it says that there is; nothing is lost of what comes before it."""
    before = form(*whole())
    key = b"\x12" if form is native else b""
    content = pack(before + key + wire.varint(length) + b"x" * 50)
    tracemalloc.start()
    try:
        (finding,) = check(tmp_path / "file", content)
        assert tracemalloc.get_traced_memory()[1] < 2**23
        if form is native:
            (restored,) = read(tmp_path / "file", Report())
            assert len(restored.entries) == 4
            assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    text = f"damaged from byte {len(before)} on"
    if length > 256 * 2**20:
        text += f": there is a length of {length:,} bytes, of 268,435,456 at most"
    else:
        text = f"cut or {text}"
    assert (finding.rule, finding.text) == ("storage.torn", text)


def test_what_is_read_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(native(*whole()))
    (step,) = files.check(path, Selection())
    assert (step.sessions, step.entries, step.messages, step.done) == (1, 4, 0, path.stat().st_size)
    path.write_bytes(delimited(*[user("u").user.user.SerializeToString()] * 600))
    steps = list(files.check(path, Selection()))
    assert [step.messages for step in steps] == [256, 512, 600]


def test_places_in_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    (finding,) = check(path, b'{"cwd": "/"}\n{"cwd": \n', cls=v1.RunPath)
    assert (finding.place, finding.source) == ("line 2", str(path))
    good = user("u").user.user.SerializeToString()
    (finding,) = check(path, delimited(good, b"\x0a\x05x"), cls=v1.User)
    assert finding.place == f"byte {len(good) + 1}"


@pytest.mark.parametrize("length", range(1, 128))
def test_a_message_without_a_length_is_read_with_its_type_too(length: int, tmp_path: Path) -> None:
    message = user("u" * length, text("p" * (128 - length), "hello " * 7)).user.user
    assert check(tmp_path / "file", message.SerializeToString(), cls=v1.User) == []
    assert check(tmp_path / "file", delimited(message.SerializeToString()), cls=v1.User) == []


def test_what_is_strict_in_json_tells_where(tmp_path: Path) -> None:
    (finding,) = check(tmp_path / "file", b'{"role": "ROLE_USER", "parts": [{"text": {"text": "a", "text": "b"}}]}')
    assert (finding.place, finding.path, finding.value) == (
        "line 1",
        "parts[0].text",
        'the member "text" stands twice',
    )
    (finding,) = check(tmp_path / "file", b'{"role": "ROLE_WIZARD", "parts": [{"text": {"text": "a"}}]}')
    assert (finding.path, finding.value) == ("role", "ROLE_WIZARD")


def test_an_entry_in_no_form_says_which_it_is(tmp_path: Path) -> None:
    ends = entry_bytes(whole()[3]) + wire.field(19, b"")
    (finding,) = check(tmp_path / "file", native_that_ends_in(ends))
    assert (finding.rule, finding.session_id, finding.revision) == ("storage.form", "s", 4)
    assert finding.place.startswith("byte ")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"[]", "no message"), (b"", "empty"), (b'{"colour": 1}', "--type"), (delimited(b"\xff\xff"), "--type")],
)
def test_what_cannot_be_read_is_no_finding(content: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(files.Unreadable, match=why):
        check(tmp_path / "file", content)


def test_from_which_schema_something_may_come() -> None:
    (finding,) = found_in(later_payload())
    assert finding.text.startswith("field 299 of Entry is a payload of a schema of turnwire.v1 later than")
    assert origin(v1.Entry, 300).startswith("field 300 of Entry is an addition to the envelope of a schema")
    assert (
        origin(v1.User, 12345)
        == "field 12345 of User is a number that no schema of Turnwire uses, which hints at damage"
    )


def test_an_entry_in_json_says_what_a_later_schema_calls_its_payload(tmp_path: Path) -> None:
    (finding,) = check(tmp_path / "file", entry_in_json(lambda entry: entry.update(hologram=entry.pop("assistant"))))
    assert (finding.revision, finding.severity) == (4, v1.Severity.SEVERITY_WARNING)
    assert finding.text.startswith('the member "hologram" of Entry is of a schema later than')


def test_import_left(tmp_path: Path) -> None:
    """Rows of a table of the coming version are told of, and belong to no session."""
    path = tmp_path / "opencode.db"
    db = database(path, (DATA / "three-turns.json").read_text())
    db.execute("CREATE TABLE event (id TEXT, data TEXT)")
    db.execute("INSERT INTO event VALUES ('e', '{}')")
    db.close()
    found = Import.at(path)
    assert found is not None
    findings = [finding for step in found.check(Selection()) for finding in step.findings]
    left = [finding for finding in findings if finding.rule == "storage.import.left"]
    assert [(finding.path, finding.session_id, finding.source) for finding in left] == [("/event", "", str(path))]
