"""The interface between coordinator and engine (commands in, events out), and an engine that starts late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure
from coordinator.spouts.batch import Batch
from coordinator.watching.failure_cause import CrashKind
from state.attempt import TransactionAttempt


@dataclass(frozen=True, slots=True)
class EarlyCommit:
    """The groups whose commit phase is to run together with the processing phase.

    Attributes:
        groups: the attempts of the wave in order, cut into groups; empty to run none early.
        composed: see `Engine.commit`.
    """

    groups: tuple[tuple[TransactionAttempt, ...], ...] = ()
    composed: bool = True


@dataclass(frozen=True, slots=True)
class GroupExecuted:
    """The commit phase of a group has run; nothing is published yet.

    Attributes:
        wave_id: the wave of the attempts.
        attempts: the group, ascending.
        reports: one from each commit task.
    """

    wave_id: int
    attempts: tuple[TransactionAttempt, ...]
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class WaveProcessed:
    """The processing phase of a wave has ended; each attempt has its own outcome.

    Attributes:
        wave_id: the wave.
        outcomes: the ackers' result for each attempt.
        executed: groups whose commit phase ran early; perhaps fewer than were asked for, or none.
        seconds: the phase's duration; 0 if it was not measured.
    """

    wave_id: int
    outcomes: tuple[AttemptResult, ...]
    executed: tuple[GroupExecuted, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WaveCrashed:
    """The processing phase of a wave ended without naming an attempt: a worker died, or something hung."""

    wave_id: int
    reason: str
    kind: CrashKind = CrashKind.LOST


@dataclass(frozen=True, slots=True)
class GroupCrashed:
    """The commit phase of a group ended without a report."""

    wave_id: int
    attempts: tuple[TransactionAttempt, ...]
    reason: str
    kind: CrashKind = CrashKind.LOST


@dataclass(frozen=True, slots=True)
class PhaseWaits:
    """None of these waves' tasks is running, for instance because Spark has no executor; reported repeatedly.

    Attributes:
        wave_ids: the waiting waves.
    """

    wave_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterNoted:
    """The state of the engine's cluster has changed.

    Attributes:
        story: what is wrong with the cluster, in one line; "" once all is well.
        lacks_executors: the run makes no progress, because it has no executor.
    """

    story: str = ""
    lacks_executors: bool = False


@dataclass(frozen=True, slots=True)
class FailedByHand:
    """An attempt fails although its phase has succeeded; only `LocalCluster` lets its user do that.

    Attributes:
        attempt: the attempt that fails.
        failure: why.
        executed: the attempt's group, whose commit phase has run but was not reported; None to fail the processing
            phase.
    """

    attempt: TransactionAttempt
    failure: Failure
    executed: GroupExecuted | None = None


PhaseEvent = WaveProcessed | WaveCrashed | GroupExecuted | GroupCrashed | FailedByHand | PhaseWaits
"""How the phases of waves and groups end."""
Event = PhaseEvent | ClusterNoted


class Engine(Protocol):
    """Runs waves. Every command returns at once; `next_event` reports its result.

    At most one wave is in its processing phase and one group in its commit phase at a time; `overlaps` says whether
    both may run at the same time, `queues` whether one more wave may be given meanwhile.
    """

    overlaps: bool
    queues: bool

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Starts the processing phase of a wave, together with the commit phase of the groups in `early`.

        The engine must refuse state reads by these committers, because transactions below their group may be
        uncommitted. An engine may ignore `early`.

        Args:
            wave_id: chosen by the coordinator, different for each wave.
            batches: one for each attempt, ascending.
            stored: scope -> txid -> metadata of partitions, from which emitters continue.
            early: groups to run early.
        """

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """Starts the commit phase of some attempts of a processed wave.

        Args:
            wave_id: the wave of the attempts.
            attempts: consecutive, ascending.
            composed: whether each task may report one composed write set instead of one for each transaction.
        """

    def cancel(self, wave_id: int) -> None:
        """Cancels the running work of a wave; its event still arrives."""

    def release(self, wave_id: int) -> None:
        """Frees everything kept for a wave; its events no longer matter."""

    def next_event(self, timeout_s: float) -> Event | None:
        """Returns the next event, or None after the timeout.

        Raises:
            EngineError: the engine can run nothing more.
        """

    def close(self) -> None:
        """Cancels all running work and frees everything."""


class LateEngine:
    """An engine that starts on `begin`, on the first wave, or when the run first waits for an event (driver).

    Args:
        start: starts the engine; called once at most, on the run's thread.
        overlaps: the engine's value.
        queues: the engine's value.
    """

    def __init__(self, start: Callable[[], Engine], *, overlaps: bool, queues: bool = False) -> None:
        self.overlaps, self.queues = overlaps, queues
        self._start = start
        self._engine: Engine | None = None
        self._waits: PhaseWaits | None = None

    def begin(self) -> None:
        """Starts the engine, unless it has started."""
        self._started()

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """See `Engine.process`; the time of the start does not count as the wave's."""
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
        """See `Engine.close`: the code that started the engine closes it."""

    def _started(self) -> Engine:
        if self._engine is None:
            self._engine = self._start()
        return self._engine
