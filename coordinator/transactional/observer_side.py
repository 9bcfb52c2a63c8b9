"""Tells a run's observers what its events and decisions mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coordinator.building.topology import Topology
from coordinator.run_observer import (
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    Observers,
    RunBegan,
    RunEnded,
    TurnEnded,
    WaveEnded,
    WaveStarted,
)
from coordinator.transactional.engine import WaveCrashed, WaveProcessed
from coordinator.transactional.machine.run_events import (
    Attempts,
    Decision,
    Dropped,
    Issued,
    Publish,
    Published,
    RunEvent,
    StartWave,
)
from coordinator.transactional.run_summary import RunStatistics


class ObserverSide:
    """The observers of one transactional run; does nothing, and reads no clock, if there are none.

    Args:
        observers: of the run.
        clock: seconds, monotonic.
    """

    def __init__(self, observers: Observers, clock: Callable[[], float]) -> None:
        self._observers, self._clock = observers, clock
        self._waves: dict[int, tuple[Attempts, float]] = {}

    @contextmanager
    def observed(self, topology: Topology, statistics: RunStatistics) -> Iterator[None]:
        """Encloses the run, from its beginning to its end, however that is."""
        self._observers.tell(RunBegan(topology.topology_id, statistics, topology.message_timeout_s))
        try:
            yield
        except BaseException as error:
            self._observers.tell(RunEnded(error))
            raise
        self._observers.tell(RunEnded(None))

    def turned(self, *, is_idle: bool) -> None:
        """Called at the end of every turn."""
        if self._observers:
            self._observers.tell(TurnEnded(is_idle))

    def happened(self, event: RunEvent) -> None:
        """Called with every event, before it is handled."""
        match event:
            case WaveProcessed(wave_id, outcomes) if self._observers:
                attempts, seconds = self._wave(wave_id)
                self._observers.tell(WaveEnded(wave_id, attempts, seconds, outcomes))
            case WaveCrashed(wave_id, reason) if self._observers:
                self._observers.tell(WaveEnded(wave_id, *self._wave(wave_id), crash=reason))
            case _:
                pass

    def carry_out(self, decision: Decision, carry_out: Callable[[Decision], RunEvent | None]) -> RunEvent | None:
        """Has a decision carried out, and returns the answer."""
        if not self._observers:
            return carry_out(decision)
        if isinstance(decision, Publish):
            return self._publish(decision, carry_out)
        answer = carry_out(decision)
        match decision:
            case StartWave(wave_id, batches):
                attempts = tuple(batch.attempt for batch in batches)
                self._waves[wave_id] = attempts, self._clock()
                self._observers.tell(WaveStarted(wave_id, attempts))
            case Issued(attempts):
                self._observers.tell(AttemptsIssued(attempts))
            case Dropped(attempts, phase, reason, cause):
                self._observers.tell(AttemptsFailed(attempts, phase, cause, reason))
            case _:
                pass
        return answer

    def _publish(self, publish: Publish, carry_out: Callable[[Decision], RunEvent | None]) -> RunEvent | None:
        started_s = self._clock()
        answer = carry_out(publish)
        if isinstance(answer, Published):
            seconds, count = self._clock() - started_s, publish.write_set.operations()
            self._observers.tell(GroupCommitted(publish.attempts, seconds, count, answer.byte_count))
        return answer

    def _wave(self, wave_id: int) -> tuple[Attempts, float]:
        now_s = self._clock()
        attempts, started_s = self._waves.pop(wave_id, ((), now_s))
        return attempts, now_s - started_s
