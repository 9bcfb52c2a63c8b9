"""How many transactions the next group takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committers.group_size import GroupSize


def new_size(group_max, operations_max, bytes_max=10**9, target_s=0.0):
    return GroupSize(group_max, operations_max, bytes_max, target_s)


def limits(size, *groups):
    """The limit after each group of (asked, published, operations), and perhaps bytes."""
    found = []
    for asked, published, operation_count, *byte_count in groups:
        size.published(asked=asked, published=published, operation_count=operation_count, byte_count=sum(byte_count))
        found.append(size.limit())
    return found


@pytest.mark.parametrize(
    ("size", "groups", "found"),
    [
        pytest.param(new_size(64, 50_000), [(64, 3, 0)], [6], id="cut short: twice what went out"),
        pytest.param(
            new_size(64, 50_000),
            [(64, 3, 0), (6, 6, 0), (12, 12, 0), (24, 24, 0), (48, 48, 0)],
            [6, 12, 24, 48, 64],
            id="whole: doubled up to the bound",
        ),
        pytest.param(new_size(64, 50_000), [(4, 4, 10_000)], [20], id="too many operations are foreseen"),
        pytest.param(new_size(64, 50_000), [(64, 64, 64)], [64], id="few operations"),
        pytest.param(new_size(64, 100), [(1, 1, 5_000)], [1], id="too large by itself: alone"),
        pytest.param(
            new_size(64, 50_000, bytes_max=1_000),
            [(64, 64, 64, 64_000), (1, 1, 1, 5_000), (1, 1, 1, 100)],
            [1, 1, 10],
            id="too many bytes are foreseen however few the operations",
        ),
        pytest.param(new_size(64, 100, bytes_max=1_000), [(10, 10, 20, 500)], [20], id="fewer by bytes"),
        pytest.param(new_size(64, 100, bytes_max=1_000), [(10, 10, 50, 200)], [20], id="fewer by operations"),
        pytest.param(new_size(64, 100), [(2, 2, 100), (2, 2, 0)], [2, 2], id="no operations say nothing"),
        pytest.param(new_size(1, 50_000), [(1, 1, 1), (1, 1, 0)], [1, 1], id="one in flight stays one"),
    ],
)
def test_the_next_group_follows_from_those_before(size, groups, found):
    assert limits(size, *groups) == found


def test_a_refused_group_is_tried_one_by_one_and_grows_again_once_one_went_through():
    size = new_size(64, 50_000)
    assert size.limit() == 64
    size.one_by_one()
    assert size.limit() == 1
    assert limits(size, (1, 1, 0), (2, 2, 0)) == [2, 4]


def timed(size, *calls):
    """The limits on transactions and operations after each call that committed (transactions, operations) in a time."""
    found = []
    for count, operation_count, call_s in calls:
        size.published(asked=count, published=count, operation_count=operation_count, byte_count=0, call_s=call_s)
        found.append((size.limit(), size.operations_limit))
    return found


def test_groups_are_cut_to_the_target_at_once_if_the_first_call_was_too_long():
    assert timed(new_size(64, 50_000, target_s=0.1), (64, 32_000, 0.8)) == [(8, 16_000)]


def test_without_a_target_or_a_time_nothing_is_cut():
    assert timed(new_size(64, 50_000), (64, 32_000, 9.0)) == [(64, 50_000)]
    timeless = new_size(64, 50_000, target_s=0.1)
    assert timed(timeless, (16, 8_000, 0.0), (32, 16_000, 0.0), (64, 32_000, 0.0)) == [
        (32, 50_000),
        (64, 50_000),
        (64, 50_000),
    ]


def test_the_first_groups_are_small_as_long_as_nothing_is_known_of_the_time():
    assert new_size(64, 50_000, target_s=0.1).limit() == 16
    assert new_size(4, 50_000, target_s=0.1).limit() == 4


def test_one_slow_call_after_a_quick_one_is_an_accident_and_a_second_is_not():
    size = new_size(64, 50_000, target_s=0.1)
    assert timed(size, (64, 32_000, 0.05), (64, 32_000, 0.8)) == [(64, 50_000)] * 2
    assert timed(size, (64, 32_000, 0.8)) == [(8, 16_000)]


def test_groups_grow_again_as_soon_as_a_call_is_quick():
    size = new_size(64, 50_000, target_s=0.1)
    assert timed(size, (1, 500_000, 3.0)) == [(1, 50_000)]
    assert timed(size, (1, 1_000, 0.01), (10, 10_000, 0.01)) == [(10, 50_000), (50, 50_000)]


def test_a_quick_call_of_few_operations_does_not_say_that_many_would_not_fit():
    size = new_size(64, 75_000, target_s=0.1)
    assert timed(size, (1, 1_000, 0.002)) == [(50, 75_000)]


def test_a_small_call_that_was_slow_was_not_slow_because_of_its_size():
    size = new_size(64, 75_000, target_s=0.1)
    assert timed(size, (1, 999, 5.0), (1, 999, 5.0), (1, 999, 5.0)) == [(32, 75_000), (64, 75_000), (64, 75_000)]


@given(
    st.integers(1, 100),
    st.lists(st.tuples(st.integers(1_000, 5_000), st.floats(1e-6, 1e-3), st.floats(0, 0.05)), min_size=30, max_size=30),
)
def test_calls_of_a_steady_server_come_to_take_about_the_target(group_max, changes):
    """Each transaction has so many operations, each of which takes so long, and each call as long again at least."""
    size, (operations, operation_s, least_s) = new_size(group_max, 75_000, target_s=0.1), changes[0]
    for _ in changes:
        count = size.limit()
        call_s = least_s + count * operations * operation_s
        size.published(asked=count, published=count, operation_count=count * operations, byte_count=0, call_s=call_s)
    assert count == 1 or call_s <= 0.1 + least_s
    assert count == group_max or (count + 1) * operations * operation_s + least_s > 0.04 or count * operations > 37_000


@given(
    st.integers(1, 100),
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.lists(st.tuples(st.integers(1, 100), st.integers(0, 5000), st.integers(0, 5000), st.booleans()), max_size=20),
)
def test_the_limit_is_always_from_one_to_the_bound(group_max, operations_max, bytes_max, groups):
    size = new_size(group_max, operations_max, bytes_max)
    for published, operation_count, byte_count, refused in groups:
        asked = size.limit()
        if refused:
            size.one_by_one()
        else:
            limits(size, (asked, min(asked, published), operation_count, byte_count))
        assert 1 <= size.limit() <= group_max
