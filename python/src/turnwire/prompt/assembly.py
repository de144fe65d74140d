"""Assemble: from the history at a revision to the prompt of a turn, before any mutation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from turnwire import errors, v1
from turnwire.prompt.history import Fate, History, Message
from turnwire.prompt.items import Item
from turnwire.prompt.profiles import Profile, profile_named

# The characters with the Unicode property White_Space: what makes a summary's text blank must not differ
# between languages and their versions, as their own notions of whitespace do.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

_SUMMARY = v1.ResultKind.RESULT_KIND_SUMMARY


@dataclass(frozen=True, slots=True)
class Assembly:
    """The prompt of a turn before mutations: ``items`` in order.

    It also tells what became of messages and parts that the prompt does not show (``Fates``): ``compacted``
    is how many messages at the beginning of the history a compaction stands for.
    """

    items: tuple[Item, ...]
    history: History
    compacted: int

    def message_fate(self, message_id: str) -> Fate:
        """What became of a message, whether or not the prompt shows it."""
        place = self.history.place(message_id)
        if place is None:
            return self.history.message_fate(message_id)
        return Fate.COMPACTED if place < self.compacted else Fate.LIVE

    def part_fate(self, part_id: str) -> Fate:
        """What became of a part, whether or not the prompt shows it."""
        place = self.history.place_of_part(part_id)
        if place is None:
            return self.history.part_fate(part_id)
        return Fate.COMPACTED if place < self.compacted else Fate.LIVE


@dataclass(frozen=True, slots=True)
class _Compaction:
    """What the newest completed compaction leaves: ``order`` of places, and the place of the tail start."""

    order: Sequence[int]
    tail_start: int


def assemble(history: History, turn_id: str, profile: Profile | str = "default") -> Assembly:
    """Assemble the prompt of a turn: every live message in place order up to the turn's last one.

    Messages of other turns before it are included; a turn without messages yet gets all. From the newest
    completed compaction on there is: the compaction message, its summary, the kept tail (from the tail start
    to the compaction message), the rest. Messages without parts are left out. A tool call and its result are
    one part, so no boundary can part them.

    Raises TurnNotFound when the history has no such turn, UnknownProfile.
    """
    chosen = profile_named(profile) if isinstance(profile, str) else profile
    messages = history.messages[: _end(history, turn_id)]
    compaction = _newest_compaction(messages, chosen)
    order: Sequence[int] = range(len(messages)) if compaction is None else compaction.order
    return Assembly(
        items=tuple(_item(messages[place]) for place in order if messages[place].parts),
        history=history,
        compacted=0 if compaction is None else compaction.tail_start,
    )


def _end(history: History, turn_id: str) -> int:
    for place in range(len(history.messages) - 1, -1, -1):
        if history.messages[place].turn_id == turn_id:
            return place + 1
    if turn_id not in history.turns:
        raise errors.TurnNotFound("the history has no such turn", turn_id=turn_id)
    return len(history.messages)


def _newest_compaction(messages: Sequence[Message], profile: Profile) -> _Compaction | None:
    """The last compaction message that a completed summary after it names as its parent."""
    # From a parent's id to its first completed summary: going backwards, the earlier one overwrites. The
    # first is taken so that a second summary of the same compaction, which can only come at the end, does not
    # move what stands.
    summaries: dict[str, int] = {}
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message.header, v1.Assistant):
            if _completed(message, message.header, profile):
                summaries[message.header.parent_id] = place
        elif message.id in summaries:
            for part in message.parts:
                if part.kind == "compaction":
                    return _ordered(messages, place, summaries[message.id], part.message.compaction, profile)
    return None


def _completed(message: Message, header: v1.Assistant, profile: Profile) -> bool:
    """Whether a message is a summary with a finish, no failure and, by most profiles, a text to read."""
    result = header.result
    if result.kind != _SUMMARY or not result.finish or result.HasField("failure"):
        return False
    if profile.empty_summary:
        return True
    return any(
        part.kind == "text" and not part.message.text.ignored and part.message.text.text.strip(WHITE_SPACE)
        for part in message.parts
    )


def _ordered(
    messages: Sequence[Message], place: int, summary: int, part: v1.CompactionPart, profile: Profile
) -> _Compaction | None:
    """Lay out what a compaction at ``place`` leaves. None: it leaves everything, as it is."""
    tail_start = place
    compaction_id = messages[place].id
    if part.HasField("tail_start_id") and part.tail_start_id != compaction_id:
        found = [index for index in range(place) if messages[index].id == part.tail_start_id]
        if found:
            tail_start = found[0]
        elif profile.lost_tail_keeps_all:
            return None
    tail = range(tail_start, place)
    if not profile.summary_in_place:
        rest = [index for index in range(place + 1, len(messages)) if index != summary]
        return _Compaction([place, summary, *tail, *rest], tail_start)
    if not tail:
        return _Compaction(range(place, len(messages)), tail_start)
    after = next(
        index
        for index in range(place + 1, len(messages))
        if isinstance(header := messages[index].header, v1.Assistant)
        and header.result.kind == _SUMMARY
        and header.parent_id == compaction_id
    )
    return _Compaction([*range(place, after + 1), *tail, *range(after + 1, len(messages))], tail_start)


def _item(message: Message) -> Item:
    header = message.header
    facts = _facts(header) if isinstance(header, v1.Assistant) else None
    return Item(role=message.role, parts=message.parts, message_id=message.id, facts=facts)


def _facts(header: v1.Assistant) -> v1.AssistantFacts:
    result = header.result
    facts = v1.AssistantFacts(
        completed=header.time.HasField("completed"), kind=result.kind or v1.ResultKind.RESULT_KIND_REPLY
    )
    if header.run.HasField("model"):
        facts.model.CopyFrom(header.run.model)
    if result.HasField("failure"):
        facts.failure.CopyFrom(result.failure)
    if result.HasField("finish"):
        facts.finish = result.finish
    return facts
