"""Freezes what this version of the schema stores, for every later version to read: ``python -m tests.compat.make``.

Writes a folder with the version's name, beside this file; see README.md there. A released version is never frozen
again, so a folder that is there is left alone, unless ``--again`` is given, which is for before the release.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import HealthCheck, Phase, given, seed, settings

import turnwire
from tests.builders import (
    COMPLETED,
    ERROR,
    assistant,
    clear,
    compaction,
    delta,
    properties,
    put,
    reasoning,
    remove,
    remove_part,
    revert,
    summary,
    text,
    tool,
    turn,
    user,
)
from tests.strategies import messages
from turnwire import v1
from turnwire.formats import native
from turnwire.formats.load import load
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.report import Report
from turnwire.log import wire
from turnwire.log.fold import fold

HERE = Path(__file__).parent
EXPORTS = HERE.parent / "data" / "opencode"
_EXAMPLES = 1000
_ROUNDS = 20


def made_entries() -> list[v1.Entry]:
    """Valid entries in which every field and every enum value that can be stored comes up; not a log."""
    wanted = set(_things(v1.Entry.DESCRIPTOR, set()))
    kept: list[v1.Entry] = []

    def collect(entry: v1.Entry, failure: v1.Failure) -> None:
        if entry.HasField("assistant"):  # most of the kinds of failures are rarely drawn so deep
            entry.assistant.assistant.result.failure.CopyFrom(failure)
        new = wanted.intersection(_used(entry))
        if new:
            wanted.difference_update(new)
            kept.append(entry)

    quiet = settings(
        max_examples=_EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    rounds = 0
    while wanted and rounds < _ROUNDS:
        seed(rounds)(quiet(given(messages(v1.Entry, stored=True), messages(v1.Failure))(collect)))()
        rounds += 1
    if wanted:
        raise SystemExit(f"no entry was drawn with {sorted(wanted)}: draw more")
    return kept


def _things(message: Descriptor, seen: set[str]) -> Iterator[str]:
    """The fields and enum values that a message can hold, at any depth."""
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    for field in message.fields:
        yield field.full_name
        if field.message_type is not None and field.message_type.full_name != "google.protobuf.Timestamp":
            yield from _things(field.message_type, seen)
        if field.enum_type is not None:
            yield from (f"{field.full_name}={value.number}" for value in field.enum_type.values if value.number)


def _used(message: Any) -> Iterator[str]:
    for field, value in message.ListFields():
        yield field.full_name
        values = list(value) if field.is_repeated else [value]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from (inner.full_name for inner in field.message_type.fields)
            item = field.message_type.fields_by_name["value"]
            values = list(value.values()) if item.message_type is not None else []
        for each in values:
            if field.type == FieldDescriptor.TYPE_ENUM:
                yield f"{field.full_name}={each}"
            elif field.message_type is not None and field.message_type.full_name != "google.protobuf.Timestamp":
                yield from _used(each)


async def _write_every_payload(store: turnwire.Embedded, id: str = "every-payload") -> None:
    """A log with every payload, in every way that the fold tells apart."""
    made = properties(title="Every payload", directory="/home/someone")
    await store.append(id, [turn("t1", system="Be brief.")], create=made)
    await store.append(id, [turn("t2", agent="plan")])
    await store.append(id, [user("u1", text("u1.1", "What is the weather?"), turn="t1")])
    opened = assistant("a1", text("a1.1"), tool("a1.2", "c1", raw_input=""), turn="t1", parent="u1")
    await store.append(id, [opened])
    await store.append(id, [delta("a1.1", 0, "Let me "), delta("a1.1", 7, "look 🌦")])
    await store.append(id, [delta("a1.2", 0, raw_input='{"city":'), delta("a1.2", 8, raw_input='"Bern"}')])
    done = tool("a1.2", "c1", state=COMPLETED, input_json='{"city":"Bern"}', output="rain \x00 and sun")
    await store.append(id, [put("a1", done), put("a1", reasoning("a1.0", "hm"), before="a1.1")])
    finished = assistant("a1", turn="t1", parent="u1", completed=True, finish="stop")
    await store.append(id, [finished, summary("u1", "a question about the weather")])
    await store.append(id, [user("u0", text("u0.1", "earlier"), turn="t1", before="u1")])
    await store.append(id, [user("gone", text("gone.1", "oops"), turn="t1"), remove("gone"), remove_part("a1.0")])
    await store.append(id, [user("gone", text("gone.1", "again"), turn="t1")])
    await store.append(id, [user("u2", text("u2.1", "And tomorrow?"), turn="t2"), revert("u2")])
    await store.append(id, [clear()])
    failed = tool("a2.1", "c1", state=ERROR, output="no network")
    await store.append(id, [assistant("a2", failed, text("a2.2", "kept out"), turn="t2", parent="u2")])
    await store.append(id, [revert("a2", "a2.2")])
    await store.append(id, [user("u3", compaction("u3.1", tail_start_id="u2"), turn="t2")])
    context = v1.PromptContext(system=["Be brief."], parameters_json='{"temperature": 0.0}')
    context.tools.add(name="weather", input_schema_json='{"type":"object"}')
    note = v1.PromptMessage(role=v1.Role.ROLE_USER, parts=[text("", "It is Monday.")])
    prompt = await store.mutate_prompt(id, "t2", [v1.Mutation(append=v1.Append(message=note))], context=context)
    await store.render_prompt(id, "anthropic-messages", prompt_id=prompt.id, record=True)
    await store.fork_session(id, new_session_id=f"{id}.fork")
    await store.append(f"{id}.fork", [user("u4", text("u4.1", "only here"), turn="t1")])


async def _write_exports(store: turnwire.Embedded) -> None:
    for path in sorted(EXPORTS.glob("*.json")):
        report = Report()
        (source,) = OPENCODE.sources(path, report)
        for record in OPENCODE.read(source, report):
            session = OPENCODE.map(record, report)
            assert session is not None
            await load(store, session, report)


async def _sessions(folder: Path) -> dict[str, Any]:
    """Write every session of a store as a file of its own, with the history that its log folds to."""
    told: dict[str, Any] = {}
    async with turnwire.open(":memory:") as store:
        await _write_every_payload(store)
        await _write_exports(store)
        ids = sorted([session.id async for session in store.list_sessions()])
        for id in ids:
            data = bytearray()
            head = await native.write(store, id, native.Writer(data.extend))
            (folder / f"{id}.tw").write_bytes(data)
            state = fold([entry async for entry in store.read_entries(id)])
            lines = [json_format.MessageToDict(message.built()) for message in state.messages()]
            history = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (folder / f"{id}.history.jsonl").write_text(history, encoding="utf-8")
            origin = "made by tests/compat/make.py" if id.startswith("every") else "opencode, through the importer"
            told[id] = {"revision": head.revision, "digest": head.digest.hex(), "origin": origin}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.compat.make", description=__doc__)
    parser.add_argument("--again", action="store_true", help="replace the folder of this version")
    folder = HERE / turnwire.__version__
    if folder.exists() and not parser.parse_args().again:
        raise SystemExit(f"{folder.name} is frozen")
    warnings.simplefilter("ignore")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "sessions").mkdir(parents=True)
    entries = made_entries()
    data = (entry.SerializeToString(deterministic=True) for entry in entries)
    (folder / "entries.binpb").write_bytes(b"".join(wire.varint(len(each)) + each for each in data))
    sessions = asyncio.run(_sessions(folder / "sessions"))
    manifest = {
        "version": turnwire.__version__,
        "entries": {"count": len(entries), "origin": "drawn from the descriptors by tests/compat/make.py"},
        "sessions": sessions,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main()
