"""Where drivers are killed: at each fault point as often as at any other, as far as a run comes by it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from random import Random

from state.fault_points import POINTS
from tests.support.chaos.nemesis.driver_spec import Fate

VISITS = (1, 1, 2, 3, 5, 10, 30)
ONCE_ROOMS = ("library", "start", "acquire", "confirm", "drop")
ELSEWHERE_ROOMS = ("offset", "plain_wave", "plain_message", "done_file", "shards")
"""Plain topologies, which have no state of which exactly once could be told, and folders that are followed."""
END_ROOMS = ("confirm",)
EXECUTOR_ROOMS = ("task", "batch", "frame")


def room_of(point: str) -> str:
    """What stands before the dot of a fault point."""
    return point.partition(".")[0]


def running_points(*, on_spark: bool) -> list[str]:
    """The points that a driver comes by before its input has ended; executors are other processes on Spark."""
    left_out = {*ELSEWHERE_ROOMS, *END_ROOMS, "drop", *(EXECUTOR_ROOMS if on_spark else ())}
    return [point for point in POINTS if room_of(point) not in left_out]


def drop_points() -> list[str]:
    """The points of a drop."""
    return [point for point in POINTS if room_of(point) == "drop"]


def end_points() -> list[str]:
    """The points of a run that is done."""
    return [point for point in POINTS if room_of(point) in END_ROOMS]


def draw_fate(draw: Random, points: list[str], killed: Mapping[str, int], signal_number: int = signal.SIGKILL) -> Fate:
    """Draws one of the points, those where the fewest were killed first.

    Args:
        draw: the source of chance.
        points: to draw from.
        killed: point -> how many were killed there.
        signal_number: SIGKILL, or SIGSTOP.
    """
    point = min(points, key=lambda name: (killed.get(name, 0) + draw.randrange(3), draw.random()))
    return Fate(point, 1 if room_of(point) in ONCE_ROOMS else draw.choice(VISITS), signal_number)
