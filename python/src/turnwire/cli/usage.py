"""Wrong usage, and the reading of arguments that the parser does not read by itself."""

from __future__ import annotations

import datetime
import re
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

_AGO: Final = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Usage(Exception):
    """The arguments of a command are wrong; the text says what is right. Exit code 2."""


def time_of(text: str, option: str) -> Timestamp:
    """A time: RFC 3339, a date, or so long ago (``90s``, ``15m``, ``2h``, ``3d``, ``1w``). Raises `Usage`.

    What names no time zone is in this machine's.
    """
    ago = _AGO.fullmatch(text)
    result = Timestamp()
    try:
        if ago is not None:
            at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        else:
            at = datetime.datetime.fromisoformat(text)
        result.FromDatetime(at.astimezone(datetime.UTC))
    except (ValueError, OverflowError, OSError) as error:
        form = "2026-01-31, 2026-01-31T14:05:09Z or an age such as 2h"
        raise Usage(f"{option} takes a time, for example {form}") from error
    return result


def labels_of(given: list[str]) -> dict[str, str]:
    """Labels from ``KEY=VALUE`` texts. Raises `Usage`."""
    labels: dict[str, str] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not key:
            raise Usage("--label takes KEY=VALUE")
        if labels.setdefault(key, value) != value:
            raise Usage(f"--label {key} is given twice with different values, which no session can have")
    return labels
