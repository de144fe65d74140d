"""Reads the files that ``opencode export`` writes: ``{info, messages: [{info, parts}]}``, plain or gzipped.

A file that is cut off or damaged gives what can be read: a damaged part costs itself, a damaged message head its
message, and a cut everything after it. The report names each loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from turnwire.formats import jsonlit
from turnwire.formats.base import EVERYTHING, Wanted
from turnwire.formats.fields import QUIET
from turnwire.formats.jsonlit import Damage, Node
from turnwire.formats.opencode import packed
from turnwire.formats.opencode.links import MENTION, task_session
from turnwire.formats.opencode.records import MessageRecord, PartRecord, SessionRecord
from turnwire.formats.report import Report
from turnwire.formats.undecoded import decode

NAME = "export"

_HEAD = 64 * 1024


def detect(path: Path) -> bool:
    """Whether a path is a file that looks like an export: an object whose first member is ``info``."""
    if not path.is_file():
        return False
    text = packed.head(path, _HEAD).decode("utf-8-sig", "replace")
    start = text.find("{")
    key = jsonlit.after_space(text, start + 1)
    return start >= 0 and text.startswith('"info"', key)


def read(
    path: Path, report: Report, wanted: Wanted = EVERYTHING, beside: tuple[Path, ...] = ()
) -> Iterator[SessionRecord]:
    """The session of a file, if it is wanted. Raises OSError if the file cannot be read.

    ``beside`` are other exports, among which that of the parent session is looked for.
    """
    source = str(path)
    data, whole = packed.content(path)
    notes = Report()
    if not whole:
        notes.refused("file", "", "the compressed data is cut or damaged", source=source)
    record = parse(decode(data, json=True).removeprefix("\ufeff"), notes, source=source)
    info = record.info.value if record is not None else None
    if record is not None and isinstance(info, dict):
        name, time = info.get("id"), info.get("time")
        updated = QUIET.count(time.get("updated"), "") if isinstance(time, dict) else None
        if isinstance(name, str) and not wanted.takes(name, updated):
            return
        if isinstance(name, str) and isinstance(info.get("parentID"), str) and beside:
            stamps = tuple((other, other.stat().st_mtime_ns) for other in beside if other.exists())
            record.parent_part = _tasks(stamps).get(name)
    report.add(notes)
    if record is not None:
        record.whole = notes.complete
        yield record


@lru_cache(maxsize=4)
def _tasks(paths: tuple[tuple[Path, int], ...]) -> dict[str, str]:
    """The task parts in some exports, given with their times, by the ids of the sessions that they started."""
    found: dict[str, str] = {}
    for path, _ in paths:
        try:
            text = packed.content(path)[0].decode("utf-8", "replace")
        except OSError:
            continue
        record = parse(text, Report()) if MENTION.search(text) else None
        for message in record.messages if record is not None else ():
            for part in message.parts:
                child = task_session(part.load().value)
                if child is not None and isinstance(part.original, str):
                    found.setdefault(child, part.original)
    return found


def parse(text: str, report: Report, *, source: str = "") -> SessionRecord | None:
    """The session of an export's text, or None if there is none, which the report then says."""
    return _Parser(text, source, report).session()


class _Parser:
    """One pass over the text. Parts and heads are the units: what is damaged inside one costs that one."""

    def __init__(self, text: str, source: str, report: Report) -> None:
        self.text = text
        self._source = source
        self._report = report
        self._info: Node | None = None
        self._messages: list[MessageRecord] = []
        self._others: dict[str, Node] = {}
        self._seen: set[str] = set()

    def session(self) -> SessionRecord | None:
        start = max(self.text.find("{"), 0)
        if self.text[:start].strip():
            self._report.repaired("file", "", "", "text before the object, left out", source=self._source)
        try:
            end = jsonlit.walk_object(self.text, start, self._member)
        except Damage as damage:
            self.refused("file", "", f"cut or damaged: {damage}")
        else:
            if self.text[end:].strip():
                self.refused("file", "", f"text after the object, from character {end} on")
        headless = self._info is None and "info" in self._seen  # it stands there, and was refused
        if self._info is None:
            if not self._messages:
                return None
            self._report.repaired("session", "/info", "", "missing or damaged", source=self._source)
            self._info = Node.parse("{}")
        absent = tuple(key for key in ("info", "messages") if key not in self._seen)
        return SessionRecord(self._info, self._messages, self._source, "/info", self._others, absent, headless=headless)

    def refused(self, kind: str, path: str, reason: str) -> None:
        self._report.refused(kind, path, reason, source=self._source)

    def past(self, start: int, damage: Damage) -> int:
        """The way past a damaged value. Raises the damage if the text ends inside it."""
        end = jsonlit.skip(self.text, start)
        if end is None:
            raise damage
        return end

    def _member(self, key: str, start: int) -> int:
        self._seen.add(key)
        if key == "messages" and self.text.startswith("[", start):
            return jsonlit.walk_array(self.text, start, self._message)
        try:
            node = Node.at(self.text, start)
        except Damage as damage:
            end = self.past(start, damage)
            self.refused("session", f"/{key}", f"damaged: {damage}")
            return end
        if key == "info":
            self._info = node
        else:
            self._others[key] = node
            if key == "messages":
                self.refused("session", "/messages", "no list, so it has no messages that can be read; kept as it is")
        return node.end

    def _message(self, index: int, start: int) -> int:
        message = _Message(self, f"/messages/{index}")
        try:
            end = jsonlit.walk_object(self.text, start, message.member)
        except Damage as damage:
            self._keep(message, damage)
            return self.past(start, damage)
        self._keep(message, None)
        return end

    def _keep(self, message: _Message, damage: Damage | None) -> None:
        if message.info is None:
            reason = "it has no info" if damage is None else f"cut or damaged: {damage}"
            self.refused("message", message.path, reason)
            return
        if damage is not None and damage is not message.told:
            place = f"{message.path}/parts/{len(message.parts)}"
            self.refused("part", place, f"the parts from here on are cut or damaged: {damage}")
        absent = () if message.has_parts else ("parts",)
        self._messages.append(MessageRecord(message.info, message.parts, message.path, message.others, absent))


class _Message:
    """One message while it is read."""

    def __init__(self, parser: _Parser, path: str) -> None:
        self._parser = parser
        self.path = path
        self.info: Node | None = None
        self.parts: list[PartRecord] = []
        self.others: dict[str, Node] = {}
        self.has_parts = False
        #: The damage of a part that the report knows already.
        self.told: Damage | None = None

    def member(self, key: str, start: int) -> int:
        text = self._parser.text
        if key == "parts":
            self.has_parts = True
            if text.startswith("[", start):
                return jsonlit.walk_array(text, start, self.part)
        node = Node.at(text, start)
        if key == "info":
            self.info = node
        else:
            self.others[key] = node
            if key == "parts":
                reason = "no list, so it has no parts that can be read; kept as it is"
                self._parser.refused("message", f"{self.path}/parts", reason)
        return node.end

    def part(self, index: int, start: int) -> int:
        path = f"{self.path}/parts/{index}"
        try:
            node = Node.at(self._parser.text, start)
        except Damage as damage:
            self.told = damage
            self._parser.refused("part", path, f"cut or damaged: {damage}")
            return self._parser.past(start, damage)
        self.parts.append(PartRecord(node, path))
        return node.end
