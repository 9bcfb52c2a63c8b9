"""The graph with what flows through it."""

from __future__ import annotations

from coordinator.operating.ui.svg_charts import flow_chart
from coordinator.topology.building.picture_maker import picture_of_description
from tests.support.dashboard.drawn import element_of
from tests.support.dashboard.stored import DESCRIPTION


def test_what_flows_stands_in_the_boxes_and_at_the_edges() -> None:
    picture = picture_of_description("words", DESCRIPTION)
    assert picture is not None
    chart = flow_chart(picture, {"count": "12.5 k tuples/s"}, {("lines", "count", "default"): "12.5 k/s"})
    texts = [(text.attrib["class"], text.text) for text in element_of(chart).iter("text")]
    assert ("live", "12.5 k tuples/s") in texts
    assert ("dim", "shuffle · 12.5 k/s") in texts
    assert ("dim", "fields word") in texts
    assert "count hears lines, shuffle · 12.5 k/s" in element_of(chart).attrib["aria-label"]
    assert "<style" not in chart, "a page's policy allows no inline style"
