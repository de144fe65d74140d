"""Faults of the program itself: told by their kind alone, since what they say may hold content of a message."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Final

#: With this environment variable set to anything, a fault of the program is shown with its stack.
SHOW: Final = "TURNWIRE_TRACEBACK"


def shown() -> bool:
    """Whether faults are to be shown with their stacks."""
    return bool(os.environ.get(SHOW))


def told(error: Exception) -> str:
    """A fault in a line, without content."""
    return f"a fault of the program: {type(error).__name__}; {SHOW}=1 shows where"


def reason(error: Exception) -> str:
    """Why something is refused that a fault stopped; its stack goes to stderr if faults are to be shown."""
    if shown():
        traceback.print_exception(error, file=sys.stderr)
    return told(error)
