"""Hears everything that happens in a run, and changes nothing."""

from __future__ import annotations

from coordinator.transactional.machine.run_events import Decision, RunEvent
from coordinator.transactional.run_summary import RunStatistics


class RunObserver:
    """Hears the events and decisions of one run, on the coordinator's thread; this one does nothing with them.

    A method that raises ends the run, so an observer catches what may fail.
    """

    def heard(self, event: RunEvent) -> None:
        """Called with every event, before the machine handles it."""

    def decided(self, decision: Decision) -> None:
        """Called with every decision, before it is carried out."""

    def is_due(self) -> bool:
        """Called every turn; returns whether to call `look` now."""
        return False

    def look(self, statistics: RunStatistics, window: dict[str, int], *, is_waiting: bool) -> None:
        """Called before the run begins, when due, and once more when the run has ended.

        Args:
            statistics: of the run.
            window: state -> attempts in flight.
            is_waiting: the run can only wait for the server.
        """

    def draining(self) -> None:
        """Called when the run is told to drain, perhaps on another thread or in a signal handler."""

    def failed(self, error: BaseException) -> None:
        """Called, perhaps twice, when the run ends with an error."""

    def close(self) -> None:
        """Called once, however the run has ended."""
