"""One session of opencode as a `SessionImport`.

The order is opencode's own: messages by time of creation, then id; parts by id. There is one turn per user message, and
an assistant belongs to the turn of the user message that it answers. Where that is missing, it belongs to the turn
before it in order, and where there is none, to one made from what it ran with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire import v1
from turnwire.formats import extras, ledger
from turnwire.formats.base import SessionImport, Unlinked
from turnwire.formats.fields import QUIET, Fields
from turnwire.formats.jsonlit import Damage, Json, Node, dumps, quote
from turnwire.formats.opencode.entries import Mapped, in_order
from turnwire.formats.opencode.heads import (
    Settings,
    UserMessage,
    map_assistant,
    map_user,
    settings_of,
    time_created,
    turn_id,
)
from turnwire.formats.opencode.idspace import IdSpace, legal_id
from turnwire.formats.opencode.making import ASSISTANT, USER, Context
from turnwire.formats.opencode.parts import map_part
from turnwire.formats.opencode.records import MessageRecord, PartRecord, SessionRecord
from turnwire.formats.opencode.session import PROGRAM, map_properties, map_revert
from turnwire.formats.opencode.shape_parts import (
    BESIDE,
    DIFFS,
    FILE,
    MESSAGE,
    ORDER,
    SPACE,
    OriginalIds,
    Owner,
)
from turnwire.formats.report import Report
from turnwire.formats.undecoded import cleaned, has_bytes, shown

#: Where extras keep what names another object of the session.
PARENT: Final = "/parentID"
REVERT: Final = "/revert"


@dataclass(slots=True)
class _Message:
    """A message on its way: ``original`` is its id in the source, or ``id`` if it has none there."""

    record: MessageRecord
    tree: dict[str, Json]
    role: str
    place: int
    id: str
    original: str
    fields: Fields


def map_record(record: SessionRecord, report: Report) -> SessionImport | None:
    """Map one session; None if it has no id, which the report then says."""
    return _Mapper(record, report).session()


class _Mapper:
    def __init__(self, record: SessionRecord, report: Report) -> None:
        self._record = record
        self._report = report
        self._whole = record.whole
        self._info: dict[str, Json] = {}
        self._originals = OriginalIds()
        self._known: dict[str, str] = {}
        self._users: dict[str, UserMessage] = {}
        self._literals: dict[str, dict[str, str]] = {}  # of the heads of messages, by path
        self._part_ids: dict[tuple[str, str], str] = {}
        self._parentless: dict[str, str] = {}  # what the messages name that answer no user message of the session
        self._parts = IdSpace(part.original for message in record.messages for part in message.parts)

    def session(self) -> SessionImport | None:
        self._record.info, literals = cleaned(self._record.info)
        info = self._record.info.value
        self._info = info if isinstance(info, dict) else {}
        found = self._session_id()
        if found is None:
            reason = "neither the session nor its messages have a session id"
            self._report.refused("session", self._record.path, reason, source=self._record.source)
            return None
        session_id, self._source_id = found
        fields = self._fields("session", self._record.path, session_id)
        _note_bytes(literals, fields)
        messages = self._messages()
        began = QUIET.time(time_created(self._info), "")
        mapped = self._map_messages(messages, began or Timestamp())
        revert = None
        if self._info.get("revert") is not None:
            node = self._record.info.find(("revert",))
            revert = map_revert(node, self._known, self._part_ids, fields)
        first = mapped[0].created if mapped else None
        properties = map_properties(self._record.info, session_id, first, revert is not None, fields)
        self._record.info.members(lambda key: fields.note("", "a key stands there more than once, the last one counts"))
        properties.extra_json = extras.with_bytes(properties.extra_json, SPACE, literals)
        of_file = _members(self._record.others, self._record.absent, fields)
        order = [message.place for message in messages]
        _add_order(of_file, order)
        properties.extra_json = extras.add(properties.extra_json, FILE, of_file)
        properties.extra_json = extras.add(properties.extra_json, BESIDE, self._beside(self._record.beside, fields))
        if self._record.parent_part is not None and properties.HasField("parent"):
            properties.parent.part_id = legal_id(self._record.parent_part)
        self._add_diffs(mapped, properties, fields)
        unread = tuple((BESIDE, member) for member in self._record.unread)
        revert_unread = not self._whole and _is_unread(self._info.get("revert"), revert)
        if revert_unread:
            unread += ((SPACE, REVERT),)
        unlinked = () if self._whole else tuple(self._unlinked(mapped))
        entries = in_order(mapped, revert)
        return SessionImport(
            session_id,
            properties,
            entries,
            self._record.source,
            PROGRAM,
            self._whole,
            headless=self._record.headless,
            unread=unread,
            original_id=self._source_id if self._source_id != session_id else "",
            unlinked=unlinked,
            revert_unread=revert_unread or self._record.headless,
        )

    def _unlinked(self, mapped: list[Mapped]) -> Iterator[Unlinked]:
        """The answers to messages that were not read, and what they are like where these are there."""
        for one in mapped:
            parent = self._parentless.get(one.message.id)
            if parent is not None:
                linked = extras.without(one.message.extra_json, SPACE, PARENT) if parent else one.message.extra_json
                yield Unlinked(one.message.id, legal_id(parent) if parent else "", linked)

    def _beside(self, beside: dict[str, str], fields: Fields) -> dict[str, str]:
        """What the program keeps beside the session, as far as a document can hold it."""
        found: dict[str, str] = {}
        literals: dict[str, str] = {}
        for name, text in beside.items():
            if has_bytes(text):
                node, here = cleaned(Node.parse(text))
                literals |= {f"/{name}{pointer}": literal for pointer, literal in here.items()}
                text = node.raw
            found[name] = text if extras.storable(text, 2) else quote(text)
        _note_bytes(literals, fields)
        return found | ({extras.BYTES: dumps(dict(literals))} if literals else {})

    def _add_diffs(self, mapped: list[Mapped], properties: v1.SessionProperties, fields: Fields) -> None:
        """Keep the diffs over the whole session, which can be large, at its last user message and not in its head."""
        if not self._record.diffs:
            return
        members = self._beside({DIFFS: self._record.diffs}, fields)
        last = next((one for one in reversed(mapped) if isinstance(one.message, v1.User)), None)
        if last is None:
            properties.extra_json = extras.add(properties.extra_json, f"{BESIDE}/{DIFFS}", members)
            return
        if last.summary is None:
            last.summary = v1.MessageSummary(message_id=last.message.id, extra_json=ledger.GONE)
        last.summary.extra_json = extras.add(last.summary.extra_json, BESIDE, members)

    def _session_id(self) -> tuple[str, str] | None:
        """The id of the session in Turnwire, and the one in the source."""
        original = self._info.get("id")
        if isinstance(original, str) and original:
            session_id = legal_id(original)
            if session_id != original:
                fields = self._fields("session", self._record.path, session_id)
                fields.note("/id", "not a legal id, changed")
            return session_id, original
        for message in self._record.messages:
            tree = message.info.value
            named = tree.get("sessionID") if isinstance(tree, dict) else None
            if isinstance(named, str) and named:
                session_id = legal_id(named)
                self._fields("session", self._record.path, session_id).note("/id", "missing, its messages have it")
                return session_id, session_id
        return None

    def _fields(self, kind: str, path: str, name: str) -> Fields:
        return Fields(partial(self._report.repaired, kind, path, source=self._record.source, id=name))

    def _messages(self) -> list[_Message]:
        """The messages that can be taken, in opencode's order, with their ids."""
        kept: list[tuple[tuple[float, str], int, MessageRecord, dict[str, Json], str]] = []
        time = float("-inf")
        last_id = ""
        for record in self._record.messages:
            record.info, literals = cleaned(record.info)
            tree = record.info.value
            role = tree.get("role") if isinstance(tree, dict) else None
            if not isinstance(tree, dict) or not isinstance(role, str) or role not in (USER, ASSISTANT):
                reason = "neither a user's nor an assistant's message"
                self._whole = False
                self._report.refused("message", record.path, reason, source=self._record.source)
                continue
            # What has no time or no id stays behind what stands before it.
            time = _number(time_created(tree), time)
            original = tree.get("id")
            last_id = original if isinstance(original, str) else last_id
            kept.append(((time, last_id), len(kept), record, tree, role))
            self._literals[record.path] = literals
        kept.sort(key=lambda one: one[0])
        space = IdSpace(tree.get("id") for _, _, _, tree, _ in kept)
        messages: list[_Message] = []
        for _, place, record, tree, role in kept:
            named = tree.get("id")
            message_id, why = space.claim(named, "msg_", f"{self._source_id}/{place}")
            fields = self._fields("message", record.path, message_id)
            if why:
                fields.note("/id", why)
            _note_bytes(self._literals[record.path], fields)
            source_id = named if isinstance(named, str) else message_id
            messages.append(_Message(record, tree, role, place, message_id, source_id, fields))
            if source_id != message_id:
                self._originals[message_id] = source_id
        return messages

    def _map_messages(self, messages: list[_Message], now: Timestamp) -> list[Mapped]:
        answers: dict[str, dict[str, Json]] = {}
        for message in messages:
            parent = message.tree.get("parentID")
            if message.role == ASSISTANT and isinstance(parent, str):
                answers.setdefault(parent, message.tree)
        # Users first, since an assistant may stand before the user message that it answers.
        clock = now
        for message in messages:
            if message.role == USER and message.original not in self._users:
                answer = answers.get(message.original)
                lacking = answer is not None and not (message.tree.get("agent") and message.tree.get("model"))
                fallback = settings_of(answer) if answer is not None and lacking else Settings()
                self._users[message.original] = self._user(message, fallback, clock)
                clock = self._users[message.original].user.time.created
        mapped: list[Mapped] = []
        turn: v1.Turn | None = None
        for message in messages:
            if message.role == USER:
                one = self._users[message.original]
                if one.user.id != message.id:  # its id stands there twice
                    one = self._user(message, Settings(), now)
                turn = one.turn
                done = Mapped(one.user, one.turn, one.user.time.created, one.summary)
            else:
                assistant, parent_turn = self._assistant(message, now)
                turn = turn or parent_turn or _turn_of(assistant)
                used = parent_turn or turn
                assistant.turn_id = used.id
                done = Mapped(assistant, used, assistant.time.created)
            self._add_parts(message, done)
            self._known.setdefault(message.original, message.id)
            mapped.append(done)
            now = done.created
        return mapped

    def _user(self, message: _Message, fallback: Settings, now: Timestamp) -> UserMessage:
        return map_user(message.record.info, message.id, self._source_id, fallback, now, message.fields)

    def _assistant(self, message: _Message, now: Timestamp) -> tuple[v1.Assistant, v1.Turn | None]:
        parent = message.tree.get("parentID")
        asked = self._users.get(parent) if isinstance(parent, str) else None
        if asked is None:
            reason = "missing" if parent is None else "no user message of the session, left out"
            message.fields.note(PARENT, reason)
            self._parentless[message.id] = parent if isinstance(parent, str) else ""
        assistant = map_assistant(
            message.record.info,
            message.id,
            None if asked is None else asked.user.id,
            self._source_id,
            self._originals,
            now,
            message.fields,
        )
        return assistant, None if asked is None else asked.turn

    def _add_parts(self, message: _Message, done: Mapped) -> None:
        context = Context(
            message.fields,
            message.role,
            Owner(self._source_id, message.original),
            self._originals,
            self._known,
        )
        order: list[int] = []
        for place in _by_id(message.record.parts):
            record = message.record.parts[place]
            original = record.original
            try:
                node = record.load()
            except Damage as damage:
                named = original if isinstance(original, str) else ""
                source = self._record.source
                self._whole = False
                self._report.refused("part", record.path, f"no JSON: {damage}", source=source, id=named)
                continue
            order.append(place)
            part_id, reason = self._parts.claim(original, "prt_", f"{message.id}/{place}")
            context.fields = self._fields("part", record.path, part_id)
            if reason:
                context.fields.note("/id", reason)
            node, literals = cleaned(node)
            _note_bytes(literals, context.fields)
            part = map_part(node, part_id, context)
            part.extra_json = extras.with_bytes(part.extra_json, SPACE, literals)
            done.parts.append(part)
            if isinstance(original, str):
                self._part_ids.setdefault((message.id, original), part_id)
        head = done.message
        head.extra_json = extras.with_bytes(head.extra_json, SPACE, self._literals[message.record.path])
        of_message = _members(message.record.others, message.record.absent, message.fields)
        _add_order(of_message, order)
        if of_message:
            done.message.extra_json = extras.add(done.message.extra_json, MESSAGE, of_message)


