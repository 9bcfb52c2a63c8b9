"""Time limits of runs on Spark, by how busy the machine is."""

from __future__ import annotations

import os

BUSY_PER_PROCESSOR = 1.5
TIMES = 4


def in_time(seconds: float) -> float:
    """Returns `seconds`, or four times as many on a machine where a worker may take that long to start."""
    is_busy = os.getloadavg()[0] > BUSY_PER_PROCESSOR * (os.cpu_count() or 1)
    return TIMES * seconds if is_busy else seconds
