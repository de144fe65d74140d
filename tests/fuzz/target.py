"""What is done with one log, whatever is in it: parse, check, restore, fold, replay, assemble, render.

Bytes that nobody should have written may be refused at any step, by an error of ours. What may not happen is another
exception, a refusal of what was let in before, or two readers that disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from google.protobuf.message import DecodeError

from tests.builders import parsed, replay
from turnwire import errors, rules, v1
from turnwire.engine import Caller, Engine
from turnwire.log import raw
from turnwire.log.fold import Folded, fold
from turnwire.rendering import Dialect
from turnwire.rendering.wire import dialect_number
from turnwire.store.memory import MemoryStore

SESSION: Final = "fuzzed"
Outcome = Literal["no entry", "refused", "restored"]


async def run(entries: Sequence[bytes]) -> Outcome:
    """Take a log through every reader.

    Returns how far it came. Raises AssertionError where two readers disagree; what is no error of ours comes through.
    """
    if not _parse(entries):
        return "no entry"
    engine = Engine(MemoryStore())
    try:
        await engine.restore(Caller(), SESSION, entries)
    except errors.TurnwireError:
        return "refused"
    verified = await engine.verify_session(Caller(), v1.VerifySessionRequest(session_id=SESSION))
    assert verified.sound, verified.findings
    try:
        state = fold([v1.Entry.FromString(data) for data in entries])
    except errors.UnknownPayload:
        return "restored"
    await _replay(engine, state)
    for turn_id in state.turns:
        await _prompts(engine, turn_id)
    return "restored"


def _parse(entries: Sequence[bytes]) -> bool:
    whole = True
    for data in entries:
        try:
            raw.entry(data)
        except ValueError:
            whole = False
        try:
            entry = v1.Entry.FromString(data)
        except DecodeError:
            whole = False
            continue
        rules.check(entry, stored=True, keep_unknown=True)
        list(rules.references(entry))
    return whole


async def _replay(engine: Engine, state: Folded) -> None:
    folded = [message.built().SerializeToString(deterministic=True) for message in state.messages()]
    history = await replay(engine, SESSION)
    replayed = [message.SerializeToString(deterministic=True) for message in history.messages]
    assert replayed == folded, "replay and fold disagree"


async def _prompts(engine: Engine, turn_id: str) -> None:
    request = v1.MutatePromptRequest(session_id=SESSION, turn_id=turn_id, dry_run=True)
    try:
        await parsed(v1.MutatePromptResponse, engine.mutate_prompt(Caller(), request))
    except errors.TurnwireError:
        return
    for dialect in Dialect:
        wanted = v1.RenderPromptRequest(session_id=SESSION, turn_id=turn_id, dialect=dialect_number(dialect))
        try:
            await parsed(v1.RenderPromptResponse, engine.render_prompt(Caller(), wanted))
        except errors.TurnwireError:
            continue
