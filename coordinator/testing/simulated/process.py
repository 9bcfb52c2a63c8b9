"""A process of a simulation: it may be killed or stopped at any call, any wait and any named point of its code.

It calls a `SimulatedServer`, which lets time pass for its `Caller` until the answer arrives.
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
    """A caller of the server: a driver, or one of its executors.

    Attributes:
        wait: lets time pass for this caller; raises `Killed` if the caller is killed meanwhile.
    """

    name: str
    wait: Callable[[float], None]


class SimulatedServer(Protocol):
    """A server as processes see it.

    Attributes:
        durability: the durability level that its runs request.
    """

    durability: str

    def client(self, caller: Caller) -> Any:
        """Returns a client of the server."""

    def connection_options(self, caller: Caller) -> dict[str, Any]:
        """Returns the arguments of a run's store in addition to the client."""


Ended = Callable[["Process", TransactionError | None], None]


class Process:
    """The base of all processes; subclasses define their work.

    Args:
        ended: called once with the process and its error, None if it succeeded; not called if it was killed.
    """

    def __init__(self, name: str, timeline: Timeline, faults: FaultPlan, ended: Ended) -> None:
        self.name, self.is_alive = name, True
        self.timeline, self.faults = timeline, faults
        self._ended = ended
        timeline.note(f"{name} starts")

    def reach(self, point: str) -> None:
        """Called at a named point of the code, where the process may be killed or stopped."""
        if self.faults.strikes(f"kill@{point}"):
            self._die(f" at {point}")
        if self.is_alive and self.faults.strikes(f"stop@{point}"):
            self._stop(f"stop@{point}")
        if not self.is_alive:
            raise Killed

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Lets time pass in any wait of the process, which may be killed or stopped there."""
        if self.faults.strikes("driver.is_killed"):
            self._die()
        if self.is_alive and self.faults.strikes("driver.is_stopped"):
            self._stop("driver.is_stopped")
        if self.is_alive:
            self.timeline.let_pass(seconds, until)
        if not self.is_alive:
            raise Killed

    def later(self, action: Callable[[], None]) -> None:
        """Calls `action` when this process has its next turn, unless it is killed before."""
        self.timeline.after(0.0, self, lambda: self._guarded(action))

    def end(self, error: TransactionError | None) -> None:
        """Ends the process, and calls `ended`."""
        self.is_alive = False
        self.timeline.note(f"{self.name} ends: {'done' if error is None else type(error).__name__}")
        try:
            self.close()
        finally:
            self._ended(self, error)

    def close(self) -> None:
        """Closes the resources of a process that ends by itself."""

    def abandon(self) -> None:
        """Drops the resources of a killed process without closing them."""

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
