"""How much of the input is committed, and the time left: an estimate or nothing, never a guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from coordinator.operating.cli.estimates import DonePart, TimeLeft, shown_time
from tests.support.cli.in_process import HandClock

SMALL_THEN_LARGE = [(0, 10, 0.1), (0, 20, 0.9), (0, 21, 1.0)]
"""Ten small transactions, then ten large ones, then one: last txid, the one that was cut, and the part it ends."""


@pytest.mark.parametrize(
    ("updates", "part"),
    [
        ([(5, 8, None)], None),
        ([(0, 10, 1.0)], 0.0),
        ([(0, 10, 1.0), (5, 10, 1.0)], 0.5),
        ([(0, 10, 1.0), (5, 10, 1.0), (10, 10, 1.0)], 1.0),
        ([*SMALL_THEN_LARGE, (10, 21, 1.0)], 0.1),
        ([*SMALL_THEN_LARGE, (10, 21, 1.0), (15, 21, 1.0)], 0.5),
        ([*SMALL_THEN_LARGE, (10, 21, 1.0), (15, 21, 1.0), (20, 21, 1.0)], 0.9),
        ([*SMALL_THEN_LARGE, (10, 21, 1.0), (15, 21, 1.0), (20, 21, 1.0), (21, 21, 1.0)], 1.0),
        ([(60, 80, 0.8)], 0.6),  # what earlier runs did
        ([(4, 20, 0.5)], 0.1),
        ([(4, 20, 0.5), (4, 6, 0.15), (4, 20, 0.5)], 0.1),  # replayed: the higher ones are cut again
    ],
)
def test_a_part_is_done_when_it_is_committed_and_not_when_it_is_cut(updates: Any, part: float | None) -> None:
    done = DonePart()
    for last_txid, cut_txid, cut_part in updates:
        done.update(last_txid=last_txid, cut_txid=cut_txid, cut_part=cut_part)
    assert done.fraction() == (None if part is None else pytest.approx(part))


def test_only_the_window_is_remembered() -> None:
    done = DonePart()
    for txid in range(10_000):
        done.update(last_txid=txid, cut_txid=txid + 64, cut_part=(txid + 64) / 20_000)
    assert done.fraction() == pytest.approx(9_999 / 20_000)
    assert len(done._cuts) <= 66


def grown(left: TimeLeft, clock: HandClock, parts: Sequence[float | None], *, every_s: float) -> None:
    for part in parts:
        clock.now_s += every_s
        left.update(part)


@pytest.mark.parametrize(
    ("parts", "every_s", "left_s"),
    [
        pytest.param([part / 100 for part in range(1, 26)], 1.0, 75.0, id="a steady run"),
        pytest.param([0.1, 0.2, 0.3], 2.0, None, id="the first commits are too few"),
        pytest.param([0.1, 0.2, 0.3, 0.4], 2.0, 12.0, id="four commits are enough"),
        pytest.param([0.1, 0.2, 0.3, 0.4, 0.5], 0.9, None, id="the first seconds are too short"),
        pytest.param([0.501, 0.503, 0.505, 0.507, 0.509], 2.0, None, id="too small a part"),
        pytest.param([None] * 10, 1.0, None, id="an unknown size"),
        pytest.param([0.50, 0.52, 0.54, 0.56, 0.58, 0.60], 2.0, 40.0, id="what earlier runs did is no speed"),
        pytest.param([0.01, 0.02, 0.03, 0.04], 20_000.0, None, id="an estimate of days"),
        pytest.param([0.2, 0.4, 0.6, 0.8, 1.0], 2.0, 0.0, id="nothing is left"),
    ],
)
def test_the_time_left_is_an_estimate_or_nothing(parts: Any, every_s: float, left_s: float | None) -> None:
    clock = HandClock()
    left = TimeLeft(clock)
    grown(left, clock, parts, every_s=every_s)
    assert left.seconds() == (None if left_s is None else pytest.approx(left_s))


def test_only_the_last_half_minute_counts_and_the_estimate_grows_while_nothing_is_committed() -> None:
    clock = HandClock()
    slow_then_fast, then_still = TimeLeft(clock), TimeLeft(clock)
    grown(slow_then_fast, clock, [part / 1000 for part in range(1, 101)], every_s=1.0)
    grown(slow_then_fast, clock, [0.1 + part / 100 for part in range(1, 41)], every_s=1.0)
    assert slow_then_fast.seconds() == pytest.approx(50.0)
    grown(then_still, clock, [0.1, 0.2, 0.3, 0.4, 0.5], every_s=2.0)
    assert then_still.seconds() == pytest.approx(10.0)
    clock.now_s += 8.0
    assert then_still.seconds() == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0:00"), (6.2, "0:07"), (60.0, "1:00"), (749.5, "12:30"), (3_599.9, "1:00:00"), (11_100.0, "3:05:00")],
)
def test_a_time_is_shown_as_a_clock_would(seconds: float, text: str) -> None:
    assert shown_time(seconds) == text