def _members(others: dict[str, Node], absent: tuple[str, ...], fields: Fields) -> dict[str, str]:
    """The extras for the members of an object that stand around what is mapped."""
    nodes: dict[str, Node] = {}
    literals: dict[str, str] = {}
    for key, node in others.items():
        name = shown(key)
        nodes[name], here = cleaned(node)
        literals |= {f"{extras.pointer((name,))}{pointer}": literal for pointer, literal in here.items()}
    _note_bytes(literals, fields)
    members = extras.encode_members(nodes, absent)
    return members | ({extras.BYTES: dumps(dict(literals))} if literals else {})


def _note_bytes(literals: dict[str, str], fields: Fields) -> None:
    for pointer in literals:
        fields.note(pointer, "bytes that are no UTF-8 became U+FFFD, the original is kept")


def _is_unread(original: Json, revert: v1.Revert | None) -> bool:
    """Whether a revert names what is not there."""
    if not isinstance(original, dict):
        return False
    return revert is None or (original.get("partID") is not None and not revert.HasField("part_id"))


def _turn_of(assistant: v1.Assistant) -> v1.Turn:
    """The turn of an assistant that no user message stands before."""
    run = assistant.run
    variant = run.variant if run.HasField("variant") else None
    turn = v1.Turn(
        created=assistant.time.created,
        request=v1.TurnRequest(agent=run.agent, model=run.model, variant=variant),
    )
    turn.id = turn_id(assistant.id, turn)
    return turn


def _number(value: Json, otherwise: float) -> float:
    if isinstance(value, bytes) and value[-1:].isdigit():
        return float(value)
    return otherwise


def _by_id(parts: list[PartRecord]) -> list[int]:
    """The positions of the parts in the order of their ids; one without an id stays behind the one before it."""
    keys: list[str] = []
    last = ""
    for part in parts:
        original = part.original
        last = original if isinstance(original, str) else last
        keys.append(last)
    return sorted(range(len(parts)), key=keys.__getitem__)


def _add_order(members: dict[str, str], order: list[int]) -> None:
    """Keep the place in the file of each object in turn, if these are not in order; those that were lost leave gaps."""
    ranks = {place: rank for rank, place in enumerate(sorted(order))}
    order = [ranks[place] for place in order]
    if any(place != index for index, place in enumerate(order)):
        members[ORDER] = "[" + ",".join(map(str, order)) + "]"
