"""The digest chain against the formula, written out, and against fixed values."""

from __future__ import annotations

import struct
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from turnwire.log import digest


def test_it_starts_with_the_session() -> None:
    assert digest.start("ses_1") == sha256(b"turnwire/1ses_1").digest()


def test_fixed_values() -> None:
    """Frozen: a stored log must verify for ever."""
    start = digest.start("s")
    assert start.hex() == "d25d6ea28696a24d5d75edebbee1668efd8f1c99a736cf035ecb51e6864625ce"
    first = digest.link(start, 1, 1_700_000_000_000_001, 10, b"payload")
    assert first.hex() == "692a935a93bd1299cbb54f30e67260082ac7d8354f385674949e6a14cc7799f0"
    assert (
        digest.link(first, 2, 1_700_000_000_000_002, 21, b"").hex()
        == "efd21629d53fbd5a428e6bd91ab121d755e19816252023d35d88016cbe5d6fcb"
    )


@given(
    st.binary(min_size=32, max_size=32),
    st.integers(1, 2**63 - 1),
    st.integers(0, 2**63 // 1000 - 1),
    st.integers(10, 400),
    st.binary(),
)
def test_a_link_is_the_formula(before: bytes, revision: int, recorded_us: int, field: int, payload: bytes) -> None:
    numbers = struct.pack(">QQI", revision, recorded_us * 1000, field)
    expected = sha256(before + numbers + sha256(payload).digest()).digest()
    assert digest.link(before, revision, recorded_us, field, payload) == expected
