"""The handle of a turn: its user messages, its prompts, its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnwire import ids, v1
from turnwire.calls.given import built
from turnwire.calls.prompts import Prompt
from turnwire.handle.answer import Answer
from turnwire.handle.content import Content, part_of
from turnwire.handle.times import now
from turnwire.modelref import ModelLike, model_ref
from turnwire.prompt import PromptEditor
from turnwire.prompt.build import RoleLike

if TYPE_CHECKING:
    from turnwire.handle.session import Session


class Turn:
    """A turn to work with; made by ``Session.start_turn`` and ``Session.last_turn``."""

    session: Session
    turn: v1.Turn
    id: str
    #: The last user message of the turn that is known here, which an answer names as its parent; may be empty.
    user_id: str

    def __init__(self, session: Session, turn: v1.Turn, *, user_id: str = "") -> None:
        self.session = session
        self.turn = turn
        self.id = turn.id
        self.user_id = user_id

    @property
    def settings(self) -> v1.TurnRequest:
        """The settings of the turn; they never change."""
        return self.turn.request

    async def add_user(self, *content: Content, message_id: str = "") -> v1.User:
        """Append a user message of parts. Returns it as it was sent, with all ids.

        Strings become texts; a kind of part, such as ``v1.FilePart``, becomes a part. Raises ValueError for no part at
        all and TypeError for what is none, beside what ``append`` raises.
        """
        if not content:
            raise ValueError("a user message needs content: a text or a part")
        message = built(
            v1.User,
            id=message_id or ids.new(ids.MESSAGE),
            turn_id=self.id,
            time=v1.UserTime(created=now()),
            parts=[*map(part_of, content)],
        )
        for each in message.parts:
            each.id = each.id or ids.new(ids.PART)
        await self.session.append(message)
        self.user_id = message.id
        return message

    async def prompt(self, *, base_revision: int | None = None, profile: str = "") -> PromptDraft:
        """The prompt of the turn as the history at a revision (None: the head) gives it, to be edited.

        Nothing is recorded yet. Raises what ``mutate_prompt`` raises.
        """
        computed = await self.session.service.mutate_prompt(
            self.session.id, self.id, base_revision=base_revision, profile=profile, dry_run=True
        )
        return PromptDraft(self, computed)

    def answer(
        self,
        *,
        agent: str | None = None,
        model: ModelLike | None = None,
        variant: str | None = None,
        path: v1.RunPath | None = None,
        message_id: str = "",
        kind: v1.ResultKind.ValueType = v1.ResultKind.RESULT_KIND_REPLY,
        flush_bytes: int = 4096,
        flush_seconds: float = 0.2,
    ) -> Answer:
        """An assistant message to stream into: ``async with turn.answer() as answer:``.

        ``agent``, ``model`` and ``variant`` tell what really runs, if it is not what the turn asked for. Text is
        gathered and appended whenever it has ``flush_bytes`` or is ``flush_seconds`` old.
        """
        settings = self.settings
        same = agent is None and model is None
        inherited = settings.variant if settings.HasField("variant") and same else None
        run = built(
            v1.Run,
            agent=agent if agent is not None else settings.agent,
            model=model_ref(model) if model is not None else settings.model,
            variant=variant if variant is not None else inherited,
            path=path,
        )
        message = built(
            v1.Assistant,
            id=message_id or ids.new(ids.MESSAGE),
            turn_id=self.id,
            parent_id=self.user_id or None,
            run=run,
            result=v1.Result(kind=kind) if kind == v1.ResultKind.RESULT_KIND_SUMMARY else None,
        )
        return Answer(self.session, message, flush_bytes=flush_bytes, flush_seconds=flush_seconds)


class PromptDraft:
    """A prompt that is being edited and is not recorded yet; made by ``Turn.prompt``."""

    turn: Turn
    #: The revision of the history that it is based on.
    base_revision: int
    #: The editor, with all edits: ``append``, ``prepend``, ``append_to``, ``insert_after``, ``remove``, …
    editor: PromptEditor

    def __init__(self, turn: Turn, computed: Prompt) -> None:
        self.turn = turn
        self.base_revision = computed.record.base_revision
        self.editor = PromptEditor(computed.items)
        self._profile = computed.record.profile

    @property
    def messages(self) -> tuple[v1.PromptMessage, ...]:
        """The messages as they now are, copied."""
        return self.editor.messages

    def push(self, *content: Content, role: RoleLike = "user") -> None:
        """Put a message at the end that no person and no model wrote: strings become texts marked as synthetic."""
        self.editor.append(role, *(part_of(each, synthetic=True) for each in content))

    async def record(self, *, context: v1.PromptContext | None = None) -> Prompt:
        """Record the edits, on the same base, and return the prompt as the model is to get it.

        ``context``: system texts, tools and parameters, stored once per content. Raises what ``mutate_prompt`` raises.
        """
        session = self.turn.session
        computed = await session.service.mutate_prompt(
            session.id,
            self.turn.id,
            self.editor.mutations,
            base_revision=self.base_revision,
            profile=self._profile,
            context=context,
        )
        await session.recorded(computed.head)
        return computed
