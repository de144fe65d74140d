"""Prompts: compute them, record them, compute them again, render them for a provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from turnwire import v1
from turnwire.calls.base import Base
from turnwire.calls.given import built, fill
from turnwire.modelref import ModelLike, model_ref
from turnwire.rendering import DEFAULTS, Dialect, Options, Rendering
from turnwire.rendering.wire import change_of, dialect_number, options_to


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the service computed it.

    ``items`` with their origins, in order; ``record`` is what it was computed from (in a dry run it has no id and is
    not stored); ``context`` what the model got beside the messages, if that was recorded; ``head`` the end of the log
    afterwards; ``digest_holds`` whether a prompt that was computed again is the one that was recorded. ``renderings``,
    only of a prompt that was computed again, tell how it was rendered for providers.
    """

    items: tuple[v1.PromptItem, ...]
    record: v1.PromptRecord
    context: v1.PromptContext | None
    head: v1.Head
    digest_holds: bool
    renderings: tuple[v1.PromptRendering, ...] = ()

    @property
    def id(self) -> str:
        """The record's id; empty after a dry run."""
        return self.record.id

    @property
    def digest(self) -> bytes:
        """The digest of the prompt, 32 bytes; see `turnwire.prompt.digest`."""
        return self.record.digest

    @property
    def messages(self) -> tuple[v1.PromptMessage, ...]:
        """The messages alone: what a renderer takes."""
        return tuple(item.message for item in self.items)


