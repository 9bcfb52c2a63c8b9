"""Shows the statistics of a transactional run to a callback whenever they have changed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from coordinator.watching.run_observer import Observation, RunBegan, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics

_LOG = logging.getLogger("txbatch")


class ProgressCallback:
    """Observes a run and calls back after each turn in which something has ended.

    Args:
        on_progress: called with the statistics, on the run's thread; one that raises is called again the next time.
    """

    def __init__(self, on_progress: Callable[[RunStatistics], None]) -> None:
        self._on_progress = on_progress
        self._statistics = RunStatistics()

    def __call__(self, observation: Observation) -> None:
        """Takes what has happened; see `coordinator.watching.run_observer`."""
        match observation:
            case RunBegan(statistics=RunStatistics() as statistics):
                self._statistics = statistics
            case TurnEnded(has_progressed=True):
                try:
                    self._on_progress(self._statistics)
                except Exception:  # noqa: BLE001 - a callback must not end a run
                    _LOG.exception("the on_progress callback raised")
            case _:
                pass
