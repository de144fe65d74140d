"""The subject of the Python package: answers the runner on standard input and output."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Callable, Mapping
from typing import Any

import google.protobuf
import service
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

import turnwire
from turnwire import errors, prompt, v1
from turnwire.conformance import v1 as conformance
from turnwire.log import digest, fold, raw
from turnwire.rendering.wire import changes_to
from turnwire.validation import protojson

PROTOCOL = 1


def hello(_: conformance.HelloRequest) -> conformance.HelloResponse:
    runtime = f"python {platform.python_version()}, protobuf {google.protobuf.__version__}"
    return conformance.HelloResponse(protocol=PROTOCOL, library=f"turnwire {turnwire.__version__}", runtime=runtime)


def encoding(request: conformance.EncodingRequest) -> conformance.EncodingResponse | conformance.Refusal:
    message = _class(request.message_type)()
    try:
        if request.WhichOneof("input") == "json":
            message = protojson.parse(request.json, _class(request.message_type))
        else:
            message.ParseFromString(request.binary)
    except (protojson.NoMessage, DecodeError):
        return conformance.Refusal()
    if request.output == conformance.Encoding.ENCODING_JSON:
        return conformance.EncodingResponse(json=json_format.MessageToJson(message))
    return conformance.EncodingResponse(binary=message.SerializeToString())


def rules(request: conformance.RulesRequest) -> conformance.RulesResponse:
    message = _class(request.message_type).FromString(request.message)
    stored = {conformance.PartIds.PART_IDS_STORED: True, conformance.PartIds.PART_IDS_TRANSIENT: False}
    found = turnwire.validate(message, stored=stored.get(request.part_ids), role=request.role or None)
    return conformance.RulesResponse(
        violations=[conformance.Violation(rule=each.rule, path=each.path) for each in found]
    )


def folding(request: conformance.FoldRequest) -> conformance.History:
    folded = _folded(request)
    history = conformance.History(
        revision=folded.revision, properties=folded.properties, turns=folded.turns.values(), revert=folded.revert
    )
    for message in folded.messages():
        built = message.built()
        held = history.messages.add(summary=message.summary)
        (held.user if isinstance(built, v1.User) else held.assistant).CopyFrom(built)  # type: ignore[arg-type]
    return history


def assembly(request: conformance.AssemblyRequest) -> conformance.Prompt:
    folded = _folded(request)
    history = prompt.History([message.built() for message in folded.messages()], turns=folded.turns.values())
    return _prompt(turnwire.PromptEditor.of(history, request.turn_id, request.profile))


def mutation(request: conformance.MutationRequest) -> conformance.Prompt:
    editor = turnwire.PromptEditor(request.items, base_prompt_id=request.base_prompt_id, fates=_Fates(request.fates))
    editor.apply(*request.mutations)
    return _prompt(editor)


def digests(request: conformance.DigestRequest) -> conformance.DigestResponse:
    if request.WhichOneof("input") == "prompt":
        items = [v1.PromptItem(message=message) for message in request.prompt.messages]
        return conformance.DigestResponse(digests=[prompt.digest(items)])
    last = digest.start(request.log.session_id)
    response = conformance.DigestResponse()
    for entry in map(raw.entry, request.log.entries):
        last = digest.link(last, entry.revision, entry.recorded_us, entry.field, entry.payload)
        response.digests.append(last)
    return response


def render(request: conformance.RenderRequest) -> conformance.RenderResponse:
    dialect = v1.Dialect.Name(request.dialect).removeprefix("DIALECT_").lower().replace("_", "-")
    rendered = turnwire.render(
        request.items, dialect, request.model, context=request.context, options=request.options, profile=request.profile
    )
    return conformance.RenderResponse(body=rendered.body, changes=changes_to(rendered.changes))


class _Fates:
    """The fates of a request, as the editor asks for them."""

    def __init__(self, fates: Any) -> None:
        names = {
            conformance.Fate.FATE_LIVE: prompt.Fate.LIVE,
            conformance.Fate.FATE_COMPACTED: prompt.Fate.COMPACTED,
            conformance.Fate.FATE_REMOVED: prompt.Fate.REMOVED,
        }
        self._messages = {each.message_id: names[each.fate] for each in fates if each.HasField("message_id")}
        self._parts = {each.part_id: names[each.fate] for each in fates if each.HasField("part_id")}

    def message_fate(self, message_id: str) -> prompt.Fate:
        return self._messages.get(message_id, prompt.Fate.UNKNOWN)

    def part_fate(self, part_id: str) -> prompt.Fate:
        return self._parts.get(part_id, prompt.Fate.UNKNOWN)


def _class(full_name: str) -> type[Message]:
    found: type[Message] = getattr(v1, full_name.removeprefix("turnwire.v1."))
    return found


def _folded(request: conformance.FoldRequest | conformance.AssemblyRequest) -> fold.Folded:
    revision = request.revision if request.HasField("revision") else None
    return fold.fold(map(v1.Entry.FromString, request.entries), revision)


def _prompt(editor: turnwire.PromptEditor) -> conformance.Prompt:
    return conformance.Prompt(items=editor.items, digest=editor.digest())


ANSWERS: Mapping[str, Callable[[Any], Message]] = {
    "hello": hello,
    "encoding": encoding,
    "rules": rules,
    "fold": folding,
    "assembly": assembly,
    "mutation": mutation,
    "digest": digests,
    "render": render,
    "service": lambda request: asyncio.run(service.run(request)),
}


def answer(request: conformance.Request) -> conformance.Response:
    """The answer to one request."""
    name = request.WhichOneof("request")
    response = conformance.Response()
    if name is None:
        response.error = "a request of no known kind"
        return response
    try:
        made = ANSWERS[name](getattr(request, name))
    except errors.TurnwireError as error:
        made = conformance.Refusal(reason=error.reason, path=error.path)
    except Exception as error:  # whatever it is, the runner is to hear of it
        response.error = f"{type(error).__name__}: {error}"
        return response
    getattr(response, "refused" if isinstance(made, conformance.Refusal) else name).CopyFrom(made)
    return response


def main() -> None:
    while size := sys.stdin.buffer.read(4):
        request = conformance.Request.FromString(sys.stdin.buffer.read(int.from_bytes(size, "big")))
        data = answer(request).SerializeToString()
        sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
