"""A task of a sub-topology: batches begun, counted, finished, failed, given up, and what goes into the ack tree."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import xor
from random import Random

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.completeness.tracking import SourceArgs
from coordinated_bolt.components.batch_bolts import FinishedCallback, TimeoutCallback
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import ShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.watching.task_observer import Meter, TaskObserver
from coordinated_bolt.wiring import Coordination
from coordinator.plain.tasks import coordinated_task
from coordinator.plain.tasks.bolt_task import BoltTask
from coordinator.plain.tasks.coordinated_task import CoordinatedTask, make_task
from coordinator.plain.tasks.messages import (
    Message,
    MessageKind,
    coord_message,
    regular_message,
    tick_message,
    tree_message,
)
from coordinator.plain.tasks.user_calls import end_on
from state.errors import FailedException, ProtocolError, UserCodeError
from tests.support.tasks.messages import message_outbox, tuple_message
from tests.support.tasks.wirings import Calls, RecordingBolt, attempt, output, wire

ACKER = 90
ROOT = 7
A, B = attempt(1), attempt(2)
TUPLE, REGULAR, COORD = MessageKind.TUPLE, MessageKind.REGULAR, MessageKind.COORD
ACK, FAIL = MessageKind.ACK, MessageKind.FAIL


class Ends(TaskObserver):
    """Hears how batches end."""

    def __init__(self):
        self.seen = []

    def batch_ended(self, batch, failure, metrics):
        self.seen.append((batch.txid, failure and (failure.kind, failure.text)))


class Told(RecordingBolt, FinishedCallback, TimeoutCallback):
    """Is told how batches end; emits once more when finished."""

    def finished_id(self, attempt):
        self._did("finished_id")
        self.collector.emit(["finished"])

    def timeout_id(self, attempt):
        self._did("timeout_id")


class Task:
    """One task of a sub-topology and what it has sent.

    Args:
        bolt: what it runs.
        args: of its source component, tasks 1 and 2; None for a master.
        targets: tasks downstream inside.
        outside: tasks downstream of another component, outside.
    """

    def __init__(self, bolt=None, *, args=SourceArgs.ALL, targets=(21, 22), outside=(), seed=0):
        streams = output(targets)
        if outside:
            subscribers = (*streams["default"].subscribers, Subscriber("plain", tuple(outside), ShuffleGrouping()))
            streams["default"] = OutputStream(0, StreamSpec("default", ("value",)), subscribers)
        wiring = wire(bolt or RecordingBolt(), upstream=(1, 2), targets=(*targets, *outside), streams=streams)
        source_args = {} if args is None else {"source": args}
        tasks_of = wiring.tasks_of | {"__acker": (ACKER,)}
        self.wiring = replace(wiring, tasks_of=tasks_of, coordination=Coordination(source_args, tuple(targets)))
        self.sent: list[Message] = []
        self.observer = Ends()
        outbox = message_outbox(10, (ACKER,), self.sent.append)
        self.meter = Meter(observer=self.observer)
        self.task = CoordinatedTask(self.wiring, outbox, Random(seed), self.meter)
        end_on(self.task.start())

    def begin(self, value, roots=None, source=1):
        roots = {ROOT: 100} if roots is None else roots
        end_on(self.task.receive(tuple_message(source, 10, stream_index=0, values=[value], roots=roots)))

    def regular(self, source, *values, of=A, roots=(ROOT,)):
        for value in values:
            end_on(
                self.task.receive(regular_message(source, 10, batch=of, roots=roots, stream_index=0, values=[value]))
            )

    def coord(self, source, tuple_count, of=A, roots=None):
        anchored = {ROOT: 1000 + source} if roots is None else roots
        end_on(self.task.receive(coord_message(source, 10, batch=of, roots=anchored, tuple_count=tuple_count)))

    def whole(self, value):
        """The only tuple of a batch, and the reports of both source tasks."""
        self.regular(1, value)
        self.coord(1, 1)
        self.coord(2, 0)

    def take(self, *kinds):
        taken = [message for message in self.sent if message.kind in kinds]
        self.sent[:] = [message for message in self.sent if message.kind not in kinds]
        return taken


def names():
    return [name for name, *_ in Calls.take()]


def edges_of(messages, root=ROOT):
    return reduce(xor, (message.payload[-1 if message.kind is TUPLE else 1][root] for message in messages), 0)


def test_a_master_begins_a_batch_for_each_tuple_and_finishes_it_with_it():
    task = Task(args=None)
    task.begin("a")
    task.begin("b", {8: 1}, source=2)
    assert names() == ["prepare", "execute", "finish_batch", "cleanup"] * 2
    regulars = task.take(REGULAR)
    assert [(message.batch.txid, message.payload[1:]) for message in regulars] == [
        (1, ([ROOT], 0, ["a"])),
        (2, ([8], 0, ["b"])),
    ]
    coords = task.take(COORD)
    assert [(message.target, message.batch.txid) for message in coords] == [(21, 1), (22, 1), (21, 2), (22, 2)]
    assert [sum(message.payload[2] for message in coords[start : start + 2]) for start in (0, 2)] == [1, 1]
    acks = task.take(ACK)
    assert [(m.target, *m.payload) for m in acks] == [
        (ACKER, ROOT, 100 ^ edges_of(coords[:2])),
        (ACKER, 8, 1 ^ edges_of(coords[2:], 8)),
    ]
    assert task.sent == []
    assert len(task.task) == 0


@pytest.mark.case(id="P-15")
def test_two_masters_tasks_draw_batches_of_their_own():
    batches = set()
    for seed in range(3):
        task = Task(args=None, seed=seed)
        task.begin("a")
        task.begin("a")
        batches |= {message.batch for message in task.take(REGULAR)}
    assert len(batches) == 6
    assert sorted(batch.txid for batch in batches) == [1, 1, 1, 2, 2, 2]


def test_an_inner_task_acks_what_it_holds_once_it_has_told_everybody_downstream():
    task = Task()
    task.regular(1, "a", "b")
    task.coord(1, 2)
    assert task.take(ACK, COORD) == []
    task.coord(2, 0)
    assert [message.kind for message in task.sent] == [REGULAR, REGULAR, COORD, COORD, ACK]
    coords, [ack] = task.take(COORD), task.take(ACK)
    assert [message.payload[2] for message in coords] == [1, 1]
    assert (ack.target, *ack.payload) == (ACKER, ROOT, 1001 ^ 1002 ^ edges_of(coords))
    assert len(task.task) == 0


def test_a_second_report_of_a_single_source_fails_the_batch():
    task = Task(args=SourceArgs.SINGLE)
    task.regular(1, "a")
    task.coord(2, 0)  # complete only if task 2 were the one
    assert task.take(ACK, FAIL) == []
    task.coord(1, 1)
    assert [message.payload for message in task.take(FAIL)] == [(ROOT,)]
    assert task.observer.seen == [(1, (FailureKind.INCOMPLETE, "tasks [1, 2] reported, but only one of them may"))]


def test_tuples_for_bolts_outside_are_in_the_tree_and_their_edges_go_with_the_ack():
    task = Task(outside=(30,))
    task.regular(1, "a", "b", roots=(ROOT, 8))
    outside = task.take(TUPLE)
    assert [(m.target, m.payload[1], sorted(m.payload[2])) for m in outside] == [
        (30, ["a"], [ROOT, 8]),
        (30, ["b"], [ROOT, 8]),
    ]
    for source, tuple_count in [(1, 2), (2, 0)]:
        task.coord(source, tuple_count, roots={ROOT: 1000 + source, 8: 2000 + source})
    coords, acks = task.take(COORD), task.take(ACK)
    assert {message.target for message in coords} == {21, 22}  # nobody outside is told a count
    assert task.meter.metrics.work.transferred == {"default": 4}
    sent = {root: edges_of(coords, root) ^ edges_of(outside, root) for root in (ROOT, 8)}
    assert [m.payload for m in acks] == [(ROOT, 1001 ^ 1002 ^ sent[ROOT]), (8, 2001 ^ 2002 ^ sent[8])]


def test_finished_id_follows_finish_batch_and_may_emit_what_is_counted():
    task = Task(Told())
    task.coord(1, 0)
    task.coord(2, 0)
    assert names() == ["prepare", "finish_batch", "finished_id", "cleanup"]
    assert [message.payload[3] for message in task.take(REGULAR)] == [["finished"]]
    assert sum(message.payload[2] for message in task.take(COORD)) == 1


@pytest.mark.case(id="P-03")
@pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch", "finished_id", "cleanup"])
def test_a_failed_exception_anywhere_fails_the_batch_and_sticks(where):
    task = Task(Told({where: FailedException("no")}))
    task.whole("a")
    assert task.take(ACK) == []
    assert {message.payload for message in task.take(FAIL)} == {(ROOT,)}
    assert task.observer.seen == [(1, (FailureKind.FAILED, "FailedException: no"))]
    done = names()
    assert (done.count("prepare"), done.count("cleanup"), done[-1]) == (1, 1, "cleanup")
    assert done.count("timeout_id") == (where != "cleanup")
    assert len(task.task) == 0
    task.sent.clear()
    task.regular(1, "late", "later")
    task.regular(2, "late")
    assert (task.sent, names()) == ([], [])
    task.coord(2, 1)
    assert [(message.kind, message.payload) for message in task.sent] == [(FAIL, (ROOT,))]
    assert (len(task.task), names()) == (0, [])


def test_a_failed_exception_of_a_master_fails_its_tuple():
    task = Task(RecordingBolt({"execute": FailedException("no")}), args=None)
    task.begin("a", {ROOT: 1, 8: 2})
    assert [(message.kind, message.payload) for message in task.sent] == [(FAIL, (ROOT,)), (FAIL, (8,))]
    assert len(task.task) == 0


@pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch", "cleanup"])
def test_any_other_exception_is_the_users_bug_even_before_the_batch_is_complete(where):
    task = Task(RecordingBolt({where: KeyError("oops")}))
    with pytest.raises(UserCodeError, match="KeyError: 'oops'") as caught:
        task.whole("a")
    error = caught.value
    assert (error.component_id, error.task_index, error.attempt) == ("bolt", 0, str(A))
    assert ("value='a'" in error.tuple_text) == (where == "execute")
    assert task.take(ACK, FAIL) == []
    assert names().count("cleanup") == 1


def test_a_tuple_too_many_after_the_finish_fails_the_batch_and_is_not_executed():
    task = Task()
    task.coord(1, 0)
    task.coord(2, 0)
    task.sent.clear()
    Calls.take()
    task.regular(1, "late")
    assert [(message.kind, message.payload) for message in task.sent] == [(FAIL, (ROOT,))]
    task.regular(1, "later")
    assert len(task.sent) == 1
    assert (names(), len(task.task)) == ([], 0)


@pytest.mark.case(id="P-02")
def test_a_report_that_comes_twice_is_held_once_and_finishes_nothing_twice():
    task = Task()
    task.coord(1, 0)
    task.coord(1, 0)
    task.coord(2, 0)
    task.coord(2, 0)
    coords, acks = task.take(COORD), task.take(ACK)
    assert [message.target for message in coords] == [21, 22]
    assert [message.payload for message in acks] == [(ROOT, 1001 ^ 1002 ^ edges_of(coords))]
    assert task.sent == []
    assert names() == ["prepare", "finish_batch", "cleanup"]


@pytest.mark.case(id="P-09")
def test_a_batch_that_is_never_complete_is_given_up_with_the_third_tick_after_the_last_word_of_it():
    task = Task(Told())
    task.regular(1, "a")
    task.task.tick()
    task.task.tick()
    task.coord(2, 0)
    task.task.tick()
    task.task.tick()
    assert (len(task.task), task.take(FAIL)) == (1, [])
    assert names() == ["prepare", "execute"]
    task.task.tick()
    assert len(task.task) == 0
    assert names() == ["timeout_id", "cleanup"]
    assert [message.payload for message in task.take(FAIL)] == [(ROOT,)]
    task.coord(1, 1)
    assert names() == []
    assert task.take(ACK) == []


def test_closing_cleans_up_after_batches_under_way_and_sends_nothing():
    task = Task(Told())
    task.regular(1, "a")
    task.task.tick()
    task.regular(1, "b", of=B)
    task.sent.clear()
    names()
    end_on(task.task.close())
    assert names() == ["timeout_id", "cleanup"] * 2
    assert (task.sent, len(task.task)) == ([], 0)


def test_only_so_many_batches_that_have_ended_are_remembered(monkeypatch):
    monkeypatch.setattr(coordinated_task, "REMEMBERED_BATCHES", 2)
    task = Task()
    for txid in (1, 2, 3):
        task.coord(1, 0, of=attempt(txid))
        task.coord(2, 0, of=attempt(txid))
    task.coord(1, 0, of=attempt(2))
    task.coord(1, 0, of=attempt(3))
    assert len(task.task) == 0
    task.coord(1, 0, of=attempt(1))
    assert len(task.task) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (None, coord_message(1, 10, batch=A, roots={}, tuple_count=0)),
        (None, regular_message(1, 10, batch=A, roots=[], stream_index=0, values=["a"])),
        (SourceArgs.ALL, tuple_message(1, 10, stream_index=0, values=["a"], roots={})),
        (SourceArgs.ALL, tree_message(FAIL, 1, 10, ROOT)),
        (SourceArgs.ALL, tick_message(0, 10, 1.0)),
    ],
)
def test_messages_for_somebody_else_are_a_bug(args, message):
    with pytest.raises(ProtocolError, match="task 10 of a sub-topology received an unexpected"):
        Task(args=args).task.receive(message)


def test_tasks_are_made_by_their_wiring():
    inside, outside = Task().wiring, wire(RecordingBolt())
    outbox = message_outbox(10, (), print)
    assert isinstance(make_task(inside, outbox, Random(0)), CoordinatedTask)
    assert isinstance(make_task(outside, outbox, Random(0)), BoltTask)
    with pytest.raises(ProtocolError, match="task 10 is not part of a sub-topology"):
        CoordinatedTask(outside, outbox, Random(0))
