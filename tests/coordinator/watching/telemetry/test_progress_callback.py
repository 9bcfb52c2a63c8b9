"""The simple way to show figures: a callback that is called whenever they have changed."""

from __future__ import annotations

import pytest

from coordinator.watching.run_observer import RunBegan, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.progress_callback import ProgressCallback


def test_a_turn_in_which_nothing_has_ended_shows_nothing() -> None:
    shown: list[RunStatistics] = []
    progress, statistics = ProgressCallback(shown.append), RunStatistics()
    progress(RunBegan("test", statistics, None))
    progress(TurnEnded(is_idle=True))
    assert shown == []
    progress(TurnEnded(is_idle=False, has_progressed=True))
    assert [each is statistics for each in shown] == [True]


def test_a_callback_that_raised_is_called_again_and_each_time_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[RunStatistics] = []

    def broken(statistics: RunStatistics) -> None:
        calls.append(statistics)
        raise ValueError("mine")

    progress = ProgressCallback(broken)
    for _ in range(2):
        progress(TurnEnded(is_idle=False, has_progressed=True))
    assert (len(calls), len(caplog.records)) == (2, 2)
    assert caplog.messages[0] == "the on_progress callback raised"
