"""The course of a run fits into a bounded number of points, whatever its length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise

import pytest

from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.statistics.wave_statistics import POINTS_MAX, RunPoint, Series, WaveTime
from tests.support.watching.counted import Counted


@pytest.mark.parametrize("count", [0, 1, POINTS_MAX, POINTS_MAX + 1, 2 * POINTS_MAX + 1, 50 * POINTS_MAX])
def test_a_series_keeps_its_ends_and_is_as_dense_everywhere(count):
    series: Series[int] = Series()
    for number in range(count):
        series.add(number)
    kept = series.points()
    assert kept[:1] + kept[-1:] == [number for number in (0, count - 1) if count]
    assert min(count, POINTS_MAX // 2) <= len(kept) <= POINTS_MAX + 1
    assert len({right - left for left, right in pairwise(kept[:-1])}) <= 1


def test_times_are_seconds_since_the_first_wave():
    counter = Counted()
    run = counter.statistics
    counter.starts(98_765.0, 1, 2)
    counter.ends(98_766.5, 1, 2, measured_s=1.5)
    counter.commits(98_767.0, 1, 2)
    run.failed_attempts = 1
    counter.ends(98_768.0, 3)
    assert run.history.waves.points() == [WaveTime(1.5, 1.5, 2)]  # nobody has measured the second
    assert run.history.moments.points() == [RunPoint(1.5, 0, 0), RunPoint(2.0, 2, 0), RunPoint(3.0, 2, 1)]


@pytest.mark.parametrize("idle_s", [0.0, 3_600.0])
def test_the_lag_counts_no_time_in_which_nothing_was_in_flight(idle_s: float) -> None:
    counter = Counted()
    run = counter.statistics
    counter.starts(100.0, 1)
    run.active = 1
    assert run.commit_lag_s(102.0) == 2.0
    counter.ends(103.0, 1)
    counter.commits(103.0, 1)
    run.active = 0
    assert run.commit_lag_s(103.0 + idle_s) == 0.0
    counter.starts(103.0 + idle_s, 2)
    run.active = 1
    counter.starts(104.0 + idle_s, 3)
    assert run.commit_lag_s(105.0 + idle_s) == 2.0


@pytest.mark.parametrize("figures", [RunStatistics(), PlainStatistics()])
def test_a_copy_shares_nothing_that_the_run_changes_in_place(figures: RunStatistics | PlainStatistics) -> None:
    copy = figures.copied()
    shared = [
        field.name
        for field in fields(figures)
        if isinstance(getattr(figures, field.name), list | Mapping)
        and getattr(figures, field.name) is getattr(copy, field.name)
    ]
    assert shared == []
    assert figures.history.moments is not copy.history.moments
