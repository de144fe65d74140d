"""The command line ``turnwire``; see `turnwire.cli.program` for its commands."""

from __future__ import annotations

import os
import signal
import sys

# Nothing else is imported here: until `main` runs, an interrupt would show a traceback.

_INTERRUPTED = 130


def _leave(number: int, frame: object) -> None:
    os._exit(_INTERRUPTED)


def main() -> None:
    """Run the command line with the process's own arguments, and leave with its exit code."""
    # gRPC's own log lines would stand between ours, and what they tell comes as an error too. It looks at this when it
    # is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        # Loading the program takes a good part of a second. An exception could be swallowed there, by C code say; and
        # there is nothing to clean up yet.
        heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, as under nohup
        if heeded:
            signal.signal(signal.SIGINT, _leave)
        from turnwire.cli.program import app

        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
