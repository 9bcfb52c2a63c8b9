"""The waves in flight, and which attempts fit into the next one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import GroupCrashed, WaveCrashed
from coordinator.transactional.machine.wave_size import WaveSize
from coordinator.watching.failure_cause import CrashKind
from state.attempt import TransactionAttempt
from state.errors import ProtocolError


class CrashCauses:
    """Remembers which waves were cancelled because they took too long, and which have waited for executors.

    Args:
        timeout_s: the message timeout.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._cancelled: set[int] = set()
        self._has_waited: set[int] = set()

    def cancelled(self, wave_id: int) -> None:
        """Records that a phase of the wave exceeds the timeout and is cancelled."""
        self._cancelled.add(wave_id)

    def waits(self, wave_id: int) -> None:
        """Records that none of the wave's tasks is running."""
        self._has_waited.add(wave_id)

    def ended(self, wave_id: int) -> None:
        """Forgets the wave, because the phase ended before a cancellation took effect or the wave is finished."""
        self._cancelled.discard(wave_id)
        self._has_waited.discard(wave_id)

    def of(self, event: WaveCrashed | GroupCrashed) -> tuple[str, CrashKind]:
        """Returns why a phase crashed, and the kind of crash; the engine's own timeout takes precedence over ours.

        An engine counts from the moment it was asked, so its timeout proves nothing about a phase that had to wait.
        """
        was_cancelled, has_waited = event.wave_id in self._cancelled, event.wave_id in self._has_waited
        self.ended(event.wave_id)
        if event.kind is CrashKind.OVERDUE and has_waited and not was_cancelled:
            return f"{event.reason}; for part of that time it waited for executors", CrashKind.WAITED
        if not was_cancelled and event.kind is not CrashKind.OVERDUE:
            return event.reason, event.kind
        reason = f"it exceeded the message timeout of {self._timeout_s:g} s and was cancelled"
        if event.kind is CrashKind.OVERDUE:
            reason = event.reason
        return (
            f"{reason}; if it needs longer, raise the limit with the builder's set_message_timeout_s",
            CrashKind.OVERDUE,
        )


WAVE_BYTES_MAX = 256 * 1024 * 1024
"""The most input that a wave of more than one attempt reads, in bytes."""


@dataclass(slots=True)
class WaveRecord:
    """One wave in flight.

    Attributes:
        wave_id: its number in this run, from 1.
        attempts: its attempts, ascending.
        started_s: when its processing phase began, or was last found overdue; None while it waits for executors or
            another wave.
        live: its attempts that are neither committed nor dropped.
        is_running: whether its processing phase runs.
        has_waited: whether the phase has waited for executors.
    """

    wave_id: int
    attempts: tuple[TransactionAttempt, ...]
    started_s: float | None
    live: set[TransactionAttempt] = field(default_factory=set)
    is_running: bool = True
    has_waited: bool = False


