"""Files that may be gzipped: their first bytes, and all of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

GZIP: Final = b"\x1f\x8b"
_AS_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 64 * 1024


def head(path: Path, size: int) -> bytes:
    """The first ``size`` bytes of a file's content; fewer if it has fewer or cannot be read."""
    try:
        with path.open("rb") as file:
            return unpack(file.read(max(size, 512)), size)[0][:size]
    except OSError:
        return b""


def content(path: Path) -> tuple[bytes, bool]:
    """The content of a file, and whether all of it is there. Raises OSError."""
    return unpack(path.read_bytes())


def unpack(data: bytes, most: int = 0) -> tuple[bytes, bool]:
    """The content of a file's bytes, up to ``most`` bytes (0: all), and whether all of it is there."""
    if not data.startswith(GZIP):
        return data, True
    unpacker = zlib.decompressobj(_AS_GZIP)
    pieces: list[bytes] = []
    size = 0
    for at in range(0, len(data), _STEP):
        step = data[at : at + _STEP]
        while step:
            if unpacker.eof:  # several may stand one behind another, with zeros between them
                step = step.lstrip(b"\0")
                if not step:
                    break
                unpacker = zlib.decompressobj(_AS_GZIP)
            before = unpacker.copy()
            try:
                piece = unpacker.decompress(step, most - size if most else 0)
            except zlib.error:  # what came before the damage is good
                return b"".join((*pieces, *_until_damage(before.decompress, step))), False
            pieces.append(piece)
            size += len(piece)
            if most and size >= most:
                return b"".join(pieces), unpacker.eof
            step = unpacker.unused_data
    return b"".join(pieces), unpacker.eof


def _until_damage(unpack: Callable[[bytes], bytes], step: bytes) -> Iterator[bytes]:
    """What can be unpacked of a piece that is damaged, byte by byte: else what comes with the damage is lost."""
    with suppress(zlib.error):
        for at in range(len(step)):
            yield unpack(step[at : at + 1])
