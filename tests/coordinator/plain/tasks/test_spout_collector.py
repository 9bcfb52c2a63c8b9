"""Many tuples emitted at once are what as many calls would have emitted."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import AllGrouping, CustomGrouping, FieldsGrouping, ShuffleGrouping
from coordinated_bolt.transport import outbox as module
from coordinated_bolt.watching.task_observer import HookObserver, Meter, TaskObserver
from coordinator.plain.tasks.messages import Message, MessageKind
from coordinator.plain.tasks.spout_collector import TreeSpoutOutputCollector
from state.codec import CodecError
from tests.support.tasks.messages import message_outbox
from tests.support.tasks.wirings import RecordingBolt, output, wire

ACKERS = (90, 91)
STREAMS = (StreamSpec("default", ("value",)),)


class Some(CustomGrouping):
    """Sends every third tuple to nobody, the others to one task or two."""

    def choose_tasks(self, values):
        return [0, 2][: values[0] % 3]


def make(grouping=None, *, ackers=ACKERS, observer=None):
    sent: list[Message] = []
    wiring = wire(
        RecordingBolt(),
        task_id=1,
        targets=(21, 22, 23),
        streams=output((21, 22, 23), grouping or ShuffleGrouping(), *STREAMS),
        ackers=ackers,
    )
    meter = Meter(observer=observer)
    outbox = message_outbox(1, ackers, sent.append)
    collector = TreeSpoutOutputCollector(wiring, outbox, Random(1), HookObserver(observer, wiring.context()), meter)
    return collector, sent, meter.metrics.work


def received(sent):
    """Target -> the values it gets, in order; and whether the edges of every root are those it began with."""
    got: dict[int, list[Any]] = {}
    edges: dict[int, int] = {}
    for message in sent:
        if message.kind is MessageKind.TUPLE:
            _, values, roots = message.payload
            got.setdefault(message.target, []).append(values)
            for root, edge in roots.items():
                edges[root] = edges.get(root, 0) ^ edge
    begun = dict(message.payload for message in sent if message.kind is MessageKind.INIT)
    return got, edges == {root: its for root, its in begun.items() if its}, len(begun)


@pytest.mark.parametrize(
    "grouping",
    [ShuffleGrouping(), FieldsGrouping(("value",)), AllGrouping(), Some()],
    ids=["shuffle", "fields", "all", "custom, some to nobody"],
)
@pytest.mark.parametrize("count", [1, 2, 300, 1000])
def test_they_reach_the_same_tasks_in_the_same_order_and_each_is_a_tree_of_its_own(grouping, count):
    many, sent_many, work_many = make(grouping)
    each, sent_each, work_each = make(grouping)
    ids = [f"m{number}" for number in range(count)]
    many.emit_all(([number] for number in range(count)), iter(ids))
    for number, message_id in enumerate(ids):
        each.emit([number], message_id)

    got, is_balanced, tree_count = received(sent_many)
    assert (got, tree_count) == (received(sent_each)[0], count)
    assert is_balanced
    assert [message[:3] for message in many.pending.values()] == [message[:3] for message in each.pending.values()]
    assert (work_many, many.emitted_count) == (work_each, each.emitted_count)


def test_large_values_and_lists_travel_too():
    collector, sent, _ = make(AllGrouping())
    rows = [["x" * 5000], [[1, 2]], ["y"]]
    collector.emit_all(rows, "abc")
    assert received(sent) == ({21: rows, 22: rows, 23: rows}, True, 3)


def test_without_ids_or_ackers_nothing_is_tracked():
    collector, sent, _ = make(AllGrouping())
    collector.emit_all([["x"], ["y"]])
    assert received(sent)[2] == len(collector.pending) == len(collector.done) == 0
    collector, sent, work = make(AllGrouping(), ackers=())
    collector.emit_all([["x"], ["y"]], [1, 2])
    assert (len(collector.pending), [message[0] for message in collector.done]) == (0, [1, 2])
    assert received(sent) == ({target: [["x"], ["y"]] for target in (21, 22, 23)}, True, 0)
    assert (work.emitted, work.transferred) == ({"default": 2}, {"default": 6})


def test_of_an_id_that_is_none_nobody_hears():
    collector, sent, _ = make(AllGrouping())
    collector.emit_all([["x"], ["y"]], [None, 2])
    assert [message[0] for message in collector.pending.values()] == [2]
    assert received(sent)[1:] == (True, 1)


@pytest.mark.parametrize(
    ("rows", "ids", "error", "text"),
    [
        ([["x"], ["y"]], [1], ValueError, "was given 2 tuples, but 1 message ids"),
        ([["x"], ["y", "z"]], [1, 2], ValueError, "which takes a list of 1 value"),
        ([["x"], [object()]], [1, 2], CodecError, "cannot be sent or stored"),
    ],
)
def test_if_one_is_refused_none_is_sent(rows, ids, error, text):
    collector, sent, _ = make()
    with pytest.raises(error, match=text):
        collector.emit_all(rows, ids)
    assert (sent, collector.pending, collector.emitted_count) == ([], {}, 0)


def test_if_one_is_too_large_none_is_sent(monkeypatch):
    monkeypatch.setattr(module, "TUPLE_BYTES_MAX", 5000)
    collector, sent, _ = make()
    with pytest.raises(CodecError, match="more than the limit of 5,000"):
        collector.emit_all([["x"], ["y" * 5001]], [1, 2])
    assert (sent, collector.pending, collector.emitted_count) == ([], {}, 0)


def test_an_observer_is_told_of_each():
    class Seen(TaskObserver):
        def __init__(self):
            self.steps = []

        def emitted(self, stream_id, values, receivers, attempt=None):
            self.steps.append((values, receivers))

    seen = Seen()
    collector, _, _ = make(AllGrouping(), observer=seen)
    collector.emit_all([["x"], ["y"]], [1, 2])
    assert seen.steps == [(["x"], [21, 22, 23]), (["y"], [21, 22, 23])]
