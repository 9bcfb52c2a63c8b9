"""Carries out what the machine decides about the engine, and hands in its events."""

from __future__ import annotations

from coordinator.transactional.engine import Engine, Event, GroupExecuted
from coordinator.transactional.machine.positions import Positions
from coordinator.transactional.machine.run_events import CancelWave, ReleaseWave, StartCommit, StartWave


class EngineSide:
    """The engine of one run.

    Args:
        engine: runs waves.
        positions: where every partition stands; emitters of a wave start from there.
    """

    def __init__(self, engine: Engine, positions: Positions) -> None:
        self._engine = engine
        self._positions = positions
        self._ran_early: GroupExecuted | None = None

    def command(self, decision: StartWave | StartCommit | CancelWave | ReleaseWave) -> None:
        """Passes on a command, which returns at once."""
        match decision:
            case StartWave(wave_id, batches, early):
                self._engine.process(wave_id, batches, self._positions.by_scope(), early)
            case StartCommit(wave_id, attempts, composed):
                self._engine.commit(wave_id, attempts, composed=composed)
            case CancelWave(wave_id):
                self._engine.cancel(wave_id)
            case ReleaseWave(wave_id):
                self._engine.release(wave_id)

    def hand_in(self, executed: GroupExecuted) -> None:
        """Keeps a group whose commit phase has run with its wave, as the next event."""
        self._ran_early = executed

    def next_event(self, timeout_s: float) -> Event | None:
        """What was handed in, else the engine's next event, or None after the time.

        Raises:
            EngineError: nothing can be run any more.
        """
        ran_early, self._ran_early = self._ran_early, None
        return ran_early or self._engine.next_event(timeout_s)