class WaveRecords:
    """Keeps waves until all their attempts have ended.

    Args:
        size: decides how many attempts a wave takes.
        timeout_s: how long a processing phase may take before it is cancelled, in seconds.

    Attributes:
        size: as given; notified of each wave that ends.
    """

    def __init__(self, size: WaveSize, timeout_s: float) -> None:
        self.size = size
        self._timeout_s = timeout_s
        self._waves: dict[int, WaveRecord] = {}
        self._last_id = 0

    def room(self, byte_counts: Sequence[int]) -> int:
        """Returns how many waiting attempts fit into the next wave, given estimates of their batches' sizes."""
        byte_total = 0
        for count, byte_count in enumerate(byte_counts[: self.size.limit]):
            byte_total += byte_count
            if count and byte_total > WAVE_BYTES_MAX:
                return count
        return min(self.size.limit, len(byte_counts))

    def start(self, attempts: tuple[TransactionAttempt, ...], now_s: float) -> WaveRecord:
        """Records a new wave of these attempts and returns it."""
        self._last_id += 1
        starts_s = None if self.is_processing() else now_s
        wave = self._waves[self._last_id] = WaveRecord(self._last_id, attempts, starts_s, set(attempts))
        return wave

    def processed(self, wave_id: int, seconds: float = 0.0) -> WaveRecord:
        """Ends the processing phase of a wave, which took `seconds`; 0 if that is unknown.

        Raises:
            ProtocolError: the wave is not running.
        """
        wave = self._end(wave_id)
        if wave.live:  # a wave of dropped attempts proves nothing about the size
            self.size.processed(len(wave.attempts), 0.0 if wave.has_waited else seconds)
        return wave

    def crashed(self, wave_id: int, *, halves: bool = True) -> WaveRecord:
        """Ends the processing phase of a wave that crashed; the next wave is half as large unless `halves` is False.

        Raises:
            ProtocolError: the wave is not running.
        """
        wave = self._end(wave_id)
        if wave.live and halves:
            self.size.halve(len(wave.attempts))
        return wave

    def _end(self, wave_id: int) -> WaveRecord:
        wave = self._waves.get(wave_id)
        if wave is None or not wave.is_running:
            raise ProtocolError(f"wave {wave_id} was reported but is not running")
        wave.is_running = False
        return wave

    def let_go(self, wave_id: int, attempt: TransactionAttempt) -> None:
        """Removes an attempt that was committed or dropped; the wave is 0 if the attempt was still waiting."""
        if wave_id:
            self._waves[wave_id].live.discard(attempt)

    def running_for_nothing(self, wave_ids: Collection[int]) -> list[int]:
        """Returns which of these waves run although none of their attempts is live."""
        waves = [self._waves[wave_id] for wave_id in sorted(wave_ids) if wave_id]
        return [wave.wave_id for wave in waves if wave.is_running and not wave.live]

    def take_finished(self) -> list[int]:
        """Forgets and returns the waves that have ended and have no live attempts."""
        finished = [wave_id for wave_id, wave in self._waves.items() if not wave.live and not wave.is_running]
        for wave_id in finished:
            del self._waves[wave_id]
        return finished

    def overdue(self, now_s: float) -> list[WaveRecord]:
        """Returns the wave whose processing phase is overdue, once per timeout; a queued wave takes no time."""
        wave = next((wave for wave in self._waves.values() if wave.is_running), None)
        if wave is None:
            return []
        if wave.started_s is None:
            wave.started_s = now_s
        if now_s - wave.started_s <= self._timeout_s:
            return []
        wave.started_s = now_s
        return [wave]

    def waits(self, wave_id: int) -> bool:
        """Restarts the clock of a processing phase at the next check, because none of its tasks is running.

        Returns whether the wave is known, in either phase.
        """
        wave = self._waves.get(wave_id)
        if wave is not None and wave.is_running:
            wave.started_s, wave.has_waited = None, True
        return wave is not None

    def is_processing(self) -> bool:
        """Returns whether a wave is in its processing phase."""
        return any(wave.is_running for wave in self._waves.values())

    def may_queue(self) -> bool:
        """Returns whether one more full wave may follow the one that is processed.

        False while waves are small to find out which attempt crashes: with two waves in flight, nobody could tell.
        """
        return sum(wave.is_running for wave in self._waves.values()) == 1 and self.size.is_full_size()

    def validate(self, wave_of: Mapping[TransactionAttempt, int]) -> None:
        """Checks that waves and attempts agree; `wave_of` has every attempt that is in a wave.

        Raises:
            AssertionError: they disagree.
        """
        live = {attempt: wave.wave_id for wave in self._waves.values() for attempt in wave.live}
        assert live == wave_of, f"waves hold {live}, attempts say {wave_of}"
        assert sum(wave.is_running for wave in self._waves.values()) <= 2, "more than one wave queued"
        self.size.validate()


def in_order(attempts: tuple[TransactionAttempt, ...], outcomes: Iterable[AttemptResult]) -> list[AttemptResult]:
    """Returns the outcomes of a wave in order; an attempt without an outcome has failed."""
    found = {outcome.attempt: outcome for outcome in outcomes}
    unknown = Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, "did not report on the attempt")
    return [found.get(attempt) or AttemptResult(attempt, unknown) for attempt in attempts]
