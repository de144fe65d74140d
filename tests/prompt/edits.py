"""Short forms of mutations, for tests."""

from __future__ import annotations

from collections.abc import Callable

from tests.prompt.build import dialogue, history
from turnwire import v1
from turnwire.prompt import Assembly, Item, assemble, mutate, text_part, user_message

USER, ASSISTANT = v1.Role.ROLE_USER, v1.Role.ROLE_ASSISTANT
HI = user_message("hi")


def append(*content: str, sender: Callable[..., v1.PromptMessage] = user_message) -> v1.Mutation:
    return v1.Mutation(append=v1.Append(message=sender(*content)))


def prepend(*content: str) -> v1.Mutation:
    return v1.Mutation(prepend=v1.Prepend(message=user_message(*content)))


def append_to(role: v1.Role.ValueType, *parts: v1.PromptPart | str) -> v1.Mutation:
    made = [text_part(part) if isinstance(part, str) else part for part in parts]
    return v1.Mutation(append_to=v1.AppendTo(role=role, parts=made))


def insert_after(message_id: str, *content: str) -> v1.Mutation:
    return v1.Mutation(insert_after=v1.InsertAfter(message_id=message_id, message=user_message(*content)))


def insert_before(message_id: str, *content: str) -> v1.Mutation:
    return v1.Mutation(insert_before=v1.InsertBefore(message_id=message_id, message=user_message(*content)))


def remove(message_id: str) -> v1.Mutation:
    return v1.Mutation(remove=v1.Remove(message_id=message_id))


def remove_part(part_id: str) -> v1.Mutation:
    return v1.Mutation(remove_part=v1.RemovePart(part_id=part_id))


def replace_part(part_id: str, part: v1.PromptPart | str) -> v1.Mutation:
    made = text_part(part) if isinstance(part, str) else part
    return v1.Mutation(replace_part=v1.ReplacePart(part_id=part_id, part=made))


def base(*messages: v1.User | v1.Assistant, **kept: list[str]) -> Assembly:
    return assemble(history(*messages, **kept), "T1") if messages else assemble(dialogue(), "T1")


def run(assembly: Assembly, *mutations: v1.Mutation) -> list[Item]:
    return mutate(assembly.items, mutations, assembly)
