"""Collects the metrics of a run from its observations, for prometheus_client. Pure.

The run's thread writes, and other threads read. A reader never sees half-changed statistics: the run's thread makes a
complete set of metrics at intervals, and readers take the last one.
"""

from __future__ import annotations

import importlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from coordinator.watching.failure_cause import FailureCause
from coordinator.watching.run_observer import (
    AttemptsIssued,
    GroupCommitted,
    Observation,
    RunBegan,
    RunEnded,
    TurnEnded,
    WaveEnded,
)
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.statistics.wave_statistics import WaveStatistics
from state.attempt import Attempts
from state.errors import TopologyError

MISSING = "metrics need {module}, which is not installed; run: pip install 'txbatch[metrics]'"
EVERY_S = 0.25
"""The largest age of the metrics while the run's loop turns, in seconds."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
GROUP_SIZES = tuple(2**power for power in range(11))
TRACKED_MAX = 100_000
"""Most transactions whose time is measured: far more than any window, but bounded."""


def prometheus_client(module: str = "prometheus_client") -> Any:
    """Returns a module of the library.

    Raises:
        TopologyError: the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise TopologyError(MISSING.format(module="prometheus_client")) from error


class RunMetrics:
    """Observes a run of either kind; a `CollectorRegistry` may ask for its metrics at any time, on any thread.

    Args:
        topology_id: the first label of each sample.
        clock: seconds, monotonic; the clock of the run's statistics.
        wall_clock: seconds since the epoch.
    """

    def __init__(self, topology_id: str, clock: Callable[[], float], wall_clock: Callable[[], float]) -> None:
        self._topology_id, self._clock, self._wall_clock = topology_id, clock, wall_clock
        self._statistics: WaveStatistics | None = None
        self._made: tuple[Any, ...] = ()
        self._made_s: float | None = None
        self._turned_at = self._committed_at = 0.0
        self._crashed_waves = 0
        self._wave_s, self._commit_s, self._transaction_s = _Buckets(SECONDS), _Buckets(SECONDS), _Buckets(SECONDS)
        self._group_sizes = _Buckets(GROUP_SIZES)
        self._issued_s: dict[int, float] = {}

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case RunBegan(statistics=statistics):
                self._statistics = statistics
                self._make()
            case AttemptsIssued(attempts):
                self._issued(attempts)
            case WaveEnded(seconds=seconds, crash=crash):
                self._wave_s.observe(seconds)
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

    def collect(self) -> tuple[Any, ...]:
        """Returns the last set of metrics, empty before the run began; called for each scrape, on any thread."""
        return self._made

    def describe(self) -> list[Any]:
        """Returns no metrics: there are none before the run begins, and no other collector uses their names."""
        return []

    def _issued(self, attempts: Attempts) -> None:
        now_s = self._clock()
        for attempt in attempts:
            if len(self._issued_s) < TRACKED_MAX:
                self._issued_s.setdefault(attempt.txid, now_s)  # a replay counts from the first attempt

    def _committed(self, group: GroupCommitted) -> None:
        self._commit_s.observe(group.seconds)
        self._group_sizes.observe(len(group.attempts))
        self._committed_at, now_s = self._wall_clock(), self._clock()
        for attempt in group.attempts:
            issued_s = self._issued_s.pop(attempt.txid, None)
            if issued_s is not None:
                self._transaction_s.observe(now_s - issued_s)

    def _make(self) -> None:
        self._made_s = self._clock()
        statistics, families = self._statistics, _Families(self._topology_id)
        if statistics is None:
            return
        made = [*self._of_waves(families, statistics), *_of_components(families, statistics)]
        if isinstance(statistics, RunStatistics):
            made += self._of_transactions(families, statistics)
        made += (families.counter(*counted) for counted in statistics.own_counters())
        self._made = tuple(made)

    def _of_waves(self, of: _Families, statistics: WaveStatistics) -> Iterator[Any]:
        yield of.gauge(
            "txbatch_last_turn_timestamp_seconds",
            "When the driver last went through its loop, in Unix time.",
            self._turned_at or None,
        )
        yield of.counter("txbatch_waves", "Waves sent to Spark.", statistics.waves)
        yield of.counter(
            "txbatch_crashed_waves", "Waves without a result: a worker died, or hung.", self._crashed_waves
        )
        yield of.histogram("txbatch_wave_seconds", "Time from sending a wave to Spark to its end.", self._wave_s)

    def _of_transactions(self, of: _Families, statistics: RunStatistics) -> Iterator[Any]:
        yield of.gauge("txbatch_committed_txid", "Last committed transaction, over all runs.", statistics.last_txid)
        yield of.gauge(
            "txbatch_released_txid",
            "Last transaction known to be as durable as the run has asked, and released upstream.",
            statistics.released_txid,
        )
        yield of.counter("txbatch_committed_transactions", "Transactions this run committed.", statistics.committed)
        yield of.counter("txbatch_committed_tuples", "Tuples the spout emitted in them.", statistics.tuples)
        yield of.counter("txbatch_commit_groups", "Atomic commits.", statistics.commit_groups)
        yield of.histogram(
            "txbatch_commit_seconds", "Time from sending a commit to the server to its answer.", self._commit_s
        )
        yield of.histogram(
            "txbatch_commit_group_transactions", "Transactions committed in one atomic step.", self._group_sizes
        )
        yield of.histogram(
            "txbatch_transaction_seconds", "Time from a transaction's first attempt to its commit.", self._transaction_s
        )
        yield of.gauge(
            "txbatch_commit_lag_seconds",
            "Time since the last commit while transactions are in flight; 0 while none are.",
            statistics.commit_lag_s(self._clock()),
        )
        yield of.gauge(
            "txbatch_last_commit_timestamp_seconds",
            "When this run last committed, in Unix time.",
            self._committed_at or None,
        )
        yield of.counter("txbatch_attempts", "Attempts sent to Spark.", statistics.attempts)
        yield of.counters(
            "txbatch_failed_attempts",
            "Attempts that failed, or were dropped with a lower one.",
            "reason",
            {cause.value: statistics.failures[cause.value] for cause in FailureCause},
        )
        yield of.gauge("txbatch_active_attempts", "Attempts in flight, from issue to commit.", statistics.active)
        yield of.gauge(
            "txbatch_input_cut_ratio", "Part of a finite input that is cut into transactions.", statistics.fraction
        )
        yield of.counter(
            "txbatch_server_absences",
            "Times the state's server was away or answered late.",
            statistics.server_away_count,
        )
        yield of.counter("txbatch_server_away_seconds", "Time it was away.", statistics.server_away_s)
        yield of.gauge(
            "txbatch_waiting_for_executors",
            "Whether Spark runs no task because it has no executor for the run: 1 or 0.",
            float(statistics.lacks_executors),
        )
        yield of.counter("txbatch_quarantined_batches", "Batches this run has set aside.", len(statistics.quarantined))
        yield of.counter("txbatch_dead_letters", "Tuples that were refused and stored.", statistics.dead_letters)


