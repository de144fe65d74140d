"""``make fuzz``: mutated logs through every reader, for a while; what fails is kept and can be run again.

    make fuzz                                # 60 seconds
    make fuzz ARGS="--seconds 600 --seed 7"  # longer, from another point
    make fuzz ARGS=build/fuzz/1a2b3c.tw      # one kept log again

Each log is taken from the frozen ones (`tests.compat`), mutated (`tests.fuzz.mutate`), and run (`tests.fuzz.target`) in
a worker process with limits of time and memory. Ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress

from tests.compat import frozen
from tests.fuzz import target, worker
from turnwire import v1
from turnwire.log import wire

FOLDER: Final = Path("build/fuzz")


def _outcomes(seconds: float, first: int) -> Iterator[tuple[int, str]]:
    """Run logs for a while; yield the seed of each and how it ended."""
    until = time.monotonic() + seconds
    context = multiprocessing.get_context("spawn")
    seed = first
    while time.monotonic() < until:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=worker.work, args=(seed, until, there))
        process.start()
        there.close()
        running: int | None = seed
        try:
            while True:
                seed, outcome = here.recv()
                running = None if outcome else seed
                if outcome is not None:
                    yield seed, outcome
        except EOFError:
            process.join()
        if running is not None:
            yield running, f"the process ended with {process.exitcode}"
        seed += 1


def _keep(log: Sequence[bytes], failure: str) -> Path:
    data = bytearray()
    session = v1.Session(id=target.SESSION, head=v1.Head(revision=max(1, len(log)), digest=bytes(32)))
    for number, record in ((1, session.SerializeToString()), *((2, entry) for entry in log)):
        data += wire.field(number, record)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{hashlib.sha256(data).hexdigest()[:12]}.tw"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(failure)
    return path


def _kind(failure: str) -> str:
    """What tells one kind of failure from another: the last place in the code, and the error."""
    lines = failure.strip().splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File ")]
    return f"{places[-1] if places else ''} {lines[-1][:80]}".strip()


def _fuzz(seconds: float, first: int, console: Console) -> int:
    logs = worker.seeds()
    outcomes: Counter[str] = Counter()
    failures: dict[str, Path] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("fuzzing", total=seconds)
        began = time.monotonic()
        for seed, outcome in _outcomes(seconds, first):
            known = outcome in worker.OUTCOMES
            outcomes[outcome if known else "failed"] += 1
            kind = _kind(outcome)
            if not known and kind not in failures:
                failures[kind] = _keep(worker.drawn(seed, logs), outcome)
                console.print(f"FAILED {failures[kind]}: {kind}", highlight=False)
            progress.update(task, completed=min(seconds, time.monotonic() - began))
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
    print(f"{outcomes.total():,} logs from seed {first} on: {counts}")
    return 1 if failures or not outcomes["restored"] else 0


def _again(path: Path) -> int:
    outcome = worker.run(frozen.log(path).entries)
    print(outcome)
    return 0 if outcome in worker.OUTCOMES else 1


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?", type=Path, help="run this kept log only")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="where to begin")
    options = parser.parse_args()
    console = Console(stderr=True, soft_wrap=True)
    raise SystemExit(_again(options.log) if options.log else _fuzz(options.seconds, options.seed, console))


if __name__ == "__main__":
    main()
