"""Emitting columns sends what emitting row by row sends, to the same tasks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.columns import from_wire
from coordinated_bolt.streams.groupings import (
    AllGrouping,
    CustomGrouping,
    FieldsGrouping,
    GlobalGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from coordinated_bolt.streams.routing import Subscriber
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.transport import outbox
from coordinated_bolt.transport.outbox import SingleFrames
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from state.codec import CodecError
from tests.support.case_names import shown
from tests.support.property_lengths import examples
from tests.support.tasks.collectors import contents, make
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wirings import RecordingBolt, attempt, origin_of, output, wire
from tests.support.values import values

MESSAGE = r"component 'bolt' emitted the batch .* on stream 'pairs', which takes 2 columns .*: 'key', 'value'"


class EveryThird(CustomGrouping):
    """To two tasks, to one, to none, in turns that depend on earlier calls."""

    calls = 0

    def choose_tasks(self, values):
        self.calls += 1
        return [[0, 1], [1], []][self.calls % 3]


SUBSCRIBERS = (
    Subscriber("shuffled", (21, 22, 23), ShuffleGrouping()),
    Subscriber("by_key", (31, 32), FieldsGrouping(("key",))),
    Subscriber("by_both", (41, 42), FieldsGrouping(("value", "key"))),
    Subscriber("all", (51, 52), AllGrouping()),
    Subscriber("partial", (61, 62, 63), PartialKeyGrouping(("key",))),
    Subscriber("custom", (71, 72), EveryThird()),
    Subscriber("one_task", (81,), FieldsGrouping(("key",))),
)
ONE = Subscriber("one", (21,), GlobalGrouping())


def rows_to(sent):
    """Target -> the rows it gets, however they are held."""
    return {
        target: [(stream, row) for stream, rows in runs for row in from_wire(rows)]
        for target, runs in contents(sent).items()
    }


@settings(max_examples=examples(50))
@given(st.lists(st.lists(st.tuples(values, values), max_size=4), max_size=3), st.integers(1, 5))
def test_columns_reach_the_tasks_that_rows_reach_in_the_same_order(portions, frame_tuples):
    by_row, row_box, row_frames = make(*SUBSCRIBERS, frame_tuples=frame_tuples)
    by_column, column_box, column_frames = make(*SUBSCRIBERS, frame_tuples=frame_tuples)
    for portion in portions:
        for row in portion:
            by_row.emit(row, "pairs")
        by_column.emit_batch([[row[0] for row in portion], [row[1] for row in portion]], "pairs")
    row_box.close()
    column_box.close()
    assert repr(rows_to(column_frames)) == repr(rows_to(row_frames))
    assert by_column.emitted == by_row.emitted
    assert column_box.transferred == row_box.transferred


@pytest.mark.parametrize(
    "batch",
    [
        [["k", "l"], [1, 2]],
        (("k", "l"), range(1, 3)),
        {"value": [1, 2], "key": ["k", "l"]},
        [{"k": 1, "l": 2}.keys(), {"k": 1, "l": 2}.values()],
        TupleBatch([["k", 1], ["l", 2]], origin_of(wire(RecordingBolt()), attempt(1))),
        iter([iter(["k", "l"]), iter([1, 2])]),
    ],
    ids=["lists", "tuples", "by name", "views", "a batch", "iterators"],
)
def test_columns_may_be_given_in_many_forms(batch):
    collector, box, sent = make(ONE)
    if isinstance(batch, TupleBatch):
        batch.origin.fields = ("key", "value")
    collector.emit_batch(batch, "pairs")
    box.close()
    assert rows_to(sent) == {21: [(0, ["k", 1]), (0, ["l", 2])]}


def test_arrow_tables_and_arrays_become_values_of_python():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"value": [1, None], "key": ["k", "l"]})
    collector, box, sent = make(ONE)
    collector.emit_batch(table, "pairs")
    collector.emit_batch(table.to_batches()[0], "pairs")
    collector.emit_batch([arrow.array(["m"]), arrow.chunked_array([[1.5]])], "pairs")
    box.close()
    assert [row for _, row in rows_to(sent)[21]] == [*[["k", 1], ["l", None]] * 2, ["m", 1.5]]


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([["k"]], "it has 1"),
        ([["k"], [1], [2]], "it has 3"),
        ([[]], "it has 1"),
        (([], (), {}.keys()), "it has 3"),
        ([[], ""], "one column is a str; give lists"),
        ([["k", "l"], [1]], "their lengths are 2, 1"),
        ({"key": ["k"]}, "its columns are 'key'"),
        ({"key": ["k"], "count": [1]}, "its columns are 'key', 'count'"),
        (["kl", [1, 2]], "one column is a str; give lists"),
        ([{"k", "l"}, [1, 2]], "one column is a set; give lists"),
        ([5, [1]], "one column is a int; give lists"),
        ("ab", "it is a str; give a list of columns, or a mapping"),
        (5, "it is a int; give a list"),
        ({("k",), (1,)}, "it is a set; give a list"),
    ],
    ids=shown,
)
def test_columns_that_do_not_fit_the_stream_are_refused(batch, reason):
    collector, _, sent = make(ONE)
    with pytest.raises(ValueError, match=f"{MESSAGE}; {reason}"):
        collector.emit_batch(batch, "pairs")
    assert (sent, collector.emitted_count) == ([], 0)


@pytest.mark.parametrize("batch", [[[], []], [{}.keys(), {}.values()], ((), range(0))], ids=shown)
def test_columns_without_values_send_nothing_on_any_stream_that_takes_them(batch):
    collector, box, sent = make(*SUBSCRIBERS)
    collector.emit_batch(batch, "pairs")
    with pytest.raises(ValueError, match="component 'bolt' does not declare stream 'nowhere'"):
        collector.emit_batch(batch, "nowhere")
    box.close()
    assert not any(rows_to(sent).values())
    assert (box.transferred, collector.emitted_count) == ({}, 0)


def test_a_value_that_cannot_travel_is_named_with_its_row_and_field():
    collector, _, sent = make(ONE)
    with pytest.raises(CodecError, match=r"emitted \['l', <object .*field 'value' holds <object"):
        collector.emit_batch([["k", "l"], [1, object()]], "pairs")
    with pytest.raises(CodecError, match=r"field 'key' holds .* not valid Unicode"):
        collector.emit_batch([["\ud800"], [1]], "pairs")
    assert sent == []


def test_values_and_columns_are_copied_when_they_are_emitted():
    collector, box, sent = make(ONE)
    keys, inner = ["k"], [1]
    collector.emit_batch([keys, [inner]], "pairs")
    keys[0] = "changed"
    inner.append(2)
    box.close()
    assert rows_to(sent) == {21: [(0, ["k", [1]])]}


def test_portions_of_a_batch_arrive_as_one_stretch_and_rows_keep_their_place_between_columns():
    collector, box, sent = make(ONE)
    collector.emit_batch([["a"], [1]], "pairs")
    collector.emit_batch([["b"], [2]], "pairs")
    collector.emit(["c", 3], "pairs")
    collector.emit_batch([["d"], [4]], "pairs")
    box.close()
    ((_, first), (_, second), (_, third)) = contents(sent)[21]
    assert list(from_wire(first)) == [["a", 1], ["b", 2]]
    assert second == [["c", 3]]
    assert list(from_wire(third)) == [["d", 4]]


def test_a_large_batch_is_cut_into_frames_like_rows():
    collector, box, sent = make(ONE)
    count = outbox.FRAME_TUPLES + 1
    collector.emit_batch([["k"] * count, range(count)], "pairs")
    box.close()
    runs = contents(sent)[21]
    assert [len(from_wire(rows)) for _, rows in runs] == [outbox.FRAME_TUPLES, 1]


def test_a_batch_stays_together_where_each_tuple_has_a_frame_of_its_own():
    collector, _, sent = make(ONE, frame_tuples=1)
    collector.emit_batch([["k", "l"], [1, 2]], "pairs")
    assert [len(from_wire(rows)) for _, rows in contents(sent)[21]] == [2]


def test_a_frame_of_columns_too_large_is_sent_in_parts(monkeypatch):
    monkeypatch.setattr(outbox, "FRAME_BYTES_MAX", 200)
    monkeypatch.setattr(outbox, "TUPLE_BYTES_MAX", 150)
    collector, box, sent = make(ONE)
    collector.emit_batch([["x" * 60] * 9, range(9)], "pairs")
    box.close()
    assert [row[1] for _, row in rows_to(sent)[21]] == list(range(9))
    assert len(contents(sent)[21]) > 3
    collector, box, _ = make(ONE)
    collector.emit_batch([["x" * 160], [1]], "pairs")
    with pytest.raises(CodecError, match="more than the limit of 150"):
        box.close()


class Watcher(TaskObserver):
    def __init__(self):
        self.seen = []

    def emitted(self, stream_id, values, receivers, attempt=None):
        self.seen.append((stream_id, list(values), list(receivers)))


def test_a_watched_task_tells_of_every_tuple_and_its_receivers_and_sends_columns_to_the_same_tasks():
    watcher = Watcher()
    wiring = wire(RecordingBolt(), targets=(21, 22), streams=output((21, 22), FieldsGrouping(("value",))))
    box = attempt_outbox(wiring, attempt(1), SingleFrames(lambda frame: None))
    watched = AttemptCollector(wiring, attempt(1), box, HookObserver(watcher, wiring.context()))
    watched.emit_batch([list("abcdefga")])
    expected = AttemptCollector(
        wiring, attempt(1), attempt_outbox(wiring, attempt(1), SingleFrames(lambda frame: None))
    )
    assert watcher.seen == [("default", [key], expected.emit([key])) for key in "abcdefga"]
    box.close()
    assert watched.emitted == {"default": 8}
    assert box.transferred == {0: 8}
    assert {tuple(receivers) for _, _, receivers in watcher.seen} == {(21,), (22,)}
