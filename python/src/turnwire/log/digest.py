"""The digest chain of a log.

d0 = SHA-256("turnwire/1" ‖ session id), dn = SHA-256(dn-1 ‖ be64(revision) ‖ be64(recorded nanoseconds) ‖
be32(payload field number) ‖ SHA-256(payload bytes as stored)).
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import Final

from turnwire import errors

#: The times of recording that 64 bits of nanoseconds hold, in microseconds since the epoch: years 1677 to 2262.
FIRST_US: Final = -(2**63 // 1000)
LAST_US: Final = 2**63 // 1000
#: The greatest number of a field in protobuf.
LAST_FIELD: Final = 2**29 - 1

_LINK = struct.Struct(">32sqqi32s")


def start(session_id: str) -> bytes:
    """The digest before the first entry: 32 bytes."""
    return sha256(b"turnwire/1" + session_id.encode()).digest()


def link(before: bytes, revision: int, recorded_us: int, field: int, payload: bytes) -> bytes:
    """The digest after one more entry, recorded at ``recorded_us`` microseconds since the epoch: 32 bytes.

    Raises ``CorruptData`` for a time or a field number that no digest can hold, which no server writes.
    """
    if not FIRST_US <= recorded_us <= LAST_US:
        raise errors.CorruptData("a time of recording that no digest can hold")
    if not 0 < field <= LAST_FIELD:
        raise errors.CorruptData("a payload with a number that no field can have")
    return sha256(_LINK.pack(before, revision, recorded_us * 1000, field, sha256(payload).digest())).digest()
