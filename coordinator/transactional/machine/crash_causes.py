"""Determines why a phase crashed: engines report what they saw, the run knows what it has cancelled. Pure."""

from __future__ import annotations

from coordinator.transactional.engine import GroupCrashed, WaveCrashed
from coordinator.transactional.failure_cause import CrashKind


class CrashCauses:
    """Remembers which waves were cancelled because they took too long.

    Args:
        timeout_s: the message timeout.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._cancelled: set[int] = set()

    def cancelled(self, wave_id: int) -> None:
        """Notes that a phase of the wave exceeds the timeout and is cancelled."""
        self._cancelled.add(wave_id)

    def ended(self, wave_id: int) -> None:
        """Forgets a cancellation, because the phase ended before it took effect or the wave is finished."""
        self._cancelled.discard(wave_id)

    def of(self, event: WaveCrashed | GroupCrashed) -> tuple[str, CrashKind]:
        """Returns why a phase crashed and what to do; a timeout of the engine's own takes precedence over ours."""
        was_cancelled = event.wave_id in self._cancelled
        self._cancelled.discard(event.wave_id)
        if not was_cancelled and event.kind is not CrashKind.OVERDUE:
            return event.reason, event.kind
        told = f"it exceeded the message timeout of {self._timeout_s:g} s and was cancelled"
        if event.kind is CrashKind.OVERDUE:
            told = event.reason
        return (
            f"{told}; if it needs longer, raise the limit with the builder's set_message_timeout_s",
            CrashKind.OVERDUE,
        )
