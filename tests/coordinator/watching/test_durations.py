"""Durations in words."""

from __future__ import annotations

import pytest

from coordinator.watching.durations import brief, duration


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.96, "10.0 s"), (12.7, "12 s"), (185, "3 min 5 s"), (7800, "2 h 10 min"), (266_400, "3 d 2 h")],
)
def test_durations_in_words(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(0.0021, "2.1 ms"), (0.34, "340 ms"), (1.2, "1.20 s")])
def test_short_durations_in_words(seconds: float, said: str) -> None:
    assert brief(seconds) == said
