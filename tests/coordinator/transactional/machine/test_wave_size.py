"""How many attempts a wave takes: half of a given window, or as many as finish in about the wanted time. Exact."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.transactional.machine.wave_size import FIRST_SIZE, LARGEST_SIZE, WaveCost, WaveSize


def after(*waves: tuple[int, float]) -> WaveCost:
    cost = WaveCost()
    for size, seconds in waves:
        cost.note(size, seconds)
    return cost


def test_waves_of_one_size_tell_nothing():
    assert after((32, 0.5), (32, 0.6), (32, 0.4)).fixed_s is None
    assert after((100, 0.5), (105, 0.6), (98, 0.4)).fixed_s is None


@pytest.mark.parametrize("fixed_s", [0.0, 0.1, 2.5])
def test_two_sizes_tell_what_a_wave_costs_by_itself(fixed_s):
    assert after((32, fixed_s + 0.32), (64, fixed_s + 0.64)).fixed_s == pytest.approx(fixed_s)


def test_a_larger_wave_that_took_less_has_only_costs_of_its_own():
    assert after((32, 0.6), (64, 0.4)).fixed_s == pytest.approx((0.75 * 0.6 + 0.4) / 1.75)


def test_a_cost_that_grows_faster_than_the_size_leaves_nothing_to_the_wave():
    assert after((32, 0.1), (64, 1.0)).fixed_s == 0.0


def test_what_was_found_fades_while_sizes_stay_the_same_until_they_differ_again():
    cost = after((32, 0.42), (64, 0.74))
    for _ in range(20):
        cost.note(64, 0.74)
    assert cost.fixed_s is not None
    assert 0.03 < cost.fixed_s < 0.08
    cost.note(32, 0.42)
    assert cost.fixed_s == pytest.approx(0.1)


def test_costs_that_change_are_followed():
    random, cost = Random(5), WaveCost()
    for fixed_s in (0.5, 0.1):
        for _ in range(100):
            size = random.randint(10, 200)
            cost.note(size, fixed_s + 0.001 * size)
        assert cost.fixed_s == pytest.approx(fixed_s, rel=0.02)


def timed(target_s=0.3):
    """A size that follows time, after the first waves: the first counts for nothing, and they double."""
    size = WaveSize(None, target_s)
    size.processed(size.limit, 100.0)
    while not size.is_full_size():
        size.processed(size.limit, 0.0)
    return size


def test_the_first_waves_are_small_so_that_something_is_committed_soon():
    size, limits = WaveSize(None, 0.3), []
    for _ in range(5):
        limits.append(size.limit)
        size.processed(size.limit, 0.0)
    assert limits == [4, 8, 16, 32, 32]


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
    for first_s, limit in ((0.001, FIRST_SIZE), (100.0, FIRST_SIZE)):
        size = WaveSize(None, 0.3)
        size.processed(FIRST_SIZE, first_s)
        while not size.is_full_size():
            size.processed(size.limit, 0.0)
        assert size.limit == limit
    size.processed(FIRST_SIZE, 0.001)
    assert size.limit == 2 * FIRST_SIZE


def test_a_wave_whose_time_nobody_has_measured_changes_nothing():
    size = timed()
    size.processed(FIRST_SIZE, 0.0)
    assert size.limit == FIRST_SIZE


@pytest.mark.parametrize(
    ("fixed_s", "wave_s"), [(0.0, 0.3), (0.02, 0.3), (0.03, 0.3), (0.045, 0.45), (0.1, 0.6), (0.2, 0.6)], ids=str
)
def test_waves_grow_until_they_take_the_wanted_time_or_up_to_twice_that_if_it_is_mostly_their_own(fixed_s, wave_s):
    limit = after_waves(timed(), lambda count: fixed_s + 0.001 * count)
    assert wave_s / 1.25 <= fixed_s + 0.001 * limit <= 1.25 * wave_s


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_waves_of_uneven_times_still_grow_with_what_a_wave_costs_by_itself(noise):
    random = Random(3)
    limit = after_waves(timed(), lambda count: (0.1 + 0.004 * count) * random.uniform(1 - noise, 1 + noise), 200)
    assert 0.3 / 1.5 <= 0.1 + 0.004 * limit <= 1.5 * 0.6


def test_waves_slower_than_wanted_from_the_start_grow_if_that_is_worth_it():
    """A wave of the first size takes 0.44 s, of which 0.2 are its own."""
    assert after_waves(timed(), lambda count: 0.2 + 0.0075 * count) > 1.3 * FIRST_SIZE


def test_one_slow_wave_of_the_first_size_is_tried_once_at_twice_the_size_and_no_more():
    size = timed()
    limits = []
    for _ in range(8):
        size.processed(size.limit, 0.0125 * size.limit)
        limits.append(size.limit)
    assert limits[0] > FIRST_SIZE
    assert limits[-1] == FIRST_SIZE


def test_waves_of_next_to_nothing_grow_to_a_bound():
    size = timed()
    assert after_waves(size, lambda count: 0.05) == LARGEST_SIZE
    assert size.window() == size.window_max() == 2 * LARGEST_SIZE


def test_waves_that_get_slower_shrink_again_but_not_below_the_first():
    size = timed()
    after_waves(size, lambda count: 0.001 * count)
    assert 0.3 / 1.25 <= 0.01 * after_waves(size, lambda count: 0.01 * count, 80) / 1.25 <= 0.3 * 1.25 * 1.25
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
        size.processed(size.limit, 0.001 * size.limit)
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
