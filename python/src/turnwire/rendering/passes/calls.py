"""Calls and results: every call has one result directly after it, under an id that the provider takes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from turnwire.rendering import jsonwrite
from turnwire.rendering.form import Block, Call, Log, Message, Result, Role, Rule
from turnwire.rendering.options import Settings
from turnwire.rendering.passes.edit import each, with_blocks

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_NO_LETTER = re.compile(r"[^A-Za-z0-9]")
_DIGITS = 8


def clean_inputs(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Make tool inputs objects without lone surrogates."""
    if not settings.clean_inputs:
        return messages

    def edit(block: Call) -> Call:
        document = jsonwrite.without_surrogates(block.input_json)
        if document is not block.input_json and document != block.input_json:
            log.add(Rule.SURROGATE, block.origin)
        if not jsonwrite.is_object(document):
            log.add(Rule.INPUT_WRAPPED, block.origin)
            document = f'{{"input":{document}}}'
        return block if document == block.input_json else replace(block, input_json=document)

    return each(messages, Call, edit)


def answer_calls(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Give every call its one result, directly after the message with the call and in the order of the calls.

    The results of a message are those in the messages of role TOOL directly after it. A call without one gets an error
    that says that it was interrupted; of several results of one call the last counts; results without a call go.
    """
    result: list[Message] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role is Role.TOOL:
            _drop(message.blocks, log)
            continue
        result.append(message)
        calls = [block for block in message.blocks if type(block) is Call]
        if not calls:
            continue
        given: list[Block] = []
        start = index
        while index < len(messages) and messages[index].role is Role.TOOL:
            given += messages[index].blocks
            index += 1
        if index == start + 1 and _answered(calls, given):
            result.append(messages[start])
            continue
        answers = _answers(calls, given, settings, log)
        result.append(Message(Role.TOOL, answers, message.message_id, message.item))
    return result


def _answered(calls: list[Call], given: list[Block]) -> bool:
    """Whether the results are those of the calls, one each and in their order."""
    if len(calls) != len(given):
        return False
    return all(isinstance(one, Result) and one.call_id == call.id for call, one in zip(calls, given, strict=True))


def _same(these: list[Block], those: list[Block]) -> bool:
    return len(these) == len(those) and all(one is other for one, other in zip(these, those, strict=True))


def _answers(calls: list[Call], given: list[Block], settings: Settings, log: Log) -> list[Block]:
    by_id = {block.call_id: block for block in given if isinstance(block, Result)}
    used: list[Block] = []
    answers: list[Block] = []
    for call in calls:
        answer = by_id.pop(call.id, None)
        if answer is None:
            log.add(Rule.INTERRUPTED, call.origin)
            answer = Result(call.id, call.name, settings.interrupted_text, call.origin, error=True, fixed=True)
        else:
            used.append(answer)
        answers.append(answer)
    taken = {id(block) for block in used}
    _drop([block for block in given if id(block) not in taken], log)
    stood = [block for block in given if id(block) in taken]
    for now, before in zip(used, stood, strict=True):
        if now is not before and isinstance(now, Result):
            log.add(Rule.RESULT_ORDER, now.origin)
    return answers


def _drop(blocks: list[Block], log: Log) -> None:
    for block in blocks:
        log.add(Rule.RESULT_WITHOUT_CALL, block.origin)


def answer_in_place(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Divide messages where something else follows a call: the results of the calls so far come first.

    What a model wrote after a call it wrote after the result, and providers want results directly after their calls.
    Needs the results as `answer_calls` puts them.
    """
    if not settings.answer_in_place:
        return messages
    result: list[Message] = []
    answers: list[Block] = []
    for index, message in enumerate(messages):
        runs = _runs(message.blocks) if message.role is Role.ASSISTANT else []
        if len(runs) < 2:
            if not answers:
                result.append(message)
            answers = []
            continue
        log.message(Rule.ANSWERED_IN_PLACE, message)
        answers = messages[index + 1].blocks
        done = 0
        for run in runs:
            result.append(with_blocks(message, run))
            calls = sum(isinstance(block, Call) for block in run)
            if calls:
                result.append(with_blocks(messages[index + 1], answers[done : done + calls]))
                done += calls
    return result


def _runs(blocks: list[Block]) -> list[list[Block]]:
    """The blocks, divided wherever another block follows a call."""
    runs: list[list[Block]] = []
    after_call = True
    for block in blocks:
        is_call = isinstance(block, Call)
        if after_call and not (is_call and runs):
            runs.append([])
        runs[-1].append(block)
        after_call = is_call
    return runs


def rename_calls(messages: list[Message], settings: Settings, log: Log) -> list[Message]:
    """Give every call an id that is legal for the target and, if it must be, unique in the prompt.

    The first to have an id keeps it, so that what is added at the end renames nothing before it.
    """
    if not (settings.unique_call_ids or settings.safe_call_ids or settings.short_call_ids):
        return messages
    used: set[str] = set()
    names: list[str] = []
    changed = False
    result: list[Message] = []
    for message in messages:
        if message.role is Role.ASSISTANT:
            names, changed = [], False
            for block in message.blocks:
                if type(block) is Call:
                    name = _name(block.id, settings, used)
                    used.add(name)
                    names.append(name)
                    if name != block.id:
                        changed = True
                        log.add(Rule.CALL_ID, block.origin)
        result.append(_renamed(message, names) if changed and message.role is not Role.USER else message)
    return result


def _renamed(message: Message, names: list[str]) -> Message:
    """The message with the ids of its calls, or of the results of these calls, which are in the same order."""
    blocks: list[Block] = []
    left = iter(names)
    for block in message.blocks:
        if isinstance(block, Call):
            name = next(left)
            blocks.append(block if name == block.id else replace(block, id=name))
        elif isinstance(block, Result):
            name = next(left)
            blocks.append(block if name == block.call_id else replace(block, call_id=name))
        else:
            blocks.append(block)
    return message if _same(blocks, message.blocks) else with_blocks(message, blocks)


def _name(call_id: str, settings: Settings, used: set[str]) -> str:
    if settings.short_call_ids:
        size = settings.short_call_ids
        return _NO_LETTER.sub("", call_id)[:size].ljust(size, "0")
    name = _UNSAFE.sub("_", call_id) if settings.safe_call_ids else call_id
    size = settings.call_id_length
    if size and len(name) > size:
        digest = hashlib.sha256(call_id.encode()).hexdigest()[:_DIGITS]
        name = f"{name[: size - _DIGITS - 1]}_{digest}"
    if not settings.unique_call_ids or name not in used:
        return name
    number = 2
    while True:
        end = f"_{number}"
        free = (name[: size - len(end)] if size else name) + end
        if free not in used:
            return free
        number += 1
