"""Virtual time: all actions of a simulation happen in an order drawn from its seed.

Actors (drivers, engines, the nemesis) run on one real thread. An actor that waits, for an answer of the server or for
an event, lets time pass, and the actions of other actors that fall due run nested in its wait. So every call of one
actor may fall between any two calls of another.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from state.errors import Interruption


class Killed(Interruption):
    """SIGKILL has ended the process of an actor: no handler and no clean-up runs."""


class SimulationStuckError(AssertionError):
    """More actions have run than a run that makes progress needs."""


class Timeline:
    """The clock, the actions that are due, and the story so far.

    Args:
        actions_max: most actions that may run, so that a livelock is a failure.

    Attributes:
        now_s: virtual seconds.
        story: all notes, line by line; equal for equal seeds in every process.
    """

    def __init__(self, actions_max: int = 20_000) -> None:
        self.now_s = 0.0
        self.happenings = 0
        self.story: list[str] = []
        self._actions_max = actions_max
        self._due: list[tuple[float, int, Any, Callable[[], None]]] = []
        self._sequence = 0
        self._busy: list[Any] = []

    @property
    def actor(self) -> Any:
        """The actor whose action runs now; None if none runs."""
        return self._busy[-1] if self._busy else None

    def note(self, text: str) -> None:
        """Adds a line to the story."""
        self.story.append(f"{self.now_s:.6f} {text}")

    def after(self, seconds: float, actor: Any, action: Callable[[], None]) -> None:
        """Schedules an action for later; an action never interrupts another one of the same actor."""
        self._sequence += 1
        heapq.heappush(self._due, (self.now_s + seconds, self._sequence, actor, action))

    def run(self, until: Callable[[], bool]) -> None:
        """Runs due actions until `until` holds or none is left."""
        while not until() and self._step(float("inf")):
            pass

    def let_pass(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Waits for an actor: runs actions that fall due meanwhile, except of actors that wait themselves.

        The wait ends early once `until` holds.
        """
        end_s = self.now_s + seconds
        while not until() and self._step(end_s):
            pass
        if not until():
            self.now_s = max(self.now_s, end_s)

    def _step(self, end_s: float) -> bool:
        kept: list[tuple[float, int, Any, Callable[[], None]]] = []
        found = None
        while self._due and self._due[0][0] <= end_s:
            entry = heapq.heappop(self._due)
            if not any(entry[2] is busy for busy in self._busy):
                found = entry
                break
            kept.append(entry)
        for entry in kept:
            heapq.heappush(self._due, entry)
        if found is None:
            return False
        self.happenings += 1
        if self.happenings > self._actions_max:
            raise SimulationStuckError(f"{self._actions_max} actions have run without reaching an end")
        due_s, _, actor, action = found
        self.now_s = max(self.now_s, due_s)
        self._busy.append(actor)
        try:
            action()
        finally:
            self._busy.pop()
        return True
