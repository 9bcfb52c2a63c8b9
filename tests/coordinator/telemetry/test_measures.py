"""Buckets count what is at most as large as their end, each including those below it."""

from __future__ import annotations

from coordinator.telemetry.measures import Histogram, Kind, Measure, Sample


def test_a_bucket_includes_all_smaller_ones_and_its_own_end():
    histogram = Histogram("waits_seconds", "Waits.", (0.1, 1))
    for value in (0.05, 0.1, 0.2, 5.0):
        histogram.observe(value)
    assert histogram.measure() == Measure(
        "waits_seconds",
        Kind.HISTOGRAM,
        "Waits.",
        (
            Sample("_bucket", {"le": "0.1"}, 2),
            Sample("_bucket", {"le": "1.0"}, 3),
            Sample("_bucket", {"le": "+Inf"}, 4),
            Sample("_sum", {}, 5.35),
            Sample("_count", {}, 4),
        ),
    )


def test_a_gauge_whose_value_is_unknown_has_no_sample():
    assert Measure.gauge("fraction", "Part.", None).samples == ()
    assert Measure.gauge("fraction", "Part.", 0.0).samples == (Sample("", {}, 0.0),)
