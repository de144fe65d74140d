"""The goals: one table of ratios that this project holds itself to, and what was measured beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bench.peers import PEERS


@dataclass(frozen=True, slots=True)
class Goal:
    """One ratio with the figure that it must reach: at least for ``better`` high, at most for low.

    ``key`` is that of a `bench.results.Ratio`. Where it ends in ``/peers`` the least of the ratios against all peers
    counts, that is the one against the fastest. ``obstacle``: what stands in the way while it is not met.
    """

    key: str
    text: str
    bound: float
    better: Literal["high", "low"] = "high"
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal and what was measured; None if this run did not measure it."""

    goal: Goal
    value: float | None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if it was not measured."""
        if self.value is None:
            return None
        return self.value >= self.goal.bound if self.goal.better == "high" else self.value <= self.goal.bound

    @property
    def word(self) -> str:
        """The verdict for a table."""
        return {True: "met", False: "not met", None: "not measured"}[self.met]

    def dump(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"key": self.goal.key, "bound": self.goal.bound, "value": self.value, "met": self.met}


GOALS: tuple[Goal, ...] = (
    Goal(
        "append.unary.64/echo",
        "append by 64 callers, durable and validated / echo",
        0.5,
        obstacle=(
            "beside gRPC's own 350 µs of a processor, 110 µs on the event loop to prepare and for the call's layers, "
            "and 180 to 300 on the thread that commits: a third Python, a third the kernel, the rest SQLite and locks; "
            "a request id is 38 of all that"
        ),
    ),
    Goal(
        "append.stream/echo",
        "AppendStream / unary echo by 64 callers",
        1.2,
        obstacle=(
            "280 µs of the server's processor for each request and 100 of the client's, of which preparing takes 40 "
            "and admission, digests and index as much; the echo takes 340 and 260"
        ),
    ),
    Goal(
        "append.batch.100/raw SQLite",
        "batches of 100 through gRPC / raw SQLite executemany",
        0.25,
        obstacle=(
            "80 to 100 µs of a processor for each message, with the interpreter's lock for most of it: the index 24, "
            "preparing with the rules 28, admission 12, commit 12, receiving 10; raw SQLite takes 4 a row"
        ),
    ),
    Goal(
        "embedded.single/raw SQLite",
        "embedded single append / raw SQLite",
        0.75,
        obstacle=(
            "rules, bytes, digests, a row and a reply alone, without a log or an index, are at 0.7 to 0.9 in Python "
            "(the floor in Python, below); what else an append is takes 100 to 170 µs with cold caches, whatever the "
            "disk: with an fsync of 1 ms more the same append is above 0.75 (`python -m bench --only disks`)"
        ),
    ),
    Goal(
        "embedded.batch.100/raw SQLite",
        "embedded batches of 100 / raw SQLite executemany",
        0.3,
        obstacle=(
            "the floor in Python is at 0.25 to 0.3, 26 to 37 µs a message where raw SQLite takes 8 to 10; ids, "
            "admission and index take another 30 to 50"
        ),
    ),
    Goal(
        "replay.10000/memory",
        "replay of 10,000 messages through gRPC / the same bytes from memory",
        0.65,
        obstacle=(
            "2.4 to 3.5 µs a message to read and splice and a copy of each page by SQLite, one after another with "
            "sending, under the interpreter's lock"
        ),
    ),
    Goal("replay.10000/peers", "replay of 10,000 messages through gRPC / the fastest peer in its own process", 3.0),
    Goal(
        "opencode.10000/opencode",
        "10,000 messages of one session / opencode's server",
        20.0,
        obstacle=(
            "the same bytes from memory take half of the time that ours take, so that with nothing to read it would be "
            "about 10; the client's receiving and parsing are the longest step"
        ),
    ),
    Goal("growth.append", "cost of an append at entry 100,000 / at entry 10", 1.25, "low"),
    Goal("growth.bytes", "file after a checkpoint / payload bytes, at 100,000 entries", 1.3, "low"),
    Goal("tail.stopped", "writers beside a stopped tail reader / without it", 0.9),
    Goal(
        "tail.slow",
        "writers beside a slow tail reader / without it",
        0.9,
        obstacle=(
            "10 to 25 looks a second at the session, each 3 ms of a processor with its response of 100 KB and more, "
            "and the reader's own process, on two processors that the writers need too"
        ),
    ),
    Goal("validate.seconds", "seconds to validate 100,000 messages of 2 KB", 30.0, "low"),
    Goal("rules.share", "share of the rules in the processor's time of an append of eight parts", 0.25, "low"),
    # Of earlier work.
    Goal("growth.delta", "bytes on disk of a delta beside its text", 80.0, "low"),
    Goal(
        "import.rate",
        "messages/s of an opencode database, imported into the store",
        3000.0,
        obstacle="two processes that need both processors; what else the machine does comes off",
    ),
    Goal("render.slowest", "1,000 messages assembled, mutated, rendered / json.dumps, cost", 15.0, "low"),
)


def judge(ratios: Mapping[str, float], goals: tuple[Goal, ...] = GOALS) -> list[Judged]:
    """Hold what was measured, by key, against the goals."""
    return [Judged(goal, _value(goal.key, ratios)) for goal in goals]


def _value(key: str, ratios: Mapping[str, float]) -> float | None:
    if not key.endswith("/peers"):
        return ratios.get(key)
    workload = key.removesuffix("peers")
    return min((ratios[workload + peer] for peer in PEERS if workload + peer in ratios), default=None)
