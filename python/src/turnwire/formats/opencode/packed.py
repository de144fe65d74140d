"""Files that may be gzipped: their first bytes, and all of them."""

from __future__ import annotations

import zlib
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
    try:
        for at in range(0, len(data), _STEP):
            left = most - size if most else 0
            pieces.append(unpacker.decompress(data[at : at + _STEP], left))
            size += len(pieces[-1])
            if unpacker.eof or (most and size >= most):
                break
    except zlib.error:  # what came before the damage is good
        return b"".join(pieces), False
    return b"".join(pieces), unpacker.eof
