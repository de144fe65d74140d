"""Every version reads what every earlier one stored, and comes to the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import json_format

import turnwire
from tests.compat import frozen
from turnwire import rules, v1
from turnwire.formats import native
from turnwire.formats.report import Outcome, Report
from turnwire.log.fold import fold

versions = pytest.mark.parametrize("version", frozen.VERSIONS, ids=lambda path: path.name)
sessions = pytest.mark.parametrize("path", frozen.SESSIONS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")


def test_this_version_or_one_before_is_frozen() -> None:
    assert frozen.VERSIONS
    assert frozen.SESSIONS


@versions
def test_the_manifest_names_what_is_there(version: Path) -> None:
    told = frozen.manifest(version)
    assert told["version"] == version.name
    assert told["entries"]["count"] == len(list(frozen.entries(version)))
    assert sorted(told["sessions"]) == sorted(path.stem for path in (version / "sessions").glob("*.tw"))


@versions
def test_no_stored_entry_breaks_a_rule_or_has_an_unknown_field(version: Path) -> None:
    for data in frozen.entries(version):
        entry = v1.Entry.FromString(data)
        assert rules.check(entry, stored=True) == []
        assert entry.SerializeToString(deterministic=True) == data
        entry.DiscardUnknownFields()
        assert entry.SerializeToString(deterministic=True) == data


@sessions
def test_a_log_folds_to_the_same_history(path: Path) -> None:
    entries = frozen.parsed(frozen.log(path))
    for entry in entries:
        assert rules.check(entry, stored=True) == []
    messages = [message.built() for message in fold(entries).messages()]
    assert [json_format.MessageToDict(message) for message in messages] == frozen.history(path)


@sessions
async def test_a_log_is_restored_to_the_same_digest_and_replays_the_same(path: Path) -> None:
    told = frozen.manifest(path.parent.parent)["sessions"][path.stem]
    found = frozen.log(path)
    async with turnwire.open(":memory:") as store:
        assert await native.restore(store, found, Report()) is Outcome.IMPORTED
        session = await store.get_session(path.stem)
        assert (session.head.revision, session.head.digest.hex()) == (told["revision"], told["digest"])
        assert (await store.verify_session(path.stem)).sound
        messages = (await store.history(path.stem)).messages
        assert [json_format.MessageToDict(message) for message in messages] == frozen.history(path)
        async for record in store.list_prompts(path.stem):
            assert (await store.get_prompt(path.stem, record.id)).digest_holds