class PromptCalls(Base):
    """The methods about prompts.

    Beside the errors that a method names, every method raises `turnwire.errors.RuleViolation` for an argument that
    breaks a rule of the schema, `SessionNotFound` and `SessionDeleted`, and `turnwire.errors.Unavailable` and
    `turnwire.errors.DeadlineExceeded` for a store or server that does not answer.
    """

    async def mutate_prompt(
        self,
        session_id: str,
        turn_id: str,
        mutations: Iterable[v1.Mutation] = (),
        *,
        base_revision: int | None = None,
        base_prompt_id: str | None = None,
        dry_run: bool = False,
        profile: str = "",
        context: v1.PromptContext | None = None,
        request_id: str | None = None,
    ) -> Prompt:
        """Compute the prompt of a turn, with mutations, and record it unless it is a dry run.

        The mutations apply to the history at ``base_revision`` (None: the head), or to the prompt of the earlier
        record ``base_prompt_id``. ``context``: what the model gets beside the messages, to be recorded too. The history
        itself never changes; recording appends an entry. ``PromptEditor.mutations`` are such mutations.

        Raises `TurnNotFound`, `PromptNotFound`, `RevisionOutOfRange`, `UnknownProfile`, and for the mutations
        `NoMessageOfRole`, `AnchorUnknown`, `AnchorCompacted`, `AnchorRemoved`, `AnchorNotInPrompt`, `SignedPart`,
        `TransientPartHasId`, with the path of the one at fault.
        """
        if base_revision is not None and base_prompt_id is not None:
            raise ValueError("a prompt has one base: a revision or a prompt record, not both")
        request = built(
            v1.MutatePromptRequest,
            session_id=session_id,
            turn_id=turn_id,
            mutations=mutations,
            dry_run=dry_run,
            profile=profile,
            context=context,
            request_id=request_id if dry_run else self._request_id(request_id),
        )
        if base_revision is not None:
            request.base_revision = base_revision
        if base_prompt_id is not None:
            fill(request, base_prompt_id=base_prompt_id)
        responses = self._transport.stream("MutatePrompt", request, v1.MutatePromptResponse, timeout=self._timeout)
        return await _collected(responses)

    async def get_prompt(self, session_id: str, prompt_id: str) -> Prompt:
        """Compute the prompt of a record again; ``digest_holds`` says whether it is the same.

        Raises `PromptNotFound`.
        """
        request = built(v1.GetPromptRequest, session_id=session_id, prompt_id=prompt_id)
        responses = self._transport.stream("GetPrompt", request, v1.GetPromptResponse, timeout=self._timeout)
        return await _collected(responses)

    async def render_prompt(
        self,
        session_id: str,
        dialect: Dialect | str,
        *,
        turn_id: str | None = None,
        prompt_id: str | None = None,
        revision: int | None = None,
        model: ModelLike | None = None,
        options: Options | v1.RenderOptions = DEFAULTS,
        profile: str = "",
        context: v1.PromptContext | None = None,
        record: bool = False,
        request_id: str | None = None,
    ) -> Rendering:
        """Render a prompt as the body of a provider's own request; what was changed for that is named.

        It is the prompt of the turn ``turn_id`` as the history at ``revision`` (None: the head) gives it, or that of
        the record ``prompt_id``. ``dialect`` is "openai-chat", "openai-responses", "anthropic-messages" or
        "google-gemini". ``model``: a model or "provider/model"; None: the turn's. ``profile`` chooses what ``options``
        leave open; "": the record's. ``context``: system texts, tools and parameters; None: the record's.
        ``record`` appends how the record was rendered, with the SHA-256 of the body, unless an equal one is there.

        Raises `TurnNotFound`, `PromptNotFound`, `RevisionOutOfRange`, `UnknownProfile`, `EmptyPrompt`, `CorruptData`
        for a record whose digest does not hold, `RuleViolation` for ``record`` with a turn (only of a prompt record can
        be kept how it was rendered) and for a revision with a record, and ValueError for a dialect or model that is
        none.
        """
        if (turn_id is None) == (prompt_id is None):
            raise ValueError("what is rendered is the prompt of a turn or of a prompt record: give one of them")
        given = options_to(options) if isinstance(options, Options) else options
        request = built(
            v1.RenderPromptRequest,
            session_id=session_id,
            revision=revision,
            dialect=dialect_number(dialect),
            model=None if model is None else model_ref(model),
            options=given if given.ByteSize() else None,
            profile=profile,
            context=context,
            record=record,
            request_id=self._request_id(request_id) if record else request_id,
        )
        fill(request, turn_id=turn_id, prompt_id=prompt_id)
        responses = self._transport.stream("RenderPrompt", request, v1.RenderPromptResponse, timeout=self._timeout)
        body: list[str] = []
        changes: list[v1.RenderChange] = []
        end = v1.RenderEnd()
        async with aclosing(responses):
            async for response in responses:
                body.append(response.body)
                changes.extend(response.changes)
                if response.HasField("end"):
                    end = response.end
        return Rendering(
            body="".join(body),
            changes=tuple(map(change_of, changes)),
            dialect=Dialect(dialect),
            model=end.model,
            profile=end.profile,
            version=end.renderer_version,
            revision=end.revision if end.HasField("revision") else None,
        )

    async def list_prompts(
        self, session_id: str, *, turn_id: str | None = None, page_size: int = 100
    ) -> AsyncGenerator[v1.PromptRecord, None]:
        """All prompt records, or those of one turn, in the order of the log; pages are fetched as they are needed."""
        token = ""
        while True:
            page = await self.list_prompts_page(session_id, turn_id=turn_id, page_size=page_size, page_token=token)
            for record in page.prompts:
                yield record
            token = page.next_page_token
            if not token:
                return

    async def list_prompts_page(
        self, session_id: str, *, turn_id: str | None = None, page_size: int = 0, page_token: str = ""
    ) -> v1.ListPromptsResponse:
        """One page of prompt records (``page_size`` 0: 100), with the token of the next. Raises `InvalidPageToken`."""
        request = built(
            v1.ListPromptsRequest, session_id=session_id, turn_id=turn_id, page_size=page_size, page_token=page_token
        )
        return await self._transport.unary("ListPrompts", request, v1.ListPromptsResponse, timeout=self._timeout)


async def _collected(
    responses: AsyncGenerator[v1.MutatePromptResponse, None] | AsyncGenerator[v1.GetPromptResponse, None],
) -> Prompt:
    items: list[v1.PromptItem] = []
    end = v1.PromptEnd()
    async with aclosing(responses):
        async for response in responses:
            chunk = response.chunk.items
            if response.chunk.continues and items and chunk:
                items[-1].message.parts.extend(chunk[0].message.parts)
                items.extend(chunk[1:])
            else:
                items.extend(chunk)
            if response.HasField("end"):
                end = response.end
    return Prompt(
        items=tuple(items),
        record=end.record,
        context=end.context if end.HasField("context") else None,
        head=end.head,
        digest_holds=end.digest_holds,
        renderings=tuple(end.renderings),
    )
