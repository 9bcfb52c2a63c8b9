"""Keeps the figures of a run from what happens in it: events and decisions in, figures out. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.transactional.engine import WaveProcessed
from coordinator.transactional.machine.run_events import (
    BatchCut,
    Decision,
    Dropped,
    Halt,
    Publish,
    Published,
    Refused,
    RunEvent,
    StartWave,
)
from coordinator.transactional.pulse.failure_kinds import count_dropped
from coordinator.transactional.pulse.gist import gist
from coordinator.transactional.run_summary import RunStatistics
from state.attempt import TransactionAttempt
from state.records.run_pulse import ComponentFigures, LastFailure, PulseSample, RunFigures, RunState, Spread

RECENT = 512
"""How many durations a spread is made of."""
RATE_SPAN_S = 10.0


class PulseBook:
    """The figures of one run; told of everything on the coordinator's thread.

    Args:
        epoch_s: what to add to the run's clock to get seconds since the epoch.
    """

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._failures: Counter[str] = Counter()
        self._last_failure: LastFailure | None = None
        self._first_cut_s: dict[int, float] = {}
        self._started: set[TransactionAttempt] = set()
        self._publishing: tuple[tuple[TransactionAttempt, ...], float] = ((), 0.0)
        self._latencies, self._commits, self._waves = (deque[float](maxlen=RECENT) for _ in range(3))
        self._totals: deque[tuple[float, int, int]] = deque()
        self._error = ""
        self._end: RunState | None = None
        self.is_draining = False

    # What happens

    def heard(self, event: RunEvent, now_s: float) -> None:
        """Takes an event, before the machine handles it."""
        match event:
            case BatchCut(txid=txid):
                self._first_cut_s.setdefault(txid, now_s)
            case WaveProcessed(seconds=seconds) if seconds:
                self._waves.append(seconds)
            case Published():
                self._published(now_s)
            case Refused():
                self._publishing = ((), 0.0)

    def decided(self, decision: Decision, now_s: float, kind: str = "") -> None:
        """Takes a decision, before it is carried out.

        Args:
            decision: the decision.
            now_s: the time.
            kind: of the failure, if attempts are dropped.
        """
        match decision:
            case StartWave(batches=batches):
                for batch in batches:
                    self._started.add(batch.attempt)
                    self._first_cut_s.setdefault(batch.attempt.txid, now_s)  # cut by an earlier run
            case Publish(attempts=attempts):
                self._publishing = (attempts, now_s)
            case Dropped():
                self._dropped(decision, now_s, kind)
            case Halt(error=error):
                self.failed(error)

    def failed(self, error: BaseException) -> None:
        """Takes down what ends the run; the first one counts."""
        self.ended(RunState.FAILED, str(error))

    def ended(self, state: RunState, error: str = "") -> None:
        """Takes down how the run has ended; the first one counts."""
        if self._end is None:
            self._end, self._error = state, gist(error)

    # What is told

    def figures(
        self, statistics: RunStatistics, window: Mapping[str, int], now_s: float, *, is_waiting: bool
    ) -> RunFigures:
        """Returns the figures at this moment; called about once a second."""
        transactions_per_s, tuples_per_s = self._rates(statistics, now_s)
        return RunFigures(
            at=round(self._epoch_s + now_s, 3),
            state=self._state(statistics, is_waiting=is_waiting),
            error=self._error,
            last_txid=statistics.last_txid,
            released_txid=statistics.released_txid,
            committed=statistics.committed,
            tuples=statistics.tuples,
            attempts=statistics.attempts,
            failed_attempts=statistics.failed_attempts,
            waves=statistics.waves,
            commit_groups=statistics.commit_groups,
            window=dict(window),
            transactions_per_s=round(transactions_per_s, 2),
            tuples_per_s=round(tuples_per_s, 1),
            lag_s=round(_lag_s(statistics, window, now_s), 3),
            fraction=statistics.fraction,
            latency_s=spread_of(self._latencies),
            commit_s=spread_of(self._commits),
            wave_s=spread_of(self._waves),
            components={name: component_figures(done) for name, done in sorted(statistics.components.items())},
            failures=dict(sorted(self._failures.items())),
            last_failure=self._last_failure,
            server_away_count=statistics.server_away_count,
            server_away_s=round(statistics.server_away_s, 3),
            quarantined=len(statistics.quarantined),
            dead_letters=statistics.dead_letters,
        )

    def _state(self, statistics: RunStatistics, *, is_waiting: bool) -> RunState:
        if self._end is not None:
            return self._end
        if is_waiting:
            return RunState.WAITING
        if self.is_draining:
            return RunState.DRAINING
        return RunState.STARTING if statistics.first_wave_s is None else RunState.RUNNING

    def _published(self, now_s: float) -> None:
        (attempts, sent_s), self._publishing = self._publishing, ((), 0.0)
        self._commits.append(now_s - sent_s)
        for attempt in attempts:
            self._started.discard(attempt)
            cut_s = self._first_cut_s.pop(attempt.txid, None)
            if cut_s is not None:
                self._latencies.append(now_s - cut_s)

    def _dropped(self, dropped: Dropped, now_s: float, kind: str) -> None:
        """Counts what was dropped; attempts that no wave had taken did not fail."""
        if not dropped.attempts:
            return
        first = dropped.attempts[0]
        started = self._started.intersection(dropped.attempts)
        count_dropped(self._failures, kind, len(started), is_first_started=first in started)
        self._started -= started
        reason = gist(dropped.reason)
        last_txid = dropped.suspects[-1].txid if dropped.suspects else first.txid
        at = round(self._epoch_s + now_s, 3)
        self._last_failure = LastFailure(first.txid, str(first), kind, reason, at, last_txid)

    def _rates(self, statistics: RunStatistics, now_s: float) -> tuple[float, float]:
        """Returns transactions and tuples committed a second, over about the last `RATE_SPAN_S` seconds."""
        totals = self._totals
        if not totals and statistics.first_wave_s is not None:
            totals.append((statistics.first_wave_s, 0, 0))
        totals.append((now_s, statistics.committed, statistics.tuples))
        while len(totals) > 2 and totals[1][0] <= now_s - RATE_SPAN_S:
            totals.popleft()
        started_s, transactions, tuples = totals[0]
        seconds = now_s - started_s
        if seconds <= 0:
            return 0.0, 0.0
        return (statistics.committed - transactions) / seconds, (statistics.tuples - tuples) / seconds


def sample_of(figures: RunFigures) -> PulseSample:
    """Returns what is kept of figures for some minutes."""
    return PulseSample(
        at=figures.at,
        last_txid=figures.last_txid,
        transactions_per_s=figures.transactions_per_s,
        tuples_per_s=figures.tuples_per_s,
        lag_s=figures.lag_s,
        processing=figures.window.get("processing", 0),
        processed=figures.window.get("processed", 0),
        committing=figures.window.get("committing", 0),
        latency_s=figures.latency_s.p50,
        commit_s=figures.commit_s.p50,
        wave_s=figures.wave_s.p50,
        failed_attempts=figures.failed_attempts,
    )


def spread_of(durations: Iterable[float]) -> Spread:
    """Returns how durations are spread, rounded to a tenth of a millisecond."""
    ordered = sorted(durations)
    if not ordered:
        return Spread()
    last = len(ordered) - 1
    p50, p95, p99 = (round(ordered[round(part * last)], 4) for part in (0.5, 0.95, 0.99))
    return Spread(len(ordered), p50, p95, p99, round(ordered[last], 4))


def component_figures(done: ComponentMetrics) -> ComponentFigures:
    """Returns what a component has done, streams added up."""
    return ComponentFigures(
        tuples_in=sum(done.work.executed.values()),
        tuples_out=sum(done.work.emitted.values()),
        failed=sum(done.failed.values()),
        dead_letters=done.work.dead_letters,
        busy_s=round((sum(done.work.execute_ns.values()) + done.work.finish_ns) / 1e9, 3),
    )


def _lag_s(statistics: RunStatistics, window: Mapping[str, int], now_s: float) -> float:
    since = statistics.last_result_s or statistics.first_wave_s
    return 0.0 if since is None or not any(window.values()) else max(0.0, now_s - since)
