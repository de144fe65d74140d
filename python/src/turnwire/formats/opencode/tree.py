"""Reads the JSON tree of versions before 1.2: ``storage/{session,message,part,session_diff,todo,…}``.

A session is ``session/<project>/<id>.json``, its messages are ``message/<session>/<id>.json``, the parts of these
``part/<message>/<id>.json``. A file that is cut or damaged costs itself; what hangs on nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnwire.formats.base import EVERYTHING, Wanted
from turnwire.formats.fields import QUIET
from turnwire.formats.jsonlit import Damage, Json, Node, compact, quote
from turnwire.formats.opencode.links import MENTION, task_session
from turnwire.formats.opencode.packed import content
from turnwire.formats.opencode.records import MessageRecord, PartRecord, SessionRecord, json_of, member, with_members
from turnwire.formats.opencode.shape_parts import DIFFS
from turnwire.formats.opencode.tree_files import TreeFiles, stem
from turnwire.formats.report import Outcome, Report

NAME: Final = "tree"
STORAGE: Final = "storage"

#: The folders of the objects of a session.
_KINDS: Final = frozenset({"session", "message", "part"})
#: What is kept beside a session and stands in no export, by the name of its folder.
_BESIDE: Final = ("todo",)
_SHARES: Final = ("session_share", "share")
#: Of a share; its secret is a credential, and stays where it is.
_SHARE: Final = ("id", "url")
_PROJECT: Final = ("id", "worktree", "vcs", "name")


def detect(path: Path) -> bool:
    """Whether a path is such a tree: a directory of sessions by project and of messages by session."""
    if not path.is_dir() or not (path / "message").is_dir() or not (path / "session").is_dir():
        return False
    return bool(_sessions(TreeFiles(path))) or bool(TreeFiles(path).folders("message"))


def count(path: Path, wanted: Wanted = EVERYTHING) -> int:
    """How many sessions there are to be read."""
    return sum(1 for _, name in _sessions(TreeFiles(path)) if wanted.takes(name, None))


def read(
    path: Path, report: Report, wanted: Wanted = EVERYTHING, elsewhere: frozenset[str] = frozenset()
) -> Iterator[SessionRecord]:
    """The sessions of a tree, but for those that are ``elsewhere``: in a database that was made from the tree."""
    reader = _Reader(path, report)
    left = 0
    for file, name in _sessions(reader.files):
        if not wanted.takes(name, None):
            continue
        if name in elsewhere:
            left += 1
            continue
        record = reader.session(file, name, wanted)
        if record is not None:
            yield record
    if left:
        report.left("file", "", f"{left} sessions are in the database beside it, and read from there", source=str(path))
    if wanted == EVERYTHING and not left:
        reader.note_orphans()


def session_diff(storage: Path, session_id: str, report: Report, source: str) -> tuple[str, bool]:
    """The diffs over a whole session as JSON text, which later versions keep in the tree too; empty: there are none.

    Says too whether they could be read; if not, they are refused in the report.
    """

    def refused(path: Path, reason: str) -> None:
        shown = f"/{path.relative_to(storage)}"
        report.refused("file", shown, reason, source=source, id=session_id)

    refusals = report.total(Outcome.REFUSED)
    file = TreeFiles(storage, refused).file(DIFFS, session_id)
    text = ""
    if file is not None:
        try:
            data, whole = content(file)
            if not whole:
                raise Damage("the compressed data ends", len(data))
            node = Node.parse(json_of(data))
            text = compact(node.raw) if node.value else ""
        except (OSError, Damage) as error:
            refused(file, _why(error))
    return text, report.total(Outcome.REFUSED) == refusals


def _sessions(files: TreeFiles) -> list[tuple[Path, str]]:
    """The files of sessions with the ids that their names say, by id."""
    found = [(file, stem(file)) for folder in files.folders("session") for file in files.files("session", folder.name)]
    return sorted(found, key=lambda pair: pair[1])


def _why(error: OSError | Damage) -> str:
    return f"cut or damaged: {error}" if isinstance(error, Damage) else error.strerror or "cannot be read"


class _Reader:
    """Reads one session after the other."""

    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._report = report
        self._source = str(path)
        self.files = TreeFiles(path, self._not_taken)
        self._quiet = TreeFiles(path)
        self._messages: set[str] = set()
        self._tasks: dict[str, dict[str, str]] = {}
        self._known = {name for _, name in _sessions(self._quiet)}

    def session(self, file: Path, name: str, wanted: Wanted) -> SessionRecord | None:
        """One session; None if it has not changed since the time that is wanted."""
        path = f"/{file.relative_to(self._path)}"
        refused = self._report.total(Outcome.REFUSED)
        info = self._object(file, "session", name)
        headless = info is None
        if info is None:
            info = Node.parse(f"{{{member('id', name)}}}")
        found = info.value if isinstance(info.value, dict) else {}
        time = found.get("time")
        updated = QUIET.count(time.get("updated"), "") if isinstance(time, dict) else None
        if not wanted.takes(name, updated):
            self._messages.update(stem(one) for one in self._quiet.files("message", name))
            return None
        record = SessionRecord(info, self._read_messages(name), self._source, path, headless=headless)
        record.diffs, complete = session_diff(self._path, name, self._report, self._source)
        if not complete:
            record.unread += (DIFFS,)
        self._add_beside(name, found, record)
        parent = found.get("parentID")
        if isinstance(parent, str) and parent:
            record.parent_part = self._parts_of_tasks(parent).get(name)
        record.whole = self._report.total(Outcome.REFUSED) == refused
        return record

    def note_orphans(self) -> None:
        """Refuse the messages and parts that hang on nothing."""
        for folder in self.files.folders("message"):
            if folder.name not in self._known:
                for file in self.files.files("message", folder.name):
                    self._messages.add(stem(file))
                    self._refused("message", file, "its session is missing")
        for folder in self.files.folders("part"):
            if folder.name not in self._messages:
                for file in self.files.files("part", folder.name):
                    self._refused("part", file, "its message is missing")

    def _read_messages(self, session_id: str) -> list[MessageRecord]:
        messages: list[MessageRecord] = []
        for file in self.files.files("message", session_id):
            name = stem(file)
            self._messages.add(name)
            info = self._object(file, "message", name, f"{member('id', name)},{member('sessionID', session_id)}")
            if info is None:
                for part in self.files.files("part", name):
                    self._refused("part", part, "its message is damaged")
                continue
            parts: list[PartRecord] = []
            for part in self.files.files("part", name):
                node = self._object(part, "part", stem(part), member("id", stem(part)))
                if node is not None:
                    parts.append(PartRecord(node, f"/{part.relative_to(self._path)}"))
            messages.append(MessageRecord(info, parts, f"/{file.relative_to(self._path)}"))
        return messages

    def _object(self, file: Path, kind: str, name: str, members: str = "") -> Node | None:
        """What a file holds; None if it is damaged, and the report says so. ``members`` stand in for a missing id."""
        path = f"/{file.relative_to(self._path)}"
        try:
            data, whole = content(file)
            node = Node.parse(json_of(data).strip("\ufeff"))
            if not whole:
                raise Damage("the compressed data ends", len(data))
            if members and isinstance(node.value, dict) and "id" not in node.value:
                node = Node.parse(with_members(data, members))
        except (OSError, Damage) as error:
            self._report.refused(kind, path, _why(error), source=self._source, id=name)
            return None
        return node

    def _add_beside(self, session_id: str, info: dict[str, Json], record: SessionRecord) -> None:
        """What hangs on a session and stands in no export: todos, the share's names, the project's."""
        for folder in _BESIDE:
            node = self._found(folder, session_id, folder, record)
            if node is not None and node.value:
                record.beside[folder] = compact(node.raw)
        for folder in _SHARES:
            node = self._found(folder, session_id, "share", record)
            if node is not None:
                record.beside["share"] = _part_of(node, _SHARE)
        project = info.get("projectID")
        node = self._found("project", project, "project", record) if isinstance(project, str) and project else None
        if node is not None:
            record.beside["project"] = _part_of(node, _PROJECT)
        elif record.headless:
            record.unread += ("project",)

    def _found(self, folder: str, name: str, member: str, record: SessionRecord) -> Node | None:
        """What a file beside the session holds. One that cannot be read is refused, and its member is not known."""
        refused = self._report.total(Outcome.REFUSED)
        file = self.files.file(folder, name)
        node = self._object(file, "file", name) if file is not None else None
        if self._report.total(Outcome.REFUSED) > refused:
            record.unread += (member,)
        return node

    def _not_taken(self, file: Path, reason: str) -> None:
        kind = file.relative_to(self._path).parts[0]
        self._refused(kind if kind in _KINDS else "file", file, reason)

    def _parts_of_tasks(self, session_id: str) -> dict[str, str]:
        """The task parts of a session by the ids of the sessions that they started."""
        found = self._tasks.get(session_id)
        if found is None:
            found = self._tasks[session_id] = {}
            for message in self._quiet.files("message", session_id):
                for file in self._quiet.files("part", stem(message)):
                    try:
                        text = json_of(content(file)[0])
                        part = Node.parse(text).value if MENTION.search(text) else None
                    except (OSError, Damage):
                        continue
                    child = task_session(part)
                    if child is not None and isinstance(part, dict):
                        named = part.get("id")
                        found.setdefault(child, named if isinstance(named, str) else stem(file))
        return found

    def _refused(self, kind: str, file: Path, reason: str) -> None:
        path = f"/{file.relative_to(self._path)}"
        self._report.refused(kind, path, reason, source=self._source, id=stem(file))


def _part_of(node: Node, keys: tuple[str, ...]) -> str:
    members = node.members()
    return "{" + ",".join(f"{quote(key)}:{compact(members[key].raw)}" for key in keys if key in members) + "}"
