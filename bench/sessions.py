"""Sessions to read from: turns of ten messages, each message of eight parts, put part by part."""

from __future__ import annotations

from bench import payloads
from turnwire import v1
from turnwire.embedded import Embedded

#: Messages of a turn; the last two turns hold the last twenty.
TURN_MESSAGES = 10
PARTS = 8
PART_BYTES = 200
_BATCH = 900  # entries of one append


def turn_id(number: int) -> str:
    """The id of a turn, from 0."""
    return f"trn_{number:020d}"


async def fill(store: Embedded, session: str, messages: int) -> None:
    """Write a session of so many messages."""
    await store.create_session(session, title="A session of the measurements")
    entries: list[v1.EntryInput] = []
    for at in range(messages):
        number, place = divmod(at, TURN_MESSAGES)
        if place == 0:
            entries.append(payloads.turn(turn_id(number)))
        header = payloads.user(turn_id(number)) if place == 0 else payloads.message(0, turn=turn_id(number))
        entries.append(header)
        message = header.user.user if header.HasField("user") else header.assistant.assistant
        parts = [v1.PartPut(message_id=message.id, part=payloads.text(PART_BYTES)) for _ in range(PARTS)]
        entries += [v1.EntryInput(part=part) for part in parts]
        if len(entries) >= _BATCH:
            await store.append(session, entries)
            entries = []
    if entries:
        await store.append(session, entries)
