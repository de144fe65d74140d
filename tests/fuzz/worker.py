"""Runs logs under limits of time and memory; the target of the worker processes of `tests.fuzz`."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final

from tests.compat import frozen
from tests.fuzz import mutate, target

#: What one log may take: seconds of CPU, and bytes beside what the process has when it begins.
MOST_SECONDS: Final = 10
MOST_BYTES: Final = 256 * 1024 * 1024
#: How many logs a worker takes before another is started, so that memory which is not given back is seen.
PER_WORKER: Final = 5000
OUTCOMES: Final = ("no entry", "refused", "restored")
_BIGGEST_SEED: Final = 64 * 1024


class TooLong(Exception):
    """A log took more time than it may."""


def seeds() -> list[list[bytes]]:
    """The logs to start from."""
    logs = [frozen.log(path).entries for path in frozen.SESSIONS]
    return [log for log in logs if sum(map(len, log)) <= _BIGGEST_SEED]


def drawn(seed: int, logs: Sequence[list[bytes]]) -> list[bytes]:
    """The mutated log of a seed."""
    random = Random(seed)
    log = mutate.mutated(random.choice(logs), random.choice(logs), random)
    return log if random.random() < 0.1 else mutate.chained(target.SESSION, log)


def run(log: Sequence[bytes]) -> str:
    """Run one log; the outcome, or the text of what failed."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        return asyncio.run(target.run(log))
    except Exception:  # whatever it is, it is what is looked for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def work(first: int, until: float, pipe: Connection) -> None:
    """Run the logs of the seeds from ``first`` on; tell each seed before its log is run, and then how it ended."""
    logs = seeds()
    asyncio.run(target.run(logs[0]))  # what is made once is no matter of the first log
    _limit()
    for seed in range(first, first + PER_WORKER):
        if time.monotonic() > until:
            break
        log = drawn(seed, logs)
        pipe.send((seed, None))
        pipe.send((seed, run(log)))
    pipe.close()


def _limit() -> None:
    if sys.platform.startswith("linux"):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))

    def late(number: int, frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, late)
