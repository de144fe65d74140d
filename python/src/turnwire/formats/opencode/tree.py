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
from turnwire.formats.report import Outcome, Report

NAME: Final = "tree"
STORAGE: Final = "storage"

_SUFFIXES: Final = (".json", ".json.gz")
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
    return any(_json_files(folder) for folder in _folders(path / "session")) or any(_folders(path / "message"))


def count(path: Path, wanted: Wanted = EVERYTHING) -> int:
    """How many sessions there are to be read."""
    return sum(1 for _, name in _sessions(path) if wanted.takes(name, None))


def read(
    path: Path, report: Report, wanted: Wanted = EVERYTHING, elsewhere: frozenset[str] = frozenset()
) -> Iterator[SessionRecord]:
    """The sessions of a tree, but for those that are ``elsewhere``: in a database that was made from the tree."""
    reader = _Reader(path, report)
    left = 0
    for file, name in _sessions(path):
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


def session_diff(storage: Path, session_id: str) -> str:
    """The diffs over a whole session as JSON text, which later versions keep in the tree too; empty: there are none."""
    for suffix in _SUFFIXES:
        file = storage / "session_diff" / f"{session_id}{suffix}"
        try:
            text = json_of(content(file)[0])
            node = Node.parse(text)
        except (OSError, Damage, ValueError):
            continue
        return compact(node.raw) if node.value else ""
    return ""


def _sessions(path: Path) -> list[tuple[Path, str]]:
    """The files of sessions with the ids that their names say, by id."""
    found = [(file, _stem(file)) for folder in _folders(path / "session") for file in _json_files(folder)]
    return sorted(found, key=lambda pair: pair[1])


class _Reader:
    """Reads one session after the other."""

    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._report = report
        self._source = str(path)
        self._messages: set[str] = set()
        self._tasks: dict[str, dict[str, str]] = {}
        self._known = {name for _, name in _sessions(path)}

    def session(self, file: Path, name: str, wanted: Wanted) -> SessionRecord | None:
        """One session; None if it has not changed since the time that is wanted."""
        path = f"/{file.relative_to(self._path)}"
        refused = self._report.total(Outcome.REFUSED)
        info = self._object(file, "session", name, repaired=True)
        if info is None:
            info = Node.parse(f"{{{member('id', name)}}}")
        found = info.value if isinstance(info.value, dict) else {}
        time = found.get("time")
        updated = QUIET.count(time.get("updated"), "") if isinstance(time, dict) else None
        if not wanted.takes(name, updated):
            self._messages.update(_stem(one) for one in _json_files(self._path / "message" / name))
            return None
        record = SessionRecord(info, self._read_messages(name), self._source, path)
        record.diffs = session_diff(self._path, name)
        record.beside = self._beside(name, found)
        parent = found.get("parentID")
        if isinstance(parent, str) and parent:
            record.parent_part = self._parts_of_tasks(parent).get(name)
        record.whole = self._report.total(Outcome.REFUSED) == refused
        return record

    def note_orphans(self) -> None:
        """Refuse the messages and parts that hang on nothing."""
        for folder in _folders(self._path / "message"):
            if folder.name not in self._known:
                for file in _json_files(folder):
                    self._messages.add(_stem(file))
                    self._refused("message", file, "its session is missing")
        for folder in _folders(self._path / "part"):
            if folder.name not in self._messages:
                for file in _json_files(folder):
                    self._refused("part", file, "its message is missing")

    def _read_messages(self, session_id: str) -> list[MessageRecord]:
        messages: list[MessageRecord] = []
        for file in _json_files(self._path / "message" / session_id):
            name = _stem(file)
            self._messages.add(name)
            info = self._object(file, "message", name, f"{member('id', name)},{member('sessionID', session_id)}")
            if info is None:
                for part in _json_files(self._path / "part" / name):
                    self._refused("part", part, "its message is damaged")
                continue
            parts: list[PartRecord] = []
            for part in _json_files(self._path / "part" / name):
                node = self._object(part, "part", _stem(part), member("id", _stem(part)))
                if node is not None:
                    parts.append(PartRecord(node, f"/{part.relative_to(self._path)}"))
            messages.append(MessageRecord(info, parts, f"/{file.relative_to(self._path)}"))
        return messages

    def _object(self, file: Path, kind: str, name: str, members: str = "", *, repaired: bool = False) -> Node | None:
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
            reason = f"cut or damaged: {error}" if isinstance(error, Damage) else error.strerror or "cannot be read"
            if repaired:
                self._report.repaired(kind, path, "", reason, source=self._source, id=name)
            else:
                self._report.refused(kind, path, reason, source=self._source, id=name)
            return None
        return node

    def _beside(self, session_id: str, info: dict[str, Json]) -> dict[str, str]:
        """What hangs on a session and stands in no export: todos, the share's names, the project's."""
        beside: dict[str, str] = {}
        for folder in _BESIDE:
            node = self._found(folder, session_id)
            if node is not None and node.value:
                beside[folder] = compact(node.raw)
        for folder in _SHARES:
            node = self._found(folder, session_id)
            if node is not None:
                beside["share"] = _part_of(node, _SHARE)
        project = info.get("projectID")
        node = self._found("project", project) if isinstance(project, str) and project else None
        if node is not None:
            beside["project"] = _part_of(node, _PROJECT)
        return beside

    def _found(self, folder: str, name: str) -> Node | None:
        for suffix in _SUFFIXES:
            file = self._path / folder / f"{name}{suffix}"
            if file.parent == self._path / folder and file.is_file():
                return self._object(file, "file", name)
        return None

    def _parts_of_tasks(self, session_id: str) -> dict[str, str]:
        """The task parts of a session by the ids of the sessions that they started."""
        found = self._tasks.get(session_id)
        if found is None:
            found = self._tasks[session_id] = {}
            for message in _json_files(self._path / "message" / session_id):
                for file in _json_files(self._path / "part" / _stem(message)):
                    try:
                        text = json_of(content(file)[0])
                        part = Node.parse(text).value if MENTION.search(text) else None
                    except (OSError, Damage):
                        continue
                    child = task_session(part)
                    if child is not None and isinstance(part, dict):
                        named = part.get("id")
                        found.setdefault(child, named if isinstance(named, str) else _stem(file))
        return found

    def _refused(self, kind: str, file: Path, reason: str) -> None:
        path = f"/{file.relative_to(self._path)}"
        self._report.refused(kind, path, reason, source=self._source, id=_stem(file))


def _part_of(node: Node, keys: tuple[str, ...]) -> str:
    members = node.members()
    return "{" + ",".join(f"{quote(key)}:{compact(members[key].raw)}" for key in keys if key in members) + "}"


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(each for each in path.iterdir() if each.is_dir())
    except OSError:
        return []


def _json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder by the ids that their names say."""
    try:
        found = [each for each in folder.iterdir() if each.name.endswith(_SUFFIXES)]
    except OSError:
        return []
    return sorted(found, key=_stem)


def _stem(file: Path) -> str:
    for suffix in reversed(_SUFFIXES):
        if file.name.endswith(suffix):
            return file.name.removesuffix(suffix)
    return file.name
