"""What a rich bolt's collector sends: edges on both ends, acks that close them, refusals in plain words."""

from __future__ import annotations

from random import Random

import pytest

from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import AllGrouping, ShuffleGrouping
from coordinated_bolt.streams.plain_tuple import PlainTuple, TupleStatus
from coordinated_bolt.streams.tuples import Tuple, TupleOrigin
from coordinated_bolt.watching.task_observer import HookObserver, Meter
from coordinator.plain.tasks.messages import Message, MessageKind
from coordinator.plain.tasks.output_collector import TreeOutputCollector
from tests.support.tasks.messages import message_outbox
from tests.support.tasks.wirings import RecordingBolt, attempt, origin_of, output, wire

ORIGIN = TupleOrigin(attempt=None, source_component="source", source_task=1, stream_id="default", fields=("value",))
ACKERS = (90, 91, 92)
ORDERS = StreamSpec("orders", ("value",), direct=True)


def tup(roots, value=0):
    return PlainTuple([value], ORIGIN, roots)


def make(targets=(21, 22), grouping=None, ackers=ACKERS, seed=1):
    sent: list[Message] = []
    streams = output(targets, grouping or AllGrouping(), StreamSpec("default", ("value",)), ORDERS)
    wiring = wire(RecordingBolt(), targets=targets, streams=streams, ackers=ackers)
    outbox = message_outbox(wiring.task_id, ackers, sent.append)
    return TreeOutputCollector(wiring, outbox, Random(seed), HookObserver(None, wiring.context()), Meter()), sent


def roots_of(message):
    assert message.kind is MessageKind.TUPLE
    return message.payload[2]


def test_an_emit_without_anchors_is_tracked_by_nobody():
    collector, sent = make()
    assert collector.emit(["x"]) == [21, 22]
    assert sent == [Message(10, target, MessageKind.TUPLE, (0, ["x"], {})) for target in (21, 22)]


def test_each_target_has_an_edge_of_its_own_under_each_root_and_the_anchor_keeps_them_all():
    collector, sent = make()
    anchor = tup({7: 70, 8: 80})
    collector.emit(["x"], [anchor])
    first, second = map(roots_of, sent)
    assert first.keys() == second.keys() == {7, 8}
    assert first[7] == first[8] != second[7] == second[8]
    assert anchor.ack_value == first[7] ^ second[7]


def test_an_ack_tells_the_acker_of_each_root_the_edge_that_came_and_those_that_went():
    collector, sent = make()
    anchor = tup({7: 70, 8: 80})
    collector.emit(["x"], anchor)
    edges = roots_of(sent[0])[7] ^ roots_of(sent[1])[7]
    del sent[:]
    collector.ack(anchor)
    assert sent == [
        Message(10, ACKERS[7 % 3], MessageKind.ACK, (7, 70 ^ edges)),
        Message(10, ACKERS[8 % 3], MessageKind.ACK, (8, 80 ^ edges)),
    ]


def test_two_anchors_of_one_root_cancel_each_other_nowhere():
    collector, sent = make(targets=(21,))
    left, right = tup({7: 70}), tup({7: 71, 9: 90})
    collector.emit(["x"], [left, right])
    roots = roots_of(sent[0])
    assert left.ack_value != right.ack_value
    assert roots == {7: left.ack_value ^ right.ack_value, 9: right.ack_value}
    collector.ack(left)
    collector.ack(right)
    values = [message.payload for message in sent[1:]]
    assert values == [(7, 70 ^ left.ack_value), (7, 71 ^ right.ack_value), (9, 90 ^ right.ack_value)]


def test_the_same_anchor_twice_is_two_edges():
    collector, sent = make(targets=(21,))
    anchor = tup({7: 70})
    collector.emit(["x"], [anchor, anchor])
    assert roots_of(sent[0]) == {7: anchor.ack_value}
    assert anchor.ack_value != 0
    single, sent_once = make(targets=(21,))
    once = tup({7: 70})
    single.emit(["x"], once)
    assert roots_of(sent_once[0])[7] != roots_of(sent[0])[7]


def test_a_fail_tells_each_acker_at_once():
    collector, sent = make()
    collector.fail(tup({7: 70, 8: 80}))
    assert sent == [Message(10, ACKERS[1], MessageKind.FAIL, (7,)), Message(10, ACKERS[2], MessageKind.FAIL, (8,))]


