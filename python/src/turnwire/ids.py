"""Ids: the pattern that every id obeys, and making new ones.

A caller may bring any id of 1 to 128 characters from ``[A-Za-z0-9._:-]``. Where none is given the server assigns one:
a prefix that tells the kind, eight base-62 digits of the time in milliseconds, and twelve random ones. Such ids sort
by time of making to the millisecond; that is a convenience for people, never the order of anything.
"""

from __future__ import annotations

import re
import secrets
import time

PATTERN = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)

SESSION = "ses_"
TURN = "trn_"
MESSAGE = "msg_"
PART = "prt_"
PROMPT = "prm_"

# In ASCII order, so that the text order of two numbers of equal length is their numeric order.
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TIME_DIGITS = 8  # 62**8 ms is about 6,900 years
_RANDOM_DIGITS = 12  # 71 bits
#: Digits of an id behind its prefix.
DIGITS = _TIME_DIGITS + _RANDOM_DIGITS
_RANDOM_SPAN = 62**_RANDOM_DIGITS


def valid(text: str) -> bool:
    """Tell whether a text can be an id."""
    return PATTERN.fullmatch(text) is not None


def new(prefix: str) -> str:
    """Make an id: ``prefix`` (one of this module's constants) and 20 base-62 digits."""
    milliseconds = time.time_ns() // 1_000_000
    return prefix + _digits(milliseconds, _TIME_DIGITS) + _digits(secrets.randbelow(_RANDOM_SPAN), _RANDOM_DIGITS)


def _digits(number: int, count: int) -> str:
    digits: list[str] = []
    for _ in range(count):
        number, rest = divmod(number, 62)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))
