"""The command line ``turnwire``; see `turnwire.cli.program` for its commands."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line with the process's own arguments, and leave with its exit code."""
    # gRPC's own log lines would stand between ours, and what they tell comes as an error too. It looks at this when it
    # is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from turnwire.cli.program import app

    app()
