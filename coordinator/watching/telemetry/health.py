"""Whether a run is alive and ready, for service managers and load balancers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coordinator.watching.run_observer import Observation, RunBegan, RunEnded, TurnEnded, WaveEnded, WaveStarted

TURN_MAX_S = 120.0
"""A turn may always last this long: a call to an unreachable server takes a minute, after which the run ends anyway."""
TIMEOUTS_MAX = 3
"""A turn may also last this many message timeouts: in a plain topology it includes a wave."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """An answer to a probe."""

    is_good: bool
    reason: str


class Health:
    """Observes a run; may be called on any thread, since every answer depends on values that are replaced as a whole.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._turn_max_s: float | None = TURN_MAX_S
        self._turned_s: float | None = None
        self._has_begun = self._has_worked = self._has_ended = False

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case RunBegan(message_timeout_s=timeout_s):
                self._turn_max_s = None if timeout_s is None else max(TURN_MAX_S, TIMEOUTS_MAX * timeout_s)
                self._has_begun = True
            case WaveEnded():
                self._has_worked = True
            case TurnEnded(is_idle):
                self._has_worked = self._has_worked or is_idle
            case RunEnded():
                self._has_ended = True
            case _:
                pass
        if isinstance(observation, (RunBegan, TurnEnded, WaveStarted, WaveEnded)):
            self._turned_s = self._clock()

    def alive(self) -> ProbeAnswer:
        """Returns whether the run's loop still turns; a run that starts or ends is alive too."""
        turned_s = self._turned_s
        if turned_s is None:
            return ProbeAnswer(True, "starting")
        age_s = self._clock() - turned_s
        if self._has_ended or self._turn_max_s is None or age_s <= self._turn_max_s:
            return ProbeAnswer(True, f"last turn {age_s:.1f} s ago")
        return ProbeAnswer(
            False, f"the last turn ended {age_s:.0f} s ago, more than {self._turn_max_s:.0f} s: the run hangs"
        )

    def ready(self) -> ProbeAnswer:
        """Returns whether the run owns its topology, and has processed a wave or found nothing to do."""
        if self._has_ended:
            return ProbeAnswer(False, "the run has ended")
        if not self._has_begun:
            return ProbeAnswer(False, "starting: Spark is not up yet, or the topology is not owned yet")
        if not self._has_worked:
            return ProbeAnswer(False, "the first wave is under way")
        return ProbeAnswer(True, "running")
