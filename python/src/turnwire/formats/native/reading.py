"""Reads Turnwire's own form, told by its content: binary or JSON lines, plain or gzipped."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from google.protobuf.message import DecodeError

from turnwire import errors, ids, v1
from turnwire.formats.native.writing import ENTRY_NUMBER, SESSION_NUMBER
from turnwire.formats.report import Report
from turnwire.log import raw
from turnwire.validation import protojson

_GZIP: Final = b"\x1f\x8b"
_KEYS: Final = {SESSION_NUMBER << 3 | 2: SESSION_NUMBER, ENTRY_NUMBER << 3 | 2: ENTRY_NUMBER}
_MOST_VARINT: Final = 5
#: No record can be larger: it would be no protobuf message.
_MOST_BYTES: Final = 2**31 - 1
#: The most bytes of a record, or message, for who only looks at a file: the largest append to a store in a file is no
#: larger. Only an import, which loses what it does not take, goes up to what protobuf allows.
MOST_LOOKED_AT: Final = 256 * 2**20
_PIECE: Final = 2**20
_LINE: Final = (b'{"session"', b'{"entry"')


@dataclass(slots=True)
class SessionLog:
    """One session of a file: as it was shown when the file was written, and its entries, serialized."""

    session: v1.Session
    entries: list[bytes] = field(default_factory=list[bytes])


class Damaged(Exception):
    """The file cannot be read on from here."""


def is_native(path: Path) -> bool:
    """Whether a file begins with a record of Turnwire's own form. Raises OSError."""
    with path.open("rb") as file:
        try:
            with unpacked(file) as content:
                if content.read(1) == b"{":
                    content.seek(0)
                    return content.readline(16).startswith(_LINE)
                content.seek(0)
                record = next(records(content, MOST_LOOKED_AT), None)
        except (Damaged, EOFError, OSError, zlib.error):
            return False
    return isinstance(record, v1.Session) and ids.valid(record.id) and record.head.revision > 0


def read(path: Path, report: Report) -> Iterator[SessionLog]:
    """The sessions of a file, one by one. Damage costs what comes after it, and JSON lines only themselves.

    Raises OSError if the file cannot be read.
    """
    source = str(path)
    log: SessionLog | None = None
    with path.open("rb") as file, unpacked(file) as content:
        start = content.read(1)
        content.seek(0)
        found = _lines(content, report, source) if start == b"{" else records(content)
        try:
            for record in found:
                if isinstance(record, v1.Session):
                    if log is not None:
                        yield log
                    log = SessionLog(record)
                elif log is not None:
                    log.entries.append(record)
                else:
                    report.refused("file", "", "entries before a session", source=source)
                    return
        except Damaged as damage:
            report.refused("file", "", str(damage), source=source)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            report.refused("file", "", "the compressed data is cut or damaged", source=source)
        if log is not None:
            yield log


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """The content of a file that may be gzipped."""
    magic = file.read(len(_GZIP))
    file.seek(0)
    return gzip.open(file, "rb") if magic == _GZIP else io.BufferedReader(file)  # type: ignore[type-var, return-value]


def records(file: IO[bytes], most: int = _MOST_BYTES) -> Iterator[v1.Session | bytes]:
    """The records of the binary form, one by one: sessions, and entries serialized. One has at most ``most`` bytes.

    Raises `Damaged`, OSError.
    """
    position = 0
    while key := file.read(1):
        number = _KEYS.get(key[0])
        length, size = varint(file)
        if number is None or not size:
            raise Damaged(f"cut or damaged from byte {position} on")
        data = sized(file, length, position, most)
        if number == SESSION_NUMBER:
            try:
                session = v1.Session.FromString(data)
            except DecodeError:
                raise Damaged(f"no session at byte {position}") from None
            yield session
        else:
            yield data
        del data  # it may be large, and is not needed while the next is read
        position += 1 + size + length


def sized(file: IO[bytes], length: int, position: int, most: int) -> bytes:
    """What has a length of its own, which stands at a position of the file. Raises `Damaged`, OSError."""
    if length > most:
        raise Damaged(f"damaged from byte {position} on: there is a length of {length:,} bytes, of {most:,} at most")
    data = taken(file, length)
    if len(data) != length:
        raise Damaged(f"cut or damaged from byte {position} on")
    return data


def taken(file: IO[bytes], most: int) -> bytes:
    """So many bytes, or as many as there are: a length that is damaged takes no more memory than the file has bytes."""
    if most <= _PIECE:
        return file.read(most)
    whole = io.BytesIO()
    while piece := file.read(min(most - whole.tell(), _PIECE)):
        whole.write(piece)
    return whole.getvalue()


def varint(file: IO[bytes]) -> tuple[int, int]:
    """A number and how many bytes it takes; 0 and 0 for what is none."""
    number = 0
    for at in range(_MOST_VARINT):
        byte = file.read(1)
        if not byte:
            break
        number |= (byte[0] & 0x7F) << 7 * at
        if byte[0] < 0x80:
            return number, at + 1
    return 0, 0


def _lines(file: IO[bytes], report: Report, source: str) -> Iterator[v1.Session | bytes]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            tree = protojson.document(line)
            if isinstance(tree, dict) and "session" in tree:
                yield protojson.known(tree["session"], v1.Session)
            else:
                yield raw.serialized(protojson.known(tree["entry"], v1.Entry))
        except (ValueError, KeyError, TypeError, errors.InvalidArgument):
            report.refused("file", f"/{number}", "no record: a line that is cut or damaged", source=source)
