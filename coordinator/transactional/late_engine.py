"""Starts the engine of a run when there is something for it: a run with nothing to do ends without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.spouts.batch_emitters import Batch
from coordinator.transactional.engine import EarlyCommit, Engine, Event, PhaseWaits
from state.attempt import TransactionAttempt


class LateEngine:
    """An engine that starts with the first wave, or when the run first waits for anything (driver).

    Args:
        start: starts the engine; called once at most, on the run's thread.
        overlaps: as the engine's.
    """

    def __init__(self, start: Callable[[], Engine], *, overlaps: bool) -> None:
        self.overlaps = overlaps
        self._start = start
        self._engine: Engine | None = None
        self._waits: PhaseWaits | None = None

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """See `Engine.process`; the time that the start takes is not the wave's."""
        self._waits = PhaseWaits((wave_id,)) if self._engine is None else None
        self._started().process(wave_id, batches, stored, early)

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """See `Engine.commit`."""
        self._started().commit(wave_id, attempts, composed=composed)

    def cancel(self, wave_id: int) -> None:
        """See `Engine.cancel`."""
        self._started().cancel(wave_id)

    def release(self, wave_id: int) -> None:
        """See `Engine.release`."""
        self._started().release(wave_id)

    def next_event(self, timeout_s: float) -> Event | None:
        """See `Engine.next_event`.

        Raises:
            TopologyError, EngineError: the engine does not start, or can run nothing more.
        """
        waits, self._waits = self._waits, None
        return waits or self._started().next_event(timeout_s)

    def close(self) -> None:
        """See `Engine.close`: the engine is closed by what started it."""

    def _started(self) -> Engine:
        if self._engine is None:
            self._engine = self._start()
        return self._engine
