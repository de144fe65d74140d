"""Prompts: compute them from a session's history, record what they were computed from, compute them again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from turnwire import errors, prompt, v1
from turnwire.engine import pages
from turnwire.engine.core import Caller, Core, Once, check, head_of, living, revision_of
from turnwire.log import frames, plan, prepare, replay, wire
from turnwire.log.draft import Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import CONTEXT, MESSAGE, PART, PROMPT, RENDERING, TURN, Change, SessionRow, View

_PAGE = 100
_RENDERINGS = 100  # that are shown with a record
_CHAIN = 1000  # records that may be based on one another; a longer chain is refused rather than recomputed for ever
_ROLE_TAG = b"\x08"  # PromptMessage.role


@dataclass(frozen=True, slots=True)
class _Base:
    """What mutations are applied to: the assembled history, and the records whose mutations come first."""

    assembly: prompt.Assembly
    records: Sequence[v1.PromptRecord]
    profile: str

    def items(self) -> list[prompt.Item]:
        return prompt.apply_records(self.assembly.items, self.records, self.assembly)


class Prompts(Core):
    """The methods ``MutatePrompt``, ``GetPrompt`` and ``ListPrompts``."""

    async def mutate_prompt(
        self, caller: Caller, request: v1.MutatePromptRequest, wire: bytes | None = None
    ) -> AsyncIterator[bytes]:
        """Compute a prompt and, unless it is a dry run, record it; yields ``MutatePromptResponse``.

        Raises ``TurnNotFound``, ``PromptNotFound``, ``RevisionOutOfRange``, ``UnknownProfile`` and what mutations are
        refused with.
        """
        once = Once("MutatePrompt", request, wire)
        session = await self.store.session(caller.tenant, request.session_id)
        if once.id and not request.dry_run:
            kept = await self.store.reply(caller.tenant, session.id, once.method, once.id)
            end = once.matched(kept, v1.PromptEnd.FromString)
            if end is not None:
                base = await self._base_of_record(session, end.record)
                items = prompt.mutate(base.items(), end.record.mutations, base.assembly, checked=True)
                for response in _responses(items, end):
                    yield response
                return
        check(request, "mutations")
        if not request.turn_id or await self.store.name(session, TURN, request.turn_id, session.head) is None:
            raise errors.TurnNotFound("the session has no such turn", path="turn_id", turn_id=request.turn_id)
        base = await self._base_of_request(session, request)
        items = prompt.mutate(base.items(), request.mutations, base.assembly)
        record = v1.PromptRecord(
            turn_id=request.turn_id,
            mutations=request.mutations,
            assembly_version=prompt.ASSEMBLY_VERSION,
            profile=base.profile,
            digest=prompt.digest(items),
        )
        if request.WhichOneof("base") == "base_prompt_id":
            record.base_prompt_id = request.base_prompt_id
        else:
            record.base_revision = base.assembly.history.revision
        end = v1.PromptEnd(record=record, items=len(items), digest_holds=True)
        if request.HasField("context"):
            end.context.CopyFrom(request.context)
        now_us = self.now_us()
        entries = self._prepared(end, now_us)
        if request.dry_run:
            end.record.ClearField("id")
            end.head.CopyFrom(head_of(session))
        else:
            end = await self._record(caller, session, end, entries, now_us, once)
        for response in _responses(items, end):
            yield response

    async def get_prompt(self, caller: Caller, request: v1.GetPromptRequest) -> AsyncIterator[bytes]:
        """Compute a recorded prompt again; yields ``GetPromptResponse``. Raises ``PromptNotFound``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        record = await self._recorded(session, request.prompt_id, "prompt_id")
        items = await self._items_of(session, record)
        end = v1.PromptEnd(record=record, items=len(items), head=head_of(session))
        end.digest_holds = prompt.digest(items) == record.digest
        context = await self._context_of(session, record)
        if context is not None:
            end.context.CopyFrom(context)
        end.renderings.extend(await self._renderings_of(session, record))
        for response in _responses(items, end):
            yield response

    async def list_prompts(self, caller: Caller, request: v1.ListPromptsRequest) -> v1.ListPromptsResponse:
        """A page of prompt records in the order of the log. Raises ``InvalidPageToken``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        query = v1.ListPromptsRequest(turn_id=request.turn_id if request.HasField("turn_id") else None)
        after = pages.place(request.page_token, query, f"{caller.tenant}/{session.id}")[0] if request.page_token else 0
        response = v1.ListPromptsResponse()
        size = 0
        while True:
            names = await self.store.names(session, PROMPT, after, _PAGE)
            if not names:
                return response
            for name in names:
                payload = (await self.store.entry(session, name.born)).payload
                record = v1.PromptRecord.FromString(payload)
                if request.HasField("turn_id") and record.turn_id != request.turn_id:
                    after = name.born
                    continue
                if len(response.prompts) == (request.page_size or _PAGE) or (
                    size and size + len(payload) > frames.FRAME_BYTES
                ):
                    response.next_page_token = pages.token(query, f"{caller.tenant}/{session.id}", after)
                    return response
                response.prompts.append(record)
                size += len(payload)
                after = name.born

    def _prepared(self, end: v1.PromptEnd, now_us: int) -> list[Prepared]:
        """The entries that record a prompt: its context, if it has one, and the record, which is filled in.

        A dry run makes them too, so that it refuses what recording would.
        """
        entries: list[Prepared] = []
        if end.HasField("context"):
            context = v1.EntryInput(context=end.context)
            entries.append(prepare.one(context, "context", now_us, self.limits.part_bytes))
            end.record.context_digest = bytes.fromhex(entries[0].id)
        record = v1.EntryInput(prompt=end.record)
        entries.append(prepare.one(record, "", now_us, self.limits.part_bytes))
        end.record.CopyFrom(record.prompt)
        return entries

    async def _record(
        self,
        caller: Caller,
        session: SessionRow,
        end: v1.PromptEnd,
        entries: list[Prepared],
        now_us: int,
        once: Once,
    ) -> v1.PromptEnd:
        """Append the context, if it is new, and the record; returns the end as it is then."""

        def step(view: View) -> tuple[Change | None, v1.PromptEnd]:
            there = living(view, session.id)
            if there is None:
                raise errors.SessionNotFound("there is no such session", session_id=session.id)
            reply = once.replay(view, v1.PromptEnd.FromString)
            if reply is not None:
                return None, reply
            draft = Draft(view, there, max(now_us, there.recorded_us))
            plan.plan(draft, entries)
            final = v1.PromptEnd(items=end.items, digest_holds=True, record=end.record, head=head_of(draft.session))
            if end.HasField("context"):
                final.context.CopyFrom(end.context)
            return draft.change(once.keep(final)), final

        return await self.store.write(caller.tenant, session.id, step)

    async def _base_of_request(self, session: SessionRow, request: v1.MutatePromptRequest) -> _Base:
        if request.WhichOneof("base") == "base_prompt_id":
            record = await self._recorded(session, request.base_prompt_id, "base_prompt_id")
            base = await self._base(session, record, request.mutations)
            if request.profile and request.profile != base.profile:
                text = f"the prompt that it is based on has the profile {base.profile}"
                raise errors.RuleViolation([errors.Violation("profile", "turnwire.profile", text)])
            return base
        wanted = request.base_revision if request.WhichOneof("base") == "base_revision" else None
        revision = revision_of(session, wanted, "base_revision")
        profile = prompt.profile_named(request.profile)
        assembly = await self._assemble(session, request.turn_id, revision, profile.name, request.mutations)
        return _Base(assembly, [], profile.name)

    async def _base_of_record(self, session: SessionRow, record: v1.PromptRecord) -> _Base:
        if record.WhichOneof("base") == "base_prompt_id":
            below = await self._recorded(session, record.base_prompt_id, "base_prompt_id")
            return await self._base(session, below, record.mutations)
        assembly = await self._assemble(session, record.turn_id, record.base_revision, record.profile, record.mutations)
        return _Base(assembly, [], record.profile)

    async def _base(self, session: SessionRow, last: v1.PromptRecord, mutations: Sequence[v1.Mutation]) -> _Base:
        """The base that a record makes for others: its own base and its mutations, down to a revision."""
        records = [last]
        while records[-1].WhichOneof("base") == "base_prompt_id":
            if len(records) == _CHAIN:
                text = f"a chain of more than {_CHAIN:,} prompt records"
                raise errors.RuleViolation([errors.Violation("base_prompt_id", "turnwire.chain", text)])
            records.append(await self._recorded(session, records[-1].base_prompt_id, "base_prompt_id"))
        root = records[-1]
        records.reverse()
        every = [mutation for record in records for mutation in record.mutations]
        assembly = await self._assemble(session, root.turn_id, root.base_revision, root.profile, [*every, *mutations])
        return _Base(assembly, records, root.profile)

    async def _items_of(self, session: SessionRow, record: v1.PromptRecord) -> list[prompt.Item]:
        """The prompt of a record, computed again. Raises ``UnknownToThisServer`` for rules that this build lacks."""
        prompt.require_version(record.assembly_version)
        base = await self._base_of_record(session, record)
        return prompt.mutate(base.items(), record.mutations, base.assembly, checked=True)

    async def _context_of(self, session: SessionRow, record: v1.PromptRecord) -> v1.PromptContext | None:
        if not record.context_digest:
            return None
        name = await self.store.name(session, CONTEXT, record.context_digest.hex(), session.head)
        if name is None:
            return None
        return v1.PromptContext.FromString((await self.store.entry(session, name.born)).payload)

    async def _renderings_of(self, session: SessionRow, record: v1.PromptRecord) -> list[v1.PromptRendering]:
        """The last of its renderings that are recorded, in the order of the log."""
        found: list[v1.PromptRendering] = []
        before = session.head
        while len(found) < _RENDERINGS:
            name = await self.store.name(session, RENDERING, record.id, before)
            if name is None:
                break
            found.append(v1.PromptRendering.FromString((await self.store.entry(session, name.born)).payload))
            before = name.born - 1
        return found[::-1]

    async def _recorded(self, session: SessionRow, prompt_id: str, path: str) -> v1.PromptRecord:
        name = await self.store.name(session, PROMPT, prompt_id, session.head)
        if name is None:
            raise errors.PromptNotFound("the session has no such prompt record", path=path, prompt_id=prompt_id)
        return v1.PromptRecord.FromString((await self.store.entry(session, name.born)).payload)

    async def _assemble(
        self, session: SessionRow, turn_id: str, revision: int, profile: str, mutations: Sequence[v1.Mutation]
    ) -> prompt.Assembly:
        messages = [
            prompt.Message(header, [prompt.Part.stored(None, stored) for stored in stored_parts])
            async for header, stored_parts in replay.messages(self.store, session, revision)
        ]
        turns: list[v1.Turn] = []
        turn = await self.store.name(session, TURN, turn_id, revision)
        if turn is not None:
            turns.append(v1.Turn.FromString((await self.store.entry(session, turn.born)).payload))
        of_messages, of_parts = prompt.anchors(mutations)
        history = prompt.History(
            messages,
            turns=turns,
            revision=revision,
            removed_messages=await self._once_named(session, MESSAGE, of_messages, revision),
            removed_parts=await self._once_named(session, PART, of_parts, revision),
        )
        try:
            return prompt.assemble(history, turn_id, profile)
        except errors.TurnNotFound as error:  # the session has it, and has not at this revision
            raise errors.TurnNotFound(error.text, path="turn_id", turn_id=turn_id) from None

    async def _once_named(self, session: SessionRow, space: int, wanted: set[str], revision: int) -> set[str]:
        return {id for id in wanted if await self.store.name(session, space, id, revision) is not None}


def _responses(items: Sequence[prompt.Item], end: v1.PromptEnd) -> list[bytes]:
    """The responses of a prompt, serialized: chunks (field 1) of at most a frame and one part, then the end (2)."""
    responses = [wire.field(1, chunk) for chunk in _chunks(items)]
    responses.append(wire.field(2, end.SerializeToString()))
    return responses


def _chunks(items: Sequence[prompt.Item]) -> list[bytes]:
    chunks: list[bytes] = []
    pieces: list[bytes] = []
    size = 0
    for item in items:
        parts: list[bytes] = []
        for part in item.parts:
            if size >= frames.FRAME_BYTES:
                if parts:
                    pieces.append(_item(item, parts))
                chunks.append(b"".join(pieces))
                pieces, size = ([_CONTINUES] if parts else []), 0
                parts = []
            data = part.data
            prefix = wire.part_prefix(len(data))
            parts += (prefix, data)
            size += len(prefix) + len(data)
        pieces.append(_item(item, parts))
    if pieces:
        chunks.append(b"".join(pieces))
    return chunks


_CONTINUES = v1.PromptChunk(continues=True).SerializeToString()


def _item(item: prompt.Item, parts: list[bytes]) -> bytes:
    """An item as an element of ``PromptChunk.items``, with its parts as they are stored."""
    message = _ROLE_TAG + wire.varint(item.role) + b"".join(parts)
    if item.later is not None:
        message += item.later.message.SerializeToString()
    return wire.field(1, wire.field(1, message) + item.without_message().SerializeToString())
