"""How much of the input is committed, and the time left: an estimate or nothing, never a guess."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coordinator.operating.cli.estimates import DonePart, TimeLeft, shown_time
from tests.support.cli.in_process import HandClock


def test_nothing_is_known_of_an_input_without_size() -> None:
    done = DonePart()
    done.update(last_txid=5, cut_txid=8, cut_part=None)
    assert done.fraction() is None


def test_a_part_is_done_when_it_is_committed_and_not_when_it_is_cut() -> None:
    done = DonePart()
    done.update(last_txid=0, cut_txid=10, cut_part=1.0)
    assert done.fraction() == 0.0
    done.update(last_txid=5, cut_txid=10, cut_part=1.0)
    assert done.fraction() == pytest.approx(0.5)
    done.update(last_txid=10, cut_txid=10, cut_part=1.0)
    assert done.fraction() == 1.0


def test_what_was_cut_at_a_txid_counts_when_that_txid_is_committed() -> None:
    done = DonePart()
    done.update(last_txid=0, cut_txid=10, cut_part=0.1)  # ten small transactions,
    done.update(last_txid=0, cut_txid=20, cut_part=0.9)  # then ten large ones
    done.update(last_txid=0, cut_txid=21, cut_part=1.0)
    for txid, part in ((10, 0.1), (15, 0.5), (20, 0.9), (21, 1.0)):
        done.update(last_txid=txid, cut_txid=21, cut_part=1.0)
        assert done.fraction() == pytest.approx(part)


def test_a_run_that_continues_begins_with_what_earlier_runs_did() -> None:
    done = DonePart()
    done.update(last_txid=60, cut_txid=80, cut_part=0.8)
    assert done.fraction() == pytest.approx(0.6)


def test_attempts_that_are_dropped_do_not_take_anything_back() -> None:
    done = DonePart()
    done.update(last_txid=4, cut_txid=20, cut_part=0.5)
    before = done.fraction()
    done.update(last_txid=4, cut_txid=6, cut_part=0.15)  # replayed: the higher ones are cut again
    done.update(last_txid=4, cut_txid=20, cut_part=0.5)
    assert done.fraction() == before


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
        ([part / 100 for part in range(1, 26)], 1.0, 75.0),
        ([0.1, 0.2, 0.3], 2.0, None),
        ([0.1, 0.2, 0.3, 0.4], 2.0, 12.0),
        ([0.1, 0.2, 0.3, 0.4, 0.5], 0.9, None),
        ([0.501, 0.503, 0.505, 0.507, 0.509], 2.0, None),
        ([None] * 10, 1.0, None),
        ([0.50, 0.52, 0.54, 0.56, 0.58, 0.60], 2.0, 40.0),
        ([0.01, 0.02, 0.03, 0.04], 20_000.0, None),
        ([0.2, 0.4, 0.6, 0.8, 1.0], 2.0, 0.0),
    ],
    ids=[
        "a steady run ends when it is estimated to end",
        "the first commits are too few",
        "four commits are enough",
        "the first seconds are too short",
        "too small a part is not enough",
        "an unknown size has no estimate",
        "what earlier runs did is not counted as speed",
        "an estimate of days is none",
        "nothing is left at the end",
    ],
)
def test_the_time_left_is_an_estimate_or_nothing(
    parts: list[float | None], every_s: float, left_s: float | None
) -> None:
    clock = HandClock()
    left = TimeLeft(clock)
    grown(left, clock, parts, every_s=every_s)
    assert left.seconds() == (None if left_s is None else pytest.approx(left_s))


def test_the_last_half_minute_counts() -> None:
    clock = HandClock()
    left = TimeLeft(clock)
    grown(left, clock, [part / 1000 for part in range(1, 101)], every_s=1.0)
    grown(left, clock, [0.1 + part / 100 for part in range(1, 41)], every_s=1.0)
    assert left.seconds() == pytest.approx(50.0)


def test_the_estimate_grows_while_nothing_is_committed() -> None:
    clock = HandClock()
    left = TimeLeft(clock)
    grown(left, clock, [0.1, 0.2, 0.3, 0.4, 0.5], every_s=2.0)
    assert left.seconds() == pytest.approx(10.0)
    clock.now_s += 8.0
    assert left.seconds() == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0:00"), (6.2, "0:07"), (60.0, "1:00"), (749.5, "12:30"), (3_599.9, "1:00:00"), (11_100.0, "3:05:00")],
)
def test_a_time_is_shown_as_a_clock_would(seconds: float, text: str) -> None:
    assert shown_time(seconds) == text
