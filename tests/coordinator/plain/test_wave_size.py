"""How large the next wave may be after some have crashed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.plain.plain_wave_size import PlainWaveSize


def test_a_crash_halves_the_wave_that_crashed_down_to_one():
    size = PlainWaveSize(100, max_crashes=5)
    limits = []
    for tuple_count in (80, 40, 20, 10, 5, 2, 1):
        assert not size.crashed(tuple_count)
        limits.append(size.limit)
    assert limits == [40, 20, 10, 5, 2, 1, 1]


def test_the_limit_doubles_once_as_many_tuples_as_crashed_got_through():
    size = PlainWaveSize(100, max_crashes=5)
    size.crashed(100)
    limits = []
    for _ in range(4):
        size.drained(size.limit)
        limits.append(size.limit)
    assert limits == [50, 100, 100, 100]


def test_tuples_that_crash_again_are_not_owed_twice():
    """Else a single culprit among 50,000 would be followed by 50,000 waves of one tuple."""
    size = PlainWaveSize(64, max_crashes=5)
    size.crashed(64)
    for half in (32, 16, 8, 4, 2, 1):
        size.drained(half)
        size.crashed(half)
    assert size.limit == 1
    size.drained(1)
    assert size.limit == 2


def test_only_crashes_in_a_row_of_single_tuples_are_counted():
    size = PlainWaveSize(4, max_crashes=2)
    assert [size.crashed(4), size.crashed(2), size.crashed(1)] == [False, False, False]
    size.drained(1)
    assert [size.crashed(1), size.crashed(1)] == [False, True]
    assert size.crashes_alone == 2


def test_a_call_that_emits_many_at_once_counts_as_one_when_no_less_can_be_asked_for():
    size = PlainWaveSize(4, max_crashes=2)
    assert [size.crashed(40), size.crashed(40), size.crashed(40), size.crashed(40)] == [False, False, False, True]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 50)), max_size=60), st.integers(1, 64))
def test_the_limit_stays_in_bounds_whatever_happens(events, largest):
    size = PlainWaveSize(largest, max_crashes=1000)
    for is_crash, tuple_count in events:
        size.crashed(tuple_count) if is_crash else size.drained(tuple_count)
        assert 1 <= size.limit <= largest
