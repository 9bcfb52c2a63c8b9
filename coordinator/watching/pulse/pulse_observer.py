"""The observer that tells a run's pulse: books on the coordinator's thread, and a writer on its own."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.watching.pulse.pulse_book import PulseBook, sample_of
from coordinator.watching.pulse.pulse_writer import PulseWriter
from coordinator.watching.run_observer import Observation, RunBegan, RunCondition, RunEnded, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import Interruption
from state.records.run_pulse import PULSE_EVERY_S, RunState, to_json


class PulseObserver:
    """Tells the pulse of one transactional run.

    Args:
        start_writer: returns the writer, started; called once the run owns its topology.
        clock: seconds, monotonic; the one of the run's statistics.
        epoch_s: what to add to the clock to get seconds since the epoch.
    """

    def __init__(self, start_writer: Callable[[], PulseWriter], *, clock: Callable[[], float], epoch_s: float) -> None:
        self._start_writer, self._clock = start_writer, clock
        self._writer: PulseWriter | None = None
        self._book = PulseBook(epoch_s)
        self._next_s = clock()
        self._statistics = RunStatistics()
        self._condition: Callable[[], RunCondition] = RunCondition

    def __call__(self, observation: Observation) -> None:
        """Takes what has happened; see `coordinator.watching.run_observer`."""
        try:
            self._take(observation)
        except Exception:
            self._close()  # nothing more is told, so the writer must not say for ever that all is well
            raise

    def _take(self, observation: Observation) -> None:
        match observation:
            case TurnEnded():
                self._book.note(observation, self._clock())
                if self._clock() >= self._next_s:
                    self._tell()
            case RunBegan(statistics=statistics, condition=condition):
                assert isinstance(statistics, RunStatistics), "plain topologies have no pulse"
                self._statistics, self._condition = statistics, condition
                self._tell()
            case RunEnded(error):
                self._end(error)
                self._tell(is_last=True)
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

    def _tell(self, *, is_last: bool = False) -> None:
        if self._writer is None:
            self._writer = self._start_writer()
        now_s = self._clock()
        self._next_s = now_s + PULSE_EVERY_S
        figures = self._book.figures(self._statistics, self._condition(), now_s)
        stories = self._book.stories
        failed = stories.take_failed(self._writer.kept) if is_last else []
        self._writer.tell(to_json(figures), to_json(sample_of(figures)), [*stories.take(), *failed])

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
