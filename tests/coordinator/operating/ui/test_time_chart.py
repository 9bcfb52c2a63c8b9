"""Figures over time, drawn."""

from __future__ import annotations

import math

import pytest

from coordinator.operating.ui import time_chart
from coordinator.operating.ui.views.words import Clock, short, span
from coordinator.watching.durations import brief
from tests.support.dashboard.drawn import element_of, labels_of, outside, overlapping

CLOCK = Clock(0.0)
SERIES: dict[str, list[time_chart.Point]] = {
    "empty": [],
    "one": [(1.0, 12.5)],
    "nothing happens": [(1.0, 0.0), (2.0, 0.0)],
    "two with a gap": [(1.0, 1.0), (100.0, 2.0)],
    "10,000": [(float(at), 1_234_567.0 * (at % 13)) for at in range(10_000)],
    "tiny": [(1.0, 0.00021), (2.0, 0.0004)],
    "a slow start": [(0.0, 29_600_000.0), *((float(at), 1.1) for at in range(1, 60))],
}


def chart(points: list[time_chart.Point]) -> str:
    return time_chart.line_chart("rate", points, said=short, clock=CLOCK.time_of_day, peak=short)


def lines_of(drawing: str) -> list[str]:
    return [path.attrib["d"] for path in element_of(drawing).iter("path") if path.attrib["class"] == "line"]


@pytest.mark.parametrize("points", SERIES.values(), ids=SERIES.keys())
def test_labels_neither_meet_nor_leave_a_drawing_of_a_few_kilobytes(points: list[time_chart.Point]) -> None:
    assert overlapping(chart(points)) == []
    assert outside(chart(points)) == []
    assert len(chart(points)) < 10_000


def test_no_points_are_said_to_be_none_and_one_is_a_dot_at_the_right() -> None:
    assert [label.text for label in labels_of(chart([]))] == ["no figures"]
    drawn = chart([(5.0, 1.0)])
    assert lines_of(drawn) == []
    (dot,) = element_of(drawn).iter("circle")
    assert (dot.attrib["cx"], dot.attrib["cy"]) == ("276", "8")


def test_values_stand_at_the_side_times_below_and_there_too_a_peak_that_leaves_the_chart() -> None:
    drawn = chart([(0.0, 10.0), (4.0, 20.0)])
    assert [label.text for label in labels_of(drawn)] == ["0", "10", "20", "00:00:04", "00:00:00"]
    assert lines_of(drawn) == ["M20.4 46L276 8"]
    drawn = chart(SERIES["a slow start"])
    assert [label.text for label in labels_of(drawn)][-1] == "peak 29.6 M"
    assert [label.text for label in labels_of(drawn)][2] == "2"


def test_a_chart_says_in_words_what_it_shows() -> None:
    said = time_chart.line_chart("wave", [(0.0, 0.3), (60.0, 0.2)], said=span, clock=CLOCK.time_of_day, peak=brief)
    assert element_of(said).attrib["aria-label"] == "wave, 00:00:00 to 00:01:00: last 200 ms, at most 300 ms"


def test_a_line_is_broken_where_nothing_was_told() -> None:
    assert len(lines_of(chart([(0.0, 1.0), (1.0, 1.0), (60.0, 1.0), (61.0, 1.0)]))) == 2
    points = [(1.0, 1.0), (2.0, 1.0), (60.0, 1.0)]
    assert list(time_chart.unbroken(points, 5.0)) == [[(1.0, 1.0), (2.0, 1.0)], [(60.0, 1.0)]]
    assert list(time_chart.unbroken([], 5.0)) == []


@pytest.mark.parametrize("count", [0, 1, 600, 10_000])
def test_layers_stand_on_each_other(count: int) -> None:
    layers = [
        time_chart.Layer(name, tuple((float(at), number) for at in range(count)))
        for name, number in (("processing", 1.0), ("processed", 2.0), ("committing", 1.0))
    ]
    drawn = time_chart.stacked_chart("in flight", layers, said=short, clock=CLOCK.time_of_day)
    assert overlapping(drawn) == []
    assert outside(drawn) == []
    kinds = [path.attrib["class"] for path in element_of(drawn).iter("path") if "layer" in path.attrib["class"]]
    assert kinds == (["layer processing", "layer processed", "layer committing"] if count else [])
    assert len(drawn) < 20_000
    if count:
        assert "last processing 1, processed 2, committing 1" in element_of(drawn).attrib["aria-label"]
        assert labels_of(drawn)[2].text == "4"


@pytest.mark.parametrize(
    ("value", "highest"),
    [(0.0, 1.0), (0.7, 0.8), (1.0, 1.0), (1.1, 1.2), (12.5, 16.0), (99.0, 100.0), (4_300.0, 5_000.0), (math.inf, 1.0)],
)
def test_a_chart_ends_at_a_round_number_above_its_values(value: float, highest: float) -> None:
    assert time_chart.round_above(value) == pytest.approx(highest)


def test_of_ten_thousand_points_the_spike_of_one_second_is_kept() -> None:
    few = [(1.0, 2.0), (2.0, 3.0)]
    assert time_chart.thinned(few, 300) == few
    points = [(float(at), 1.0) for at in range(10_000)]
    points[7_321] = (7_321.0, 99.0)
    kept = time_chart.thinned(points, 300)
    assert len(kept) <= 301
    assert (7_321.0, 99.0) in kept
    assert kept == sorted(kept)
    assert kept[-1] == points[-1]


def test_layers_add_up() -> None:
    assert time_chart.total([[(1.0, 2.0), (2.0, 0.0)], [(1.0, 3.0), (2.0, 1.0)]]) == [(1.0, 5.0), (2.0, 1.0)]


def test_a_slow_start_does_not_flatten_what_follows() -> None:
    assert time_chart.usual_height([30.0, *[1.0] * 99]) == 1.5
    assert time_chart.usual_height([5.0, *[1.0] * 99]) == 5.0, "it is not that much higher"
    assert time_chart.usual_height([30.0]) == 30.0
    assert time_chart.usual_height([0.0] * 99 + [1.0]) == 1.0
