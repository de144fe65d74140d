"""Writes a history as the file that ``opencode export`` would write.

What came from opencode comes back as it was, by the extras. What did not is written from its fields, and completed with
what opencode's schema asks for; parts that opencode has nothing like are left out.
"""

from __future__ import annotations

from turnwire import v1
from turnwire.formats import extras, ledger
from turnwire.formats.base import History, Message
from turnwire.formats.jsonlit import Json, Node, dumps, integer, literal
from turnwire.formats.opencode import complete
from turnwire.formats.opencode.session import PROGRAM
from turnwire.formats.opencode.shape import (
    assistant_tree,
    revert_tree,
    session_tree,
    summary_tree,
    user_tree,
)
from turnwire.formats.opencode.shape_parts import (
    EXTENSION,
    FILE,
    MESSAGE,
    ORDER,
    SPACE,
    OriginalIds,
    Owner,
    part_tree,
)


def export(history: History) -> str:
    """The JSON text of a session, indented by two and ended by a newline as opencode's is."""
    return dumps(export_tree(history), 2) + "\n"


def export_tree(history: History) -> Json:
    """The tree of `export`."""
    return _Export(history).tree()


class _Export:
    def __init__(self, history: History) -> None:
        self._history = history
        self._foreign = history.properties.origin.program != PROGRAM
        self._ids = OriginalIds()
        self._part_ids = OriginalIds()
        self._session_id = history.session_id
        self._asked = ""  # the id of the last user message
        for message in history.messages:
            self._add_original(message.id, message.extra_json, self._ids, complete.MESSAGE_PREFIX)
            for part in message.parts:
                if part.extension.type.startswith(EXTENSION):
                    self._add_extension(part)
                else:
                    self._add_original(part.id, part.extra_json, self._part_ids, complete.PART_PREFIX)

    def tree(self) -> Json:
        properties = self._history.properties
        info = session_tree(self._history.session_id, properties)
        revert = self._history.revert
        if revert is not None:
            info["revert"] = _restored(revert_tree(revert, self._ids, self._part_ids), revert.extra_json, SPACE)
        if self._foreign:
            complete.complete_session(info, self._last())
        restored = _restored(info, properties.extra_json, SPACE)
        self._session_id = _text(restored, "id", self._history.session_id)
        messages = [self._message(message) for message in self._history.messages]
        of_file = extras.space(properties.extra_json, FILE)
        tree: Json = {"info": restored, "messages": _arranged(messages, of_file)}
        return extras.restore(tree, of_file)

    def _message(self, message: Message) -> Json:
        info = self._head(message)
        owner = Owner(self._session_id, self._ids[message.id])
        created = integer(max(_milliseconds(message), 0))
        parts: list[Json] = []
        for part in message.parts:
            tree = part_tree(part, owner, self._ids)
            if isinstance(tree, dict) and self._is_native(part.id):
                complete.complete_part(tree, created)
            if tree is not None:
                parts.append(_restored(tree, part.extra_json, SPACE))
        of_message = extras.space(message.extra_json, MESSAGE)
        return extras.restore({"info": info, "parts": _arranged(parts, of_message)}, of_message)

    def _head(self, message: Message) -> Json:
        info: Json
        native = self._is_native(message.id)
        if isinstance(message, v1.User):
            turn = self._history.turns.get(message.turn_id, v1.Turn())
            head = user_tree(message, turn.request, self._session_id)
            summary = self._history.summaries.get(message.id)
            if summary is not None and not ledger.is_gone(summary):
                head["summary"] = _restored(summary_tree(summary), summary.extra_json, SPACE)
            if native:
                complete.complete_user(head)
            self._asked = self._ids[message.id]
            info = _restored(head, turn.extra_json, SPACE)
        else:
            head = assistant_tree(message, self._session_id, self._ids)
            if native:
                directory = self._history.properties.directory or "/"
                complete.complete_assistant(head, self._asked or self._ids[message.id], directory)
            info = head
        if native and isinstance(info, dict):
            info["id"] = self._ids[message.id]
        return _restored(info, message.extra_json, SPACE)

    def _is_native(self, name: str) -> bool:
        return self._foreign or name in self._history.native

    def _add_original(self, name: str, extra_json: str, found: OriginalIds, prefix: str) -> None:
        """Note the id that a message or part has in the export, if it is another than in Turnwire."""
        if '"/id"' in extra_json:
            original = extras.space(extra_json, SPACE).get("/id")
            if isinstance(original, str):
                found[name] = original
        elif self._is_native(name) and not name.startswith(prefix):
            found[name] = complete.fitting_id(name, prefix)

    def _add_extension(self, part: v1.PromptPart) -> None:
        """Note the id of a part that is kept whole: it stands in the data."""
        data = _restored(literal(part.extension.data_json), part.extra_json, SPACE)
        tree = Node.parse(data.decode("utf-8", "surrogatepass")).value if isinstance(data, bytes) else data
        original = tree.get("id") if isinstance(tree, dict) else None
        if isinstance(original, str) and original != part.id:
            self._part_ids[part.id] = original

    def _last(self) -> int:
        """When something happened in the session last, in milliseconds."""
        return max((_milliseconds(message) for message in self._history.messages), default=0)


def _milliseconds(message: Message) -> int:
    time = message.time.created
    if isinstance(message, v1.Assistant) and message.time.HasField("completed"):
        time = message.time.completed
    return time.seconds * 1000 + time.nanos // 1_000_000


def _restored(tree: Json, extra_json: str, name: str) -> Json:
    return extras.restore(tree, extras.space(extra_json, name)) if extra_json else tree


def _text(tree: Json, key: str, otherwise: str) -> str:
    value = tree.get(key) if isinstance(tree, dict) else None
    return value if isinstance(value, str) and value else otherwise


def _arranged(items: list[Json], members: dict[str, Json]) -> list[Json]:
    """The items in the order that they had in the file; those that came later stay at the end."""
    order = extras.numbers(members.get(ORDER))
    if len(order) > len(items) or sorted(order) != list(range(len(order))):
        return items
    arranged = list(items)
    for index, place in enumerate(order):
        arranged[place] = items[index]
    return arranged
