"""What is measured begins and ends with a commit, and latency counts from when a transaction should have arrived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.suite.timing import ArrivalSchedule, Mark, MeasuredSpan, arrival_count, summarized_ms

TEN_A_SECOND = ArrivalSchedule(start_s=100.0, per_s=10.0, count=30)


def test_transactions_arrive_evenly_from_the_start_on():
    assert [TEN_A_SECOND.arrival_s(number) for number in (0, 1, 25)] == [100.0, 100.1, 102.5]


def test_nothing_has_arrived_before_the_start_and_no_more_than_planned_ever():
    assert [TEN_A_SECOND.arrived(now_s) for now_s in (99.9, 100.0, 100.05, 100.1, 102.9, 500.0)] == [0, 1, 1, 2, 30, 30]


@given(start_s=st.floats(0, 1e6), per_s=st.floats(0.01, 1e4), number=st.integers(0, 999))
def test_a_transaction_has_arrived_at_its_own_arrival(start_s, per_s, number):
    schedule = ArrivalSchedule(start_s, per_s, 1000)

    assert schedule.arrived(schedule.arrival_s(number) + 1e-6 / per_s + 1e-9 * start_s) >= number + 1


def test_a_stall_is_felt_by_every_transaction_that_arrives_in_it():
    stall_ends_s = 101.0
    done_s = [max(TEN_A_SECOND.arrival_s(number) + 0.001, stall_ends_s) for number in range(30)]

    latencies_s = TEN_A_SECOND.latencies_s(done_s)

    assert sum(latency_s > 0.05 for latency_s in latencies_s) == 10, "and not just the one that was under way"
    assert summarized_ms(latencies_s)["max"] == pytest.approx(1000)
    assert summarized_ms(latencies_s)["p50"] == pytest.approx(1, abs=0.01)


def test_a_transaction_that_was_never_committed_is_not_left_out():
    with pytest.raises(ValueError, match="30 transactions arrived, 29 were committed"):
        TEN_A_SECOND.latencies_s([200.0] * 29)


def test_at_least_one_transaction_arrives():
    assert [arrival_count(per_s, 10.0) for per_s in (0.01, 0.35, 7.0)] == [1, 3, 70]


def test_the_span_begins_after_the_warm_up_and_ends_once_the_time_is_up_both_with_a_commit():
    span = MeasuredSpan(warm_up_s=5.0, seconds=10.0)
    seen = [(0, 0), (4, 8), (6, 8), (7, 9), (16, 30), (17, 30), (18, 33), (30, 50)]

    marked = [(now_s, n) for now_s, n in seen if span.note(now_s, n, 10 * n)]

    assert marked == [(7, 9), (18, 33)]
    assert span.ends() == (Mark(7, 9, 90), Mark(18, 33, 330))


def test_one_commit_cannot_be_both_ends():
    span = MeasuredSpan(warm_up_s=1.0, seconds=0.0)

    assert [span.note(now_s, n, n) for now_s, n in [(0, 0), (2, 64), (3, 64), (4, 128)]] == [False, True, False, True]


def test_a_run_that_is_too_short_says_so():
    span = MeasuredSpan(warm_up_s=1.0, seconds=1.0)
    span.note(0.0, 3, 3)

    with pytest.raises(ValueError, match="ended after 3 transactions, before there was anything to measure"):
        span.ends()
