"""A process of a server of several: `turnwire.server.worker` with the limits of `bench.served`."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.served import add_limits
from turnwire.server.worker import main
from turnwire.server.workers import Work

if __name__ == "__main__":
    add_limits(Path(Work.parse(sys.argv[1]).path).parent)
    main(sys.argv[1])
