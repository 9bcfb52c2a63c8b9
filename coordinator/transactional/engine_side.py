"""Carries out what the machine decides about the engine, and returns the engine's events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.transactional.engine import Engine, Event, GroupExecuted, PhaseWaits, WaveCrashed, WaveProcessed
from coordinator.transactional.machine.positions import Positions
from coordinator.transactional.machine.run_events import CancelWave, ReleaseWave, StartCommit, StartWave
from state.fault_points import reached


class EngineSide:
    """The engine of one run.

    Args:
        engine: runs waves.
        positions: of every partition; the emitters of a wave continue from them.
    """

    def __init__(self, engine: Engine, positions: Positions) -> None:
        self._engine = engine
        self._positions = positions
        self._ran_early: GroupExecuted | None = None

    def command(self, decision: StartWave | StartCommit | CancelWave | ReleaseWave) -> None:
        """Passes a command to the engine; returns at once."""
        match decision:
            case StartWave(wave_id, batches, early):
                reached("wave.submitting")
                self._engine.process(wave_id, batches, self._stored(decision), early)
                reached("wave.submitted")
            case StartCommit(wave_id, attempts, composed):
                reached("group.submitting")
                self._engine.commit(wave_id, attempts, composed=composed)
                reached("group.submitted")
            case CancelWave(wave_id):
                self._engine.cancel(wave_id)
            case ReleaseWave(wave_id):
                reached("wave.releasing")
                self._engine.release(wave_id)

    def _stored(self, start: StartWave) -> Mapping[str, Mapping[int, Any]]:
        """Returns what emitters continue from: a replay's own positions, or the topology's."""
        if start.replay is None:
            return self._positions.by_scope()
        return start.replay.continues_from(start.batches[0].attempt.txid, is_opaque=self._positions.is_opaque)

    def hand_in(self, executed: GroupExecuted) -> None:
        """Makes a group whose commit phase ran with its wave the next event."""
        self._ran_early = executed

    def next_event(self, timeout_s: float) -> Event | None:
        """Returns the event that was handed in, else the engine's next one, or None after the timeout.

        Raises:
            EngineError: the engine can run nothing more.
        """
        ran_early, self._ran_early = self._ran_early, None
        event = ran_early or self._engine.next_event(timeout_s)
        if isinstance(event, (WaveProcessed, WaveCrashed)):
            reached("wave.processed")
        elif not isinstance(event, PhaseWaits | None):
            reached("group.executed")
        return event
