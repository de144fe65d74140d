"""Stored bytes that are no message: an error with a reason, wherever they are read."""

from __future__ import annotations

from turnwire import errors


def corrupt() -> errors.CorruptData:
    """What a ``DecodeError`` of stored bytes is told as, which says nothing of the content."""
    return errors.CorruptData("what is stored cannot be read; verify the session")
