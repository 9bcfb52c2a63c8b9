"""Tells a run's observers what its events and decisions mean: the one place where a transactional run is observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coordinator.run_observer import (
    AttemptReplayed,
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    Observers,
    RunBegan,
    RunEnded,
    TransactionCut,
    TurnEnded,
    WaveEnded,
    WaveStarted,
)
from coordinator.transactional.engine import GroupExecuted, WaveCrashed, WaveProcessed
from coordinator.transactional.machine.run_events import (
    Attempts,
    BatchCut,
    Cut,
    Decision,
    Dropped,
    Issued,
    Publish,
    Published,
    Replayed,
    RunEvent,
    StartWave,
)


class ObserverSide:
    """The observers of one transactional run; does nothing, and reads no clock, if there are none.

    Args:
        observers: of the run.
        clock: seconds, monotonic.
    """

    def __init__(self, observers: Observers, clock: Callable[[], float]) -> None:
        self._observers, self._clock = observers, clock
        self._waves: dict[int, tuple[Attempts, float]] = {}
        self._cuts: list[BatchCut] = []
        self._executed: GroupExecuted | None = None
        self._error: BaseException | None = None

    @contextmanager
    def told_of_the_end(self) -> Iterator[None]:
        """Encloses everything that a run does once it owns its topology, and tells how it ended."""
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            self._observers.tell(RunEnded(self._error))

    def began(self, began: RunBegan) -> None:
        """Called once, before the first turn."""
        self._observers.tell(began)

    def failed(self, error: BaseException) -> None:
        """Called with what ends the run, as soon as it is raised; the first one counts."""
        self._error = self._error or error

    def turned(self, *, is_idle: bool, has_progressed: bool) -> None:
        """Called at the end of every turn."""
        if self._observers:
            self._observers.tell(TurnEnded(is_idle, has_progressed))

    def happened(self, event: RunEvent) -> None:
        """Called with every event of the engine, before it is handled."""
        if not self._observers:
            return
        match event:
            case WaveProcessed(wave_id, outcomes):
                attempts, seconds = self._wave(wave_id)
                self._observers.tell(WaveEnded(wave_id, attempts, seconds, outcomes))
            case WaveCrashed(wave_id, reason):
                self._observers.tell(WaveEnded(wave_id, *self._wave(wave_id), crash=reason))
            case GroupExecuted():
                self._executed = event
            case _:
                pass

    def carry_out(self, decision: Decision, carry_out: Callable[[Decision], RunEvent | None]) -> RunEvent | None:
        """Has a decision carried out, and returns the answer."""
        if not self._observers:
            return carry_out(decision)
        started_s = self._clock() if isinstance(decision, Publish) else 0.0
        answer = carry_out(decision)
        match decision:
            case Cut():
                if isinstance(answer, BatchCut):
                    self._cuts.append(answer)
            case Issued(attempts):
                cuts = tuple(TransactionCut(cut.txid, cut.now_s, cut.byte_count) for cut in self._cuts)
                self._cuts.clear()
                self._observers.tell(AttemptsIssued(attempts, cuts))
            case StartWave(wave_id, batches):
                attempts = tuple(batch.attempt for batch in batches)
                self._waves[wave_id] = attempts, self._clock()
                self._observers.tell(WaveStarted(wave_id, attempts))
            case Publish():
                if isinstance(answer, Published):
                    self._committed(decision, self._clock() - started_s, answer.byte_count)
            case Dropped(attempts, phase, reason, cause, suspects):
                self._observers.tell(AttemptsFailed(attempts, phase, cause, reason, suspects))
            case Replayed(attempt, reason, wave_id):
                self._observers.tell(AttemptReplayed(attempt, reason, wave_id))
            case _:
                pass
        return answer

    def _committed(self, publish: Publish, seconds: float, byte_count: int) -> None:
        (executed, self._executed), replay = (self._executed, None), publish.replay
        is_of_group = executed is not None and executed.attempts[0] == publish.attempts[0]
        committed = GroupCommitted(
            publish.attempts,
            seconds,
            publish.write_set.operations(),
            byte_count,
            reports=executed.reports if executed is not None and is_of_group else (),
            is_set_aside=publish.poison is not None,
            replayed_txid=0 if replay is None or replay.letters else replay.txid,
            replayed_letters=0 if replay is None else len(replay.letters),
        )
        self._observers.tell(committed)

    def _wave(self, wave_id: int) -> tuple[Attempts, float]:
        now_s = self._clock()
        attempts, started_s = self._waves.pop(wave_id, ((), now_s))
        return attempts, now_s - started_s
