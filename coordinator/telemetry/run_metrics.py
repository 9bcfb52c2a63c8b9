"""Collects the metrics of a run from what is observed of it. Pure.

The run's thread writes, and other threads read. A reader never sees statistics half changed: the run's thread makes a
whole set of measures now and then, and readers take the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coordinator.plain.run_summary import PlainStatistics
from coordinator.run_observer import (
    AttemptsIssued,
    GroupCommitted,
    Observation,
    RunBegan,
    RunEnded,
    TurnEnded,
    WaveEnded,
)
from coordinator.telemetry.measures import Histogram, Measure
from coordinator.transactional.failure_cause import FailureCause
from coordinator.transactional.run_summary import RunStatistics
from coordinator.wave_statistics import WaveStatistics
from state.attempt import Attempts

EVERY_S = 0.25
"""How old the measures may be while the run turns, in seconds."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
GROUP_SIZES = tuple(2**power for power in range(11))
Values = dict[tuple[str, ...], float]
TRACKED_MAX = 100_000
"""Most transactions whose time is taken: far more than any window, but not without a bound."""


class RunMetrics:
    """Observes a run of either kind, and can give its measures at any time.

    Args:
        clock: seconds, monotonic; the one of the run's statistics.
        wall_clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float], wall_clock: Callable[[], float]) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._statistics: WaveStatistics | None = None
        self._made: tuple[Measure, ...] = ()
        self._made_s: float | None = None
        self._turned_at = self._committed_at = 0.0
        self._crashed_waves = 0
        self._waves = Histogram("txbatch_wave_seconds", "Time from sending a wave to Spark to its end.", SECONDS)
        self._commits = Histogram(
            "txbatch_commit_seconds", "Time from sending a commit to the server to its answer.", SECONDS
        )
        self._transactions = Histogram(
            "txbatch_transaction_seconds", "Time from a transaction's first attempt to its commit.", SECONDS
        )
        self._groups = Histogram(
            "txbatch_commit_group_transactions", "Transactions committed in one atomic step.", GROUP_SIZES
        )
        self._issued_s: dict[int, float] = {}

    def __call__(self, observation: Observation) -> None:
        """Takes what has happened; see `coordinator.run_observer`."""
        match observation:
            case RunBegan(statistics=statistics):
                self._statistics = statistics
                self._make()
            case AttemptsIssued(attempts):
                self._issued(attempts)
            case WaveEnded(seconds=seconds, crash=crash):
                self._waves.observe(seconds)
                self._crashed_waves += crash is not None
            case GroupCommitted():
                self._committed(observation)
            case TurnEnded():
                self._turned_at = self._wall_clock()
                if self._made_s is None or self._clock() - self._made_s >= EVERY_S:
                    self._make()
            case RunEnded():
                self._make()
            case _:
                pass

    def measures(self) -> tuple[Measure, ...]:
        """Returns the last set of measures, empty before the run began; any thread."""
        return self._made

    def _issued(self, attempts: Attempts) -> None:
        now_s = self._clock()
        for attempt in attempts:
            if len(self._issued_s) < TRACKED_MAX:
                self._issued_s.setdefault(attempt.txid, now_s)  # a replay began with its first attempt

    def _committed(self, group: GroupCommitted) -> None:
        self._commits.observe(group.seconds)
        self._groups.observe(len(group.attempts))
        self._committed_at, now_s = self._wall_clock(), self._clock()
        for attempt in group.attempts:
            issued_s = self._issued_s.pop(attempt.txid, None)
            if issued_s is not None:
                self._transactions.observe(now_s - issued_s)

    def _make(self) -> None:
        self._made_s = self._clock()
        statistics = self._statistics
        if statistics is None:
            return
        made = [*self._of_waves(statistics), *_of_components(statistics)]
        if isinstance(statistics, RunStatistics):
            made += self._of_transactions(statistics)
        elif isinstance(statistics, PlainStatistics):
            made += _of_messages(statistics)
        self._made = tuple(made)

    def _of_waves(self, statistics: WaveStatistics) -> Iterator[Measure]:
        yield Measure.gauge(
            "txbatch_last_turn_timestamp_seconds",
            "When the driver last went through its loop, in Unix time.",
            self._turned_at or None,
        )
        yield _counter("txbatch_waves", "Waves sent to Spark.", statistics.waves)
        yield _counter(
            "txbatch_crashed_waves",
            "Waves without a result: a worker died, or hung.",
            self._crashed_waves,
        )
        yield self._waves.measure()

    def _of_transactions(self, statistics: RunStatistics) -> Iterator[Measure]:
        yield Measure.gauge(
            "txbatch_committed_txid", "Last committed transaction, over all runs.", statistics.last_txid
        )
        yield Measure.gauge(
            "txbatch_released_txid",
            "Last transaction known to be as durable as the run has asked, and released upstream.",
            statistics.released_txid,
        )
        yield _counter("txbatch_committed_transactions", "Transactions this run committed.", statistics.committed)
        yield _counter("txbatch_committed_tuples", "Tuples the spout emitted in them.", statistics.tuples)
        yield _counter("txbatch_commit_groups", "Atomic commits.", statistics.commit_groups)
        yield self._commits.measure()
        yield self._groups.measure()
        yield self._transactions.measure()
        yield Measure.gauge(
            "txbatch_commit_lag_seconds",
            "Time since the last commit while transactions are in flight; 0 while none are.",
            statistics.commit_lag_s(self._clock()),
        )
        yield Measure.gauge(
            "txbatch_last_commit_timestamp_seconds",
            "When this run last committed, in Unix time.",
            self._committed_at or None,
        )
        yield _counter("txbatch_attempts", "Attempts sent to Spark.", statistics.attempts)
        causes: Values = {(cause.value,): float(statistics.failures[cause.value]) for cause in FailureCause}
        yield Measure.counter(
            "txbatch_failed_attempts", "Attempts that failed, or were dropped with a lower one.", causes, "reason"
        )
        yield Measure.gauge("txbatch_active_attempts", "Attempts in flight, from issue to commit.", statistics.active)
        yield Measure.gauge(
            "txbatch_input_cut_ratio", "Part of a finite input that is cut into transactions.", statistics.fraction
        )
        yield _counter(
            "txbatch_server_absences",
            "Times the state's server was away or answered late.",
            statistics.server_away_count,
        )
        yield _counter("txbatch_server_away_seconds", "Time it was away.", statistics.server_away_s)
        yield _counter("txbatch_quarantined_batches", "Batches this run has set aside.", len(statistics.quarantined))
        yield _counter("txbatch_dead_letters", "Tuples that were refused and stored.", statistics.dead_letters)


def _of_messages(statistics: PlainStatistics) -> Iterator[Measure]:
    yield _counter("txbatch_emitted_tuples", "Tuples the spouts emitted, replays included.", statistics.emitted)
    yield _counter("txbatch_acked_messages", "Messages that were processed.", statistics.acked)
    yield _counter("txbatch_failed_messages", "Messages that failed.", statistics.failed)


def _of_components(statistics: WaveStatistics) -> Iterator[Measure]:
    executed: Values = {}
    emitted: Values = {}
    spent: Values = {}
    for component_id, component in sorted(statistics.components.items()):
        work = component.work
        executed[component_id,] = sum(work.executed.values())
        emitted[component_id,] = sum(work.emitted.values())
        spent[component_id,] = (sum(work.execute_ns.values()) + work.finish_ns) / 1e9
    yield Measure.counter(
        "txbatch_component_executed_tuples",
        "Tuples a component executed, repeats included.",
        executed,
        "component",
    )
    yield Measure.counter(
        "txbatch_component_emitted_tuples", "Tuples a component emitted, repeats included.", emitted, "component"
    )
    yield Measure.counter(
        "txbatch_component_busy_seconds", "Time a component's tasks spent in user code.", spent, "component"
    )


def _counter(name: str, help: str, value: float) -> Measure:  # noqa: A002 - Prometheus' word
    return Measure.counter(name, help, {(): float(value)})
