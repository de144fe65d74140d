"""JSON documents out of files: where they begin and end, and what one may hold."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import text as text_part
from tests.builders import user
from tests.validation.logs import opening, raw
from tests.validation.storage_cases import check, entry_bytes
from turnwire import v1
from turnwire.validation import documents

values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, max_size=5), st.integers(1, 9), st.sampled_from([None, 2]), st.booleans())
def test_the_items_of_a_list(items: list[object], piece: int, indent: int | None, ascii: bool) -> None:
    """However the file is cut into pieces, in the middle of an escape too."""
    text = json.dumps(items, indent=indent, ensure_ascii=ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_PIECE", piece)
        assert [json.loads(item) for item in documents.items(io.BytesIO(b" \n" + text + b"\n"))] == items


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (b'[{"cwd": "/"}, {"cwd": "/"', 1),
        (b'[{"cwd": "/"},', 1),
        (b'[{"cwd": "/"},]', 1),
        (b'[{"cwd": "/"}] {"cwd": "/"}', 1),
        (b'[{"cwd": "/"}, {"cwd": "/] ', 1),
        (b'[{"cwd": "/"} {"cwd": "/"}, {"cwd": "/"}]', 1),
        (b'[{"cwd": "/"], {"cwd": "/"}]', 0),
    ],
)
def test_a_list_that_is_none_ends_in_one_finding(text: bytes, right: int, tmp_path: Path) -> None:
    (finding,) = check(tmp_path / "file", text, cls=v1.RunPath)
    assert (finding.rule, finding.expected) == ("storage.json", "one JSON document")


@pytest.mark.parametrize(
    "text",
    [
        b'{"cwd": "/%s"}' % (b"x" * 200),
        b'{"cwd": "/%s"}\n{"cwd": "/"}\n' % (b"x" * 200),
        b'{"cwd": "/"}\n{"cwd": "/%s"}\n{"cwd": "/"}\n' % (b"x" * 2000),
        b'[{"cwd": "/"}, {"cwd": "/%s"}]' % (b"x" * 200),
        b'{\n"cwd": "/%s"}' % (b"x" * 200),
    ],
)
def test_a_document_that_is_too_long(text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 100)
    monkeypatch.setattr(documents, "_PIECE", 7)
    (finding,) = check(tmp_path / "file", text, cls=v1.RunPath)
    assert (finding.rule, finding.expected) == ("storage.json", "one JSON document of at most 0 MiB")


def test_a_document_of_too_many_values(tmp_path: Path) -> None:
    """What stands in texts does not count, and what is small is not parsed into what is large."""
    assert check(tmp_path / "file", b'{"cwd": "%s"}' % (b"," * 1_100_000), cls=v1.RunPath) == []
    (finding,) = check(tmp_path / "file", b'{"cwd": [%s[]]}' % (b"[]," * 1_100_000), cls=v1.RunPath)
    assert (finding.rule, finding.expected) == ("storage.json", "one JSON document of at most 1,000,000 values")


def test_members_that_stand_twice_among_many(tmp_path: Path) -> None:
    members = b", ".join(b'"%d": 1' % at for at in range(100_000))
    (finding,) = check(tmp_path / "file", b'{%s, "99999": 1}' % members, cls=v1.RunPath)
    assert (finding.rule, finding.value) == ("storage.json", 'the member "99999" stands twice')


def test_a_large_text_is_not_held_in_each_form_that_it_takes(tmp_path: Path) -> None:
    """The line, the parsed document, the message, the entry and its payload are not all held to the end."""
    size = 8_000_000
    entries = raw(*opening(), user("u", text_part("p", "x" * size)))
    trees = [json_format.MessageToDict(v1.Entry.FromString(entry_bytes(each))) for each in entries]
    lines = b"".join(json.dumps({"entry": tree}).encode() + b"\n" for tree in trees)
    tracemalloc.start()
    try:
        assert check(tmp_path / "file", lines) == []
        assert tracemalloc.get_traced_memory()[1] - len(lines) < 4.5 * size
    finally:
        tracemalloc.stop()
