"""What a number is as text, wherever text is read: ASCII digits, a sign, a point, an exponent, and nothing else.

Python's own `int` and `float` also take blanks, ``1_000``, digits of any script, ``nan`` and ``inf``; a NaN that was
added to a state would never leave it. Each function raises a ValueError for what it does not take.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def integer_of(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def float_of(text: str) -> float:
    """Returns the nearest float; a number too large for one is refused."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def decimal_of(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