def _of_components(of: _Families, statistics: WaveStatistics) -> Iterator[Any]:
    work = {component_id: done.work for component_id, done in sorted(statistics.components.items())}
    executed = {name: sum(done.executed.values()) for name, done in work.items()}
    emitted = {name: sum(done.emitted.values()) for name, done in work.items()}
    busy = {name: (sum(done.execute_ns.values()) + done.finish_ns) / 1e9 for name, done in work.items()}
    yield of.counters(
        "txbatch_component_executed_tuples", "Tuples a component executed, repeats included.", "component", executed
    )
    yield of.counters(
        "txbatch_component_emitted_tuples", "Tuples a component emitted, repeats included.", "component", emitted
    )
    yield of.counters(
        "txbatch_component_busy_seconds", "Time a component's tasks spent in user code.", "component", busy
    )


class _Buckets:
    """Counts observations by size.

    Args:
        bounds: the upper ends of the buckets, ascending; one more bucket takes larger values.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts one observation."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def running(self) -> list[tuple[str, int]]:
        """Returns the upper end of each bucket, with the number of observations up to it."""
        ends = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        return list(zip(ends, accumulate(self._counts), strict=True))


class _Families:
    """Makes prometheus_client's families of metrics, with the topology as the first label of each sample."""

    def __init__(self, topology_id: str) -> None:
        self._topology_id = topology_id
        self._core = prometheus_client("prometheus_client.core")

    def counter(self, name: str, help: str, value: float) -> Any:  # noqa: A002 - Prometheus' word
        """Returns a counter; `name` is without ``_total``."""
        family = self._core.CounterMetricFamily(name, help, labels=["topology"])
        family.add_metric([self._topology_id], value)
        return family

    def counters(self, name: str, help: str, label: str, values: Mapping[str, float]) -> Any:  # noqa: A002
        """Returns a counter with a second label; `values` maps the label's values to counts."""
        family = self._core.CounterMetricFamily(name, help, labels=["topology", label])
        for labelled, value in values.items():
            family.add_metric([self._topology_id, labelled], value)
        return family

    def gauge(self, name: str, help: str, value: float | None) -> Any:  # noqa: A002
        """Returns a gauge; if its value is unknown, it has no sample."""
        family = self._core.GaugeMetricFamily(name, help, labels=["topology"])
        if value is not None:
            family.add_metric([self._topology_id], value)
        return family

    def histogram(self, name: str, help: str, counted: _Buckets) -> Any:  # noqa: A002
        """Returns a histogram."""
        family = self._core.HistogramMetricFamily(name, help, labels=["topology"])
        family.add_metric([self._topology_id], counted.running(), counted.total)
        return family
