"""Whether a run that ended with an error had a reason to: nothing may stop a run that nothing has struck.

A guard that refuses too much keeps the state right, so no invariant of the state can see it. Each kind of error
therefore needs a cause: something that has happened since the run began, and that can lead to this error.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.testing.simulated.fault_plan import Strike
from state.errors import FencedError, StateRefusedError, StateUnreachableError, TransactionError
from tests.simulation.invariants import ViolatedError

REPLACED = frozenset(
    {
        *("server.goes_back", "server.is_restored", "server.comes_back_empty", "server.tears_a_write"),
        "server.moves",
    }
)
REFUSED = REPLACED | {"server.refuses", "server.loses_library", "bolt.exceeds"}
LASTING = frozenset(
    {
        *("server.has_another_version", "server.lends_a_key", "server.is_unfit", "server.tears_a_write"),
        "server.moves",
    }
)
"""May stop runs that begin long after they have struck."""
SILENT = frozenset(
    {
        *("server.loses_request", "server.loses_answer", "server.answers_late", "server.applies_later"),
        *("server.is_busy", "server.loses_library", "server.moves", "server.refuses", "driver.is_stopped"),
    }
)


class Causes:
    """Judges how runs end.

    A drop explains whatever says that the state is gone or owned by another: only a server that still has its library
    remembers that it was a drop.

    Args:
        struck: the faults that have struck, in order; grows while the simulation plays.
    """

    def __init__(self, struck: Sequence[Strike]) -> None:
        self._struck = struck
        self._strikes_before: dict[str, int] = {}
        self._last_taker = ""
        self._has_dropped = False

    def began(self, name: str) -> None:
        """A run has begun."""
        self._strikes_before[name] = len(self._struck)

    def took_over(self, name: str) -> None:
        """The server has let a run take over; it may have begun long before those that it fences."""
        self._last_taker = name

    def drop_began(self) -> None:
        """A drop has begun; it may take its time."""
        self._has_dropped = True

    def check(self, name: str, error: TransactionError, *, was_assembled: bool) -> None:
        """Checks the error that a run ended with.

        Args:
            name: of the run.
            error: what it ended with.
            was_assembled: whether it had taken the topology over; a start may also be refused for what another run
                wrote meanwhile.

        Raises:
            ViolatedError: nothing that has happened can have led to it.
        """
        since = {strike.fault for strike in self._struck[self._strikes_before[name] :]}
        lasting = LASTING.intersection(strike.fault for strike in self._struck)
        match error:
            case FencedError():
                has_cause = bool((since | lasting) & REPLACED) or self._last_taker != name or self._has_dropped
            case StateRefusedError():
                has_cause = bool(since & REFUSED or lasting) or not was_assembled or self._has_dropped
            case StateUnreachableError():
                has_cause = bool(since & SILENT) or any(fault.startswith("stop@") for fault in since)
            case _:
                has_cause = bool(since or lasting)
        if not has_cause:
            happened = ", ".join(sorted(since)) or "nothing"
            raise ViolatedError(f"a run ended by {type(error).__name__} without cause: {error}; it met {happened}")
