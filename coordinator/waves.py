"""Which attempts travel together, and what is kept of each until it is committed or dropped. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt import ACKER_COMPONENT, AttemptOutcome, Failure, FailureKind
from coordinator.spouts.emitting import Batch
from state import TransactionAttempt, pack

WAVE_BYTES_MAX = 256 * 1024 * 1024
"""A wave of more than one attempt reads less input than this."""


@dataclass(slots=True)
class WaveRecord:
    """One wave under way.

    Attributes:
        wave_id: its number in this run, from 1.
        batches: its attempts, ascending.
        started_s: when its processing phase began.
        live: attempts neither committed nor dropped.
        running: its processing phase runs.
    """

    wave_id: int
    batches: tuple[Batch, ...]
    started_s: float
    live: set[TransactionAttempt] = field(default_factory=set)
    running: bool = True


class WaveBook:
    """Forms waves and keeps their records.

    Args:
        max_spout_pending: the window; a wave takes half of it, so that two can be under way.
        timeout_s: how long a processing phase may take.
        estimated_bytes: metadata -> bytes of input the batch reads, 0 if unknown.
    """

    def __init__(self, max_spout_pending: int, timeout_s: float, estimated_bytes: Callable[[Any], int]) -> None:
        self._full_size = -(-max_spout_pending // 2)
        self._size = self._full_size
        self._timeout_s = timeout_s
        self._estimated_bytes = estimated_bytes
        self._waiting: dict[TransactionAttempt, Any] = {}
        self._waves: dict[int, WaveRecord] = {}
        self._wave_of: dict[TransactionAttempt, int] = {}
        self._outcomes: dict[TransactionAttempt, AttemptOutcome] = {}
        self._last_id = 0

    def add(self, attempt: TransactionAttempt, metadata: Any) -> None:
        """An attempt waits for a wave."""
        self._waiting[attempt] = metadata

    def next_wave(self, now_s: float) -> WaveRecord | None:
        """Forms a wave of the lowest waiting attempts."""
        chosen: list[Batch] = []
        byte_count = 0
        for attempt in sorted(self._waiting):
            byte_count += self._estimated_bytes(self._waiting[attempt])
            if len(chosen) == self._size or (chosen and byte_count > WAVE_BYTES_MAX):
                break
            chosen.append(Batch(attempt, pack(self._waiting[attempt])))
        if not chosen:
            return None
        self._last_id += 1
        wave = WaveRecord(self._last_id, tuple(chosen), now_s, {batch.attempt for batch in chosen})
        self._waves[wave.wave_id] = wave
        for batch in chosen:
            del self._waiting[batch.attempt]
            self._wave_of[batch.attempt] = wave.wave_id
        return wave

    def processed(self, wave_id: int) -> list[TransactionAttempt]:
        """The processing phase of a wave is over; returns its attempts, and doubles the next up to the full size."""
        wave = self._waves[wave_id]
        wave.running = False
        if wave.live:  # a wave that ran for nothing says nothing: what crashes has to be found by halving
            self._size = min(self._full_size, 2 * self._size)
        return [batch.attempt for batch in wave.batches]

    def crashed(self, wave_id: int) -> list[TransactionAttempt]:
        """The processing phase of a wave crashed; returns its attempts, and halves the next."""
        wave = self._waves[wave_id]
        wave.running = False
        if wave.live:
            self.halve(len(wave.batches))
        return [batch.attempt for batch in wave.batches]

    def halve(self, size: int) -> None:
        """The next wave takes half of `size` attempts."""
        self._size = max(1, size // 2)

    def keep_below(self, size: int) -> None:
        """Waves of `size` attempts take too long: from now on they have half of that at most."""
        self._full_size = max(1, min(self._full_size, size // 2))
        self._size = min(self._size, self._full_size)

    def was_started(self, attempt: TransactionAttempt) -> bool:
        """Whether an attempt that is under way has been in a wave; else it waits for its first one."""
        return attempt in self._wave_of

    def keep(self, outcome: AttemptOutcome) -> None:
        """Keeps what the commit phase needs of a processed attempt."""
        self._outcomes[outcome.attempt] = outcome

    def kept(self, attempts: Iterable[TransactionAttempt]) -> list[AttemptOutcome]:
        """What is kept of those attempts that are processed."""
        return [self._outcomes[attempt] for attempt in attempts if attempt in self._outcomes]

    def residues(self, attempts: Iterable[TransactionAttempt]) -> dict[TransactionAttempt, int]:
        """Attempt -> xor of its edges into commit tasks."""
        return {attempt: self._outcomes[attempt].residue for attempt in attempts if attempt in self._outcomes}

    def wave_of(self, attempt: TransactionAttempt) -> int:
        """The wave that processed an attempt."""
        return self._wave_of[attempt]

    def committed(self, attempt: TransactionAttempt) -> AttemptOutcome:
        """An attempt is committed; returns what was kept of it."""
        self._let_go(attempt)
        return self._outcomes.pop(attempt)

    def dropped(self, attempts: Iterable[TransactionAttempt]) -> list[int]:
        """Attempts are void; returns waves that run for nothing now."""
        touched = set()
        for attempt in attempts:
            self._waiting.pop(attempt, None)
            self._outcomes.pop(attempt, None)
            touched.add(self._let_go(attempt))
        running = [wave_id for wave_id in touched if wave_id is not None and self._waves[wave_id].running]
        return sorted(wave_id for wave_id in running if not self._waves[wave_id].live)

    def take_finished(self) -> list[int]:
        """Waves nothing is left of; they are forgotten here."""
        finished = [wave_id for wave_id, wave in self._waves.items() if not wave.live and not wave.running]
        for wave_id in finished:
            del self._waves[wave_id]
        return finished

    def overdue(self, now_s: float) -> list[int]:
        """Waves whose processing phase takes too long; each is named once per timeout."""
        late = [w for w in self._waves.values() if w.running and now_s - w.started_s > self._timeout_s]
        for wave in late:
            wave.started_s = now_s
        return [wave.wave_id for wave in late]

    def is_processing(self) -> bool:
        """Whether a wave is in its processing phase."""
        return any(wave.running for wave in self._waves.values())

    def has_running(self) -> bool:
        """Whether a wave with live attempts is in its processing phase."""
        return any(wave.running and wave.live for wave in self._waves.values())

    def active_count(self) -> int:
        """Attempts under way or waiting."""
        return len(self._waiting) + sum(len(wave.live) for wave in self._waves.values())

    def _let_go(self, attempt: TransactionAttempt) -> int | None:
        wave_id = self._wave_of.pop(attempt, None)
        if wave_id is not None:
            self._waves[wave_id].live.discard(attempt)
        return wave_id


def complete_outcomes(attempts: list[TransactionAttempt], outcomes: Iterable[AttemptOutcome]) -> list[AttemptOutcome]:
    """The outcomes of a wave in order; one that is missing means unknown, never done."""
    found = {outcome.attempt: outcome for outcome in outcomes}
    unknown = Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, "gave no verdict")
    return [found.get(attempt) or AttemptOutcome(attempt, unknown) for attempt in attempts]
