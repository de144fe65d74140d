"""Where a run took place: hardware, versions, and how durable an append is."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from turnwire import __version__

#: The settings that ours, the raw SQLite of the limits and every peer run with.
DURABILITY = "SQLite in WAL mode with synchronous=FULL: an fsync of the WAL before a commit returns"


def describe() -> dict[str, Any]:
    """The machine and the versions, for the head of a report."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": round(os.getloadavg()[0], 2),
        "fsync_us": round(_fsync() * 1e6),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "grpcio": version("grpcio"),
        "protobuf": version("protobuf"),
        "turnwire": __version__,
        "durability": DURABILITY,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _fsync(times: int = 50) -> float:
    """Median seconds of an fdatasync after 16 KiB at the end of a file, where the measurements keep theirs."""
    seconds: list[float] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(times):
            os.write(file.fileno(), b"x" * 16384)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - begun)
    return sorted(seconds)[times // 2]
