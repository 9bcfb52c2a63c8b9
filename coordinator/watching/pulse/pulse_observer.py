"""Observes a run and makes its pulse: pure books on the coordinator's thread, and a writer on another thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.watching.failure_cause import FailureCause, gist
from coordinator.watching.pulse.pulse_writer import PulseWriter
from coordinator.watching.pulse.stories import Stories
from coordinator.watching.run_observer import (
    AttemptsFailed,
    GroupCommitted,
    Observation,
    RunBegan,
    RunCondition,
    RunEnded,
    TurnEnded,
    WaveEnded,
)
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.statistics.wave_statistics import RecentRates
from state.errors import Interruption
from state.records.run_pulse import (
    PULSE_EVERY_S,
    ComponentFigures,
    LastFailure,
    PulseSample,
    RunFigures,
    RunState,
    Spread,
    to_json,
)

RECENT = 512
"""How many recent durations a spread covers."""
SHARED_FIGURE_NAMES = tuple({each.name for each in fields(RunFigures)} & {each.name for each in fields(RunStatistics)})
"""Figures that the statistics have under the same name: a new one only has to be declared in both."""

SAMPLED = tuple(each.name for each in fields(PulseSample))
"""The names of sampled figures, or of states of attempts in the window."""


class PulseBook:
    """The figures of one run, and its stories; notified of all observations on the coordinator's thread.

    Args:
        epoch_s: seconds since the epoch at 0 of the run's clock.

    Attributes:
        stories: the stories of the run's transactions.
    """

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._last_failure: LastFailure | None = None
        self.stories = Stories(epoch_s)
        self._latencies, self._commit_seconds, self._wave_seconds = (deque[float](maxlen=RECENT) for _ in range(3))
        self._rates = RecentRates(2)
        self._error = ""
        self._end: RunState | None = None
        self._has_been_idle = False

    # Observing

    def note(self, observation: Observation, now_s: float) -> None:
        """Takes in an observation."""
        self._latencies.extend(now_s - story.cut_s for story in self.stories.note(observation, now_s))
        match observation:
            case TurnEnded(is_idle=is_idle):
                self._has_been_idle = self._has_been_idle or is_idle
            case WaveEnded(seconds=seconds, crash=None):
                self._wave_seconds.append(seconds)
            case GroupCommitted(seconds=seconds):
                self._commit_seconds.append(seconds)
            case AttemptsFailed(attempts, _, cause, reason, suspects):
                first, words = attempts[0], FailureCause(cause).words
                at = round(self._epoch_s + now_s, 3)
                last_txid = suspects[-1].txid if suspects else first.txid
                self._last_failure = LastFailure(first.txid, str(first), words, gist(reason), at, last_txid)
            case _:
                pass

    def ended(self, state: RunState, error: str = "") -> None:
        """Records how the run has ended; the first call counts."""
        if self._end is None:
            self._end, self._error = state, gist(error)

    # Storing

    def figures(self, statistics: RunStatistics, condition: RunCondition, now_s: float) -> RunFigures:
        """Returns the figures at this moment; called about once a second."""
        self._rates.update(now_s, statistics.first_wave_s, statistics.committed, statistics.tuples)
        transactions_per_s, tuples_per_s = self._rates.per_second(now_s)
        figures: dict[str, Any] = {name: getattr(statistics, name) for name in SHARED_FIGURE_NAMES}
        figures |= {
            "at": round(self._epoch_s + now_s, 3),
            "state": self._state(statistics, condition),
            "error": self._error,
            "window": dict(condition.window),
            "transactions_per_s": round(transactions_per_s, 2),
            "tuples_per_s": round(tuples_per_s, 1),
            "lag_s": round(statistics.since_commit_s(now_s) if any(condition.window.values()) else 0.0, 3),
            "latency_s": spread_of(self._latencies),
            "commit_s": spread_of(self._commit_seconds),
            "wave_s": spread_of(self._wave_seconds),
            "components": {name: component_figures(done) for name, done in sorted(statistics.components.items())},
            "failures": {FailureCause(cause).words: n for cause, n in sorted(statistics.failures.items())},
            "last_failure": self._last_failure,
            "server_away_s": round(statistics.server_away_s, 3),
            "quarantined": len(statistics.quarantined),
        }
        return RunFigures(**figures)

    def _state(self, statistics: RunStatistics, condition: RunCondition) -> RunState:
        if self._end is not None:
            return self._end
        if statistics.lacks_executors:
            return RunState.WITHOUT_EXECUTORS
        if condition.is_waiting:
            return RunState.WAITING
        if condition.is_draining:
            return RunState.DRAINING
        has_begun = self._has_been_idle or statistics.first_wave_s is not None
        return RunState.RUNNING if has_begun else RunState.STARTING


def sample_of(figures: RunFigures) -> PulseSample:
    """Returns the figures to keep for some minutes; a spread becomes its median."""
    found = {name: getattr(figures, name, figures.window.get(name, 0)) for name in SAMPLED}
    kept: dict[str, Any] = {name: each.p50 if isinstance(each, Spread) else each for name, each in found.items()}
    return PulseSample(**kept)


def spread_of(durations: Iterable[float]) -> Spread:
    """Returns the spread of durations, rounded to a tenth of a millisecond."""
    ordered = sorted(durations)
    if not ordered:
        return Spread()
    last = len(ordered) - 1
    p50, p95, p99 = (round(ordered[round(part * last)], 4) for part in (0.5, 0.95, 0.99))
    return Spread(len(ordered), p50, p95, p99, round(ordered[last], 4))


def component_figures(done: ComponentMetrics) -> ComponentFigures:
    """Returns a component's work, summed over streams."""
    return ComponentFigures(
        tuples_in=sum(done.work.executed.values()),
        tuples_out=sum(done.work.emitted.values()),
        failed=sum(done.failed.values()),
        dead_letters=done.work.dead_letters,
        busy_s=round((sum(done.work.execute_ns.values()) + done.work.finish_ns) / 1e9, 3),
    )


