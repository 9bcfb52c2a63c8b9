"""What a run is given from outside: time, randomness, observers and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator.transactional.coordinator import CommitLimit
from coordinator.watching.run_observer import Observers


def _pause_not(_: float) -> None:
    """Waits for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an engine's driver, the simulation or a test gives a run (driver, once a run).

    Attributes:
        nonce: 128 random bits, hexadecimal, never seeded; the engine's readers of state have the same.
        new_generation: likewise, for a topology that has no records yet.
        new_attempt_id: draws 64 random bits; they may be seeded.
        clock: seconds, monotonic.
        wall_clock: seconds since the epoch, for records of quarantined batches; None takes `clock`.
        pause: waits for that many seconds before a failed start of the spout is tried again.
        observers: hear what happens, from when the run owns the topology to its end.
        commit_limit: makes groups smaller, or holds them.
        cancel_later_s: how much longer than its timeout a phase may take, so that what hangs can be named.
        begin: called before the topology is owned, unless its input is empty.
    """

    nonce: str
    new_generation: str
    new_attempt_id: Callable[[], int]
    clock: Callable[[], float]
    wall_clock: Callable[[], float] | None = None
    pause: Callable[[float], None] = _pause_not
    observers: Observers = field(default_factory=Observers)
    commit_limit: CommitLimit | None = None
    cancel_later_s: float = 0.0
    begin: Callable[[], None] | None = None

    def wall_time(self) -> float:
        """Returns seconds since the epoch."""
        return (self.wall_clock or self.clock)()
