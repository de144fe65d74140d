"""What every form of opencode's storage is read into: one session with its messages and parts, as JSON with slices.

The exports, the database and the file tree hold the same objects. A reader of a form brings them into the shape of the
export: ``info`` has its id, ``sessionID`` and (parts) ``messageID``, whether they stood in the JSON or in columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from turnwire.formats import undecoded
from turnwire.formats.jsonlit import Json, Node, quote


@dataclass(slots=True)
class PartRecord:
    """One part; ``path`` is its place in the source, for example ``/messages/3/parts/0``.

    ``node`` is the part as it was read, or None while it is only ``data``: JSON in UTF-8 to which ``members`` (JSON
    without its braces) are to be added. ``id`` is the part's id where it does not stand in the JSON.
    """

    node: Node | None
    path: str
    id: str = ""
    data: bytes = b""
    members: str = ""

    @property
    def original(self) -> Json:
        """The part's id in the source, or whatever stands in its place."""
        if self.id:
            return self.id
        tree = self.node.value if self.node is not None else None
        found = tree.get("id") if isinstance(tree, dict) else None
        return undecoded.shown(found) if isinstance(found, str) else found

    def load(self) -> Node:
        """The part, read now if it has not been; it is not kept. Raises `turnwire.formats.jsonlit.Damage`."""
        return self.node if self.node is not None else Node.parse(with_members(self.data, self.members))


@dataclass(slots=True)
class MessageRecord:
    """One message. ``others`` are members beside ``info`` and ``parts``, and ``absent`` says which of these two was
    not there; opencode writes no such message."""

    info: Node
    parts: list[PartRecord]
    path: str
    others: dict[str, Node] = field(default_factory=dict[str, Node])
    absent: tuple[str, ...] = ()


@dataclass(slots=True)
class SessionRecord:
    """One session. ``others`` and ``absent`` are for ``info`` and ``messages`` what they are in a message.

    ``parent_part`` is the id of the part of the parent session that made this one. ``beside`` is what the program
    keeps beside the session and no export has: JSON texts by name, ``todo`` for example. ``diffs`` is likewise the
    JSON text of the diffs over the whole session. ``whole`` is False if something of it could not be read; ``headless``
    is set if that is its ``info``, which then has its id only, and ``unread`` are the names of what could not be read
    of ``beside`` and of the diffs.
    """

    info: Node
    messages: list[MessageRecord]
    source: str = ""
    path: str = "/info"
    others: dict[str, Node] = field(default_factory=dict[str, Node])
    absent: tuple[str, ...] = ()
    parent_part: str | None = None
    beside: dict[str, str] = field(default_factory=dict[str, str])
    diffs: str = ""
    whole: bool = True
    headless: bool = False
    unread: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The session's id in the source, for people; empty if there is none."""
        tree = self.info.value
        found = tree.get("id") if isinstance(tree, dict) else None
        return undecoded.shown(found) if isinstance(found, str) else ""


def with_members(data: bytes, members: str) -> str:
    """The text of a JSON object with members added at its end, where they win over those that stand there already.

    What is no object stays as it is.
    """
    text = json_of(data).strip()
    if not members or not (text.startswith("{") and text.endswith("}")):
        return text
    body = text[1:-1].strip()
    return f"{{{body}{',' if body else ''}{members}}}"


def text_of(data: bytes) -> str:
    """Text from UTF-8, also from one that a careless writer made."""
    return undecoded.shown(undecoded.decode(data))


def json_of(data: bytes) -> str:
    """JSON text from UTF-8. What is none stays in it, see `turnwire.formats.undecoded`."""
    return undecoded.decode(data, json=True)


def member(key: str, value: str) -> str:
    """One member of an object whose value is a string."""
    return f"{quote(key)}:{quote(value)}"
