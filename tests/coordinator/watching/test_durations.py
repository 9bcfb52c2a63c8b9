"""Durations in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.watching.durations import brief, duration


@pytest.mark.parametrize(
    ("say", "seconds", "said"),
    [
        *(
            (duration, 0.04, "0.0 s"),
            (duration, 9.96, "10.0 s"),
            (duration, 12.7, "12 s"),
            (duration, 185, "3 min 5 s"),
        ),
        *((duration, 7800, "2 h 10 min"), (duration, 266_400, "3 d 2 h")),
        *((brief, 0.0021, "2.1 ms"), (brief, 0.34, "340 ms"), (brief, 1.2, "1.20 s")),
    ],
)
def test_durations_in_words(say: Callable[[float], str], seconds: float, said: str) -> None:
    assert say(seconds) == said
