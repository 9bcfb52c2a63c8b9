"""The observer that tells a run's pulse: books on the coordinator's thread, and a writer on its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from coordinator.transactional.machine.run_events import Decision, Dropped, RunEvent
from coordinator.transactional.pulse.failure_kinds import FailureKinds
from coordinator.transactional.pulse.pulse_book import PulseBook, sample_of
from coordinator.transactional.pulse.pulse_writer import PulseWriter
from coordinator.transactional.pulse.run_observer import RunObserver
from coordinator.transactional.pulse.story_book import FailedStory, StoryBook
from coordinator.transactional.run_summary import RunStatistics
from state.errors import Interruption
from state.records.run_pulse import PULSE_EVERY_S, RunState, to_json

_LOG = logging.getLogger("txbatch")


class RunPulseSide(RunObserver):
    """Tells the pulse of one run; a fault of its own is logged once, and ends the pulse instead of the run.

    Args:
        writer: started; closed here.
        clock: seconds, monotonic.
        epoch_s: what to add to the clock to get seconds since the epoch.
    """

    def __init__(self, writer: PulseWriter, *, clock: Callable[[], float], epoch_s: float) -> None:
        self._writer, self._clock = writer, clock
        self._book, self._stories = PulseBook(epoch_s), StoryBook(epoch_s)
        self._kinds = FailureKinds()
        self._next_s = clock()
        self._statistics, self._window = RunStatistics(), dict[str, int]()
        self._is_broken = False

    def heard(self, event: RunEvent) -> None:
        self._guarded(lambda: self._hear(event))

    def decided(self, decision: Decision) -> None:
        self._guarded(lambda: self._note(decision))

    def is_due(self) -> bool:
        return self._clock() >= self._next_s

    def look(self, statistics: RunStatistics, window: dict[str, int], *, is_waiting: bool) -> None:
        self._next_s = self._clock() + PULSE_EVERY_S
        self._statistics, self._window = statistics, window
        self._guarded(lambda: self._tell(is_waiting=is_waiting))

    def draining(self) -> None:
        self._book.is_draining = True

    def failed(self, error: BaseException) -> None:
        is_stop = isinstance(error, (Interruption, KeyboardInterrupt))
        self._guarded(lambda: self._book.ended(RunState.STOPPED) if is_stop else self._book.failed(error))

    def close(self) -> None:
        self._guarded(self._end)
        self._writer.close()

    def _hear(self, event: RunEvent) -> None:
        now_s = self._clock()
        self._kinds.heard(event)
        self._book.heard(event, now_s)
        self._stories.heard(event, now_s)

    def _note(self, decision: Decision) -> None:
        now_s = self._clock()
        kind = self._kinds.of(decision) if isinstance(decision, Dropped) else ""
        self._book.decided(decision, now_s, kind)
        self._stories.decided(decision, now_s, kind)

    def _end(self) -> None:
        self._book.ended(RunState.STOPPED if self._statistics.is_interrupted else RunState.DONE)
        self._tell(self._stories.take_failed(self._writer.kept), is_waiting=False)

    def _tell(self, failed: Sequence[FailedStory] = (), *, is_waiting: bool) -> None:
        figures = self._book.figures(self._statistics, self._window, self._clock(), is_waiting=is_waiting)
        self._writer.tell(to_json(figures), to_json(sample_of(figures)), [*self._stories.take(), *failed])

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._is_broken:
            return
        try:
            action()
        except Exception:  # noqa: BLE001 - what only tells of a run must not end it
            self._is_broken = True
            _LOG.exception("the run's pulse has a fault, and is told no further; the run continues")
