"""Vectors of fold, assembly and digest."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.internal import encoder

from tests.conformance.making import logs, trees
from turnwire import errors, v1
from turnwire.conformance import v1 as conformance


def fold(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``entries`` and ``revision``; what is expected comes from a store, and has to be what the source says of it:
    ``shows`` (the outline), ``title``, ``revert`` (a revision), ``summaries``, or ``refused``."""
    log = logs.entries(tree["entries"])
    request = conformance.FoldRequest(entries=log, revision=tree.get("revision"))
    expected = conformance.Response()
    try:
        history = logs.history(log, tree.get("revision"))
    except errors.TurnwireError as error:
        expected.refused.reason = error.reason
        _agree("refused", tree.get("refused"), error.reason_name)
    else:
        expected.fold.CopyFrom(history)
        _agree("shows", tree.get("shows"), logs.outline(history))
        _agree("title", tree.get("title", history.properties.title), history.properties.title)
        _agree("revert", tree.get("revert", 0), history.revert.revision)
        summaries = {
            each.summary.message_id: each.summary.body for each in history.messages if each.HasField("summary")
        }
        _agree("summaries", tree.get("summaries", {}), summaries)
    return conformance.Request(fold=request), expected


def assembly(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``entries``, ``turn``, ``profile``; expected is ``prompt``, the ids of messages in order, or ``refused``."""
    log = logs.entries(tree["entries"])
    revision = tree.get("revision")
    request = conformance.AssemblyRequest(
        entries=log, revision=revision, turn_id=tree["turn"], profile=tree.get("profile", "")
    )
    expected = conformance.Response()
    if "refused" in tree:
        expected.refused.CopyFrom(trees.refusal(tree["refused"]))
        return conformance.Request(assembly=request), expected
    by_id = {logs.held(each).id: logs.held(each) for each in logs.history(log, revision).messages}
    for message_id in tree["prompt"]:
        expected.assembly.items.append(_item(by_id[message_id]))
    expected.assembly.digest = prompt_digest(item.message for item in expected.assembly.items)
    return conformance.Request(assembly=request), expected


def _item(message: v1.User | v1.Assistant) -> v1.PromptItem:
    item = v1.PromptItem(message_id=message.id)
    item.message.parts.extend(message.parts)
    if isinstance(message, v1.User):
        item.message.role = v1.Role.ROLE_USER
        return item
    item.message.role = v1.Role.ROLE_ASSISTANT
    item.facts.model.CopyFrom(message.run.model)
    item.facts.completed = message.time.HasField("completed")
    item.facts.kind = message.result.kind or v1.ResultKind.RESULT_KIND_REPLY
    if message.result.HasField("failure"):
        item.facts.failure.CopyFrom(message.result.failure)
    if message.result.HasField("finish"):
        item.facts.finish = message.result.finish
    return item


def digest(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``entries`` (and ``session``: its id), or ``messages`` of a prompt, with ``unknown`` by their places;
    ``digest_of``: other messages that have the same digest, where this runtime does not read these as the spec says.
    """
    expected = conformance.Response()
    if "messages" in tree:
        messages = [trees.message(v1.PromptMessage, each) for each in tree["messages"]]
        for place, unknown in tree.get("unknown", {}).items():
            trees.add_unknown(messages[place], unknown)
        request = conformance.DigestRequest(prompt=conformance.PromptDigestRequest(messages=messages))
        same = (
            [trees.message(v1.PromptMessage, each) for each in tree["digest_of"]] if "digest_of" in tree else messages
        )
        expected.digest.digests.append(prompt_digest(same))
        return conformance.Request(digest=request), expected
    session_id = tree.get("session", logs.SESSION)
    log = logs.entries(tree["entries"], session_id)
    return log_digest(session_id, log)


def log_digest(session_id: str, log: Sequence[bytes]) -> tuple[conformance.Request, conformance.Response]:
    """A vector of the chain of a log, whose entries hold the digests that their server computed."""
    bare: list[bytes] = []
    expected = conformance.Response()
    last = hashlib.sha256(b"turnwire/1" + session_id.encode()).digest()
    for data in log:
        entry = v1.Entry.FromString(data)
        number, payload = _payload(data)
        nanoseconds = entry.recorded.seconds * 10**9 + entry.recorded.nanos
        head = struct.pack(">qqI", entry.revision, nanoseconds, number)
        last = hashlib.sha256(last + head + hashlib.sha256(payload).digest()).digest()
        _agree("digest of the server", entry.digest.hex(), last.hex())
        expected.digest.digests.append(last)
        at = data.index(b"\x1a\x20" + entry.digest)
        bare.append(data[:at] + data[at + 34 :])
    request = conformance.DigestRequest(log=conformance.LogDigestRequest(session_id=session_id, entries=bare))
    return conformance.Request(digest=request), expected


def prompt_digest(messages: Iterable[v1.PromptMessage]) -> bytes:
    """The digest of a prompt, by the words of the spec."""
    total = hashlib.sha256()
    for message in messages:
        total.update(bytes([message.role]) + len(message.parts).to_bytes(4, "big"))
        for part in message.parts:
            bare = v1.PromptPart.FromString(part.SerializeToString())
            bare.id = ""
            total.update(hashlib.sha256(canonical(bare)).digest())
    return total.digest()


def canonical(message: Any) -> bytes:
    """The canonical bytes of a message, by the words of the spec: each field is serialized by itself."""
    unknown = type(message)()
    unknown.CopyFrom(message)
    written = b""
    for field, value in sorted(message.ListFields(), key=lambda each: each[0].number):
        unknown.ClearField(field.name)
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        for item in sorted(value, key=lambda key: key.encode()) if is_map else value if field.is_repeated else [value]:
            alone = type(message)()
            if is_map:
                getattr(alone, field.name)[item] = value[item]
            elif field.is_repeated:
                getattr(alone, field.name).append(item)
            elif field.message_type is None:
                setattr(alone, field.name, item)
            if field.message_type is None or is_map:
                written += alone.SerializeToString()
                continue
            inside = canonical(item)
            written += encoder._VarintBytes(field.number << 3 | 2) + encoder._VarintBytes(len(inside)) + inside
    return written + _short_tags(unknown.SerializeToString())


def _short_tags(data: bytes) -> bytes:
    """Fields one after another, each with its tag in the fewest bytes."""
    written, at = b"", 0
    while at < len(data):
        tag, value = _varint(data, at)
        at = _end(data, tag, value)
        written += encoder._VarintBytes(tag) + data[value:at]
    return written


def _end(data: bytes, tag: int, at: int) -> int:
    kind = tag & 7
    if kind == 3:
        inner, at = _varint(data, at)
        while inner & 7 != 4:
            inner, at = _varint(data, _end(data, inner, at))
        return at
    if kind in (1, 5):
        return at + (8 if kind == 1 else 4)
    value, at = _varint(data, at)
    return at + value if kind == 2 else at


def _payload(data: bytes) -> tuple[int, bytes]:
    """The number and the bytes of an entry's payload: the last field, for servers write the envelope first."""
    at = 0
    while True:
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 0:
            continue
        if 10 <= tag >> 3 < 300:
            return tag >> 3, data[at : at + value]
        at += value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1


def _agree(what: str, source: Any, store: Any) -> None:
    if source != store:
        raise trees.SourceError(f"{what}: the source says {source!r}, the store {store!r}")
