"""Why a phase crashed: an engine tells what it saw, the coordinator knows what it has cancelled itself. Pure."""

from __future__ import annotations

from coordinator.transactional.engine import CrashKind, GroupCrashed, WaveCrashed


class CrashCauses:
    """Remembers which waves were cancelled because they took too long.

    Args:
        timeout_s: the message timeout.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._cancelled: set[int] = set()

    def cancelled(self, wave_id: int) -> None:
        """A phase of the wave exceeds the timeout and is cancelled."""
        self._cancelled.add(wave_id)

    def ended(self, wave_id: int) -> None:
        """The phase came to its end before it could be cancelled, or the wave is finished."""
        self._cancelled.discard(wave_id)

    def of(self, event: WaveCrashed | GroupCrashed) -> tuple[str, CrashKind]:
        """Why it crashed, and what follows; what was cancelled tells that, unless the engine knows more."""
        was_cancelled = event.wave_id in self._cancelled
        self._cancelled.discard(event.wave_id)
        if not was_cancelled and event.kind is not CrashKind.OVERDUE:
            return event.reason, event.kind
        told = f"it exceeded the message timeout of {self._timeout_s:g} s and was cancelled"
        if event.kind is CrashKind.OVERDUE:
            told = event.reason
        return f"{told}; if it needs longer, set_message_timeout_s of the builder raises that", CrashKind.OVERDUE
