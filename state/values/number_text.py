"""The syntax of numbers wherever text is read: ASCII digits, a sign, a point, an exponent, and nothing else.

Python's own `int` and `float` also take blanks, ``1_000``, digits of any script, ``nan`` and ``inf``; a NaN that was
added to a state would never leave it. Each function raises a ValueError for other text; functions of many texts,
without line breaks, check all at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGERS = re.compile(rf"(?:{_INTEGER.pattern}\n)*+")
_NUMBERS = re.compile(rf"(?:{_NUMBER.pattern}\n)*+")


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


def integers_of(texts: Sequence[str]) -> list[int]:
    digits = "".join(texts)
    if not (digits.isascii() and digits.isdigit()):  # a third of the time that the pattern takes
        _refuse_others(_INTEGERS, texts)
    return list(map(int, texts))


def floats_of(texts: Sequence[str]) -> list[float]:
    _refuse_others(_NUMBERS, texts)
    numbers = list(map(float, texts))
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a number is too large")
    return numbers


def decimals_of(texts: Sequence[str]) -> list[Decimal]:
    _refuse_others(_NUMBERS, texts)
    try:
        return list(map(Decimal, texts))
    except InvalidOperation as error:
        raise ValueError("a number is too large") from error


def _refuse_others(pattern: re.Pattern[str], texts: Sequence[str]) -> None:
    if not pattern.fullmatch("\n".join([*texts, ""])):
        raise ValueError("a text is not a number")
