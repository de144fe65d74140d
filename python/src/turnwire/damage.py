"""Stored bytes that are no message: an error with a reason, wherever they are read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from google.protobuf.message import DecodeError

from turnwire import errors


@contextmanager
def named() -> Generator[None, None, None]:
    """Turn a ``DecodeError`` of what is done within into ``CorruptData``, which says nothing of the content."""
    try:
        yield
    except DecodeError:
        raise corrupt() from None


def corrupt() -> errors.CorruptData:
    """What a ``DecodeError`` is told as."""
    return errors.CorruptData("what is stored cannot be read; verify the session")
