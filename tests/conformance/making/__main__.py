"""Makes tests/conformance/vectors/ of the sources; `make vectors` calls it. Equal sources give equal bytes."""

from __future__ import annotations

import sys

from tests.conformance.making import making

if __name__ == "__main__":
    sys.exit(making.main())
