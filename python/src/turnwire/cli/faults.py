"""How a fault of the program is told: by its kind, since its text may show content."""

from __future__ import annotations

from typing import Final

#: The variable of the environment that lets a fault end the program with its traceback.
SHOW_FAULTS: Final = "TURNWIRE_TRACEBACK"


def fault(error: Exception) -> str:
    """What is said of something that no part of the program expected."""
    return f"a fault of the program: {type(error).__name__}; {SHOW_FAULTS}=1 shows where"
