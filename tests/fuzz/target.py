"""What is done with one log, whatever is in it: parse, check, validate, restore, fold, replay, assemble, render.

Bytes that nobody should have written may be refused at any step, by an error of ours. What may not happen is another
exception, a refusal of what was let in before, a refusal of what validation calls sound, or two readers that disagree.
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
from turnwire.validation import SessionCheck

SESSION: Final = "fuzzed"
Outcome = Literal["no entry", "refused", "restored"]


async def run(entries: Sequence[bytes]) -> Outcome:
    """Take a log through every reader.

    Returns how far it came. Raises AssertionError where two readers disagree; what is no error of ours comes through.
    """
    whole = _parse(entries)
    wrong = _validate(entries)
    if not whole:
        assert wrong or not entries, "what is no entry is sound"
        return "no entry"
    engine = Engine(MemoryStore())
    refusal = await _restore(engine, entries)
    if refusal is not None:
        assert wrong or not entries, f"{refusal.reason_name} is refused, and sound"
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


async def _restore(engine: Engine, entries: Sequence[bytes]) -> errors.TurnwireError | None:
    try:
        await engine.restore(Caller(), SESSION, entries)
    except errors.TurnwireError as error:
        return error
    return None


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


def _validate(entries: Sequence[bytes]) -> bool:
    """Validate a log; whether it has errors, or what a later schema has, behind which there may be some."""
    check = SessionCheck(SESSION)
    try:
        for data in entries:
            try:
                check.entry(raw.entry(data))
            except ValueError as error:
                check.damaged("storage.form", text=str(error))
        check.end()
        found = check.found.take()
        errors_there = any(each.severity == v1.Severity.SEVERITY_ERROR for each in found)
        return errors_there or any(each.rule.startswith("storage.unknown_") for each in found)
    finally:
        check.close()


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
