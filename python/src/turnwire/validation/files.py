"""Checks files: Turnwire's own form, length-delimited messages, ProtoJSON and JSON lines, each plain or gzipped.

A file is read once, piece by piece; only a message, or a JSON document, is held as a whole.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

from google.protobuf.message import DecodeError, Message

from turnwire import v1
from turnwire.formats import native
from turnwire.formats.native import reading
from turnwire.validation import documents, guess, messages, protojson, values
from turnwire.validation.findings import Findings
from turnwire.validation.logs import Logs
from turnwire.validation.registry import Selection

#: How many records are checked between two steps.
_RECORDS: Final = 256
_JSON: Final = (b"{", b"[")
_LOOKED_AT: Final = 1024
_BOM: Final = b"\xef\xbb\xbf"
_SQLITE: Final = b"SQLite format 3\x00"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
# No JSON has these bytes, and hardly any protobuf is without one.
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Unreadable(Exception):
    """What is to be checked cannot be read at all; the text says why, without its path."""


@dataclass(slots=True)
class Step:
    """What was found since the step before. ``done``: bytes of the file read so far; the counts are those so far."""

    findings: list[v1.Finding]
    done: int = 0
    sessions: int = 0
    entries: int = 0
    messages: int = 0
    seen: frozenset[str] = frozenset()  # ids of sessions that were there, of those that are wanted


class _Document(NamedTuple):
    """A message that was read from JSON, without what only a later schema knows; ``later`` are the paths of that.

    ``payload``: the member that is the payload of an entry, where that is what was left out. ``is_record``: whether it
    is one of Turnwire's own form.
    """

    message: Message
    later: frozenset[str]
    place: str
    payload: str
    is_record: bool


class _File:
    """A file that is being checked."""

    def __init__(
        self,
        path: Path,
        file: IO[bytes],
        cls: type[Message] | None,
        selection: Selection,
        stored: bool | None,
        wanted: frozenset[str],
    ) -> None:
        self._path = path
        self._file = file
        self._content = reading.unpacked(file)
        self._cls = cls
        self._stored = stored
        self._found = Findings(selection, source=str(path))
        self._wanted = wanted
        self._logs = Logs(self._found, selection, str(path), wanted)
        self._messages = 0
        self._guessed: dict[frozenset[str], type[Message] | None] = {}

    def steps(self) -> Iterator[Step]:
        """Check the file. Raises `Unreadable`, OSError."""
        cut = True
        try:
            for index, _ in enumerate(self._records(), 1):
                if index % _RECORDS == 0:
                    yield self._step()
            cut = False
        except reading.Damaged as damage:
            self._found.add("storage.torn", text=str(damage))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._found.add("storage.torn", text="the compressed data is cut or damaged")
        for _ in self._logs.end(cut=cut):
            yield self._step()
        yield self._step()

    def _records(self) -> Iterator[None]:
        begin = self._content.read(_LOOKED_AT)
        self._content.seek(0)
        if not begin:
            raise Unreadable("it is empty")
        if begin.startswith(_BOM) and begin[len(_BOM) :].lstrip()[:1] in _JSON:
            raise Unreadable("it begins with a byte order mark, which no JSON has; take its first three bytes away")
        if begin.startswith(_UTF_16) and self._cls is None:
            raise Unreadable("it is a text in UTF-16; JSON is in UTF-8")
        if begin.startswith(_SQLITE) and self._cls is None:  # a plain one has been told before
            raise Unreadable("it is a SQLite database, compressed with gzip; a store is checked unpacked")
        if _is_json(begin):
            return self._json()
        if self._cls is None and native.is_native(self._path):
            return self._native()
        return self._delimited()

    def _step(self) -> Step:
        logs = self._logs
        return Step(logs.take(), self._file.tell(), logs.sessions, logs.entries, self._messages, logs.seen)

    def _native(self) -> Iterator[None]:
        """Turnwire's own binary form: sessions, each with its entries."""
        records = reading.records(self._content, reading.MOST_LOOKED_AT)
        while True:
            place = f"byte {self._content.tell()}"
            record = next(records, None)
            if record is None:
                return
            if isinstance(record, v1.Session):
                found = self._logs.session(record, place)
            else:
                found = self._logs.entry(record, place)
            del record  # it may be large
            yield from found
            yield

    # Length-delimited

    def _delimited(self) -> Iterator[None]:
        """Messages of one type, each after its length as a varint; or a single one without."""
        while True:
            at = self._content.tell()
            length, size = reading.varint(self._content)
            if not size and self._content.tell() == at:
                return
            try:
                if not size:
                    raise reading.Damaged(f"cut or damaged from byte {at} on")
                data = reading.sized(self._content, length, at, reading.MOST_LOOKED_AT)
            except reading.Damaged:
                if at == 0 and self._is_single():
                    return
                if at == 0 and self._cls is None:
                    raise Unreadable("it is in no form that is known, or damaged from its beginning on") from None
                raise
            if at == 0 and self._cls is not None and not guess.fits(data, self._cls):
                # With its type a message without a length is told from one with a length by what fits.
                place = self._content.tell()
                if self._is_single(all_known=_parses(data, self._cls)):
                    return
                self._content.seek(place)
            cls = self._cls = self._cls or guess.of_bytes(data)
            if cls is None:
                if at == 0 and self._is_single():
                    return
                raise _type_unknown()
            found = self._binary(data, cls, f"byte {at}")
            del data  # it may be large
            yield from found
            yield

    def _is_single(self, *, all_known: bool = False) -> bool:
        """Whether the whole file is one message; then it is checked. ``all_known``: and has no unknown fields."""
        self._content.seek(0)
        data = reading.taken(self._content, reading.MOST_LOOKED_AT + 1)
        cls = (self._cls or guess.of_bytes(data)) if len(data) <= reading.MOST_LOOKED_AT else None
        if cls is None or not (guess.fits(data, cls) if all_known else _parses(data, cls)):
            return False
        for _ in self._binary(data, cls, ""):
            pass
        return True

    def _binary(self, data: bytes, cls: type[Message], place: str) -> Iterator[None]:
        if cls is v1.Entry:
            return self._logs.entry(data, place)
        if not self._wanted:
            self._messages += 1
            read = messages.from_bytes(data, cls, self._found, place=place)
            if read is not None:
                messages.check(read.message, self._found, stored=self._stored, place=place)
        return iter(())

    # JSON

    def _json(self) -> Iterator[None]:
        """A message a line, or one document: a message, or a list of them."""
        if self._content.read(_LOOKED_AT).lstrip()[:1] == b"[":
            self._content.seek(0)
            yield from self._list()
            return
        self._content.seek(0)
        in_lines = self._begins_in_lines()
        self._content.seek(0)
        if not in_lines:
            yield from self._checked(self._read(documents.whole(self._content), ""))
            return
        number = 0
        while text := documents.line(self._content):
            number += 1
            if not text.isspace():
                read = self._read(text, f"line {number}")
                del text
                found = self._checked(read)
                del read
                yield from found
            yield

    def _begins_in_lines(self) -> bool:
        """Whether the first line of JSON is a document by itself."""
        while text := documents.line(self._content):
            if not text.isspace():
                return isinstance(_parsed(text), dict | protojson.Twice | documents.TooMuch)
        return False

    def _list(self) -> Iterator[None]:
        count = 0
        for count, item in enumerate(documents.items(self._content), 1):
            yield from self._checked(self._read(item, f"item {count - 1}"))
            yield
        if not count:
            raise Unreadable("it holds no message")

    def _read(self, text: bytes, place: str) -> _Document | None:
        """Read one document; None, with a finding, if it is none of a type that is known.

        This and `_checked` are apart, so that of a large one only what is still needed is held.
        """
        tree = _parsed(text)
        if tree is None or isinstance(tree, ValueError):
            self._messages += 1
            right = messages.expected(tree) if tree is not None else messages.ONE_DOCUMENT
            self._found.add("storage.json", place=place, expected=right)
            return None
        if isinstance(tree, protojson.Twice) and self._cls is None:
            self._messages += 1
            self._found.add("storage.json", place=place, expected=f"one member {values.short(tree.member)}")
            return None
        del text
        members = _members(tree)
        record = _native_record(members) if self._cls is None else None
        inside: object = record[0] if record is not None else tree
        cls = record[1] if record is not None else self._cls or self._type_of(members)
        if cls is None:
            if not self._messages and not self._logs.entries:
                raise _type_unknown()
            self._messages += 1
            self._found.add("storage.type", place=place)
            return None
        payload = ""
        if cls is v1.Entry:
            members = _members(inside)
            payload = protojson.later_payload(members)
            if payload:  # which is told of as such
                inside = {name: value for name, value in members.items() if name != payload}
        read = messages.from_tree(inside, cls, self._found, place=place)
        if read is None:
            self._messages += not self._wanted
            return None
        return _Document(read.message, read.later, place, payload, record is not None)

    def _checked(self, document: _Document | None) -> Iterator[None]:
        """Check what was read."""
        if document is None:
            return iter(())
        message, later, place, payload, is_record = document
        if isinstance(message, v1.Entry):
            return self._logs.message(message, place, later, payload)
        if isinstance(message, v1.Session) and is_record:
            return self._logs.session(message, place)
        if not self._wanted:
            self._messages += 1
            messages.check(message, self._found, stored=self._stored, place=place, later=later)
        return iter(())

    def _type_of(self, members: dict[str, object]) -> type[Message] | None:
        keys = frozenset(members)
        if keys not in self._guessed:
            self._guessed[keys] = guess.of_tree(members)
        return self._guessed[keys]


