"""The waves under way, and how many attempts the next one takes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from state.attempt import TransactionAttempt
from state.errors import ProtocolError

WAVE_BYTES_MAX = 256 * 1024 * 1024
"""A wave of more than one attempt reads less input than this."""


@dataclass(slots=True)
class WaveRecord:
    """One wave under way.

    Attributes:
        wave_id: its number in this run, from 1.
        attempts: its attempts, ascending.
        started_s: when its processing phase began, or was last found to take too long.
        live: attempts neither committed nor dropped.
        is_running: its processing phase runs.
    """

    wave_id: int
    attempts: tuple[TransactionAttempt, ...]
    started_s: float
    live: set[TransactionAttempt] = field(default_factory=set)
    is_running: bool = True


class WaveRecords:
    """Keeps waves until nothing is left of them, and sizes the next.

    Args:
        max_spout_pending: the window; a wave takes half of it, so that two can be under way.
        timeout_s: how long a processing phase may take.
    """

    def __init__(self, max_spout_pending: int, timeout_s: float) -> None:
        self._full_size = self._size = -(-max_spout_pending // 2)
        self._timeout_s = timeout_s
        self._waves: dict[int, WaveRecord] = {}
        self._last_id = 0

    def room(self, byte_counts: Sequence[int]) -> int:
        """How many of the waiting attempts, whose batches are about so large, fit into the next wave."""
        byte_total = 0
        for count, byte_count in enumerate(byte_counts[: self._size]):
            byte_total += byte_count
            if count and byte_total > WAVE_BYTES_MAX:
                return count
        return min(self._size, len(byte_counts))

    def start(self, attempts: tuple[TransactionAttempt, ...], now_s: float) -> WaveRecord:
        """A wave of these attempts begins."""
        self._last_id += 1
        wave = self._waves[self._last_id] = WaveRecord(self._last_id, attempts, now_s, set(attempts))
        return wave

    def processed(self, wave_id: int) -> WaveRecord:
        """The processing phase of a wave has ended; the next may be twice as large, up to the full size.

        Raises:
            ProtocolError: it does not run.
        """
        wave = self._end(wave_id)
        if wave.live:  # a wave that ran for nothing says nothing: what crashes has to be found by halving
            self._size = min(self._full_size, 2 * self._size)
        return wave

    def crashed(self, wave_id: int) -> WaveRecord:
        """The processing phase of a wave crashed; the next is half as large.

        Raises:
            ProtocolError: it does not run.
        """
        wave = self._end(wave_id)
        if wave.live:
            self.halve(len(wave.attempts))
        return wave

    def _end(self, wave_id: int) -> WaveRecord:
        wave = self._waves.get(wave_id)
        if wave is None or not wave.is_running:
            raise ProtocolError(f"wave {wave_id} was reported and does not run")
        wave.is_running = False
        return wave

    def halve(self, size: int) -> None:
        """The next wave takes half of `size` attempts."""
        self._size = max(1, size // 2)

    def keep_below(self, size: int) -> None:
        """Waves of `size` attempts take too long: from now on they have half of that at most."""
        self._full_size = max(1, min(self._full_size, size // 2))
        self._size = min(self._size, self._full_size)

    def let_go(self, wave_id: int, attempt: TransactionAttempt) -> None:
        """An attempt is committed or dropped; one that waits is in no wave, 0."""
        if wave_id:
            self._waves[wave_id].live.discard(attempt)

    def running_for_nothing(self, wave_ids: Collection[int]) -> list[int]:
        """Which of these run although none of their attempts is wanted any more."""
        waves = [self._waves[wave_id] for wave_id in sorted(wave_ids) if wave_id]
        return [wave.wave_id for wave in waves if wave.is_running and not wave.live]

    def take_finished(self) -> list[int]:
        """Waves nothing is left of; they are forgotten here."""
        finished = [wave_id for wave_id, wave in self._waves.items() if not wave.live and not wave.is_running]
        for wave_id in finished:
            del self._waves[wave_id]
        return finished

    def overdue(self, now_s: float) -> Iterable[WaveRecord]:
        """Waves whose processing phase takes too long; each is named once per timeout."""
        late = [w for w in self._waves.values() if w.is_running and now_s - w.started_s > self._timeout_s]
        for wave in late:
            wave.started_s = now_s
        return late

    def is_processing(self) -> bool:
        """Whether a wave is in its processing phase."""
        return any(wave.is_running for wave in self._waves.values())

    def validate(self, wave_of: Mapping[TransactionAttempt, int]) -> None:
        """Checks that waves and attempts agree; `wave_of` has every attempt that is in a wave.

        Raises:
            AssertionError: they do not.
        """
        live = {attempt: wave.wave_id for wave in self._waves.values() for attempt in wave.live}
        assert live == wave_of, f"waves hold {live}, attempts say {wave_of}"
        assert sum(wave.is_running for wave in self._waves.values()) <= 1, "two waves in their processing phase"
        assert 1 <= self._size <= self._full_size
