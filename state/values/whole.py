"""Checks for numbers: to Python `True` is an `int`, but nobody means it as one."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_whole(value: Any, least: float = float("-inf"), most: float = float("inf")) -> TypeGuard[int]:
    """Returns whether a value is an integer from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: Any) -> TypeGuard[int | float]:
    """Returns whether a value is an integer or a float, nan and infinity included."""
    return isinstance(value, int | float) and not isinstance(value, bool)
