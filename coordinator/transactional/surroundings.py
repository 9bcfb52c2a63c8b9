"""What a run gets from outside: time, randomness, observers and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator.transactional.coordinator import CommitLimit
from coordinator.watching.run_observer import Observers


def _pause_not(_: float) -> None:
    """Waits for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """The values that an engine's driver, the simulation or a test gives a run (driver, once a run).

    Attributes:
        nonce: 128 random bits, hexadecimal, never seeded; the engine's state readers share it.
        new_generation: as `nonce`, drawn for a topology that has no records yet.
        new_attempt_id: draws 64 random bits; they may be seeded.
        clock: seconds, monotonic.
        wall_clock: seconds since the epoch, for records of quarantined batches; None takes `clock`.
        pause: waits for the given number of seconds before a failed call of the spout is repeated.
        observers: notified of the run's events, from the takeover to its end.
        commit_limit: makes groups smaller, or holds them back.
        cancel_later_s: how long after its timeout a phase is cancelled, so that the engine can report what hangs first.
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
