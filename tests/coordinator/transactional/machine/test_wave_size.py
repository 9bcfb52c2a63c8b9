"""How many attempts a wave takes: half of a given window, or as many as finish in about the wanted time. Exact."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.transactional.machine.wave_size import FIRST_SIZE, LARGEST_SIZE, WaveSize


def timed(target_s=0.3):
    """A size that follows time, after the first wave, which counts for nothing."""
    size = WaveSize(None, target_s)
    size.processed(FIRST_SIZE, 100.0)
    return size


def after_waves(size, seconds_of, count=40):
    """Lets as many full waves end, each in the time that `seconds_of` its size gives; returns the last size."""
    for _ in range(count):
        size.processed(size.limit, seconds_of(size.limit))
        size.validate()
    return size.limit


@pytest.mark.parametrize(("window", "limit"), [(1, 1), (2, 1), (3, 2), (64, 32)])
def test_of_a_given_window_a_wave_takes_half_however_long_waves_take(window, limit):
    size = WaveSize(window, 0.3)
    for seconds in (0.001, 9.0, 0.001, 0.001):
        size.processed(size.limit, seconds)
    assert (size.limit, size.window(), size.window_max()) == (limit, window, window)


def test_the_first_wave_tells_nothing_because_workers_start_in_it():
    size = WaveSize(None, 0.3)
    size.processed(FIRST_SIZE, 0.001)
    assert size.limit == FIRST_SIZE
    size.processed(FIRST_SIZE, 0.001)
    assert size.limit == 2 * FIRST_SIZE


def test_a_wave_whose_time_nobody_has_measured_changes_nothing():
    size = timed()
    size.processed(FIRST_SIZE, 0.0)
    assert size.limit == FIRST_SIZE


def test_waves_grow_until_they_take_about_the_wanted_time():
    """A wave costs 0.1 s, and a millisecond for each attempt: 200 of them take 0.3 s."""
    limit = after_waves(timed(), lambda count: 0.1 + 0.001 * count)
    assert 0.3 / 1.25 <= 0.1 + 0.001 * limit <= 1.25 * 0.3


def test_waves_of_next_to_nothing_grow_to_a_bound():
    size = timed()
    assert after_waves(size, lambda count: 0.05) == LARGEST_SIZE
    assert size.window() == size.window_max() == 2 * LARGEST_SIZE


def test_waves_that_get_slower_shrink_again_but_not_below_the_first():
    size = timed()
    after_waves(size, lambda count: 0.001 * count)
    assert 0.3 / 1.25 <= 0.01 * after_waves(size, lambda count: 0.01 * count) / 1.25 <= 0.3 * 1.25 * 1.25
    assert after_waves(size, lambda count: 1.0 + count) == FIRST_SIZE


def test_waves_that_are_not_full_say_nothing_about_larger_ones():
    size = timed()
    for _ in range(5):
        size.processed(3, 0.01)
    assert size.limit == FIRST_SIZE


def test_after_a_crash_waves_double_up_to_the_size_they_had():
    size = timed()
    full = after_waves(size, lambda count: 0.001 * count)
    size.halve(full)
    size.halve(full // 2)
    limits = []
    for _ in range(4):
        limits.append(size.limit)
        size.processed(size.limit, 0.3)
    assert limits == [full // 4, 2 * (full // 4), full, full]


def test_what_exceeded_the_timeout_once_is_never_reached_again():
    size = timed()
    after_waves(size, lambda count: 0.001)
    size.keep_below(200)
    assert after_waves(size, lambda count: 0.001) == 100


def test_whatever_happens_a_wave_takes_at_least_one_attempt_and_at_most_the_largest():
    random = Random(7)
    for window in (None, 1, 5, 64):
        size = WaveSize(window, 0.3)
        for _ in range(3000):
            taken = random.randint(1, size.limit)
            match random.randrange(6):
                case 0:
                    size.halve(taken)
                case 1 if random.random() < 0.02:
                    size.keep_below(taken)
                case _:
                    size.processed(taken, random.choice([0.0, 0.001, 0.3, 5.0]))
            size.validate()
            assert 1 <= size.limit <= LARGEST_SIZE
            assert size.window() <= size.window_max()


def test_what_crashes_late_never_makes_waves_larger_again():
    """A group of an earlier, larger wave may crash after a wave of two was found to take too long."""
    size = WaveSize(None, 0.3)
    size.keep_below(2)
    size.halve(4)
    size.validate()
    assert size.limit == 1

    size = WaveSize(None, 0.3)
    size.halve(4)
    size.halve(32)
    assert size.limit == 2
