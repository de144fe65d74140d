"""PromptEditor: what a prompt hook holds in its hands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from turnwire import v1
from turnwire.prompt import build
from turnwire.prompt.assembly import assemble
from turnwire.prompt.build import Content, RoleLike
from turnwire.prompt.digests import digest
from turnwire.prompt.history import Fates, History
from turnwire.prompt.items import Item, as_base
from turnwire.prompt.mutation import NOTHING_KNOWN, mutate
from turnwire.prompt.profiles import Profile

_M = TypeVar("_M", v1.PromptItem, v1.Mutation)

_EDIT_BY_METHODS = "a prompt is edited by the editor's methods (append, insert_after, remove, ...), not by assignment"


class PromptEditor:
    """A prompt that can be edited, locally and without a server::

        editor = PromptEditor.of(history, turn_id)
        editor.append("user", "Summarize the tool output above and continue.")
        editor.append_to("user", text_part("Answer in German.", synthetic=True))

    There is one way to edit: the methods. Each applies at once, so an error comes out of the call that is
    wrong, and then nothing has changed. ``items``, ``messages`` and ``mutations`` are copies: changing one
    changes neither the editor nor the history, and assigning to an attribute raises AttributeError. The
    history never changes.

    ``mutations`` is what MutatePrompt takes; the service runs this same code on them and comes to the same
    digest. The errors are those of ``turnwire.prompt.mutate``, and their path counts mutations as
    ``mutations`` does.
    """

    __slots__ = ("_fates", "_items", "_mutations")

    _fates: Fates
    _items: list[Item]
    _mutations: list[v1.Mutation]

    def __init__(
        self,
        items: Iterable[v1.PromptItem | Item] = (),
        *,
        base_prompt_id: str = "",
        fates: Fates = NOTHING_KNOWN,
    ) -> None:
        """Edit items that are there already, for example the reply of MutatePrompt; they are copied.

        With ``base_prompt_id`` they are the result of that prompt record, as when hooks chain: the items that
        its mutations made are marked with it. Without ``fates`` every anchor that the items do not show is
        unknown.
        """
        held = [item if isinstance(item, Item) else Item.of(_copy(item)) for item in items]
        object.__setattr__(self, "_items", as_base(held, base_prompt_id) if base_prompt_id else held)
        object.__setattr__(self, "_fates", fates)
        object.__setattr__(self, "_mutations", [])

    @classmethod
    def of(cls, history: History, turn_id: str, profile: Profile | str = "default") -> PromptEditor:
        """Edit the prompt of a turn. Raises TurnNotFound, UnknownProfile.

        The history's messages are not copied; they must not be changed while the editor is in use.
        """
        assembly = assemble(history, turn_id, profile)
        return cls(assembly.items, fates=assembly)

    def append(self, message: v1.PromptMessage | RoleLike, *content: Content) -> None:
        """Put a message at the end: a PromptMessage, or a role and its parts (strings become texts)."""
        self.apply(v1.Mutation(append=v1.Append(message=_message(message, content))))

    def prepend(self, message: v1.PromptMessage | RoleLike, *content: Content) -> None:
        """Put a message at the beginning."""
        self.apply(v1.Mutation(prepend=v1.Prepend(message=_message(message, content))))

    def append_to(self, role: RoleLike, *content: Content) -> None:
        """Add parts to the end of the last message of a role, synthetic or not. Raises NoMessageOfRole."""
        parts = map(build.part, content)
        self.apply(v1.Mutation(append_to=v1.AppendTo(role=build.role(role), parts=parts)))

    def insert_after(self, message_id: str, message: v1.PromptMessage | RoleLike, *content: Content) -> None:
        """Put a message directly after a stored one; of two after one anchor the later is nearer to it."""
        put = v1.InsertAfter(message_id=message_id, message=_message(message, content))
        self.apply(v1.Mutation(insert_after=put))

    def insert_before(self, message_id: str, message: v1.PromptMessage | RoleLike, *content: Content) -> None:
        """Put a message directly before a stored one; of two before one anchor the later is nearer to it."""
        put = v1.InsertBefore(message_id=message_id, message=_message(message, content))
        self.apply(v1.Mutation(insert_before=put))

    def remove(self, message_id: str) -> None:
        """Take a stored message out, with whatever was added to it."""
        self.apply(v1.Mutation(remove=v1.Remove(message_id=message_id)))

    def remove_part(self, part_id: str) -> None:
        """Take a stored part out; a message that loses its last part leaves the prompt. Raises SignedPart."""
        self.apply(v1.Mutation(remove_part=v1.RemovePart(part_id=part_id)))

    def replace_part(self, part_id: str, content: Content) -> None:
        """Put another part in the place of a stored one; it has no id afterwards. Raises SignedPart."""
        put = v1.ReplacePart(part_id=part_id, part=build.part(content))
        self.apply(v1.Mutation(replace_part=put))

    def apply(self, *mutations: v1.Mutation) -> None:
        """Apply mutations in order, all or none; they are copied."""
        held = [_copy(mutation) for mutation in mutations]
        self._items[:] = mutate(self._items, held, self._fates, first_index=len(self._mutations))
        self._mutations.extend(held)

    @property
    def items(self) -> tuple[v1.PromptItem, ...]:
        """The items as they now are, copied: changing them has no effect on the prompt."""
        return tuple(item.to_proto() for item in self._items)

    @property
    def messages(self) -> tuple[v1.PromptMessage, ...]:
        """The messages as they now are, copied: changing them has no effect on the prompt."""
        return tuple(item.to_message() for item in self._items)

    @property
    def mutations(self) -> tuple[v1.Mutation, ...]:
        """What was done so far, in order, copied: the mutations to send to MutatePrompt."""
        return tuple(map(_copy, self._mutations))

    def digest(self) -> bytes:
        """The digest of the prompt as it now is, 32 bytes; see ``turnwire.prompt.digest``."""
        return digest(self._items)

    def __len__(self) -> int:
        """How many items the prompt has."""
        return len(self._items)

    def __bool__(self) -> bool:
        """Always true: an editor of an empty prompt is an editor."""
        return True

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(_EDIT_BY_METHODS)

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(_EDIT_BY_METHODS)

    def __repr__(self) -> str:
        return f"<PromptEditor: {len(self._items)} items, {len(self._mutations)} mutations>"


def _message(message: v1.PromptMessage | RoleLike, content: tuple[Content, ...]) -> v1.PromptMessage:
    if not isinstance(message, v1.PromptMessage):
        return build.message(message, *content)
    if content:
        raise TypeError("a PromptMessage brings its own parts; give either it or a role and parts")
    return message


def _copy(message: _M) -> _M:
    copied = type(message)()
    copied.CopyFrom(message)
    return copied
