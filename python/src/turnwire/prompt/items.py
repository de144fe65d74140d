"""The items of a prompt: who speaks, what, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from turnwire import v1
from turnwire.prompt.parts import Part


@dataclass(frozen=True, slots=True)
class Item:
    """One message of a prompt, the light form of ``v1.PromptItem``: parts are shared, nothing is copied.

    ``message_id`` is the id of the stored message, empty when a mutation made the item. Then ``mutation`` is
    that mutation's index in its list, and ``prompt_id`` the prompt record whose list it is (empty: this
    prompt's own).
    ``facts`` is set for a stored assistant only, and shared: copy it before changing it.
    """

    role: v1.Role.ValueType
    parts: tuple[Part, ...]
    message_id: str = ""
    mutation: int = -1
    prompt_id: str = ""
    facts: v1.AssistantFacts | None = None

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
        )

    def to_message(self) -> v1.PromptMessage:
        """A copy of the message that this item stands for."""
        message = v1.PromptMessage(role=self.role)
        message.parts.extend(part.message for part in self.parts)
        return message

    def to_proto(self) -> v1.PromptItem:
        """A ``v1.PromptItem`` that shares nothing with this item."""
        item = v1.PromptItem()
        item.message.role = self.role
        item.message.parts.extend(part.message for part in self.parts)
        if self.message_id:
            item.message_id = self.message_id
        else:
            item.mutation.index = self.mutation
            if self.prompt_id:
                item.mutation.prompt_id = self.prompt_id
        if self.facts is not None:
            item.facts.CopyFrom(self.facts)
        return item


def as_base(items: Iterable[Item], prompt_id: str) -> list[Item]:
    """The result of a prompt record as the input of the next one, so that hooks chain.

    Items that the record's own mutations made get its id; those of records before it keep theirs.
    """
    return [item if item.message_id or item.prompt_id else replace(item, prompt_id=prompt_id) for item in items]
