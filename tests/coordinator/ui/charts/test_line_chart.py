"""A figure over time, drawn."""

from __future__ import annotations

import pytest

from coordinator.reports.durations import brief
from coordinator.ui.charts.line_chart import line_chart
from coordinator.ui.charts.scale import Point
from coordinator.ui.charts.stacked_chart import Layer, stacked_chart
from coordinator.ui.views.clock import Clock
from coordinator.ui.views.words import short, span
from tests.support.dashboard.drawn import element_of, labels_of, outside, overlapping

CLOCK = Clock(0.0)
SERIES: dict[str, list[Point]] = {
    "empty": [],
    "one": [(1.0, 12.5)],
    "nothing happens": [(1.0, 0.0), (2.0, 0.0)],
    "two with a gap": [(1.0, 1.0), (100.0, 2.0)],
    "10,000": [(float(at), 1_234_567.0 * (at % 13)) for at in range(10_000)],
    "tiny": [(1.0, 0.00021), (2.0, 0.0004)],
    "a slow start": [(0.0, 29_600_000.0), *((float(at), 1.1) for at in range(1, 60))],
}


def chart(points: list[Point]) -> str:
    return line_chart("rate", points, said=short, clock=CLOCK.time_of_day, peak=short)


@pytest.mark.parametrize("points", SERIES.values(), ids=SERIES.keys())
def test_labels_neither_meet_nor_leave_the_drawing(points: list[Point]) -> None:
    assert overlapping(chart(points)) == []
    assert outside(chart(points)) == []


@pytest.mark.parametrize("points", SERIES.values(), ids=SERIES.keys())
def test_a_drawing_has_a_few_kilobytes_however_many_points(points: list[Point]) -> None:
    assert len(chart(points)) < 10_000


def test_no_points_are_said_to_be_none() -> None:
    assert [label.text for label in labels_of(chart([]))] == ["nothing told"]


def test_values_stand_at_the_side_and_times_below() -> None:
    drawn = chart([(0.0, 10.0), (4.0, 20.0)])
    assert [label.text for label in labels_of(drawn)] == ["0", "10", "20", "00:00:04", "00:00:00"]
    (line,) = [path.attrib["d"] for path in element_of(drawn).iter("path") if path.attrib["class"] == "line"]
    assert line == "M20.4 46L276 8"


def test_one_point_is_a_dot_at_the_right() -> None:
    drawn = element_of(chart([(5.0, 1.0)]))
    assert [path for path in drawn.iter("path") if path.attrib["class"] == "line"] == []
    (dot,) = drawn.iter("circle")
    assert (dot.attrib["cx"], dot.attrib["cy"]) == ("276", "8")


def test_a_chart_says_in_words_what_it_shows() -> None:
    said = line_chart("wave", [(0.0, 0.3), (60.0, 0.2)], said=span, clock=CLOCK.time_of_day, peak=brief)
    assert element_of(said).attrib["aria-label"] == "wave, 00:00:00 to 00:01:00: last 200 ms, at most 300 ms"


def test_a_peak_that_leaves_the_chart_is_said_below() -> None:
    drawn = chart(SERIES["a slow start"])
    assert [label.text for label in labels_of(drawn)][-1] == "peak 29.6 M"
    assert [label.text for label in labels_of(drawn)][2] == "2"


def test_a_line_is_broken_where_nothing_was_told() -> None:
    drawn = element_of(chart([(0.0, 1.0), (1.0, 1.0), (60.0, 1.0), (61.0, 1.0)]))
    assert len([path for path in drawn.iter("path") if path.attrib["class"] == "line"]) == 2


@pytest.mark.parametrize("count", [0, 1, 600, 10_000])
def test_layers_stand_on_each_other(count: int) -> None:
    layers = [
        Layer(name, name, tuple((float(at), number) for at in range(count)))
        for name, number in (("processing", 1.0), ("processed", 2.0), ("committing", 1.0))
    ]
    drawn = stacked_chart("in flight", layers, said=short, clock=CLOCK.time_of_day)
    assert overlapping(drawn) == []
    assert outside(drawn) == []
    kinds = [path.attrib["class"] for path in element_of(drawn).iter("path") if "layer" in path.attrib["class"]]
    assert kinds == (["layer processing", "layer processed", "layer committing"] if count else [])
    assert len(drawn) < 20_000
    if count:
        assert "last processing 1, processed 2, committing 1" in element_of(drawn).attrib["aria-label"]
        assert labels_of(drawn)[2].text == "4"
