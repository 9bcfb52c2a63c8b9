"""What a bolt emits: checked against its stream, spread by the groupings, counted and framed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.streams.groupings import AllGrouping, FieldsGrouping, GlobalGrouping, ShuffleGrouping
from coordinated_bolt.streams.routing import Subscriber
from coordinated_bolt.transport import outbox
from coordinated_bolt.transport.frames import FrameKind
from state.codec import unpack
from tests.support.case_names import shown
from tests.support.tasks.collectors import contents, make
from tests.support.tasks.wirings import attempt

ONE = Subscriber("one", (21, 22, 23), ShuffleGrouping())
TWO = Subscriber("two", (31, 32), FieldsGrouping(("key",)))
THREE = Subscriber("three", (41, 42), AllGrouping())


def test_every_subscriber_gets_each_tuple_by_its_own_grouping():
    collector, box, sent = make(ONE, TWO, THREE)
    receivers = collector.emit(["k", 1], "pairs")
    assert len(receivers) == 4
    assert receivers[0] in ONE.tasks
    assert receivers[1] in TWO.tasks
    assert receivers[2:] == [41, 42]
    box.close()
    assert {target for target, runs in contents(sent).items() if runs} == set(receivers)


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=12)


@given(st.lists(rows, max_size=4), st.integers(1, 4))
def test_emit_all_sends_the_same_tuples_to_the_same_tasks_as_emit(portions, frame_tuples):
    one_by_one, first_box, first = make(ONE, TWO, THREE, frame_tuples=frame_tuples)
    at_once, second_box, second = make(ONE, TWO, THREE, frame_tuples=frame_tuples)
    for portion in portions:
        for row in portion:
            one_by_one.emit(row, "pairs")
        at_once.emit_all(iter(portion), "pairs")
    first_box.close()
    second_box.close()
    flat = [
        {target: [row for _, rows in runs for row in rows] for target, runs in contents(sent).items()}
        for sent in (first, second)
    ]
    assert flat[0] == flat[1]
    assert one_by_one.emitted_count == at_once.emitted_count == sum(map(len, portions))


def test_a_tuple_on_a_stream_nobody_hears_goes_nowhere_and_is_counted_as_emitted():
    collector, box, sent = make(ONE)
    assert collector.emit(["x"], "unheard") == []
    collector.emit_all([["y"], ["z"]], "unheard")
    assert collector.emitted_count == 3
    box.close()
    assert contents(sent) == {21: [], 22: [], 23: []}


def test_an_undeclared_stream_is_refused_with_the_declared_ones():
    collector, _, _ = make(ONE)
    with pytest.raises(
        ValueError, match=r"component 'bolt' does not declare stream 'default' \(declared: orders, pairs, unheard\)"
    ):
        collector.emit(["k", 1])
    silent, _, _ = make(specs=())
    with pytest.raises(ValueError, match=r"\(declared: none; set output_fields\)"):
        silent.emit_all([["k", 1]])


@pytest.mark.parametrize("no_rows", [[], (), {}.items(), iter(())], ids=shown)
def test_no_rows_at_all_send_nothing_but_still_have_to_be_for_a_declared_stream(no_rows):
    collector, box, sent = make(ONE)
    collector.emit_all(no_rows, "pairs")
    assert collector.emitted_count == 0
    with pytest.raises(ValueError, match="does not declare stream 'tripels'"):
        collector.emit_all(no_rows, "tripels")
    box.close()
    assert not any(contents(sent).values())


@pytest.mark.parametrize("no_rows", ["", {}, set()], ids=shown)
def test_what_could_never_be_rows_is_refused_even_if_it_is_empty(no_rows):
    collector, _, _ = make(ONE)
    with pytest.raises(ValueError, match="give a list of rows"):
        collector.emit_all(no_rows, "pairs")


def test_values_are_copied_when_they_are_emitted():
    collector, box, sent = make(Subscriber("one", (21,), GlobalGrouping()))
    row = ["k", 1]
    collector.emit(row, "pairs")
    collector.emit_all([row], "pairs")
    row[1] = 2
    box.close()
    assert contents(sent) == {21: [[0, [["k", 1], ["k", 1]]]]}


def test_random_choices_depend_on_attempt_and_task_and_are_made_again_alike():
    def order(of, task_id):
        collector, _, _ = make(Subscriber("one", tuple(range(21, 41)), ShuffleGrouping()), of=of, task_id=task_id)
        return tuple(collector.emit(["k", n], "pairs")[0] for n in range(20))

    orders = [order(of, task) for of in (attempt(1, 1), attempt(1, 2), attempt(2, 1)) for task in (10, 11)]
    assert len(set(orders)) == 6
    assert orders[0] == order(attempt(1, 1), 10)


def test_two_shuffled_subscribers_of_one_stream_do_not_move_in_step():
    tasks = tuple(range(21, 41))
    collector, _, _ = make(Subscriber("a", tasks, ShuffleGrouping()), Subscriber("b", tasks, ShuffleGrouping()))
    pairs = [collector.emit(["k", n], "pairs") for n in range(20)]
    assert [first for first, _ in pairs] != [second for _, second in pairs]


def test_a_full_frame_is_sent_before_the_batch_is_finished():
    collector, _, sent = make(Subscriber("one", (21,), GlobalGrouping()))
    collector.emit_all([["k", n] for n in range(outbox.FRAME_TUPLES + 1)], "pairs")
    assert [len(unpack(frame.payload)[0][1]) for frame in sent] == [outbox.FRAME_TUPLES]
    collector.emit_all([["k", n] for n in range(outbox.FRAME_TUPLES - 1)], "pairs")
    assert [(f.sequence, len(unpack(f.payload)[0][1])) for f in sent] == [(0, 8192), (1, 8192)]


def test_a_closed_outbox_reports_to_every_task_downstream():
    collector, box, sent = make(ONE, TWO)
    assert isinstance(collector, AttemptCollector)
    edges = box.close()
    assert edges == {}, "where nothing was sent there is no edge"
    assert [(f.target, f.sequence, f.kind, unpack(f.payload)) for f in sent] == [
        (target, 0, FrameKind.COORD, 0) for target in (21, 22, 23, 31, 32)
    ]