def test_a_reset_of_the_timeout_asks_each_acker_and_leaves_the_tuple_open():
    collector, sent = make()
    held = tup({7: 70, 8: 80})
    collector.reset_timeout(held)
    assert sent == [
        Message(10, ACKERS[1], MessageKind.RESET_TIMEOUT, (7,)),
        Message(10, ACKERS[2], MessageKind.RESET_TIMEOUT, (8,)),
    ]
    assert held.status is TupleStatus.OPEN


def test_a_tuple_without_roots_is_acked_and_failed_without_a_word():
    collector, sent = make(ackers=())
    collector.ack(tup({}))
    collector.fail(tup({}))
    assert sent == []


@pytest.mark.parametrize("ending", ["ack", "fail"])
@pytest.mark.parametrize(
    ("again", "purpose"),
    [("ack", "acked"), ("fail", "failed"), ("reset_timeout", "kept alive"), ("emit", "anchored on")],
)
def test_a_tuple_is_acked_or_failed_once_and_nothing_is_anchored_on_it_after(ending, again, purpose):
    collector, sent = make()
    done = tup({7: 70})
    getattr(collector, ending)(done)
    del sent[:]
    status = {"ack": "acked", "fail": "failed"}[ending]
    message = rf"Tuple\(source/default: value=0\) cannot be {purpose}: it was already {status}"
    with pytest.raises(ValueError, match=message):
        collector.emit(["x"], [done]) if again == "emit" else getattr(collector, again)(done)
    assert sent == []


def test_a_tuple_of_another_kind_cannot_be_acked():
    collector, _ = make()
    foreign = Tuple([1], origin_of(wire(RecordingBolt()), attempt(1)))
    with pytest.raises(TypeError, match="cannot be acked: it is not a tuple that this plain topology's bolt received"):
        collector.ack(foreign)


def test_arguments_in_another_order_are_refused_with_the_right_one():
    """As in Storm, where anchors come first, or as in batch bolts, which have none."""
    collector, sent = make()
    with pytest.raises(TypeError, match="; emit takes the values first, then the anchors"):
        collector.emit(tup({7: 70}), ["x"])
    with pytest.raises(
        TypeError, match="anchors must be tuples, got 'orders'; to name a stream, write stream_id='orders'"
    ):
        collector.emit(["x"], "orders")
    assert sent == []


def test_a_direct_tuple_reaches_one_task_and_is_anchored():
    collector, sent = make()
    anchor = tup({7: 70})
    collector.emit_direct(22, ["x"], [anchor], "orders")
    assert sent == [Message(10, 22, MessageKind.TUPLE, (1, ["x"], {7: anchor.ack_value}))]
    assert anchor.ack_value != 0


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (lambda collector, anchor: collector.emit(["x", "y"], anchor), "which takes a list of 1 value:"),
        (lambda collector, anchor: collector.emit("x", anchor), "which takes a list of 1 value:"),
        (lambda collector, anchor: collector.emit(["x"], anchor, "none"), "does not declare stream 'none'"),
        (lambda collector, anchor: collector.emit(["x"], anchor, "orders"), "is direct; use emit_direct"),
        (lambda collector, anchor: collector.emit_direct(21, ["x"], anchor), "has no direct stream 'default'"),
        (lambda collector, anchor: collector.emit_direct(5, ["x"], anchor, "orders"), "task 5 does not subscribe"),
    ],
)
def test_a_tuple_that_does_not_fit_is_refused_and_leaves_no_edge(emit, message):
    collector, sent = make()
    anchor = tup({7: 70})
    with pytest.raises(ValueError, match=message):
        emit(collector, anchor)
    assert sent == []
    assert anchor.ack_value == 0


def test_what_could_not_be_sent_is_no_edge():
    collector, sent = make()

    def full(message):
        if message.target == 22:
            raise OSError("no way to 22")
        sent.append(message)

    collector._outbox = message_outbox(10, ACKERS, full)
    anchor = tup({7: 70})
    with pytest.raises(OSError, match="no way to 22"):
        collector.emit(["x"], anchor)
    assert anchor.ack_value == roots_of(sent[0])[7]


def test_choices_go_on_over_the_life_of_the_task_and_differ_with_the_seed():
    targets = tuple(range(21, 31))
    collector, _ = make(targets, ShuffleGrouping())
    turns = [collector.emit(["x"])[0] for _ in range(20)]
    assert sorted(turns[:10]) == list(targets)
    assert turns[10:] == turns[:10]
    other, _ = make(targets, ShuffleGrouping(), seed=2)
    assert [other.emit(["x"])[0] for _ in range(10)] != turns[:10]


def test_a_tuple_of_a_plain_topology_has_no_attempt():
    with pytest.raises(AttributeError, match="a tuple of a plain topology has no attempt; use a"):
        assert tup({}).attempt
