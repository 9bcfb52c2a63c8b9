"""What is measured begins and ends with a commit."""

from __future__ import annotations

import pytest

from benchmarks.suite.timing import Mark, MeasuredSpan


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
