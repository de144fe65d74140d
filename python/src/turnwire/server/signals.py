"""SIGTERM and SIGINT: the first asks a server to end, one after that hurries it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Asked(NamedTuple):
    """What has been asked for so far."""

    end: asyncio.Event
    hurry: asyncio.Event


@contextmanager
def heeded() -> Generator[Asked]:
    """Have signals set the events, on the running event loop and for the time of the block."""
    loop = asyncio.get_running_loop()
    asked = Asked(asyncio.Event(), asyncio.Event())

    def on_signal() -> None:
        (asked.hurry if asked.end.is_set() else asked.end).set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield asked
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
