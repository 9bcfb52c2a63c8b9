"""Bars and the attempts at a transaction, drawn."""

from __future__ import annotations

from coordinator.operating.ui.svg_charts import AttemptBar, Mark, attempt_chart, share_bar, split_bar
from coordinator.watching.durations import brief
from tests.support.dashboard.drawn import element_of, labels_of, outside, overlapping


def drawn(bars: list[AttemptBar], marks: list[Mark]) -> str:
    chart = attempt_chart("attempts", bars, marks, said=brief)
    assert chart is not None
    return chart


def bar(number: int, begin: float, end: float, note: str = "worker lost") -> AttemptBar:
    return AttemptBar(f"{number:08x}", begin, end, "bad", note)


def test_marks_that_are_close_stand_on_lines_of_their_own() -> None:
    marks = [Mark("cut", 0.0), Mark("processed", 10.8), Mark("committed", 11.0)]
    chart = drawn([bar(1, 0, 9.8), bar(2, 10, 11, "committed")], marks)
    assert overlapping(chart) == []
    assert outside(chart) == []


def test_ten_attempts_of_no_length_are_all_seen() -> None:
    chart = drawn([bar(number, 5.0, 5.0) for number in range(10)], [Mark("cut", 5.0)])
    assert overlapping(chart) == []
    bars = [each for each in element_of(chart).iter("rect") if each.attrib["class"] == "attempt bad"]
    assert [each.attrib["width"] for each in bars] == ["2"] * 10


def test_a_note_stands_in_its_bar_or_beside_it() -> None:
    chart = drawn([bar(1, 0, 100), bar(2, 100, 101, "committed")], [])
    assert [label.text for label in labels_of(chart)] == [
        *("00000001", "worker lost", "00000002", "committed"),
        *("0 s", "101.00 s"),
    ]
    assert overlapping(chart) == []


def test_without_attempts_there_is_nothing_to_draw() -> None:
    assert attempt_chart("attempts", [], [Mark("cut", 1.0)], said=brief) is None


def rectangles(drawing: str) -> list[tuple[str, str, str]]:
    return [(each.attrib["class"], each.attrib["x"], each.attrib["width"]) for each in element_of(drawing).iter("rect")]


def test_bars_are_as_long_as_their_shares() -> None:
    assert rectangles(share_bar(0.25)) == [("rest", "0", "100"), ("share", "0", "25")]
    assert rectangles(share_bar(0)) == [("rest", "0", "100")]
    whole = ("rest", "0", "400")
    parts = [("waiting", 1), ("processing", 0), ("committing", 3)]
    assert rectangles(split_bar(parts)) == [whole, ("waiting", "0", "100"), ("committing", "100", "300")]
    assert rectangles(split_bar([("waiting", 0)])) == [whole]
