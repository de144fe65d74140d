"""The writer's clock."""

from __future__ import annotations

import time

from google.protobuf.timestamp_pb2 import Timestamp


def now() -> Timestamp:
    """The time by this process's clock, to the microsecond."""
    stamp = Timestamp()
    stamp.FromMicroseconds(time.time_ns() // 1000)
    return stamp
