"""A row is what it was when it was emitted, and is refused where it has no order or holds what cannot travel."""

from __future__ import annotations

from collections import Counter, OrderedDict
from types import MappingProxyType

import pytest

from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.groupings import AllGrouping, CustomGrouping, GlobalGrouping
from coordinated_bolt.streams.routing import Subscriber
from state.codec import CodecError
from tests.support.case_names import shown
from tests.support.tasks.collectors import contents, make
from tests.support.values import Number

ONE = Subscriber("one", (21,), GlobalGrouping())
TWO = Subscriber("two", (31, 32), AllGrouping())
EMITS = [
    lambda collector, *rows: [collector.emit(row, "pairs") for row in rows],
    lambda collector, *rows: collector.emit_all(rows, "pairs"),
    lambda collector, *rows: [collector.emit_direct(21, row, "orders") for row in rows],
]
each_emit = pytest.mark.parametrize("emit", EMITS, ids=["emit", "emit_all", "emit_direct"])


def sent_by(box, sent):
    box.close()
    return [row for _, rows in contents(sent)[21] for row in rows]


@each_emit
@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1], lambda value: value.append(2)),
        ({"a": 1}, lambda value: value.update(b=2)),
        ({1}, lambda value: value.add(2)),
        ([["a"], None], lambda value: value[0].append("b")),
        ({"a": [1]}, lambda value: value["a"].append(2)),
        (("x", ["a"]), lambda value: value[1].append("b")),
    ],
    ids=shown,
)
def test_a_value_that_is_changed_later_arrives_as_it_was_emitted(emit, value, change):
    collector, box, sent = make(ONE)
    emit(collector, ["k", value], ("l", value))
    expected = repr(value)
    change(value)
    emit(collector, ["m", value])
    assert [repr(row[1]) for row in sent_by(box, sent)] == [expected, expected, repr(value)]


@each_emit
def test_rows_of_plain_values_between_others_keep_their_order(emit):
    collector, box, sent = make(ONE)
    rows = [["k", n if n % 300 else [n]] for n in range(700)]
    emit(collector, *rows)
    assert sent_by(box, sent) == rows


@each_emit
def test_numbers_that_other_types_stand_for_arrive_as_integers(emit):
    collector, box, sent = make(ONE)
    emit(collector, ["k", Number(3)])
    assert sent_by(box, sent) == [["k", 3]]


def test_neither_a_hook_nor_a_grouping_changes_what_is_sent():
    class Meddler(ITaskHook):
        def emit(self, info):
            info.values[1].append("hook")

    class Meddling(CustomGrouping):
        def choose_tasks(self, values):
            values[1].append("grouping")
            return [0]

        def __repr__(self):
            return "Meddling()"

    collector, box, sent = make(ONE, Subscriber("custom", (41,), Meddling()))
    collector._hooks = [Meddler()]
    collector.emit(["k", ["sent"]], "pairs")
    box.close()
    assert contents(sent) == {21: [[0, [["k", ["sent"]]]]], 41: [[0, [["k", ["sent"]]]]]}


@each_emit
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"key": "a", "value": 1}, r"dict maps names to values, so emit \[row\[name\] for name in fields\]"),
        (OrderedDict(a=1, b=2), "OrderedDict maps names"),
        (MappingProxyType({"a": 1, "b": 2}), "mappingproxy maps names"),
        (Counter("ab"), "Counter maps names"),
        ({"a", "b"}, r"set has no order, so emit sorted\(row\) or a list"),
        (frozenset("ab"), "frozenset has no order"),
        *(
            (row, "which takes a list of 2 values: 'key', 'value'")
            for row in ([], ["k"], ["k", 1, 2], "ab", b"ab", bytearray(b"ab"), memoryview(b"ab"), 5, None)
        ),
    ],
    ids=shown,
)
def test_a_row_without_an_order_is_refused(emit, row, reason):
    collector, _, sent = make(ONE)
    with pytest.raises(ValueError, match=rf"component 'bolt' emitted .* on stream '(pairs|orders)'.*{reason}"):
        emit(collector, row)
    assert sent == []
    assert collector.emitted_count == 0


@pytest.mark.parametrize("rows", [{("a", 1): 2}, {("a", 1), ("b", 2)}, frozenset({("a", 1)})], ids=shown)
def test_rows_in_no_order_are_refused(rows):
    collector, _, _ = make(ONE)
    with pytest.raises(ValueError, match=r"component 'bolt' called emit_all with .*; give a list of rows"):
        collector.emit_all(rows, "pairs")
    assert collector.emitted_count == 0


@pytest.mark.parametrize(
    "row", [("a", 1), iter(["a", 1]), {"a": 1, "b": 1}.keys(), {"a": 1, "b": 1}.values(), range(2)], ids=shown
)
def test_whatever_has_an_order_is_a_row(row):
    collector, box, sent = make(ONE)
    collector.emit(row, "pairs")
    assert len(sent_by(box, sent)) == 1


@each_emit
@pytest.mark.parametrize(
    "value",
    [object(), bytearray(b"x"), ["a", {"b": object()}], "half a pair \ud800", ["\ud800"]],
    ids=lambda v: type(v).__name__,
)
def test_a_value_that_cannot_travel_is_refused_at_the_emit_with_stream_field_tuple_and_remedy(emit, value):
    collector, box, sent = make(ONE, TWO)
    message = (
        r"component 'bolt' emitted \['k', .*\] on stream '(pairs|orders)', which cannot be sent or stored: "
        r"field 'value' holds .*; (send|replace) "
    )
    with pytest.raises(CodecError, match=message):
        emit(collector, ["k", value])
    assert collector.emitted_count == 0
    box.close()
    assert not any(contents(sent).values())


def test_of_many_rows_the_one_that_cannot_be_sent_is_named_and_none_is_emitted():
    collector, _, sent = make(ONE)
    rows: list[list[object]] = [["k", "v"] for _ in range(1_000)]
    rows[700][0] = "\udc80"
    rows[701][1] = object()
    with pytest.raises(CodecError, match=r"emitted \['\\udc80', 'v'\] on stream 'pairs'.*field 'key' holds"):
        collector.emit_all(rows, "pairs")
    with pytest.raises(ValueError, match=r"emitted \['k'\] on stream 'pairs', which takes a list of 2 values"):
        collector.emit_all([["k", 1], ["k"]], "pairs")
    assert (sent, collector.emitted_count) == ([], 0)


def test_columns_of_text_and_nothing_are_taken_as_they_are():
    collector, box, sent = make(ONE)
    rows = [["wörd", None if n % 2 else "é"] for n in range(600)]
    collector.emit_all(rows, "pairs")
    assert sent_by(box, sent) == rows
