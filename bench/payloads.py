"""What is appended: messages of a size, and the ids in the form in which a server assigns them."""

from __future__ import annotations

from itertools import count

from turnwire import ids, v1

MODEL = v1.ModelRef(provider_id="anthropic", model_id="claude-sonnet-4-5")
TURN = "trn_bench"

_numbers = count()


def new_id(prefix: str) -> str:
    """An id of the length of those that the server assigns."""
    return f"{prefix}{next(_numbers):0{len(ids.new(prefix)) - len(prefix)}d}"


def turn(id: str = TURN) -> v1.EntryInput:
    """A turn to which messages can belong."""
    return v1.EntryInput(turn=v1.Turn(id=id, request=v1.TurnRequest(agent="build", model=MODEL)))


def user(turn: str = TURN) -> v1.EntryInput:
    """A user message without parts."""
    return v1.EntryInput(user=v1.UserPut(user=v1.User(id=new_id(ids.MESSAGE), turn_id=turn)))


def message(parts: int = 2, size: int = 2048, turn: str = TURN) -> v1.EntryInput:
    """An assistant message of about ``size`` bytes in its stored form, in ``parts`` text parts."""
    head = v1.Assistant(id=new_id(ids.MESSAGE), turn_id=turn, run=v1.Run(agent="build", model=MODEL))
    each = max(1, (size - head.ByteSize() - 20) // parts - 36) if parts else 0
    head.parts.extend(text(each) for _ in range(parts))
    return v1.EntryInput(assistant=v1.AssistantPut(assistant=head))


def text(size: int) -> v1.PromptPart:
    """A text part of ``size`` characters, unlike any other."""
    words = f"{next(_numbers):08x} the quick brown fox jumps over the lazy dog; "
    return v1.PromptPart(id=new_id(ids.PART), text=v1.TextPart(text=(words * (size // len(words) + 1))[:size]))
