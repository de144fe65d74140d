"""Validating a file of messages, and the share that the rules of the schema have in an append."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import turnwire
from bench import payloads
from bench.context import Bench
from bench.results import Ratio, Result, Row
from turnwire import rules, v1
from turnwire.log import wire
from turnwire.validation import Selection, files

_MESSAGES = 100_000
_PARTS = 8
_APPENDS = 200


async def validation(bench: Bench) -> list[Result]:
    """Both."""
    return [_validated(bench), await _share(bench)]


def _validated(bench: Bench) -> Result:
    """Messages of 2 KB, length-delimited in one file, as ``turnwire validate FILE`` reads them."""
    count = bench.scaled(_MESSAGES, 2_000)
    path = bench.folder / "messages.bin"
    _write(path, count)
    begun = time.perf_counter()
    steps = list(files.check(path, Selection(), cls=v1.Assistant))
    seconds = time.perf_counter() - begun
    path.unlink()
    assert steps[-1].messages == count
    assert not any(step.findings for step in steps)
    title = f"{count:,} messages of 2 KB in {_PARTS} parts validated from a file"
    made = Result("validate", title, "messages", [Row("turnwire", "ours", count / seconds)])
    text = f"seconds to validate {_MESSAGES:,} messages of 2 KB"
    made.ratios.append(Ratio("validate.seconds", text, seconds * _MESSAGES / count, "low", guarded=False))
    return made


def _write(path: Path, count: int) -> None:
    with path.open("wb") as out:
        for _ in range(count):
            message = payloads.message(_PARTS).assistant.assistant
            message.time.created.FromSeconds(1_700_000_000)
            data = message.SerializeToString()
            out.write(wire.varint(len(data)) + data)


async def _share(bench: Bench) -> Result:
    """The processor's time of the rules in that of an embedded append; on a server gRPC makes the share smaller."""
    appends: list[float] = []
    checks: list[float] = []
    async with turnwire.open(bench.folder / "share.db") as store:
        await store.append("s", [payloads.turn()], create=True)
        for _ in range(bench.rounds + 1):
            entries = [payloads.message(_PARTS) for _ in range(_APPENDS)]
            begun = time.process_time()
            for entry in entries:
                await store.append("s", [entry])
            appends.append(time.process_time() - begun)
            for entry in entries:
                entry.assistant.assistant.time.created.FromSeconds(1_700_000_000)
            begun = time.process_time()
            for entry in entries:
                rules.require(entry.assistant, stored=True)
            checks.append(time.process_time() - begun)
    share = median(check / append for check, append in zip(checks[1:], appends[1:], strict=True))
    made = Result("rules", f"the rules of the schema in an append of 2 KB in {_PARTS} parts", "appends")
    each = median(checks[1:]) / _APPENDS * 1e6, median(appends[1:]) / _APPENDS * 1e6
    made.notes.append(f"The rules took {each[0]:.0f} µs of {each[1]:.0f} µs of the processor.")
    text = "share of the rules in the processor's time of an embedded append, eight parts"
    made.ratios.append(Ratio("rules.share", text, share, "low"))
    return made
