"""The digest of a prompt: who says what, without ids, so that a fork's equals its parent's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from turnwire import v1
from turnwire.prompt.items import Item


def digest(items: Iterable[Item | v1.PromptItem]) -> bytes:
    """The digest of a prompt, 32 bytes.

    SHA-256 over, per message, the role as one byte, the number of parts as four bytes (big-endian), and per
    part the SHA-256 of its bytes without its id.

    Origins, facts and the ids of messages do not enter. The bytes of a part are those that are stored, else
    its deterministic serialization; unknown fields count. The items are not changed.
    """
    total = hashlib.sha256()
    for item in items:
        light = item if isinstance(item, Item) else Item.of(item)
        total.update(light.role.to_bytes(1, "big") + len(light.parts).to_bytes(4, "big"))
        for part in light.parts:
            total.update(part.sha256)
    return total.digest()
