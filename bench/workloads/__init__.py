"""What is measured: each workload is a coroutine that takes a `Bench` and gives its results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bench.context import Bench
from bench.results import Result
from bench.workloads.appends import appends
from bench.workloads.disks import disks
from bench.workloads.embedded import embedded
from bench.workloads.growth import growth
from bench.workloads.imports import imports
from bench.workloads.reads import reads
from bench.workloads.rendering import renderings
from bench.workloads.starting import starting
from bench.workloads.tails import tails
from bench.workloads.validation import validation
from bench.workloads.workers import workers

Workload = Callable[[Bench], Awaitable[list[Result]]]

#: All workloads by the names that ``--only`` takes, in the order in which they run.
WORKLOADS: dict[str, Workload] = {
    "embedded": embedded,
    "disks": disks,
    "appends": appends,
    "workers": workers,
    "reads": reads,
    "tails": tails,
    "growth": growth,
    "imports": imports,
    "rendering": renderings,
    "validation": validation,
    "starting": starting,
}
