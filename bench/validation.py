"""Validating messages from a file, and what the same rules cost an append."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import appends, payloads
from turnwire import rules, v1
from turnwire.engine import Caller
from turnwire.log import wire
from turnwire.validation import Selection, files

_CALLER = Caller()
_APPENDS = 200
_ROUNDS = 9


@dataclass(frozen=True, slots=True)
class Validated:
    """Seconds that it took to validate a file of ``messages`` messages, by the clock and of the processor."""

    messages: int
    clock: float
    processor: float


def messages(folder: Path, count: int, parts: int = 8) -> Validated:
    """Validate a file of length-delimited assistant messages of 2 KB, as ``turnwire validate FILE`` does."""
    path = folder / "messages.bin"
    with path.open("wb") as out:
        for _ in range(count):
            message = payloads.message(parts).assistant.assistant
            message.time.created.FromSeconds(1_700_000_000)
            data = message.SerializeToString()
            out.write(wire.varint(len(data)) + data)
    clock, processor = time.perf_counter(), time.process_time()
    steps = list(files.check(path, Selection(), cls=v1.Assistant))
    taken = Validated(count, time.perf_counter() - clock, time.process_time() - processor)
    assert steps[-1].messages == count
    assert not any(step.findings for step in steps)
    path.unlink()
    return taken


async def share_of_rules(folder: Path, parts: int = 8) -> tuple[float, float, float]:
    """The share that the rules of the schema have in the processor's time of an append of 2 KB in so many parts.

    Of the engine over a SQLite store alone: what gRPC takes on a server beside that makes the share smaller. With it
    the microseconds of the rules and of a whole append.
    """
    engine = appends.open_engine(folder / "share.db")
    await appends.begin(engine, "s")
    whole: list[float] = []
    checks: list[float] = []
    for _ in range(_ROUNDS + 1):
        requests = [v1.AppendRequest(session_id="s", entries=[payloads.message(parts)]) for _ in range(_APPENDS)]
        begun = time.process_time()
        for request in requests:
            await engine.append(_CALLER, request)
        whole.append(time.process_time() - begun)
        # An append fills in what is missing, so that the requests are now as the rules saw them.
        begun = time.process_time()
        for request in requests:
            rules.require(request.entries[0].assistant, stored=True)
        checks.append(time.process_time() - begun)
    await engine.close()
    share = median(check / one for check, one in zip(checks[1:], whole[1:], strict=True))
    return share, median(checks[1:]) / _APPENDS * 1e6, median(whole[1:]) / _APPENDS * 1e6
