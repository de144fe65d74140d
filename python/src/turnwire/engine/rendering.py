"""Rendering: a prompt as the body of a provider's request, and a note in the log of what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from turnwire import errors, prompt, v1
from turnwire.engine.core import Caller, Once, check, head_of, living, revision_of
from turnwire.engine.prompts import Prompts
from turnwire.log import frames, plan, prepare
from turnwire.log.draft import Draft
from turnwire.rendering import RENDERER_VERSION, Rendering, render
from turnwire.rendering.wire import changes_to, dialect_of
from turnwire.store.base import TURN, Change, SessionRow, View

_CHANGES = 2500  # a response holds so many: less than a frame, however long the ids are


@dataclass(frozen=True, slots=True)
class _Source:
    """What is rendered: items, the model of their turn, their context, and the profile that goes on."""

    items: list[prompt.Item]
    model: v1.ModelRef
    context: v1.PromptContext | None
    profile: str


class Renderings(Prompts):
    """The method ``RenderPrompt``, beside those that compute the prompts."""

    async def render_prompt(
        self, caller: Caller, request: v1.RenderPromptRequest, wire: bytes | None = None
    ) -> AsyncIterator[bytes]:
        """Render a turn's or a record's prompt and, if asked to, record that; yields ``RenderPromptResponse``.

        Raises ``TurnNotFound``, ``PromptNotFound``, ``RevisionOutOfRange``, ``UnknownProfile``, ``EmptyPrompt``,
        ``UnknownToThisServer`` for rules of other versions, and ``CorruptData`` for a record whose digest does not
        hold, since it is not known then what the model saw.
        """
        once = Once("RenderPrompt", request, wire)
        session = await self.store.session(caller.tenant, request.session_id)
        if once.id and request.record:
            kept = await self.store.reply(caller.tenant, session.id, once.method, once.id)
            end = once.matched(kept, v1.RenderEnd.FromString)
            if end is not None:
                rendering = await self._rendered(session, request)
                if rendering.sha256 != end.body_sha256:
                    text = f"the first reply was rendered by version {end.renderer_version}, this is {RENDERER_VERSION}"
                    raise errors.UnknownToThisServer(text, path="request_id")
                for response in _responses(rendering, end):
                    yield response
                return
        check(request)
        _check_source(request)
        rendering = await self._rendered(session, request)
        end = v1.RenderEnd(
            body_sha256=rendering.sha256,
            renderer_version=rendering.version,
            profile=rendering.profile,
            model=rendering.model,
            head=head_of(session),
        )
        if request.record:
            end = await self._record_rendering(caller, session, request, end, once)
        for response in _responses(rendering, end):
            yield response

    async def _rendered(self, session: SessionRow, request: v1.RenderPromptRequest) -> Rendering:
        if request.WhichOneof("source") == "prompt_id":
            source = await self._source_of_record(session, request.prompt_id)
        else:
            source = await self._source_of_turn(session, request)
        context = request.context if request.HasField("context") else source.context
        model = request.model if request.HasField("model") else source.model
        profile = request.profile or source.profile
        dialect = dialect_of(request.dialect)
        try:
            return render(source.items, dialect, model, context=context, options=request.options, profile=profile)
        except errors.EmptyPrompt as error:
            name = request.WhichOneof("source") or ""
            error.metadata[name] = getattr(request, name)
            raise

    async def _source_of_turn(self, session: SessionRow, request: v1.RenderPromptRequest) -> _Source:
        turn = await self._turn(session, request.turn_id)
        if turn is None:
            raise errors.TurnNotFound("the session has no such turn", path="turn_id", turn_id=request.turn_id)
        wanted = request.revision if request.HasField("revision") else None
        profile = prompt.profile_named(request.profile).name
        assembly = await self._assemble(session, turn.id, revision_of(session, wanted), profile, [])
        return _Source([*assembly.items], turn.request.model, None, profile)

    async def _source_of_record(self, session: SessionRow, prompt_id: str) -> _Source:
        record = await self._recorded(session, prompt_id, "prompt_id")
        items = await self._items_of(session, record)
        if prompt.digest(items) != record.digest:
            text = "the prompt that was computed again is not the one that was recorded"
            raise errors.CorruptData(text, session_id=session.id, prompt_id=prompt_id)
        turn = await self._turn(session, record.turn_id)
        model = turn.request.model if turn is not None else v1.ModelRef()
        return _Source(items, model, await self._context_of(session, record), record.profile)

    async def _turn(self, session: SessionRow, turn_id: str) -> v1.Turn | None:
        name = await self.store.name(session, TURN, turn_id, session.head)
        return v1.Turn.FromString((await self.store.entry(session, name.born)).payload) if name is not None else None

    async def _record_rendering(
        self, caller: Caller, session: SessionRow, request: v1.RenderPromptRequest, end: v1.RenderEnd, once: Once
    ) -> v1.RenderEnd:
        """Append how the record was rendered, unless an equal rendering is there; returns the end as it is then."""
        now_us = self.now_us()
        noted = v1.PromptRendering(
            prompt_id=request.prompt_id,
            dialect=request.dialect,
            model=end.model,
            profile=end.profile,
            renderer_version=end.renderer_version,
            body_sha256=end.body_sha256,
        )
        if request.options.ByteSize():  # options without a choice are none
            noted.options.CopyFrom(request.options)
        # No history depends on it, so that builds which know nothing of renderings may skip it.
        entry = prepare.one(v1.EntryInput(rendering=noted, ignorable=True), "", now_us, self.limits.part_bytes)

        def step(view: View) -> tuple[Change | None, v1.RenderEnd]:
            there = living(view, session.id)
            if there is None:
                raise errors.SessionNotFound("there is no such session", session_id=session.id)
            reply = once.replay(view, v1.RenderEnd.FromString)
            if reply is not None:
                return None, reply
            draft = Draft(view, there, max(now_us, there.recorded_us))
            (result,) = plan.plan(draft, [entry])
            final = v1.RenderEnd()
            final.CopyFrom(end)
            final.revision = result.revision
            final.head.CopyFrom(head_of(draft.session))
            return draft.change(once.keep(final)), final

        return await self.store.write(caller.tenant, session.id, step)


def _check_source(request: v1.RenderPromptRequest) -> None:
    """Refuse what does not go together. Raises ``RuleViolation``."""
    found: list[errors.Violation] = []
    of_record = request.WhichOneof("source") == "prompt_id"
    if of_record and request.HasField("revision"):
        found.append(errors.Violation("revision", "turnwire.revision", "a prompt record has its own revision"))
    if request.record and not of_record:
        found.append(errors.Violation("record", "turnwire.record", "only the prompt of a record can be recorded"))
    if request.record and request.HasField("context"):
        text = "what is recorded has the context of the prompt record"
        found.append(errors.Violation("context", "turnwire.record", text))
    if found:
        raise errors.RuleViolation(found)


def _responses(rendering: Rendering, end: v1.RenderEnd) -> Iterator[bytes]:
    """The responses: the body in pieces of at most a frame, then the changes, then the end."""
    body = rendering.body.encode()
    start = 0
    while start < len(body):
        stop = min(start + frames.FRAME_BYTES, len(body))
        while stop < len(body) and body[stop] & 0xC0 == 0x80:  # inside a code point
            stop -= 1
        yield v1.RenderPromptResponse(body=body[start:stop].decode()).SerializeToString()
        start = stop
    changes = changes_to(rendering.changes)
    for at in range(0, len(changes), _CHANGES):
        yield v1.RenderPromptResponse(changes=changes[at : at + _CHANGES]).SerializeToString()
    yield v1.RenderPromptResponse(end=end).SerializeToString()