class PulseObserver:
    """The observer that makes the pulse of one transactional run.

    Args:
        start_writer: returns the writer, started; called once the run owns its topology.
        clock: seconds, monotonic; the clock of the run's statistics.
        epoch_s: seconds since the epoch at 0 of the clock.
    """

    def __init__(self, start_writer: Callable[[], PulseWriter], *, clock: Callable[[], float], epoch_s: float) -> None:
        self._start_writer, self._clock = start_writer, clock
        self._writer: PulseWriter | None = None
        self._book = PulseBook(epoch_s)
        self._next_s = clock()
        self._statistics = RunStatistics()
        self._condition: Callable[[], RunCondition] = RunCondition

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        try:
            self._take(observation)
        except Exception:
            self._close()  # nothing more is passed on, so the writer must not report for ever that all is well
            raise

    def _take(self, observation: Observation) -> None:
        match observation:
            case TurnEnded():
                self._book.note(observation, self._clock())
                if self._clock() >= self._next_s:
                    self._hand_over()
            case RunBegan(statistics=statistics, condition=condition):
                assert isinstance(statistics, RunStatistics), "plain topologies have no pulse"
                self._statistics, self._condition = statistics, condition
                self._hand_over()
            case RunEnded(error):
                self._end(error)
                self._hand_over(is_last=True)
                self._close()
            case _:
                self._book.note(observation, self._clock())

    def _end(self, error: BaseException | None) -> None:
        if isinstance(error, (Interruption, KeyboardInterrupt)) or (error is None and self._statistics.is_interrupted):
            self._book.ended(RunState.STOPPED)
        elif error is None:
            self._book.ended(RunState.DONE)
        else:
            self._book.ended(RunState.FAILED, str(error))

    def _hand_over(self, *, is_last: bool = False) -> None:
        if self._writer is None:
            self._writer = self._start_writer()
        now_s = self._clock()
        self._next_s = now_s + PULSE_EVERY_S
        figures = self._book.figures(self._statistics, self._condition(), now_s)
        stories = self._book.stories
        failed = stories.take_failed(self._writer.kept) if is_last else []
        self._writer.take(to_json(figures), to_json(sample_of(figures)), [*stories.take(), *failed])

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
