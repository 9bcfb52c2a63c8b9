"""A process of a simulation: it may be killed or stopped at any call, any wait and any named point of its code.

What it talks to is a `SimulatedServer`, which lets time pass for its `Caller` while it waits for an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.timeline import Killed, Timeline
from state.errors import TransactionError

STOPS_S = (2.0, 45.0, 400.0)
"""How long SIGSTOP lasts: shorter and longer than any timeout."""


@dataclass(slots=True)
class Caller:
    """Who calls: a driver, or an executor of one.

    Attributes:
        wait: lets time pass for this caller; raises `Killed` if it does not live to see the end.
    """

    name: str
    wait: Callable[[float], None]


class SimulatedServer(Protocol):
    """A server as processes see it.

    Attributes:
        durability: the level that runs on it ask for.
    """

    durability: str

    def client(self, caller: Caller) -> Any:
        """Returns a client of it."""

    def connection_options(self, caller: Caller) -> dict[str, Any]:
        """Returns what a run's store is given beyond a client."""


Ended = Callable[["Process", TransactionError | None], None]


class Process:
    """What every process is; subclasses say what it does.

    Args:
        ended: called once, with the process and the error it ended by, None if it succeeded; not if it was killed.
    """

    def __init__(self, name: str, timeline: Timeline, faults: FaultPlan, ended: Ended) -> None:
        self.name, self.is_alive = name, True
        self.timeline, self.faults = timeline, faults
        self._ended = ended
        timeline.note(f"{name} starts")

    def reach(self, point: str) -> None:
        """A point of the code, at which the process may be killed or stopped."""
        if self.faults.strikes(f"kill@{point}"):
            self._die(f" at {point}")
        if self.is_alive and self.faults.strikes(f"stop@{point}"):
            self._stop(f"stop@{point}")
        if not self.is_alive:
            raise Killed

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Everything a process waits for, and where it may be killed or stopped."""
        if self.faults.strikes("driver.is_killed"):
            self._die()
        if self.is_alive and self.faults.strikes("driver.is_stopped"):
            self._stop("driver.is_stopped")
        if self.is_alive:
            self.timeline.let_pass(seconds, until)
        if not self.is_alive:
            raise Killed

    def later(self, action: Callable[[], None]) -> None:
        """Does something as soon as this process has its turn again, unless it is killed before."""
        self.timeline.after(0.0, self, lambda: self._guarded(action))

    def end(self, error: TransactionError | None) -> None:
        """Ends, and tells how."""
        self.is_alive = False
        self.timeline.note(f"{self.name} ends: {'done' if error is None else type(error).__name__}")
        try:
            self.close()
        finally:
            self._ended(self, error)

    def close(self) -> None:
        """What a process that ends by itself closes."""

    def abandon(self) -> None:
        """What a process leaves to be closed, and nobody closes."""

    def _die(self, where: str = "") -> None:
        self.is_alive = False
        self.timeline.note(f"{self.name} is killed{where}")

    def _stop(self, fault: str) -> None:
        self.timeline.note(f"{self.name} is stopped")
        self.timeline.let_pass(self.faults.drawn(fault).choice(STOPS_S))
        self.timeline.note(f"{self.name} continues")

    def _guarded(self, action: Callable[[], None]) -> None:
        if not self.is_alive:
            return
        try:
            action()
        except TransactionError as error:
            self.end(error)
        except Killed:
            self.abandon()