def check(
    path: Path,
    selection: Selection,
    *,
    cls: type[Message] | None = None,
    stored: bool | None = None,
    wanted: frozenset[str] = frozenset(),
) -> Iterator[Step]:
    """Check a file. ``cls``: the type of its messages (None: told by their content); ``stored``: as in `messages`.

    ``wanted``: the sessions of these ids only, and nothing that belongs to no session (none: everything).

    Raises `Unreadable`, OSError.
    """
    with path.open("rb") as file:
        yield from _File(path, file, cls, selection, stored, wanted).steps()


def _native_record(tree: dict[str, object]) -> tuple[object, type[Message]] | None:
    """What is in a record of Turnwire's own form, with its type; None if it is none."""
    if tree.keys() == {"entry"}:
        return tree["entry"], v1.Entry
    session = tree.get("session")
    if tree.keys() == {"session"} and isinstance(session, dict) and "head" in session:
        return cast("object", session), v1.Session
    return None


def _members(tree: object) -> dict[str, object]:
    """The members of a JSON object; none for anything else."""
    return cast("dict[str, object]", tree) if isinstance(tree, dict) else {}


def _is_json(begin: bytes) -> bool:
    """Whether a file is JSON, by its first bytes: an object or a list, or another value by itself."""
    if begin.lstrip()[:1] in _JSON:
        return not _CONTROL.search(begin)
    return len(begin) < _LOOKED_AT and not isinstance(_parsed(begin), ValueError | None)


def _parsed(text: bytes) -> object:
    """A parsed JSON document (`protojson.document`); ValueError for what is none, None for null."""
    try:
        return protojson.document(text)
    except ValueError as error:
        return error


def _parses(data: bytes, cls: type[Message]) -> bool:
    try:
        cls.FromString(data)
    except DecodeError:
        return False
    return True


def _type_unknown() -> Unreadable:
    return Unreadable("of which type its messages are cannot be told; --type says it")
