"""JSON documents out of a file, one by one: a document a line, the items of one list, or the whole.

What one of them may hold is bounded, since a parsed document takes many times its length: each of so many empty lists
takes sixty bytes, and is three bytes long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Final

#: The most bytes of a document, which is held as a whole; twice the text of the largest part that a server takes.
MOST_BYTES: Final = 128 * 2**20
#: The most values of a document. The largest messages, with 100,000 files in a patch or summary, have fewer.
MOST_VALUES: Final = 1_000_000

_PIECE: Final = 2**20
# A string, closed or cut anywhere, or what else a document is made of.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+["\\]?|[][{},]', re.DOTALL)


class TooMuch(ValueError):
    """A document is larger than it may be; the text says what is right."""


def check_size(text: str | bytes) -> None:
    """Look whether a document is small enough to be parsed. Raises `TooMuch`."""
    if len(text) > MOST_BYTES:
        raise TooMuch(f"one JSON document of at most {MOST_BYTES // 2**20} MiB")
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if sum(data.count(each) for each in (b",", b"[", b"{")) <= MOST_VALUES:
        return
    values = 0
    for token in _TOKEN.finditer(data):
        values += token[0] in (b",", b"[", b"{")
        if values > MOST_VALUES:
            raise TooMuch(f"one JSON document of at most {MOST_VALUES:,} values")


def line(file: IO[bytes]) -> bytes:
    """The next line of a file, empty behind the last; of one that is too long only so much that this shows.

    It is held by nobody but who asked for it.
    """
    found = file.readline(MOST_BYTES + 2)
    goes_on = len(found) > MOST_BYTES and not found.endswith(b"\n")
    while goes_on:
        piece = file.readline(_PIECE)
        goes_on = piece != b"" and not piece.endswith(b"\n")
    return found


def whole(file: IO[bytes]) -> bytes:
    """What a file has from here on, as one document; of one that is too long only so much that this shows."""
    return file.read(MOST_BYTES + 1)


def items(file: IO[bytes]) -> Iterator[bytes]:
    """The items of the list that begins here, each as it stands there; what is cut or no list ends in one that is none.

    Of an item that is longer than a document may be there is only so much that this shows.
    """
    buffer = bytearray()
    at = depth = 0
    begin = 0  # of the item
    more = False  # there was one before, so that another has to follow
    while True:
        # As much again as waits, so that a long string is looked at only a few times.
        piece = file.read(max(_PIECE, min(len(buffer), MOST_BYTES)))
        buffer += piece
        for token in _TOKEN.finditer(buffer, at):
            sign = token[0]
            if sign[0] == 0x22:
                if token.end() == len(buffer) and piece:  # it may go on
                    at = token.start()
                    break
            elif sign in b"[{":
                depth += 1
                if depth == 1:
                    begin = token.end()
            elif sign in b"]}":
                depth -= 1
                if depth <= 0:
                    last = bytes(buffer[begin : token.start()])
                    rest = bytes(buffer[token.end() :]) + file.read(_PIECE)
                    if last.strip() or more:
                        yield last or b" "
                    if rest.strip():
                        yield sign + rest
                    return
            elif depth == 1:
                more = True
                yield bytes(buffer[begin : token.start()])
                begin = token.end()
            at = token.end()
        if not piece:
            yield bytes(buffer[begin:]) or b" "
            return
        if len(buffer) - begin > MOST_BYTES:
            yield bytes(buffer[begin : begin + MOST_BYTES + 1])
            return
        del buffer[:begin]
        at -= begin
        begin = 0
