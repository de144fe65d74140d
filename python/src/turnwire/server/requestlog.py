"""The request log: one line for each call, with sizes and times and never with content."""

from __future__ import annotations

import json
import logging
from typing import Literal, NamedTuple, TextIO

from turnwire import ids

#: How a line is written: ``method=Append session=ses_1 …``, or the same as one JSON object.
LogFormat = Literal["text", "json"]

#: The logger of the request log. Its lines are complete; a handler adds time and place if it wants to.
LOGGER = "turnwire.server.requests"


class RequestLine(NamedTuple):
    """What is said of one call. ``requests`` counts what came in on a stream; sizes are in bytes, unframed."""

    method: str
    session_id: str
    status: str
    reason: str
    milliseconds: float
    bytes_in: int
    bytes_out: int
    requests: int


class RequestLog:
    """Writes the lines to the logger ``turnwire.server.requests`` at level INFO."""

    def __init__(self, form: LogFormat = "text") -> None:
        self._form = form
        self._logger = logging.getLogger(LOGGER)

    @property
    def wanted(self) -> bool:
        """Whether anyone gets the lines."""
        return self._logger.isEnabledFor(logging.INFO)

    def write(self, line: RequestLine) -> None:
        """Write one line."""
        fields: dict[str, str | int | float] = {
            # What is no id may be anything, and is not written down.
            key: value if key != "session_id" or ids.valid(str(value)) else ""
            for key, value in line._asdict().items()
        }
        fields["milliseconds"] = round(line.milliseconds, 2)
        if self._form == "json":
            self._logger.info("%s", json.dumps(fields))
        else:
            self._logger.info("%s", " ".join(f"{key}={'-' if value == '' else value}" for key, value in fields.items()))


def to_stream(stream: TextIO, *, form: LogFormat = "text") -> logging.Handler:
    """Send the server's logs, the request log included, to a stream, a line each; returns the handler."""
    handler = logging.StreamHandler(stream)
    if form == "json":
        handler.setFormatter(_JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger = logging.getLogger("turnwire.server")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return handler


class _JsonLines(logging.Formatter):
    """A line of the request log is JSON already, and gets the time; any other becomes a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        lead = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        text = record.getMessage()
        rest = json.loads(text) if record.name == LOGGER else {"message": text}
        return json.dumps(lead | rest)
