"""How a module of this package is run in a process of its own."""

from __future__ import annotations

import os
import sys


def command(module: str) -> list[str]:
    """The command that runs a module, with `environment`; arguments may follow.

    ``-P``: with ``-m`` alone Python looks first in the working directory, where any file may bear a module's name.
    """
    return [sys.executable, "-P", "-m", module]


def environment() -> dict[str, str]:
    """The environment in which the other process finds the modules that this one finds, and no others."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(each or os.getcwd() for each in sys.path)}
