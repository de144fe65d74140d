"""The items of a prompt: who speaks, what, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire import v1
from turnwire.prompt.parts import Part

_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True, slots=True)
class Item:
    """One message of a prompt, the light form of ``v1.PromptItem``: parts are shared, nothing is copied.

    ``message_id`` is the id of the stored message, empty when a mutation made the item. Then ``mutation`` is
    that mutation's index in its list, and ``prompt_id`` the prompt record whose list it is (empty: this
    prompt's own).
    ``facts`` is set for a stored assistant only, and shared: copy it before changing it.
    ``later`` is a ``v1.PromptItem`` with nothing but what a later schema has written into the item, its message and
    its origin; None: nothing.
    """

    role: v1.Role.ValueType
    parts: tuple[Part, ...]
    message_id: str = ""
    mutation: int = -1
    prompt_id: str = ""
    facts: v1.AssistantFacts | None = None
    later: v1.PromptItem | None = None

    @classmethod
    def of(cls, item: v1.PromptItem) -> Item:
        """Hold a ``v1.PromptItem`` by reference: it must not be changed afterwards."""
        return cls(
            role=item.message.role,
            parts=tuple(map(Part, item.message.parts)),
            message_id=item.message_id,
            mutation=item.mutation.index if item.HasField("mutation") else -1,
            prompt_id=item.mutation.prompt_id,
            facts=item.facts if item.HasField("facts") else None,
            later=_later(item),
        )

    @classmethod
    def written(cls, message: v1.PromptMessage, mutation: int) -> Item:
        """Hold a message that a mutation puts into the prompt, by reference: it must not be changed afterwards."""
        later = None
        if len(UnknownFieldSet(message)):
            later = v1.PromptItem()
            later.message.MergeFrom(_unknown(message, "role", "parts"))
        return cls(role=message.role, parts=tuple(map(Part, message.parts)), mutation=mutation, later=later)

    def to_message(self) -> v1.PromptMessage:
        """A copy of the message that this item stands for."""
        message = v1.PromptMessage(role=self.role)
        message.parts.extend(part.message for part in self.parts)
        if self.later is not None:
            message.MergeFrom(self.later.message)
        return message

    def to_proto(self) -> v1.PromptItem:
        """A ``v1.PromptItem`` that shares nothing with this item."""
        item = self.without_message()
        item.message.MergeFrom(self.to_message())
        return item

    def without_message(self) -> v1.PromptItem:
        """The same without its message: the origin, the facts, and what a later schema has written beside them."""
        item = v1.PromptItem()
        if self.later is not None:
            item.CopyFrom(self.later)
            item.ClearField("message")
        if self.message_id:
            item.message_id = self.message_id
        else:
            item.mutation.index = self.mutation
            if self.prompt_id:
                item.mutation.prompt_id = self.prompt_id
        if self.facts is not None:
            item.facts.CopyFrom(self.facts)
        return item


def _later(item: v1.PromptItem) -> v1.PromptItem | None:
    """What a later schema has written into an item, but for its parts and facts."""
    if not any(len(UnknownFieldSet(each)) for each in (item, item.message, item.mutation)):
        return None
    found = _unknown(item, "message", "message_id", "mutation", "facts")
    found.message.MergeFrom(_unknown(item.message, "role", "parts"))
    if item.HasField("mutation"):
        found.mutation.MergeFrom(_unknown(item.mutation, "index", "prompt_id"))
    return found


def _unknown(message: _M, *known: str) -> _M:
    """A copy of a message without its ``known`` fields, which are all that this schema has."""
    copied = type(message)()
    copied.CopyFrom(message)
    for name in known:
        copied.ClearField(name)
    return copied


def as_base(items: Iterable[Item], prompt_id: str) -> list[Item]:
    """The result of a prompt record as the input of the next one, so that hooks chain.

    Items that the record's own mutations made get its id; those of records before it keep theirs.
    """
    return [item if item.message_id or item.prompt_id else replace(item, prompt_id=prompt_id) for item in items]
