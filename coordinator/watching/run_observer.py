"""The observations of a run, of either kind, from which progress, pulse, logs, metrics and traces are made.

An observer is a function. The driver calls it on the run's thread, with one of the values below, right after the event.
It is called a few times for each wave and commit group, never for each tuple.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from committers.task_report import TaskReport, Work
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.watching.statistics.wave_statistics import WaveStatistics
from state.attempt import Attempts, TransactionAttempt

_LOG = logging.getLogger("txbatch")


@dataclass(frozen=True, slots=True)
class RunCondition:
    """The condition of a run at one moment.

    Attributes:
        window: state -> number of attempts; empty in a plain topology.
        is_waiting: the run can only wait for its server.
        is_draining: the run was asked to drain, and commits the transactions in flight.
    """

    window: Mapping[str, int] = field(default_factory=dict)
    is_waiting: bool = False
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The run owns its topology and Spark is up; the first turn follows.

    Attributes:
        topology_id: the topology's id.
        statistics: the run's statistics; always the same object, which the run's thread changes.
        message_timeout_s: how long a wave may take, None for ever.
        condition: returns the run's condition; call it on the run's thread, and not often: it visits every attempt in
            flight.
    """

    topology_id: str
    statistics: WaveStatistics
    message_timeout_s: float | None
    condition: Callable[[], RunCondition] = field(default=RunCondition, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The driver has completed a turn of its loop; many times a second, even while there is nothing to do.

    Attributes:
        is_idle: no transaction is in flight.
        has_progressed: a phase of a wave or group has ended in this turn, and the statistics are up to date.
    """

    is_idle: bool
    has_progressed: bool = False


class TransactionCut(NamedTuple):
    """A transaction that the spout has cut.

    Attributes:
        txid: the transaction's txid.
        cut_s: when it was cut, in seconds by the run's clock.
        byte_count: size of its input by the spout's estimate, 0 if unknown.
    """

    txid: int
    cut_s: float
    byte_count: int


@dataclass(frozen=True, slots=True)
class AttemptsIssued:
    """Attempts were issued; the next wave with room takes them.

    Attributes:
        attempts: ascending.
        cuts: the transactions of these attempts that this run has cut.
    """

    attempts: Attempts
    cuts: tuple[TransactionCut, ...] = ()


@dataclass(frozen=True, slots=True)
class WaveStarted:
    """A wave was sent to Spark.

    Attributes:
        wave_id: its number in the run, from 1.
        attempts: its attempts, ascending; empty in a plain topology.
        tuple_count: in a plain topology, the tuples that spouts emitted into it; else 0.
    """

    wave_id: int
    attempts: Attempts = ()
    tuple_count: int = 0


@dataclass(frozen=True, slots=True)
class WaveEnded:
    """The processing phase of a wave has ended.

    Attributes:
        wave_id: the wave's number.
        attempts: as in `WaveStarted`.
        seconds: since the wave was started.
        outcomes: the results of its attempts; empty after a crash, and in a plain topology.
        crash: why the wave crashed; None if it did not.
        measured_s: how long the engine worked on it, in seconds; 0 if it was not measured.
    """

    wave_id: int
    attempts: Attempts
    seconds: float
    outcomes: tuple[AttemptResult, ...] = ()
    crash: str | None = None
    measured_s: float = 0.0

    def task_seconds(self) -> list[tuple[str, float]]:
        """Returns component ids with the time their tasks spent in user code, longest first; computed on demand."""
        spent: Counter[str] = Counter()
        for outcome in self.outcomes:
            for component_id, work in outcome.metrics.items():
                spent[component_id] += sum(work.execute_ns.values()) + work.finish_ns
        return [(component_id, ns / 1e9) for component_id, ns in spent.most_common() if ns]


@dataclass(frozen=True, slots=True)
class GroupCommitted:
    """A group of transactions was committed in one atomic step.

    Attributes:
        attempts: ascending.
        seconds: from sending the commit to its answer, repetitions included.
        operation_count: changes of state in the commit, dead letters left out.
        byte_count: size of the commit.
        reports: the commit tasks' reports, whose first results are for these attempts, in this order.
        is_set_aside: the only transaction is empty, because its batch was quarantined.
        republished_txid: the txid under which the batch of the only transaction was quarantined; 0 if it was not.
        republished_letters: how many dead letters the only transaction republishes.
        letter_count: dead letters stored with the group.
        expired_count: parts and fields of states that had expired when they were written.
    """

    attempts: Attempts
    seconds: float
    operation_count: int
    byte_count: int
    reports: tuple[TaskReport, ...] = ()
    is_set_aside: bool = False
    republished_txid: int = 0
    republished_letters: int = 0
    letter_count: int = 0
    expired_count: int = 0


@dataclass(frozen=True, slots=True)
class AttemptsFailed:
    """The first of these attempts has failed; the others are above it and were dropped with it.

    Attributes:
        attempts: ascending.
        phase: "processing" or "commit".
        cause: the cause in one word; see `FailureCause`.
        reason: the full reason.
        suspects: the attempts of a crash, if it is unknown which one failed; empty if it was the first.
        worked: the work of commit tasks that ran for them.
    """

    attempts: Attempts
    phase: str
    cause: str
    reason: str
    suspects: Attempts = ()
    worked: Work = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AttemptRetried:
    """An attempt failed and its transaction is retried; `AttemptsFailed` has the attempts dropped with it.

    Attributes:
        attempt: the attempt that has failed.
        reason: the full reason.
        wave_id: its wave; 0 without one.
    """

    attempt: TransactionAttempt
    reason: str
    wave_id: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run has ended, or could not begin although it owned its topology; nothing follows.

    Attributes:
        error: the error that ended it; None if it is done or was drained.
    """

    error: BaseException | None


Observation = (
    RunBegan
    | AttemptsIssued
    | WaveStarted
    | WaveEnded
    | GroupCommitted
    | AttemptsFailed
    | AttemptRetried
    | TurnEnded
    | RunEnded
)
Observer = Callable[[Observation], None]


class Observers:
    """Notifies all observers of a run; one that raises is logged once and removed.

    Args:
        observers: the run's observers.
    """

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = list(observers)
        self._error: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self._observers)

    def notify(self, observation: Observation) -> None:
        """Notifies every observer; never raises."""
        for observer in tuple(self._observers):
            try:
                observer(observation)
            except Exception:  # noqa: BLE001 - an observer must not end a run
                self._observers.remove(observer)
                _LOG.exception("observer %r raised and was removed; the run continues", observer)

    def failed(self, error: BaseException) -> None:
        """Records the error that ends the run as soon as it is raised: the caller may close the run without it."""
        self._error = self._error or error

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Encloses a run from the takeover on; observers are notified of its end."""
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            self.notify(RunEnded(self._error))
