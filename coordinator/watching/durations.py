"""Formats durations. Pure."""

from __future__ import annotations

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def duration(seconds: float) -> str:
    """Returns a duration in its two largest units, such as 0.4 s, 12 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = int(seconds)
    for unit_s, unit, part_s, part in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "min"),
        (MINUTE_S, "min", 1, "s"),
    ):
        if whole >= unit_s:
            rest = whole % unit_s // part_s
            return f"{whole // unit_s} {unit} {rest} {part}" if rest else f"{whole // unit_s} {unit}"
    return f"{whole} s"


def brief(seconds: float) -> str:
    """Returns a short duration with two or three digits, such as 2.1 ms, 340 ms, 1.20 s."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.1f} ms"
