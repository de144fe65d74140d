"""The ``info`` of opencode's sessions as session properties, and its ``revert``."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.timestamp_pb2 import Timestamp

from turnwire import v1
from turnwire.formats import extras
from turnwire.formats.fields import Fields
from turnwire.formats.jsonlit import Json, Node
from turnwire.formats.opencode.heads import time_created
from turnwire.formats.opencode.idspace import legal_id
from turnwire.formats.opencode.shape import revert_tree, session_tree
from turnwire.formats.opencode.shape_parts import SPACE, OriginalIds

PROGRAM = "opencode"
_CHARACTERS = 4096


def map_properties(
    node: Node, session_id: str, created: Timestamp | None, has_revert: bool, fields: Fields
) -> v1.SessionProperties:
    """The properties of a session.

    ``created`` stands for a missing time; ``has_revert`` says that the revert is an entry of its own.
    """
    tree = node.value if isinstance(node.value, dict) else {}
    first = "the time of the first message"
    began = fields.time_or(time_created(tree), "/time/created", created or Timestamp(), first)
    time = tree.get("time")
    archived = time.get("archived") if isinstance(time, dict) else None
    directory, at = tree.get("directory"), "/directory"
    location = tree.get("location")
    if directory is None and isinstance(location, dict):  # the coming form
        directory, at = location.get("directory"), "/location/directory"
    share = tree.get("share")
    properties = v1.SessionProperties(
        title=fields.text(tree.get("title"), "/title", _CHARACTERS),
        directory=fields.text(directory, at, _CHARACTERS),
        created=began,
        archived=fields.time(archived, "/time/archived"),
        origin=v1.Origin(program=PROGRAM, version=fields.text(tree.get("version"), "/version", 256)),
        share_url=fields.text(share.get("url"), "/share/url") if isinstance(share, dict) else None,
    )
    parent = fields.text(tree.get("parentID"), "/parentID")
    if parent:
        properties.parent.session_id = legal_id(parent)
        if properties.parent.session_id != parent:
            fields.note("/parentID", "not a legal id, changed")
    original = {key: value for key, value in tree.items() if key != "revert"} if has_revert else tree
    found = extras.compare(original, session_tree(session_id, properties))
    properties.extra_json = extras.join({SPACE: extras.encode(found, node)})
    return properties


def map_revert(
    node: Node,
    messages: Mapping[str, str],
    parts: Mapping[tuple[str, str], str],
    fields: Fields,
) -> v1.Revert | None:
    """The open revert of a session; None if it names no message that is there.

    ``messages`` are the ids in Turnwire by those in the source, ``parts`` likewise by id of the message in Turnwire
    and of the part in the source.
    """
    tree = node.value
    if not isinstance(tree, dict):
        fields.note("/revert", "not an object, left out")
        return None
    message = tree.get("messageID")
    message_id = messages.get(message) if isinstance(message, str) else None
    if message_id is None:
        fields.note("/revert/messageID", "no message of the session, so there is no revert")
        return None
    part = tree.get("partID")
    part_id = parts.get((message_id, part)) if isinstance(part, str) else None
    if part is not None and part_id is None:
        fields.note("/revert/partID", "no part of the message, left out")
    revert = v1.Revert(
        message_id=message_id,
        part_id=part_id,
        snapshot=fields.text(tree.get("snapshot"), "/revert/snapshot", 1024),
        diff=fields.text(tree.get("diff"), "/revert/diff"),
    )
    derived = revert_tree(revert, _originals(message_id, message), _originals(part_id, part))
    revert.extra_json = extras.join({SPACE: extras.encode(extras.compare(tree, derived), node)})
    return revert


def _originals(made: str | None, original: Json) -> OriginalIds:
    return OriginalIds({made: original} if made is not None and isinstance(original, str) else {})
